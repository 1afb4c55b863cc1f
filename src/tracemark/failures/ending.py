r"""How the output of a command line ends that failed, where no exit code is recorded.

Compilers, interpreters, runners of tests and package managers close what they print with words of their own. These
count at the end of an output alone, and as whole lines: behind a line in the middle the program went on. The latest
line that speaks of the end decides, so one that says that all went well ends the search too. What only explains
(`hint: …`, the frames of a stack) is passed over.

Some words tell a failure only where a certain program prints them, such as `error: …` of `git` and `a.go:3:5: …` of
`go`; anybody else's may be the line of a log.

Invariant: linear time. A bounded end is read, and each pattern is tried at the beginning of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

from tracemark.failures.command_line import pipelines
from tracemark.failures.program import program_of

_READ = 60
"""Lines from the end that are looked at."""
_SAID = 24
"""Lines of these, without what is passed over, among which a sum or a program's own words may stand."""
_SHORT = 2
"""Lines that may stand behind what opens the error of an interpreter: its message, or the line of code."""
_CODE = 4
"""Lines from an error's name back to the place of the code, or behind the words of a program that ran earlier."""
_SIGNS = (
    "error", "fail", "exit", "fatal", "not found", "could not", "abort", "panic", "conflict", "reject", "exception",
    "denied", "refused", "killed", ".go:", "docker", "node.js v", "bun v", "halted", "[c]: in", "in expression",
    "segmentation", "non-zero", "no solution",
)  # fmt: skip
"""One of these stands, in small letters, in every end that tells a failure."""

_BEHIND_FORMS = (
    r"at |from \S+:\d+|\.\.\. \d+ (?:more|levels)|Caused by: |stack traceback:|goroutine \d+ \[|created by ",
    r"[\w./$*()-]{1,200}\([^()\n]{0,200}\)\Z|\S{1,200}\.go:\d+ \+0x|\[signal |exit status [1-9]\d*\Z",
    r"hint: |note: |help: |info |\[?notice\]? |(?i:warning: )|[|│╵╷]|= note: |\d+ \| ",
    r"See .{1,200}\Z|For more (?:information|details)|Some errors have detailed explanations",
    r"Run '[^'\n]{1,200}' for |Try '[^'\n]{1,200}' for |Ran all test suites|\[\*\] \d+ fixable ",
    r"Aborting\.?\Z|Please (?:commit|move|make sure)\b|and the repository exists\.|Could not apply [0-9a-f]{4,40}",
    r"g?make(?:\[\d+\])?: Leaving directory |\d+ actionable tasks?: |\[Help \d+\]|\[ERROR\] |\[INFO\] ",
)
_BEHIND = re.compile("|".join(_BEHIND_FORMS))
"""What stands behind the words of a failure and explains it."""

_WELL_FORMS = (
    r"(?i:build success|successfully |done\b|finished\b|all checks passed|no issues? found)|0 errors\b",
    r"PASS\b|OK(?: \(|\Z)|ok\s{1,20}\S|test result: ok\b|(?:=+ )?\d+ passed\b[^\n]{0,100} in [\d.]+s",
    r"Test (?:Files|Suites):? +\d+ passed\b|\d+ passing\b|\d+ (?:examples?|tests?), 0 failures|# fail 0\Z",
    r"\d+ (?:runs|tests), .{0,80}\b0 failures, 0 errors|\[INFO\] BUILD SUCCESS",
    r"Already up to date|Everything up-to-date|Applied |Fast-forward\b|Merge made by |\d+ files? changed, ",
    r"\[[\w/.-]{1,100} (?:\(root-commit\) )?[0-9a-f]{7,40}\] |[0-9a-f]{4,40}\.\.[0-9a-f]{4,40} +\S+ +-> ",
)
_WELL = re.compile("|".join(_WELL_FORMS))
"""What says that all went well."""

