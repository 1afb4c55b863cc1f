"""The form of texts: whether one reads like an error, and which of its lines says it.

A form proves little, so it has to be a whole one: the text opens with an error's name and a colon, ends in a traceback
or in a shell's complaint, or is one short refusal. The word `error` in the middle of a text proves nothing: that is how
files, listings and logs look.

Invariant: linear time. The patterns look at a line or at a bounded beginning or end, and no text is walked twice.
"""

from __future__ import annotations

import re

LONGEST_LINE = 1_000
"""Characters kept of an error line."""

ONE_ANSWER = 400
"""Characters of a text that may be one short answer."""

TRACEBACK = "Traceback (most recent call last)"
"""What a traceback opens with."""

TAIL = 2_000
"""Characters at the end of a text in which its end is looked for."""

_HEAD, _SEARCHED = 400, 16_384
_ENDING = 3
_ENDS_WITH = 300
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_NOISE = re.compile(
    r"\[(?:The command|Current working dir|Python interp|Command finished|Below is)"
    r"|\((?:Open file|Current directory|Interactive session)"
    r"|bash-\$|</?[\w-]+>\s*\Z|<returncode>-?\d+</returncode>|\S{0,80}[#$]\s*\Z|={3,}\s*\Z|-{3,}\s*\Z|\^+\s*\Z"
)
_EMPTY = (
    r"(?i:\s*(?:none|null|nil|undefined|false|n/?a|ok"
    r"|no (?:errors?|exceptions?|problems?|issues?|failures?)\b[^\n]{0,40}"
    r"|0+(?:\.0+)?(?: (?:errors?|exceptions?|failures?|issues?|problems?|found)\b[^\n]{0,40})?|-?\d+(?:\.\d+)? ?%"
    r"|\d*\.\d+|\[\s*\]|\{\s*\}|\"\"|''|-+)\s*(?:[.;!]?\s*(?:\Z|\n)|,))"
)
"""What stands behind the colon where there was no error, or where a figure is told."""
_EMPTY_OF_NAMED = r"\s*(?:null|none|undefined|false|n/a|\[\]|\{\}|-?\d*\.\d+ ?%?)\s*(?:\Z|\n)"
"""The same behind a name: `KeyError: 0` and `KeyError: None` are errors of Python."""
_DOING = (
    r"(?:in|at|from|while|when|during|occurred|invalid|unknown|cannot|could|failed|unable|missing|unsupported|no such"
    r"|handling (?:requests?|calls?|messages?|events?|commands?|tools?)"
    r"|(?!(?:handling|reporting|logging|tracking|checking|monitoring|correcting|messaging)\b)\w{2,20}ing)\b"
)
"""What goes on after `Error` without a colon, unlike `Error rate` or `Error handling`."""
_KINDS = (
    r"(?i:(?:cmake|internal|runtime|api|http|network|validation|syntax|type|value|server|client|database|sql|pars(?:e|ing)"
    r"|connection|authentication|permission|unexpected|compil(?:e|ation|er)|build|execution|tool|unhandled|uncaught"
    r"|system|critical|fatal|python) ){0,2}"
)
_OPENS = re.compile(
    r"[\[<(*#>\s]{0,4}(?:"
    rf"(?:{_KINDS}(?:Error|ERROR|[Ee]xception|error)|FATAL|[Ff]atal|panic)[\])*]{{0,3}}(?:\[[^\]\n]{{0,40}}\])?"
    rf"(?: \w{{1,9}}\d)?(?: {_DOING}[^\n:]{{0,60}})?:(?!{_EMPTY})"
    rf"|{_KINDS}(?:Error|ERROR|[Ee]xception) (?:{_DOING}|(?:code:? ?|#)?[1-9]\d{{0,5}}\b(?![.%]))"
    r"|(?:Error|ERROR)(?:[!.,](?=\s|\Z)| - |\s*(?:\n|\Z))|ERROR [\w-]*[./]\S"
    r"|(?:E\d{3,4} )?[A-Za-z_][\w.]{0,80}(?:Error|Exception)"
    rf"(?: {_DOING}[^\n:]{{0,60}})?(?::(?!{_EMPTY_OF_NAMED})|\s*\Z)"
    r"|ImportError while loading conftest )"
    r"|\[(?:ERROR|FATAL)\] \S|thread '[^'\n]{1,80}' panicked at "
)
_PROGRAM = r"[\w./+-]{1,80}(?::\d+){0,2}(?:\[\d+\])?: "
_SHELL_LINE = re.compile(
    rf"{_PROGRAM}[^\n]{{0,300}}?(?:command not found\b|(?<=: )not found\s*\Z|\bcannot access |\bcan't (?:cd to|open) "
    r"|(?:No such file or directory|[Pp]ermission denied|Is a directory|Not a directory)\s*(?:\Z|\()"
    r"|\bcannot (?:stat|open|create|remove|overwrite)(?: \w+)? ['‘`]"
    r"|syntax error(?: near\b|:(?! *\d+\s*\Z)|,| at\b|\s*\Z)"
    r"|(?:No space left on device|Read-only file system|Cannot allocate memory)\b"
    r"|No module named |Unmatched |(?:invalid|unrecognized|illegal) option|missing operand|option requires an argument)"
    r"|[\w./+-]{1,80}:\d+:\d+: (?:fatal )?error: "
    r"|g?make(?:\[\d+\])?: \*\*\* |npm (?:ERR!|error) |curl: \(\d+\)"
    r"|E: (?:Unable|Could|Package|Failed|Some|Sub-process|The |Invalid|Broken|Conflicting|Version|You )"
)
_UNKNOWN = (
    r"(?:(?:[a-z][a-z-]* ){0,2}(?:tools?|functions?|(?:sub)?commands?|options?|flags?|arguments?|parameters?|params?"
    r"|fields?|keys?|attributes?|propert(?:y|ies)|names?|ids?|identifiers?|types?|formats?|actions?|operations?|methods?"
    r"|endpoints?|routes?|paths?|files?|folders?|director(?:y|ies)|hosts?|columns?|tables?|databases?|users?|customers?"
    r"|orders?|reservations?|bookings?|accounts?|products?|items?|encodings?|variables?|symbols?|modules?|packages?"
    r"|models?|errors?|exceptions?|resources?|records?|city|airport|currency|country|units?|keywords?|tokens?|sessions?"
    r"|tasks?|tickets?|branch|revision|language|locale|timezone)\b|(?:[a-z][a-z-]* ){0,3}[`'\"<]"
    r"|(?:[a-z][a-z-]* ){1,3}(?=\S{0,40}[\d_])(?=\S{0,40}[A-Za-z])\S)"
)
_ACTIONS = (
    r"(?:requests?|calls?|executions?|commands?|operations?|authentication|login|logins|connections?|payments?"
    r"|transactions?|uploads?|downloads?|builds?|compilation|quer(?:y|ies)|validation|updates?|parsing|tools?|tests?|jobs?"
    r"|process|installation|imports?|search|lookup|bookings?|check-in|deployment|migration|assertions?)"
)
_REFUSES = re.compile(
    r"[\[<(*#>\s]{0,4}(?:(?:invalid|unrecogni[sz]ed|unsupported)(?:\s|:)|no such (?!luck|thing)"
    rf"|unknown {_UNKNOWN}|failed to |fail(?:ed|ure): ?(?!\d+\s*(?:[,;/|]|of\b|tests?\b|\Z))"
    r"|(?:cannot|can't|could not|couldn't|unable to) (?!wait\b|stop\b|help\b|believe\b|complain\b)"
    r"(?-i:[a-z`'\"]|(?:GET|POST|PUT|DELETE|PATCH|HEAD)\b)"
    r"|ran into [^\n]{0,200}?(?:errno|error|exception|problem|while trying)\b"
    r"|(?:permission|access) denied\b|not (?:allowed|permitted|authori[sz]ed|found)\b"
    r"|missing (?:required )?(?:arguments?|parameters?|fields?|keys?|options?)\b"
    r"|timed out(?: |\s*[.!]?\s*\Z)|time-?out(?:\s*[.!]?\s*\Z|: (?=[a-z]+ [a-z]+ [a-z])"
    r"| (?:errors?|expired|exceeded|reached|occurred|waiting|while|after)\b)"
    r"|tool .{1,60} (?:not found|does not exist|failed)\b|no tool named"
    r"|(?:an?|the|this) (?:[\w-]+ ){0,3}(?:error|exception) (?:has |was )?(?:been )?"
    r"(?:occurred|raised|thrown|happened)\b"
    r"|[1-9]\d* validation errors? for |something went wrong|internal server error\b|bad (?:request|gateway)\b"
    r"|(?:http(?:/[\d.]+)?:? )?(?:error |status )?[45]\d\d:? (?:not found|forbidden|unauthorized|bad request|conflict"
    r"|gone|internal server error|bad gateway"
    r"|service unavailable|gateway time-?out|too many requests|method not allowed)\b"
    r"|connection (?:refused|reset|timed out|aborted|closed by)\b"
    r"|(?:[\w-]+ ){0,2}(?:rate limit|quota) (?:was |has been |is )?(?:exceeded|reached)\b"
    rf"|(?!(?:no|none|zero|nobody|if|when|whether|\d+)\b)(?:[\w'-]+ ){{0,4}}{_ACTIONS} (?:has |have )?"
    r"(?:timed out\b|failed(?:[.:!,]|\s*\Z| (?:with|because|due|after|on)\b)))",
    re.IGNORECASE,
)
_COUNTS = re.compile(rf"[^\n:]{{1,80}}:{_EMPTY}")
"""A figure or an empty list with its heading, whatever that is called."""
_NOT_THERE = re.compile(
    r"(?![#/\d*]|\"\"\"|.{0,120}\b(?:if|when|whether|unless|no|raises?|thrown|errors?)\b)[^\n:.]{1,80} "
    r"(?:(?:(?:was |is |were |are )?not found|(?:does|do) not exist)"
    r"(?:\s*[.!,;:)]|\s*\Z| (?:in|for|on|at|with|under)\b)"
    r"|is not available\s*[.!]?\s*\Z)",
    re.IGNORECASE,
)
_WRAPPER = re.compile(
    r"Your proposed edit has introduced|Previous response had parsing errors|No tool calls found"
    r"|Your (?:command|action|output) (?:was|has been) (?:not |rejected|refused|blocked|cancel|denied|interrupt|abort"
    r"|kill|terminat|timed)|Your bash command contained syntax errors|Operation '[^'\n]{1,40}' is not supported"
    r"|Your last (?:output|response|command) (?:did|does|was not|is not|could not|had |has no|contain|fail|timed|must)"
    r"|The last command <command>|The command '[^\n]{0,300}?' was cancelled because "
)
_FOUND = re.compile(r"[\s-]*(?:[A-Z]\d{2,4} |ERROR: )\S")
_NAMED = re.compile(r"^[A-Za-z_][\w.]{0,100}(?:Error|Exception)(?:: .*)?$", re.MULTILINE)
_TESTS_FAILED = re.compile(
    r"(?:=+ )?(?:[^=\n]{1,200}, )?[1-9]\d* (?:failed|errors?)\b[^=\n]{0,200} in [\d.]+s\b[^=\n]{0,40}(?: =+)?\Z"
    r"|FAILED \((?:failures|errors)=\d|test result: FAILED\b|Tests: +[1-9]\d* failed\b"
)
_CRASHED = re.compile(
    r"(?:[^\n]{1,80}: )?(?:line \d+: +\d+ )?(?:Segmentation fault|Aborted|Bus error)(?: \(core dumped\))?\Z"
)
_RAISED = re.compile(r"[| ]{0,8}[A-Za-z_][\w.]{0,200}(?::|\s*\Z)")
SAYS = re.compile(
    r"(?:error|exception|\bfatal|\bfailed|\bpanic|\berr!|\bnot found|\bno such|\bdenied|\bcannot|\bcould not|\brefused|"
    r"\btimed out|\bcan't)(?![a-z])",
    re.IGNORECASE,
)
"""Words that a line which says an error has; they prove one only where a failure is known already."""
_NONE_BEFORE = re.compile(r"(?:\b0|\bno) \Z", re.IGNORECASE)
_NONE_BEHIND = re.compile(rf":{_EMPTY}")


