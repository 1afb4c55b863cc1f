"""A journal: the file that a run writes while it happens, one canonical JSON line per event.

The format is `tracemark/journal/1`; `importers.journal` says what each event means and reads them back.

Invariants:
- from its creation until it is closed, the file is locked, so a reader can tell a run in progress from one that died;
- each event is handed to the system whole before the run goes on: a killed process loses no event that was written,
  and at most the last line is half there;
- a journal is never reopened, and never replaces another one;
- it is open in the process that opened it alone: a fork that lives longer holds no lock on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakSet

from tracemark import digest, durable
from tracemark.errors import LockedError, TracemarkError, UsageError
from tracemark.harness.version import Harness
from tracemark.importers.journal_events import FORMAT
from tracemark.importers.tree import JOURNAL_SUFFIX as SUFFIX
from tracemark.model.harness import COMPONENTS

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 120


class _TakenError(UsageError):
    """Somebody has a journal of this name."""


class Journal:
    """An open journal.

    Args:
        path: the file; must not exist, see `free_path`.

    Raises:
        UsageError: when there is such a file already, or something else of that name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._broken = False
        self._turn = Lock()
        durable.make_folder(path.parent)
        with ExitStack() as stack:
            try:
                stack.enter_context(durable.lock(path))
                durable.require_regular(path)
                taken = path.stat().st_size > 0
            except LockedError:
                taken = True
            if taken:
                raise _TakenError("a journal of this name exists", where=path.name, hint="give another name=")
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            stack.callback(os.close, self._descriptor)
            self._open = stack.pop_all()
        _OPEN.add(self)

    def write(self, event: dict[str, Any]) -> None:
        """Append one event; several threads may.

        Raises:
            UsageError: when the event holds a value that JSON has not; nothing is written then.
            TracemarkError: when an earlier write failed, because what follows a half-written line cannot be read.
            OSError: when the system cannot write.
        """
        try:
            line = digest.canonical(event) + b"\n"
        except (TypeError, ValueError) as problem:
            raise UsageError(f"what was recorded is no JSON: {problem}", where=self.path.name) from None
        with self._turn:
            if self._broken:
                raise TracemarkError("the journal is broken by an earlier failed write", where=self.path.name)
            self._broken = True
            if os.write(self._descriptor, line) != len(line):
                hint = "free some space and run again"
                raise TracemarkError("the journal could not be written whole", where=self.path.name, hint=hint)
            self._broken = False

    def leave(self) -> None:
        """Close this process's copy of the file, and leave the journal to the one that opened it."""
        if self._descriptor >= 0:
            self._descriptor = -1
            self._open.close()

    def close(self) -> None:
        """Make everything written durable and release the lock. Closing twice does nothing.

        Raises:
            OSError: when the system could not make it durable.
        """
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with self._open:
            os.fsync(descriptor)
            durable.sync_folder(self.path.parent)


_OPEN: WeakSet[Journal] = WeakSet()


def _leave_all() -> None:
    for journal in list(_OPEN):
        journal.leave()


os.register_at_fork(after_in_child=_leave_all)


def first_line(
    file_name: str, harness: Harness, run: Mapping[str, Any], agent: Mapping[str, Any], start: str
) -> dict[str, Any]:
    """Return the members of a journal's first event.

    Args:
        file_name: the journal's file name.
        harness: the loaded harness.
        run: the run facts, without its start.
        agent: `name` and `version`, and what else is known of the agent.
        start: the time of the start.
    """
    identity = harness.identity
    components = {
        name: {"digest": identity.components[name], "parts": [list(item) for item in identity.parts[name].items()]}
        for name in COMPONENTS
    }
    facts = {**run, "start": start}
    stated = {"name": harness.name, "fingerprint": identity.fingerprint, "components": components}
    # equal transcripts of two runs are two traces, also within one second; one run recorded again is one
    session = digest.of({"agent": agent, "harness": identity.fingerprint, "journal": file_name, "run": facts})[:32]
    return {"format": FORMAT, "session": session, "harness": stated, "run": facts, "agent": agent}


def free_path(folder: Path, name: str | None, run: Mapping[str, Any]) -> Path:
    """Return where the journal of a run will be written, unless somebody takes that name before it is opened.

    Args:
        folder: the batch's folder in the inbox.
        name: the file name without its suffix; None derives `<task>-<attempt>` from the run and, where that name is
            taken, counts on.
        run: the run facts.

    Raises:
        UsageError: when `name` is not made of letters, digits and `. _ -` alone.
    """
    if name is None:
        return next(_free_paths(folder, run))
    if not name or name != _safe(name):
        raise UsageError(f"{name!r} is no file name", hint="use letters, digits, '.', '_' and '-'")
    return folder / f"{name}{SUFFIX}"


def claim(folder: Path, run: Mapping[str, Any]) -> Journal:
    """Open a new journal under the first name derived from a run that nobody has, and nobody takes meanwhile."""
    for path in _free_paths(folder, run):
        with suppress(_TakenError):
            return Journal(path)
    raise AssertionError("names do not run out")


def _free_paths(folder: Path, run: Mapping[str, Any]) -> Iterator[Path]:
    stem = f"{_safe(str(run.get('task', 'run')))}-{_safe(str(run.get('attempt', 0)))}"
    paths = (folder / f"{stem}{'' if number == 1 else f'-{number}'}{SUFFIX}" for number in count(1))
    # a journal that is there is not opened: whoever reads it would find it locked
    return (path for path in paths if not path.exists())


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text).lstrip("._-")[:_LONGEST_NAME] or "run"