_ENDS_FORMS = (
    # interpreters, and what a signal ended
    r"Node\.js v\d+\.\d+\.\d+|Bun v\d+\.\d+\.\d+ \([^\n]{1,80}|\[C\]: in \?|Execution halted",
    r"in expression starting at \S+|(?:PHP )?(?:Fatal|Parse) error: +[^\n]+ on line \d+",
    r"thrown in \S[^\n]{0,300} on line \d+|Execution of \S{1,200} aborted due to compilation errors\.",
    r"BEGIN failed--compilation aborted at [^\n]+ line \d+\.|Killed",
    r"(?:[^\n:]{1,80}: )?line \d+: +\d+ (?:Segmentation fault|Aborted|Bus error|Killed)\b[^\n]{0,300}",
    # compilers, builds and linters
    r"error: (?:could not compile |aborting due to |test failed, to rerun |process didn't exit success)[^\n]*",
    r"error: command '[^'\n]{1,300}' failed with exit (?:code|status) [1-9]\d*|compilation terminated\.",
    r"[1-9]\d* errors? generated\.|ninja: build stopped: [^\n]{1,100}|configure: error: [^\n]+",
    r"g?make(?:\[\d+\])?: (?:Target [^\n]{1,200} not remade because of errors\.|\*\*\* [^\n]+)",
    r"-- Configuring incomplete, errors occurred!|webpack [\d.]+ compiled with [1-9]\d* errors?(?: [^\n]{1,40})?",
    r"\*\* \w+ FAILED \*\*(?: \[[\d.]+ sec\])?|error: Recipe [`'][^`'\n]{1,100}[`'] failed [^\n]*",
    r"Found [1-9]\d* errors? in (?:\d+ files?\b|the same file, )[^\n]*",
    r"✖ [1-9]\d* problems? \([1-9]\d* errors?, [^\n]*",
    # tests
    r"FAIL(?:\s{1,20}\S{1,300}\s{1,20}(?:[\d.]+s|\[(?:build|setup) failed\]))?|Errors while running CTest",
    # package managers, and what starts other programs
    r"error Command failed with exit code [1-9]\d*\.|ELIFECYCLE\s{1,20}(?:Command|Test) failed[^\n]{0,100}",
    r"(?:[^\n]{0,300}, )?version solving failed\.|[^\n]{1,300}, and Bundler cannot continue\.",
    r"exit status [1-9]\d*|command terminated with exit code [1-9]\d*",
    r"(?:error: script \"[^\"\n]{1,100}\" )?exited with code [1-9]\d*",
    # other machines, and other states of the files
    r"Host key verification failed\.|rsync error: [^\n]{1,300}",
    r"[\w.+-]{1,80}@[\w.-]{1,100}: Permission denied \([\w,-]{1,80}\)\.",
    r"Automatic merge failed; fix conflicts and then commit the result\.",
    r"\S{1,100} +: ok=\d+ +changed=\d+ +unreachable=(?:[1-9]\d* +failed=\d|\d+ +failed=[1-9])[^\n]*",
)
_ENDS = re.compile("|".join(_ENDS_FORMS))
"""Whole lines with which an output ends; nothing but explanations may stand behind them."""

_SUMS_FORMS = (
    r"(?:=+ )?(?:[^=\n]{1,200}, )?[1-9]\d* (?:failed|errors?)\b[^=\n]{0,200} in [\d.]+s\b[^=\n]{0,40}(?: =+)?",
    r"Tests?(?: Suites| Files)?:? {1,20}[1-9]\d* failed\b[^\n]{0,100}|[1-9]\d* failing|[#ℹ] fail [1-9]\d*",
    r"\d+ (?:examples?|tests?), (?:[1-9]\d* failures?|\d+ failures?, [1-9]\d* errors?)\b[^\n]{0,60}",
    r"\d+ (?:runs|tests), \d+ assertions, (?:[1-9]\d* failures|\d+ failures, [1-9]\d* errors)\b[^\n]{0,60}",
    r"Tests: \d+, Assertions: \d+, (?:Failures|Errors): [1-9][^\n]{0,60}|Failed!  - Failed: +[1-9][^\n]*",
    r"test result: FAILED\b[^\n]*|FAILED \((?:failures|errors)=\d[^\n]*|[1-9]\d* FAILED TESTS?",
    r"The following tests FAILED:|BUILD FAILED(?: in [\w. ]{1,30})?|\[INFO\] BUILD FAILURE|Build FAILED\.",
    r"(?:ERROR|FAILED): Build did NOT complete successfully",
)
_SUMS = re.compile("|".join(_SUMS_FORMS))
"""Whole lines in which a runner of tests or a build sums up; more of its lines may stand behind them."""

_STARTS = re.compile(
    r"Exception in thread \"main\" [\w.$]{1,200}(?::|\Z)|error: Uncaught |panic: \S"
    r"|\S{1,200}\.rb:\d+:in [`'][^\n]{1,300} \(\w[\w:]{0,80}\)\Z|thread 'main'(?: \(\d{1,20}\))? panicked at "
)
"""What opens an error that ended a program."""

_NAMED = re.compile(r"(?:Uncaught )?[A-Za-z_][\w.]{0,100}(?:Error|Exception)(?: \[\w{1,60}\])?(?:: \S|\Z)|Error: \S")
_PLACED = re.compile(r"File \"[^\"\n]{1,300}\", line \d+(?:, in \S{1,200})?\Z|\S{1,300}\.[cm]?[jt]sx?:\d+\Z")