def by_form(text: str, shows: bool) -> str | None:
    """Return the error line of a text about which nothing else is known, by its form; None when it has no such form."""
    head = text[:_HEAD].lstrip()
    if not head:
        return None
    if "\x1b" in head:
        head = _ANSI.sub("", head)
    short = len(text) <= ONE_ANSWER
    alone = short and text.strip().count("\n") < 3
    if _OPENS.match(head) and (alone or not shows):
        return _opening(text)
    if _WRAPPER.match(head):
        return _opening(text)
    first = head.partition("\n")[0]
    if (_SHELL_LINE.match(first) and (alone or not shows)) or (alone and _refuses(first)):
        return cut(first)
    if shows:
        return None
    if TRACEBACK in text and (line := ending_traceback(text)) is not None:
        return line
    last = next(iter(last_lines(text)), "")
    if _TESTS_FAILED.match(last):
        return line_of(text)
    return cut(last) if _SHELL_LINE.match(last) or _CRASHED.match(last) else None


def _refuses(line: str) -> bool:
    if _REFUSES.match(line) is None and (len(line) > 160 or _NOT_THERE.match(line) is None):
        return False
    return _COUNTS.match(line) is None


def _opening(text: str) -> str:
    """Return the first line, with the one behind it where the first is a mere heading such as `ERROR:`."""
    lines = [line for line in _plain(text[:_SEARCHED]).split("\n") if line.strip()]
    first = lines[0].strip() if lines else ""
    if first.endswith(":") and len(first) <= 60 and len(lines) > 1:
        first = f"{first} {lines[1].strip()}"
    elif _WRAPPER.match(first):
        # the wrapper's words are the same for every mistake: what it found stands behind them
        found = next((line.strip(" -") for line in lines[1:] if _FOUND.match(line)), None)
        first = first if found is None else f"{first.partition('.')[0]}: {found}"
    return cut(first)


