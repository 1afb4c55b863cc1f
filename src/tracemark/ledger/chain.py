"""The ledger file: `ledger.jsonl`, to which entries are only ever added.

The file is a graph, not a list: an entry names as parents the entries that nobody had named before it (the heads) in
the ledger that its maker had read, and the order of lines means nothing. So git may merge two branches that both added
entries by keeping the lines of both (`ledger.jsonl merge=union`); the next entry then has both heads as parents, and
lines that came twice count once.

Invariants:
- an entry descends from what its maker had read and from nothing else: whoever adds one passes the chain on which it
  was decided, and what came into the file since then stands beside it;
- entries that are added together are one write of whole lines, synced before any is acknowledged, under a lock;
- a write that fails (no room, a sync that failed) leaves the file as it was;
- nothing is added to a ledger that does not verify, and nothing in it is dropped: a half-written last line, which a
  kill can leave, is an error until somebody has taken it out by hand. Its entry was never acknowledged;
- a link is followed within the corpus only: what lies elsewhere may be another corpus's ledger as well.

What verifying proves: each line is the one that was written, and every parent is there. What it cannot prove: that no
newest entries were cut off. The history of the file in git shows that.
"""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tracemark.clock import Clock
from tracemark.durable import (
    PRIVATE,
    CrashPoint,
    crash_point,
    is_locked,
    is_there,
    lock,
    make_folder,
    own_file,
    read_regular,
    sync_folder,
    why_unread,
)
from tracemark.errors import IrregularFileError, LedgerChainError, LockedError, NewerFormatError, UsageError
from tracemark.findings import Finding, finding
from tracemark.ledger.entry import Entry, EntryError, decode, encode, explain, seal
from tracemark.model.decision import Decision

NAME = "ledger.jsonl"
"""The ledger's file name in the root of a corpus."""

_verified: dict[bytes, Entry] = {}
"""The lines of the ledger that this process read last, each with its entry: a line that verified is not asked again."""

_MARKERS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")


