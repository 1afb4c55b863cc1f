"""The examples of the pages are run, and what they print is what the pages show.

Two kinds of fenced blocks are executed, in the order in which they stand, all of a page in one shell and one new
folder:

    ```console              `$ ` begins a command, `> ` goes on with it, every other line is what the commands print,
                            standard output and standard error together
    ```LANGUAGE file=PATH   the block is written to PATH, below the folder in which the shell then is

A page is run twice. What both runs print alike must stand on the page in full. What differs must be a time or a digest,
and stands on the page as `<time>` or `<digest>`; anything else that varies is an error. So a placeholder cannot hide
what could be shown. White space at the end of a line is not compared.

    python tests/docs/test_examples.py --update     run the pages and write what was printed
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/concepts/capture.md",
    "docs/concepts/failures.md",
    "docs/concepts/gates.md",
)
FENCE = re.compile(r"^```([a-z]+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = ((re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"), (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"))
MARK = "\x1e"
SECONDS = 300


@dataclass
class Command:
    """One command of a page, with what the page says it prints."""

    text: str
    shown: list[str]


@dataclass
class File:
    """A file that the page has its reader write."""

    path: str
    text: str


def examples(page: str) -> list[Command | File]:
    """Return the commands and files of a page, in order."""
    found: list[Command | File] = []
    for language, path, body in FENCE.findall(page):
        if path:
            found.append(File(path, body))
        elif language == "console":
            found += commands(body)
    return found


def commands(block: str) -> list[Command]:
    """Return the commands of one console block."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif line.startswith("> ") and found and not found[-1].shown:
            found[-1].text += "\n" + line[2:]
        else:
            assert found, f"output before any command: {line}"
            found[-1].shown.append(line)
    return found


def run(steps: list[Command | File], folder: Path) -> list[list[str]]:
    """Run the steps in one shell that begins in `folder`, and return the printed lines of each command."""
    script = ["exec 2>&1"]
    for step in steps:
        if isinstance(step, File):
            script.append(f"mkdir -p {shlex.quote(str(Path(step.path).parent))}")
            script.append(f"printf %s {shlex.quote(step.text)} > {shlex.quote(step.path)}")
        else:
            # the next command still sees this one's status in $?
            script.append(f"{step.text}\n__status=$?; printf '{MARK}'; (exit $__status)")
    home = folder / "home"
    work = folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DVC_", "PYTEST_"))}
    environment = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "GIT_AUTHOR_NAME": "reader",
        "GIT_AUTHOR_EMAIL": "reader@example.org",
        "GIT_COMMITTER_NAME": "reader",
        "GIT_COMMITTER_EMAIL": "reader@example.org",
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=SECONDS,
        check=False,
    )
    *printed, rest = done.stdout.decode("utf-8").split(MARK)
    assert len(printed) == sum(isinstance(step, Command) for step in steps), f"the shell stopped: {rest}"
    return [lines(text) for text in printed]


def lines(text: str) -> list[str]:
    """Return the lines without white space at their ends, and without empty lines at the end."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def settled(first: list[str], second: list[str]) -> list[str]:
    """Return what two runs of a command print, with a placeholder for each time and digest in which they differ."""
    assert len(first) == len(second), f"two runs print differently:\n{first}\n{second}"
    return [one if one == other else _settled_line(one, other) for one, other in zip(first, second, strict=True)]


def _settled_line(one: str, other: str) -> str:
    for shape, placeholder in VARYING:
        for mine, theirs in zip(shape.findall(one), shape.findall(other), strict=False):
            if mine != theirs:
                one, other = one.replace(mine, placeholder), other.replace(theirs, placeholder)
    assert one == other, f"two runs print differently:\n{one}\n{other}"
    return one


def printed(steps: list[Command | File], folder: Path) -> list[list[str]]:
    """Return what the commands print, after two runs."""
    runs = [run(steps, folder / name) for name in ("first", "second")]
    return [settled(first, second) for first, second in zip(*runs, strict=True)]


def rewritten(page: str, results: list[list[str]]) -> str:
    """Return the page with what its commands printed."""
    left = iter(results)

    def block(match: re.Match[str]) -> str:
        if match[1] != "console" or match[2]:
            return match[0]
        text = ["```console"]
        for command in commands(match[3]):
            text += ["$ " + command.text.replace("\n", "\n> "), *next(left)]
        return "\n".join([*text, "```"])

    return FENCE.sub(block, page)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_commands_print(name: str, tmp_path: Path) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert rewritten(page, printed(examples(page), tmp_path)) == page


def test_a_block_is_read_as_commands_with_their_output() -> None:
    page = "text\n```yaml file=a/b.yaml\nx: 1\n```\n```console\n$ cat a/b.yaml\nx: 1\n$ f() {\n> true; }\n```\n"
    assert examples(page) == [
        File("a/b.yaml", "x: 1\n"),
        Command("cat a/b.yaml", ["x: 1"]),
        Command("f() {\ntrue; }", []),
    ]


def test_one_shell_runs_a_page_and_keeps_folder_and_status(tmp_path: Path) -> None:
    page = "```console\n$ mkdir d; cd d\n$ (echo words >&2; exit 3)\n$ echo $?\n```\n```text file=f\nit's\n```\n"
    steps = examples(page + "```console\n$ cat f; ls\n```\n")
    assert run(steps, tmp_path) == [[], ["words"], ["3"], ["it's", "f"]]


def test_times_and_digests_that_vary_become_placeholders_and_others_stay() -> None:
    same, one, other = "a" * 64, "b" * 64, "c" * 64
    first = [f"{same} {one} 2026-01-31T12:00:00Z", same]
    second = [f"{same} {other} 2026-01-31T12:00:01Z", same]
    assert settled(first, second) == [f"{same} <digest> <time>", same]


def test_anything_else_that_varies_is_an_error() -> None:
    with pytest.raises(AssertionError, match="two runs print differently"):
        settled(["12 seconds"], ["13 seconds"])


def test_a_page_with_other_output_is_told_from_one_that_is_right() -> None:
    page = "```console\n$ echo 1\n1\n```\n"
    assert rewritten(page, [["1"]]) == page
    assert rewritten(page, [["2"]]) == page.replace("\n1\n", "\n2\n")


def update() -> None:
    """Run every page and write what was printed."""
    for name in sys.argv[2:] or PAGES:
        path = ROOT / name
        page = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(rewritten(page, printed(examples(page), Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        sys.exit(__doc__)
    update()