_COMPILED = r"\S{1,300}:\d+(?::\d+)?: (?:fatal )?error: |[\w./+-]{1,80}: (?:fatal )?error: |[1-9]\d* errors?\Z"
_SOLVED = r"(?:ERROR|error): |Failed to build \S|× \S|\w{1,60}NotFoundError: "
_DAEMON = (
    r"docker: (?:Error response from daemon: |Cannot connect |invalid reference|permission denied|open |no matching)"
    r"|(?:(?:ERROR|error|Error): )?Cannot connect to the Docker daemon|Error response from daemon: "
    r"|(?:ERROR|error|Error): failed to (?:solve|build)|permission denied while trying to connect to the Docker"
    r"|The command '[^\n]{1,600}' returned a non-zero code: [1-9]"
)
_OWN = {
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILED),
    **dict.fromkeys(("javac", "mypy", "rustc", "swiftc", "ghc"), _COMPILED),
    **dict.fromkeys(("pip", "pip3", "uv", "poetry", "pdm", "conda", "mamba"), _SOLVED),
    **dict.fromkeys(("docker", "podman", "docker-compose"), _DAEMON),
    **dict.fromkeys(("terraform", "tofu"), r"│ Error: "),
    "cargo": r"error: (?:failed to |no |package |could not |the )",
    "composer": r"Your requirements could not be resolved to an installable set of packages\.",
    "git": r"fatal: |error: |CONFLICT \(|! \[(?:remote )?rejected\]|- exit code: [1-9]",
    "go": (
        r"\S{1,300}\.go:\d+:\d+: |go: (?:\S+@\S+: |module \S+: |errors? |cannot |unknown )|package \S+ is not in std\b"
    ),
    "kubectl": r"error: |Error from server|The connection to the server \S+ was refused",
    "pre-commit": r"- exit code: [1-9]",
    "pytest": r"ERROR: |ERROR \S+::",
    "ruff": r"Found [1-9]\d* errors?\.",
    "systemctl": r"Job for \S+ failed\b|Failed to ",
    "tsc": r"\S{1,300}(?:\(\d+,\d+\)|:\d+:\d+)(?::| -) error TS\d",
    "wget": r"[\d: -]{10,40} ERROR [45]\d\d: |Connecting to [^\n]{1,200} failed: ",
}
_FORMS = {name: re.compile(form) for name, form in _OWN.items()}
"""What tells a failure where this program is the one that a command line is about."""
_PACKAGES = (
    r"ERROR: (?:Could not |No matching |Failed |Cannot install )|Failed to build \S|× \S|\w{1,60}NotFoundError: "
)
_EARLIER = {
    **{name: form for name, form in _FORMS.items() if name not in ("kubectl", "pytest", "systemctl")},
    **dict.fromkeys(("pip", "pip3", "uv", "poetry", "pdm", "conda", "mamba"), re.compile(_PACKAGES)),
    "git": re.compile(r"fatal: |CONFLICT \(|! \[(?:remote )?rejected\]"),
}
"""The same where others may have run behind it, whose words these must not be."""
_STARTERS = frozenset(["run", "exec", "bisect", "foreach"])
"""Subcommands behind which another program speaks."""
_WITHIN = frozenset(["docker", "podman", "docker-compose"])
"""Programs whose words are their own even where they start another one."""


def may_tell(end: str) -> bool:
    """Return whether the end of an output has a word of one that failed; to ask is quicker than to read its lines."""
    lowered = end.lower()
    return any(sign in lowered for sign in _SIGNS)


def failed_at_end(lines: Iterable[str], script: str) -> bool:
    """Return whether the last lines of an output tell that its command line failed.

    Args:
        lines: them, stripped, the last first.
        script: the command line.
    """
    own, earlier = _own(script), _earlier(script)
    said, named = 0, False
    for line in islice(lines, _READ):
        if _SUMS.fullmatch(line) or any(form.match(line) for form in own):
            return True
        if said <= _CODE and any(form.match(line) for form in earlier):
            return True
        if (said == 0 and _ENDS.fullmatch(line)) or (said <= _SHORT and _STARTS.match(line)):
            return True
        if named and said <= _CODE and _PLACED.match(line):
            return True
        if _BEHIND.match(line):
            continue
        if _WELL.match(line) or said == _SAID:
            return False
        named = named or (said == 0 and _NAMED.match(line) is not None)
        said += 1
    return False


def ended_well(lines: Iterable[str]) -> bool:
    """Return whether the last lines of an output, the last first, say that all went well after what it began with."""
    line = next((line for line in islice(lines, _READ) if not _BEHIND.match(line)), "")
    return _WELL.match(line) is not None


def _own(script: str) -> list[re.Pattern[str]]:
    """Return the forms of the program that a command line is about, and of what that one starts."""
    about = program_of(script).split(" ")
    started = not _STARTERS.isdisjoint(about) and about[0] not in _WITHIN
    return _known(about[1:] if started else about, _FORMS)


def _earlier(script: str) -> list[re.Pattern[str]]:
    """Return the forms of the programs before the last, which may have been the last that ran."""
    return _known((words[0] for one in pipelines(script)[:-1] for words in one.commands if words), _EARLIER)


def _known(words: Iterable[str], forms: Mapping[str, re.Pattern[str]]) -> list[re.Pattern[str]]:
    names = {word.rpartition("/")[2] for word in words}
    return [form for name in sorted(names) if (form := forms.get(name)) is not None]