@dataclass(frozen=True, slots=True)
class Chain:
    """All entries of a ledger that verified."""

    entries: tuple[Entry, ...] = ()
    """Parents before children, ties by digest: the same for any order of lines."""
    heads: tuple[str, ...] = ()
    """Digests of the entries that no entry names as parent, sorted; empty for an empty ledger."""

    def ancestors(self) -> dict[str, int]:
        """Return for each entry the set of its ancestors, as a bit set over positions in `entries`."""
        position = {entry.digest: index for index, entry in enumerate(self.entries)}
        known: dict[str, int] = {}
        for entry in self.entries:
            bits = 0
            for parent in entry.decision.parents:
                bits |= known[parent] | 1 << position[parent]
            known[entry.digest] = bits
        return known


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be decided, before it has parents and a time."""

    kind: str
    """What is decided, see `model.decision`."""
    subject: dict[str, Any]
    """What it is about; its members depend on the kind."""
    reason: str
    """Why; must not be empty."""
    evidence: dict[str, Any] | None = None
    """What the decision rests on; None leaves the member out."""


@dataclass(frozen=True, slots=True)
class _Scan:
    """What a ledger file holds, sound or not."""

    entries: dict[str, Entry]
    problems: tuple[Finding, ...]
    torn: bytes
    """The half-written last line; empty when there is none."""
    open_end: bool
    """Whether the last line is whole but has no newline yet."""


def read(path: Path) -> Chain:
    """Read and verify a ledger. A file that does not exist is an empty ledger.

    Raises:
        LedgerChainError: at the first problem that `verify` would name.
        UsageError: when the file is there and cannot be read, or is no file.
        NewerFormatError: when another version of tracemark wrote an entry.
        LockedError: when an entry is being written this moment.
    """
    scan = _scan(path)
    _stop_at_first(scan)
    return of(scan.entries.values())


def verify(path: Path) -> tuple[Finding, ...]:
    """Return every problem of a ledger, in the order of its lines and then of its links; empty when it is sound."""
    return _scan(path).problems


def append(path: Path, seen: Chain, draft: Draft, clock: Clock) -> Entry:
    """Add one entry, whose parents are the heads of `seen`, and return it once it is durable.

    Args:
        path: the ledger file; created when missing.
        seen: the ledger as it was read when this was decided; what others have added since stands beside the entry.
        draft: what is decided.
        clock: gives the entry its time.

    Raises:
        UsageError: when the reason is empty or the subject does not fit the kind.
        LedgerChainError: when the ledger does not verify, or no longer holds what was seen; then nothing is added.
        IrregularFileError: when the ledger is a link that leads out of the corpus; then nothing is added.
        OSError: when the system could not write or sync; the entry is then not acknowledged.
    """
    return append_all(path, seen, [draft], clock)[0]


def append_all(path: Path, seen: Chain, drafts: Sequence[Draft], clock: Clock) -> list[Entry]:
    """Add an entry for each of `drafts`, each the parent of the next, and return them once all are durable.

    The other arguments are those of `append`. The ledger is read once, and written once.

    Raises:
        UsageError: when one of the reasons is empty or a subject does not fit its kind; then nothing is added.
        LedgerChainError: when the ledger does not verify, or no longer holds what was seen; then nothing is added.
        IrregularFileError: when the ledger is a link that leads out of the corpus; then nothing is added.
        OSError: when the system could not write or sync; no entry is then acknowledged.
    """
    for draft in drafts:
        require_reason(draft.reason)
    if not drafts:
        return []
    own = own_file(path)
    make_folder(_lock_file(path).parent)
    with lock(_lock_file(path), blocking=True):
        scan = _scan(path, locked=True)
        _stop_at_first(scan)
        _require_seen(seen, scan, path)
        parents = seen.heads
        added: list[Entry] = []
        for draft in drafts:
            added.append(_decide(parents, draft, clock.now()))
            parents = (added[-1].digest,)
        _write((b"\n" if scan.open_end else b"") + b"".join(map(encode, added)), own)
    crash_point(CrashPoint.LEDGER_WRITTEN)
    return added


def require_reason(reason: str) -> None:
    """Make sure that a reason says something.

    Raises:
        UsageError: when it is empty or nothing but white space, or is no text that can be stored.
    """
    if not reason.strip():
        raise UsageError("a decision needs a reason: it is empty", where="--reason", hint="say why, for later readers")
    if any("\ud800" <= character <= "\udfff" for character in reason):
        raise UsageError("the reason is not UTF-8", where="--reason", hint="say it in letters that others can read")


def _lock_file(path: Path) -> Path:
    return path.parent / PRIVATE / "ledger.lock"


def _require_seen(seen: Chain, scan: _Scan, path: Path) -> None:
    for head in seen.heads:
        if head not in scan.entries:
            raise LedgerChainError(
                f"the entry {head[:12]}, on which this was decided, is no longer there: another file took its place",
                where=path.name,
                hint="decide again",
            )


def _decide(parents: tuple[str, ...], draft: Draft, time: str) -> Entry:
    members = {
        "kind": str(draft.kind),
        "time": time,
        "reason": draft.reason,
        "parents": list(parents),
        "subject": draft.subject,
        "evidence": draft.evidence,
    }
    try:
        decision = Decision.model_validate(members)
    except ValidationError as error:
        raise UsageError(
            f"this is no ledger entry: {explain(error, members)}", where=f"kind {str(draft.kind)!r}"
        ) from None
    return seal(decision)


def _write(data: bytes, path: Path) -> None:
    """Add `data` to the ledger, or leave it as it was; the caller holds its lock."""
    new = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        before = os.fstat(descriptor).st_size
        try:
            # one call for all lines; a full disk takes a part of them and says nothing
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(descriptor)
            if new:
                sync_folder(path.parent)
        except BaseException:
            # nothing was acknowledged, and half a line would stop every later command
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def _scan(path: Path, *, locked: bool = False) -> _Scan:
    if not is_there(path):
        return _Scan({}, (), b"", open_end=False)
    try:
        data = read_regular(path)
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error)
        return _Scan({}, (finding("ledger-unreadable", path.name, f"it cannot be read: {reason}", hint),), b"", False)
    *lines, rest = data.split(b"\n")
    taken: dict[bytes, Entry] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        problems += _take(line.rstrip(b"\r"), f"{path.name}:{number}", taken)
    torn = rest if rest.strip() and _take(rest.rstrip(b"\r"), "", taken) else b""
    entries = {entry.digest: entry for entry in taken.values()}
    _verified.clear()
    _verified.update(taken)
    if torn and not locked:
        if is_locked(_lock_file(path)):
            raise LockedError("an entry is being written", where=path.name, hint="try again")
        if _is_changed(path, data):
            # whoever wrote the line has ended since it was read
            return _scan(path)
    if torn:
        problems.append(
            finding(
                "ledger-torn-line",
                f"{path.name}:{len(lines) + 1}",
                f"the last line is half-written ({len(torn)} bytes); its entry was never acknowledged",
            )
        )
    return _Scan(entries, (*problems, *_missing_parents(entries)), torn, open_end=bool(rest) and not torn)


def _is_changed(path: Path, data: bytes) -> bool:
    try:
        return read_regular(path) != data
    except (OSError, IrregularFileError):
        return True


def _take(line: bytes, where: str, taken: dict[bytes, Entry]) -> list[Finding]:
    """Read one line into `taken`; return what is wrong with it. A line that came before counts once."""
    if not line.strip():
        return []
    if line.startswith(_MARKERS):
        return [finding("ledger-conflict-marker", where, "a conflict marker of a merge stands here")]
    entry = _verified.get(line)
    if entry is None:
        try:
            entry = decode(line)
        except EntryError as error:
            return [finding(error.code, where, str(error))]
    taken[line] = entry
    return []


def _missing_parents(entries: dict[str, Entry]) -> list[Finding]:
    return [
        finding(
            "ledger-parent-missing",
            entry.place,
            f"the {entry.decision.kind} of {entry.decision.time} names the parent {parent[:12]}, which is not there",
        )
        for entry in sorted(entries.values(), key=lambda entry: (entry.decision.time, entry.digest))
        for parent in entry.decision.parents
        if parent not in entries
    ]


def _stop_at_first(scan: _Scan) -> None:
    errors = {"ledger-newer-format": NewerFormatError, "ledger-unreadable": UsageError}
    for problem in scan.problems:
        error = errors.get(problem.code, LedgerChainError)
        raise error(problem.message, where=problem.where, hint=problem.hint)


def _heads(entries: dict[str, Entry]) -> tuple[str, ...]:
    named = {parent for entry in entries.values() for parent in entry.decision.parents}
    return tuple(sorted(entries.keys() - named))


def of(sealed: Iterable[Entry]) -> Chain:
    """Return the chain of entries all of whose parents are among them."""
    entries = {entry.digest: entry for entry in sealed}
    children: dict[str, list[str]] = {key: [] for key in entries}
    waiting = {key: len(entry.decision.parents) for key, entry in entries.items()}
    for key, entry in entries.items():
        for parent in entry.decision.parents:
            children[parent].append(key)
    ready = [key for key, count in waiting.items() if not count]
    heapq.heapify(ready)
    ordered = []
    while ready:
        key = heapq.heappop(ready)
        ordered.append(entries[key])
        for child in children[key]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, child)
    return Chain(tuple(ordered), _heads(entries))
