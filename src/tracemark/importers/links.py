"""Which documents of a source name one another: continuations and sub-agents' trajectories.

A reference is parsed, never matched in escaped text. It reaches

- the file that it names by path: relative to its own document, within what was given, in a folder or in an archive,
  packed or not;
- by a trajectory id, a session id or a file's name, any document in the folder of its own one and below: one element
  of an array, a line of many, a member of an archive.

So does the id of a trajectory that is embedded in another. A document never reaches itself: its own ids name nothing.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tracemark import engine
from tracemark.importers.base import Context, Refused
from tracemark.importers.compression import expanded
from tracemark.importers.documents import documents
from tracemark.importers.guard import caught
from tracemark.importers.records import Piece, records

_REFERENCE = b"_trajectory_ref"
_MARKS = (_REFERENCE, b'"subagent_trajectories"')

_PACKED = (".gz", ".zst", ".bz2", ".xz")
_DEPTH = 8
_BLOCK = 1_048_576
_RANGE = 67_108_864
_LONGEST = len(_REFERENCE)


class _Named(NamedTuple):
    """What the documents of one folder name, by id: parts, and continuations with the name of what they continue."""

    parts: set[str]
    after: dict[str, str]


class Links:
    """The references of one source, collected file by file."""

    def __init__(self) -> None:
        self._doubtful: list[Piece] = []
        self._plain: set[str] = set()
        self._owners: dict[str, list[Piece]] = {}
        self._before: dict[str, str] = {}
        self._named: dict[str, _Named] = {}
        self._seen: dict[str, tuple[frozenset[str], Mapping[str, str]]] = {}

    def note(self, piece: Piece, is_likely: bool) -> None:
        """Look into the documents of a piece for what they name; `is_likely` when it is known that `may_name` holds."""
        if is_likely:
            self._look_into(piece)
        else:
            self._doubtful.append(piece)

    def settle(self) -> None:
        """Look into the pieces of which it was not known whether they name anything; to be called after the last one.

        Looking for one text in large blocks costs a fraction of cutting a file into lines, and few files hold it; who
        embeds a trajectory refers to it, so this text is enough.
        """
        doubtful, self._doubtful = self._doubtful, []
        parts = [part for piece in doubtful for part in _parts(piece)]
        refer = {_place(part) for part, refers in zip(parts, engine.run(_refers, parts), strict=True) if refers}
        for piece in doubtful:
            if _place(piece) in refer:
                self._look_into(piece)
            else:
                self._plain.add(_place(piece))

    def _look_into(self, piece: Piece) -> None:
        # what fails here fails where the piece is read, and is refused there
        with caught([]):
            self._note_all(piece)

    def _note_all(self, piece: Piece) -> None:
        for record in records(piece):
            if isinstance(record, Refused) or not may_name(record.raw):
                continue
            for document in documents(record):
                if isinstance(document, Refused):
                    continue
                for value in document.value if isinstance(document.value, list) else (document.value,):
                    if isinstance(value, dict):
                        self._note(piece, value)

    def _note(self, piece: Piece, document: dict[str, Any]) -> None:
        own = set(_ids(document))
        folder = posixpath.dirname(piece.path)
        named = self._named.setdefault(folder, _Named(set(), {}))
        named.parts.update(name for child in _embedded_in(document) for name in _ids(child) if name not in own)
        for ref in references(document):
            names = [name for name in (ref.get("trajectory_id"), ref.get("session_id")) if isinstance(name, str)]
            path = ref.get("trajectory_path")
            if isinstance(path, str) and path:
                names += _names_of(path)
                owners = self._owners.setdefault(_target(piece, path), [])
                if all(_place(owner) != _place(piece) for owner in owners):
                    owners.append(piece)
            named.parts.update(name for name in names if name and name not in own)
        after = document.get("continued_trajectory_ref")
        if isinstance(after, str) and after:
            self._before.setdefault(_target(piece, after), piece.context.name)
            for name in _names_of(after):
                if name not in own:
                    named.after.setdefault(name, piece.context.name)

    def linked(self, piece: Piece) -> Piece:
        """Return the piece with what is known of it: what names it, and what is named around it.

        Documents that are parts of one another in a circle are parts of nothing.
        """
        place = _place(piece)
        if place in self._plain:
            piece = piece._replace(context=piece.context._replace(refers=False))
        if not self._named:
            return piece
        owners = [owner for owner in self._owners.get(place, ()) if self._has_top(_place(owner), {place})]
        parts, after = self._around(posixpath.dirname(piece.path))
        beside = [one for one in owners if not one.packed and one.context.folder == piece.context.folder]
        before = self._before.get(place)
        is_loose = bool(piece.packed)
        context = piece.context._replace(
            part_of=() if is_loose else tuple(one.context.name for one in beside),
            is_part=bool(owners) or (is_loose and not parts.isdisjoint(_names_of(piece.context.name))),
            continues=before if before is not None else _first(after, piece.context.name if is_loose else ""),
            parts=parts,
            after=after,
        )
        return piece._replace(context=context)

    def _around(self, folder: str) -> tuple[frozenset[str], Mapping[str, str]]:
        """Return what the documents of a folder and of those above it name; one value for all files of the folder."""
        if folder not in self._seen:
            chain = [folder]
            while (above := posixpath.dirname(chain[-1])) != chain[-1]:
                chain.append(above)
            named = [self._named[one] for one in chain if one in self._named]
            after: dict[str, str] = {}
            for one in reversed(named):
                after |= one.after
            self._seen[folder] = frozenset().union(*(one.parts for one in named)), after
        return self._seen[folder]

    def _has_top(self, place: str, below: set[str]) -> bool:
        while (owners := self._owners.get(place)) is not None:
            below.add(place)
            above = [_place(owner) for owner in owners if _place(owner) not in below]
            if not above:
                return False
            place = above[0]
        return True


def may_name(data: bytes) -> bool:
    """Return False only for a text without a reference to another document, or an embedded one."""
    return any(mark in data for mark in _MARKS)


def _parts(piece: Piece) -> Iterator[Piece]:
    """Yield a piece in ranges that several processes may look through; a packed one, or a small one, as it is."""
    try:
        size = 0 if piece.packed else Path(piece.path).stat().st_size
    except OSError:
        size = 0
    if size <= _RANGE:
        yield piece
        return
    for start in range(0, size, _RANGE):
        yield piece._replace(start=start, end=start + _RANGE)


def _refers(piece: Piece) -> bool:
    """Return False only where no text of a piece, or one that begins in it, refers to another document.

    Whatever precedes a fault is read all the same, and the fault is reported there.
    """
    faults: list[Exception] = []
    held = False
    with caught(faults):
        held = _holds_reference(piece)
    return held or bool(faults)


def _holds_reference(piece: Piece) -> bool:
    # one block for the whole file, with the end of the last one in front
    block = bytearray(_LONGEST + _BLOCK)
    fresh = memoryview(block)[_LONGEST:]
    left = sys.maxsize if piece.end is None else piece.end - piece.start + _LONGEST
    with expanded(piece.path, piece.packed, piece.member, piece.context.limits.max_expanded) as stream:
        if piece.start:
            stream.seek(piece.start)
        # every binary stream of ours has readinto
        while size := stream.readinto(fresh[:left]):  # type: ignore[attr-defined]
            if block.find(_REFERENCE, 0, _LONGEST + size) >= 0:
                return True
            block[:_LONGEST] = block[size : size + _LONGEST]
            left -= size
    return False


def named_role(document: dict[str, Any], context: Context) -> tuple[str | None, str | None]:
    """Return the role that other documents give this one by its ids, or None, and the name of what it continues."""
    if not context.parts and not context.after:
        return None, None
    ids = set(_ids(document))
    if not context.parts.isdisjoint(ids):
        return "subagent", None
    before = next((context.after[name] for name in sorted(ids) if name in context.after), None)
    return (None if before is None else "continuation"), before


def references(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every sub-agent reference in a document of unchecked shape."""
    for step in _list(document.get("steps")):
        observation = step.get("observation") if isinstance(step, dict) else None
        results = observation.get("results") if isinstance(observation, dict) else None
        for result in _list(results):
            refs = result.get("subagent_trajectory_ref") if isinstance(result, dict) else None
            yield from (ref for ref in (refs if isinstance(refs, list) else [refs]) if isinstance(ref, dict))


