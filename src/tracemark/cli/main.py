"""Where a run of the program begins and ends: the one place that turns an error into words, data and an exit code.

Invariants:
- a `TracemarkError` ends the program with its own exit code, without a traceback;
- what the arguments get wrong is a usage error, exit code 2, like any other error in words and as data;
- anything else is a bug of ours: exit code 70, and only then a traceback;
- an interrupt ends with 130; a reader of our output that has gone away ends us quietly with 141;
- output that cannot be written otherwise (a full disk, a closed stream) is a usage error, in words;
- what is said of a file names it from the corpus or from the current folder, wherever these lie on this machine.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import typer

from tracemark.cli.app import PROGRAM, build
from tracemark.cli.arguments import Output, nearest
from tracemark.cli.output import write_error
from tracemark.errors import TracemarkError, UsageError

INTERRUPTED = 130
"""Exit code after an interrupt from the keyboard, as shells have it."""

READER_GONE = 141
"""Exit code when the reader of our output has gone away, as shells have it."""

_EMPTY_OPTION = re.compile("--(?!reason=)[a-z-]+=")

_ROOM = "make room, then run the command again"
_RIGHTS = "check who may read and write there"
_IN_THE_WAY = "move what is in the way, or name another place"
_REFUSED_BY_SYSTEM = {
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.ENOENT: "check the path; a folder above it may not exist, or not take new files",
    errno.ENOTEMPTY: _IN_THE_WAY,
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "close other programs, then run the command again",
    errno.EOPNOTSUPP: "name a place on a filesystem that can do this",
    errno.EFBIG: _ROOM,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.ELOOP: "mend the symbolic link, or name another place",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.EXDEV: "keep the folders of traces/ and .tracemark/ on one filesystem",
    errno.EIO: "look at the disk",
}
"""What the surroundings refuse, and what helps; any other error of the system is a bug of ours."""


def main() -> NoReturn:
    """Run the program on the process's arguments and exit."""
    _prepare_streams()
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:
        build().main(prog_name=PROGRAM)
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        code = _discard_output(READER_GONE)
    except OSError as error:
        code = _discard_output(_unwritable(str(error.strerror)))
    sys.exit(code)


def _prepare_streams() -> None:
    """Make sure that there are streams, which print whatever text there is."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if sys.stdout is None:
        sys.exit(_unwritable("it is closed"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unwritable(reason: str) -> int:
    error = UsageError(f"standard output cannot be written: {reason}", hint="send it elsewhere")
    with suppress(OSError):
        write_error(error, Output.TABLE)
    return error.exit_code


def _discard_output(code: int) -> int:
    """Return `code`, after what is still buffered was given up: the interpreter must not complain when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error has been shown then.

    Raises:
        BrokenPipeError: when the reader of our output has gone away.
    """
    output = _wanted(arguments)
    try:
        _refuse_empty(arguments)
        return _invoke(list(arguments))
    except typer.Exit as stop:
        return stop.exit_code
    except typer.TyperException as error:
        return write_error(_usage(error, arguments), output)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except TracemarkError as error:
        return write_error(error, output) if error.exit_code != TracemarkError.exit_code else _bug(error, output)
    except OSError as error:
        return _refused(error, arguments, output) if error.errno in _REFUSED_BY_SYSTEM else _bug(error, output)
    except Exception as error:  # noqa: BLE001 - the boundary: what nobody expected is a bug, and says so
        return _bug(error, output)


def _invoke(arguments: list[str]) -> int:
    tree = build()
    with tree.make_context(PROGRAM, arguments) as context:
        code = tree.invoke(context)
    return code if isinstance(code, int) else 0


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Make sure that no argument is empty: as a path it would mean the current folder, which nobody asked for.

    Raises:
        UsageError: when one is; most often it comes from a variable that was not set.
    """
    options = True
    for before, word in pairwise(["", *arguments]):
        options = options and word != "--"
        # an empty reason is refused by what wants one, in words of its own
        if (not word and before != "--reason") or (options and _EMPTY_OPTION.fullmatch(word)):
            where = " ".join([PROGRAM, *(given or repr(given) for given in arguments)])
            hint = "say . for the current folder; a variable of the shell may not be set"
            raise UsageError(f"an argument is empty: {word or repr(word)}", where=where, hint=hint)


def _wanted(arguments: Sequence[str]) -> Output:
    """Return the form of output asked for, read before the arguments are known to be right."""
    for word, following in pairwise([*arguments, ""]):
        value = following if word == "--output" else word.removeprefix("--output=")
        if value in (Output.JSON, Output.JSONL) and word.startswith("--output"):
            return Output(value)
    return Output.TABLE


def _usage(error: typer.TyperException, arguments: Sequence[str]) -> UsageError:
    context = getattr(error, "ctx", None)
    # an argument that takes several values, and got fewer, does not say of which command it is
    where = _command(arguments) if context is None else context.command_path
    return UsageError(error.format_message(), where=where, hint=f"{where} --help")


def _command(arguments: Sequence[str]) -> str:
    """Return the command that arguments name, behind options of the program."""
    path, level = [PROGRAM], build()
    for word in arguments:
        found = getattr(level, "commands", {}).get(word)
        if found is not None:
            path.append(word)
            level = found
    return " ".join(path)


def _refused(error: OSError, arguments: Sequence[str], output: Output) -> int:
    names = [os.fspath(name) for name in (error.filename, error.filename2) if isinstance(name, (str, os.PathLike))]
    hint = None if error.errno is None else _REFUSED_BY_SYSTEM[error.errno]
    where = " → ".join(_place(str(name), arguments) for name in names) or None
    return write_error(UsageError(f"the system refused: {error.strerror}", where=where, hint=hint), output)


def _place(name: str, arguments: Sequence[str]) -> str:
    """Return a path as people know it: from the corpus or else the current folder, where it lies below one of them."""
    path = Path(name)
    if path.is_absolute():
        # the current folder may be gone
        with suppress(OSError):
            for folder in (_corpus(arguments), Path.cwd()):
                if folder is not None and path.is_relative_to(folder):
                    return path.relative_to(folder).as_posix()
    return name


def _corpus(arguments: Sequence[str]) -> Path | None:
    """Return the corpus that is worked on, read before the arguments are known to be right; None when there is none."""
    for word, following in pairwise([*arguments, ""]):
        if word == "--root" or word.startswith("--root="):
            given = following if word == "--root" else word.removeprefix("--root=")
            return Path(os.path.normpath(Path(given).absolute()))
    return nearest(Path.cwd())


def _bug(error: Exception, output: Output) -> int:
    traceback.print_exception(error)
    message = f"a bug in {PROGRAM}: {type(error).__name__}: {error}"
    return write_error(TracemarkError(message, hint="please report it with the lines above"), output)