def line_of(text: str) -> str | None:
    """Return the line that best says the error of a text that is known to tell one; None when it is empty."""
    if TRACEBACK in text and (found := _traceback(text)) is not None:
        return found[0]
    searched = _plain(text[:_SEARCHED] if len(text) <= 2 * _SEARCHED else text[-_SEARCHED:])
    if (head := searched.lstrip()) and _OPENS.match(head):
        return _opening(head)
    if named := _NAMED.findall(searched):
        return cut(str(named[-1]).strip())
    for match in SAYS.finditer(searched):
        if _NONE_BEFORE.search(searched, max(0, match.start() - 6), match.start()) or _NONE_BEHIND.match(
            searched, match.end()
        ):
            continue
        begin, end = searched.rfind("\n", 0, match.start()) + 1, searched.find("\n", match.end())
        return cut(searched[begin : end if end >= 0 else None].strip())
    return next((cut(line) for line in last_lines(text)), None)


def _traceback(text: str) -> tuple[str, int] | None:
    """Return the last line of the last traceback and where it ends; None when the words are no traceback of a run."""
    place = text.rfind(TRACEBACK)
    before = text[text.rfind("\n", 0, place) + 1 : place]
    if before and (before.strip(" |+-") or before.isspace()):
        # indented it is an example or a log; only a group of exceptions draws a line beside its own
        return None
    begin = text.find("\n", place)
    if begin < 0 or text[begin + 1 : begin + 400].lstrip(" \t|")[:4] != "File":
        return None
    while begin >= 0:
        end = text.find("\n", begin + 1)
        line = text[begin + 1 : end if end >= 0 else None]
        if _RAISED.match(line):
            return cut(line.strip()), end if end >= 0 else len(text)
        if not line.strip() or (line[0] not in " \t|+" and line.strip("-.[] \r")):
            # frames are indented, and `grep` draws a line where it left some out: what two streams mixed ends nowhere
            return None
        begin = end
    return None


def ending_traceback(text: str) -> str | None:
    """Return the last line of a traceback that ends the text; None when more than a few lines follow it."""
    found = _traceback(text)
    if found is None:
        return None
    rest = text[found[1] : found[1] + TAIL]
    if len(text) - found[1] > TAIL or len(list(last_lines(rest))) >= _ENDING:
        return None
    return found[0]


def last_lines(text: str) -> list[str]:
    """Return the last lines that say something, the last first: no prompts, no frames of the recording."""
    lines = _plain(text[-TAIL:]).split("\n")
    return [line.strip() for line in reversed(lines) if line.strip() and not _NOISE.match(line.strip())]


def cut(line: str) -> str:
    """Return a line in at most `LONGEST_LINE` characters; what a long one comes to stands at its end."""
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - _ENDS_WITH - 3]} … {line[-_ENDS_WITH:]}"


def _plain(text: str) -> str:
    return _ANSI.sub("", text).replace("\r", "\n") if "\x1b" in text or "\r" in text else text