def _embedded_in(document: dict[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the trajectories embedded in a document of unchecked shape, and those in them."""
    for child in _list(document.get("subagent_trajectories")) if depth < _DEPTH else ():
        if isinstance(child, dict):
            yield child
            yield from _embedded_in(child, depth + 1)


def _ids(document: dict[str, Any]) -> Iterator[str]:
    yield from (
        value for name in ("trajectory_id", "session_id") if isinstance(value := document.get(name), str) and value
    )


def _names_of(path: str) -> list[str]:
    """Return the names under which a document may be known that is named by a path."""
    name = posixpath.basename(path)
    for end in _PACKED:
        name = name.removesuffix(end)
    return [one for one in (name, name.removesuffix(".json")) if one]


def _place(piece: Piece) -> str:
    """Return where a piece stands, as a path that others may name: without the ending of its packing."""
    place = f"{piece.path}/{piece.member}" if piece.member else piece.path
    if piece.packed and piece.packed != "zip":
        for end in _PACKED:
            place = place.removesuffix(end)
    return place


def _target(piece: Piece, path: str) -> str:
    """Return the place that a document of `piece` names; an empty one for a place out of what was given."""
    root = piece.path if piece.member else (piece.root or posixpath.dirname(piece.path))
    target = posixpath.normpath(posixpath.join(posixpath.dirname(_place(piece)), path))
    inside = not path.startswith("/") and target.startswith(root.rstrip("/") + "/") and target != _place(piece)
    return target if inside else ""


def _first(after: Mapping[str, str], name: str) -> str | None:
    return next((after[one] for one in _names_of(name) if one in after), None) if name else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
