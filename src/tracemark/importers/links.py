"""Which documents of a source name one another: continuations and sub-agents' trajectories.

A reference is parsed, never matched in escaped text. It reaches

- the file that it names by path: relative to its own document, within what was given;
- by a trajectory id or a session id, any document in the folder of its own one and below: one element of an array, one
  line of many. A path without a folder in it that leads to no file is such an id too.

So does the id of a trajectory that is embedded in another. A document never reaches itself: its own ids name nothing.

How files are packed changes none of it. A packed file is known by its name without the ending of its packing. An
archive stands for its files as they would lie when it was unpacked in its own folder; of several files of one place,
the one in the archive of the document that names it goes first, then one that is in no archive.

Documents that are parts of one another in a circle are parts of nothing, unless one outside of the circle names one of
them: all of them are below that one then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tracemark import engine
from tracemark.importers.base import Context, Refused
from tracemark.importers.circles import Ranks, ranked
from tracemark.importers.compression import expanded
from tracemark.importers.documents import documents
from tracemark.importers.guard import caught
from tracemark.importers.places import file_of, folder_of, names_of, place_of, targets, unpacked_place, upwards
from tracemark.importers.records import Piece, records

_REFERENCE = b"_trajectory_ref"
_MARKS = (_REFERENCE, b'"subagent_trajectories"')

_DEPTH = 8
_BLOCK = 1_048_576
_RANGE = 67_108_864
_LONGEST = len(_REFERENCE)


class _Document(NamedTuple):
    """A document that names others; those of one file that have the same ids are not told apart."""

    file: str
    trajectory: str | None
    session: str | None


class _Path(NamedTuple):
    """A path that a document names."""

    by: _Document
    path: str
    is_later: bool
    """Whether it is that of a continuation."""


class _Named(NamedTuple):
    """What the documents of one folder name, by id: parts, and continuations with the name of what they continue."""

    parts: set[str]
    after: dict[str, str]


class Links:
    """The references of one source, collected file by file."""

    def __init__(self) -> None:
        self._doubtful: list[Piece] = []
        self._plain: set[str] = set()
        self._documents: dict[_Document, Piece] = {}
        self._paths: dict[_Path, None] = {}
        self._below: dict[object, list[object]] = {}
        self._named: dict[str, _Named] = {}
        self._owners: dict[str, list[_Document]] = {}
        self._before: dict[str, str] = {}
        self._ranks = Ranks(frozenset(), {})
        self._of_file: dict[str, list[_Document]] = {}
        self._seen: dict[str, tuple[frozenset[str], Mapping[str, str]]] = {}

    def note(self, piece: Piece, is_likely: bool) -> None:
        """Look into the documents of a piece for what they name; `is_likely` when it is known that `may_name` holds."""
        if is_likely:
            self._look_into(piece)
        else:
            self._doubtful.append(piece)

    def settle(self, pieces: Iterable[Piece]) -> None:
        """Find out what the documents reach that name others; to be called once, after the last piece was noted.

        Pieces of which it was not known whether they name anything are looked into. Looking for one text in large
        blocks costs a fraction of cutting a file into lines, and few files hold it; who embeds a trajectory refers to
        it, so this text is enough.

        Args:
            pieces: all of the source, of any format.
        """
        doubtful, self._doubtful = self._doubtful, []
        parts = [part for piece in doubtful for part in _parts(piece)]
        refer = {file_of(part) for part, refers in zip(parts, engine.run(_refers, parts), strict=True) if refers}
        for piece in doubtful:
            if file_of(piece) in refer:
                self._look_into(piece)
            else:
                self._plain.add(file_of(piece))
        if self._documents:
            self._resolve(pieces)
            self._rank()

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
        names = [name for child in _embedded_in(document) for name in _ids(child)]
        after = document.get("continued_trajectory_ref")
        paths = [(after, True)] if isinstance(after, str) and after else []
        for ref in references(document):
            names += _ids(ref)
            path = ref.get("trajectory_path")
            if isinstance(path, str) and path:
                paths.append((path, False))
        if names or paths:
            by = _Document(file_of(piece), *_pair(document))
            self._documents.setdefault(by, piece)
            self._name(by, names, is_later=False)
            self._paths.update((_Path(by, path, is_later), None) for path, is_later in paths)

    def _name(self, by: _Document, names: Iterable[str], *, is_later: bool) -> None:
        """Enter ids that a document names in its folder; `is_later` when they are those of its continuation."""
        piece = self._documents[by]
        folder = folder_of(piece)
        named = self._named.setdefault(folder, _Named(set(), {}))
        for name in names:
            if name in (by.trajectory, by.session):
                continue
            self._below.setdefault(by, []).append((folder, name))
            if is_later:
                named.after.setdefault(name, piece.context.name)
            else:
                named.parts.add(name)

    def _resolve(self, pieces: Iterable[Piece]) -> None:
        """Find the files that are named by path; a name alone that leads to none is an id."""
        wanted = {place for path in self._paths for place in targets(self._documents[path.by], path.path)}
        held: set[str] = set()
        archived: dict[str, list[str]] = {}
        for piece in pieces if wanted else ():
            place = place_of(piece)
            if place in wanted:
                held.add(place)
            if piece.member and (unpacked := unpacked_place(piece)) in wanted:
                archived.setdefault(unpacked, []).append(place)
        for path in self._paths:
            here, unpacked = targets(self._documents[path.by], path.path)
            reached = next(([place] for place in (here, unpacked) if place in held), archived.get(unpacked, []))
            for place in reached:
                self._reach(path, place)
            if not reached and unpacked:
                self._name(path.by, names_of(path.path), is_later=path.is_later)

    def _reach(self, path: _Path, place: str) -> None:
        self._below.setdefault(path.by, []).append(place)
        if path.is_later:
            self._before.setdefault(place, self._documents[path.by].context.name)
        else:
            self._owners.setdefault(place, []).append(path.by)

    def _rank(self) -> None:
        """Find the documents that are parts of one another in a circle: only those that name others can be."""
        named = {one for under in self._below.values() for one in under}
        for document in self._documents:
            self._of_file.setdefault(document.file, []).append(document)
        for in_file in self._of_file.values():
            piece = self._documents[in_file[0]]
            place, folders = place_of(piece), self._naming(folder_of(piece))
            for document in in_file:
                ids = [(folder, name) for name in document[1:] if name is not None for folder in folders]
                for one in (place, *ids):
                    if one in named:
                        self._below.setdefault(one, []).append(document)
        self._ranks = ranked(self._below)

    def _naming(self, folder: str) -> list[str]:
        """Return those of a folder and the ones above it whose documents name others."""
        return [one for one in upwards(folder) if one in self._named]

    def linked(self, piece: Piece) -> Piece:
        """Return the piece with what is known of it: what names it, and what is named around it."""
        if file_of(piece) in self._plain:
            piece = piece._replace(context=piece.context._replace(refers=False))
        if not self._documents:
            return piece
        place = place_of(piece)
        parts, after = self._around(folder_of(piece))
        documents = self._of_file.get(file_of(piece), ())
        circular = frozenset(one[1:] for one in documents if one in self._ranks.circular)
        context = piece.context._replace(
            part_of=() if piece.packed or circular else self._beside(piece, documents),
            is_part=place in self._owners,
            continues=self._before.get(place),
            parts=parts,
            after=after,
            circular=circular,
        )
        return piece._replace(context=context)

    def _beside(self, piece: Piece, documents: Iterable[_Document]) -> tuple[str, ...]:
        """Return the names of the files that may embed a file, from above; where two name one another, one alone."""
        owners = self._owners.get(place_of(piece))
        if owners is None:
            return ()
        order, folder = self._ranks.order, piece.context.folder
        last = max((order[one] for one in documents), default=len(order))
        above = [(order[one], self._documents[one]) for one in owners if order[one] < last]
        beside = sorted((at, one.context.name) for at, one in above if not one.packed and one.context.folder == folder)
        return tuple(dict.fromkeys(name for _, name in beside))

    def _around(self, folder: str) -> tuple[frozenset[str], Mapping[str, str]]:
        """Return what the documents of a folder and of those above it name.

        It is one value for all files of the folder, and that of the folder above where nothing is added to it.
        """
        if folder not in self._seen:
            parts: frozenset[str] = frozenset()
            after: Mapping[str, str] = {}
            for one in reversed(self._naming(folder)):
                if one not in self._seen:
                    named = self._named[one]
                    parts = parts if named.parts <= parts else parts | named.parts
                    after = {**after, **named.after} if named.after else after
                    self._seen[one] = parts, after
                parts, after = self._seen[one]
            self._seen[folder] = parts, after
        return self._seen[folder]


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
    """Return the role that other documents give this one, by path or by its ids, and the name of what it continues.

    Both are None where none does, or only such as are parts of one another with this one in a circle.
    """
    if not (context.is_part or context.continues or context.parts or context.after):
        return None, None
    trajectory, session = _pair(document)
    # a session that the document does not state is that of the trial around it
    if context.circular and ((trajectory, session) in context.circular or (trajectory, None) in context.circular):
        return None, None
    ids = [name for name in (trajectory, session) if name is not None]
    if context.is_part or not context.parts.isdisjoint(ids):
        return "subagent", context.continues
    before = context.continues or next((context.after[name] for name in sorted(ids) if name in context.after), None)
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


def _pair(document: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the trajectory id and the session id of a document of unchecked shape; None for what is no such text."""
    trajectory, session = document.get("trajectory_id"), document.get("session_id")
    return (
        trajectory if isinstance(trajectory, str) and trajectory else None,
        session if isinstance(session, str) and session else None,
    )


def _ids(document: dict[str, Any]) -> list[str]:
    return [name for name in _pair(document) if name is not None]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
