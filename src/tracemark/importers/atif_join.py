"""ATIF documents of one folder that belong together: sub-agents are embedded, continuations are linked.

Only a plain file name in the document's own folder is ever opened because a document names it; what is named elsewhere
in the source is recognised when its turn comes (`links`), and is a part without being embedded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tracemark.importers import atif_repair
from tracemark.importers.base import Context, Document, Imported, Record, Refused
from tracemark.importers.documents import documents
from tracemark.importers.guard import caught
from tracemark.importers.head import SPACE
from tracemark.importers.links import named_role, references
from tracemark.importers.strict import faults

Reader = Callable[[Record, Document, Context], Imported | Refused]
"""Reads one document in a context."""

_CONTINUATION = re.compile(r"(.+)\.cont-(\d{1,6})\.json")
_SUBAGENT = re.compile(r"trajectory\.summarization-\d+-\w+\.json(?:\.(?:gz|zst|bz2|xz))?")
_SUMMARY = re.compile(r"-summarization-[^/]+\Z")
_DEPTH = 8
_OWNERS = 16
_BEFORE, _BEHIND = "sub-agent document ", " embedded"


def is_embedded_elsewhere(read: Reader, record: Record) -> bool:
    """Return whether another document of the folder, readable itself, embeds this record."""
    context = record.context
    if not context.part_of:
        return False
    return any(context.name in _embedded_in(read, owner, context) for owner in context.part_of[:_OWNERS])


def embed(document: dict[str, Any], context: Context) -> list[str]:
    """Put the sub-agents' documents that `document` names by path into its `subagent_trajectories`.

    Each file is embedded once, where it is named first. A document that is missing, broken or invalid is left out, and
    the reference stays as it was.

    Args:
        document: altered in place.
        context: where its siblings are.

    Returns:
        What was done, as repairs.
    """
    return _embed(document, context, {context.name: None}, 0)


def _embed(document: dict[str, Any], context: Context, taken: dict[str, str | None], depth: int) -> list[str]:
    """Embed what `document` names; `taken` maps the files of the whole tree to the ids under which they stand."""
    repairs: list[str] = []
    children = document.get("subagent_trajectories")
    if depth >= _DEPTH or not isinstance(children, (list, type(None))):
        return repairs
    ids = (_text(child, "trajectory_id") for child in children or () if isinstance(child, dict))
    known = {name for name in ids if name is not None}
    embedded: list[dict[str, Any]] = []
    for ref in references(document):
        name = _text(ref, "trajectory_path")
        if name is None or _text(ref, "trajectory_id") in known:
            continue
        if name not in taken:
            taken[name] = None
            child, notes = _child(name, context, taken, depth)
            if child is None:
                continue
            if not child.get("trajectory_id"):
                child["trajectory_id"] = _text(ref, "trajectory_id") or name
                notes.append(f"{name}: no trajectory_id: named {child['trajectory_id']}")
            if child["trajectory_id"] in known:
                continue
            known.add(child["trajectory_id"])
            taken[name] = child["trajectory_id"]
            embedded.append(child)
            repairs += [_note(name), *notes]
        if taken[name] in known:
            ref["trajectory_id"] = taken[name]
    if embedded:
        document["subagent_trajectories"] = [*(children or ()), *embedded]
    return repairs


def _text(value: dict[str, Any], name: str) -> str | None:
    """Return a member of an object of unchecked shape that is a text; None for anything else."""
    said = value.get(name)
    return said if isinstance(said, str) else None


def _child(
    name: str, context: Context, taken: dict[str, str | None], depth: int
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the valid document `name` with its own sub-agents embedded, or None, and what was done to it.

    One on which the importer fails is as good as broken here: it is refused when its own turn comes.
    """
    read: list[tuple[dict[str, Any] | None, list[str]]] = []
    with caught([]):
        read.append(_read_child(name, context, taken, depth))
    return read[0] if read else (None, [])


def _read_child(
    name: str, context: Context, taken: dict[str, str | None], depth: int
) -> tuple[dict[str, Any] | None, list[str]]:
    raw = context.sibling(name)
    found = None if raw is None else _only(Record(raw.strip(SPACE), name, name))
    if found is None:
        return None, []
    child, notes = found.value, list(found.repairs)
    if atif_repair.raise_version(child, notes):
        return None, []
    notes += _embed(child, context._replace(name=name), taken, depth + 1)
    return (child if _valid(child, notes) else None), notes


def _embedded_in(read: Reader, owner: str, context: Context) -> frozenset[str]:
    """Return the names of the files that `owner` embeds; remembered, as its parts ask one after another."""
    memory = {} if context.memory is None else context.memory
    key = "embedded", context.folder, owner
    if key not in memory:
        memory[key] = _names_embedded(read, owner, context)
    names: frozenset[str] = memory[key]
    return names


def _names_embedded(read: Reader, owner: str, context: Context) -> frozenset[str]:
    raw = context.sibling(owner)
    if raw is None:
        return frozenset()
    around = context._replace(name=owner, part_of=(), continues=None, is_part=False)
    record = Record(raw.strip(SPACE), owner, owner, around)
    found = _only(record)
    trace = None if found is None else read(record, found, around)
    notes = trace.source.get("repairs", ()) if isinstance(trace, Imported) else ()
    return frozenset(note.removeprefix(_BEFORE).removesuffix(_BEHIND) for note in notes if note.startswith(_BEFORE))


def _role(document: dict[str, Any], context: Context, copied: bool) -> str | None:
    """Return `subagent` or `continuation` for a document that says itself that it is only a part; None for others."""
    extra = document["agent"].get("extra") or {}
    index = extra.get("continuation_index")
    is_later = isinstance(index, int) and index > 0
    if "parent_session_id" in extra or _SUBAGENT.fullmatch(context.name):
        return "subagent"
    if ("summarization_index" in extra and not is_later) or _SUMMARY.search(document["agent"]["name"]):
        return "subagent"
    if is_later or copied:
        return "continuation"
    return None


def links_of(document: dict[str, Any], context: Context, copied: bool) -> dict[str, Any]:
    """Return the run facts `role`, `continues` and `continued_by`, as far as they are known.

    Args:
        document: the trajectory.
        context: what lies around it.
        copied: whether a step of it is context copied from another one.
    """
    links: dict[str, Any] = {}
    named, before = named_role(document, context)
    role = named if named == "subagent" else _role(document, context, copied) or named
    if role:
        links["role"] = role
    if role == "continuation" and before is None:
        match = _CONTINUATION.fullmatch(context.name)
        if match:
            number = int(match[2]) - 1
            name = f"{match[1]}.cont-{number}.json" if number > 0 else f"{match[1]}.json"
            before = name if context.sibling(name) is not None else None
    if before:
        links["continues"] = before
    after = document.get("continued_trajectory_ref")
    if after:
        links["continued_by"] = after
    return links


def _note(name: str) -> str:
    return f"{_BEFORE}{name}{_BEHIND}"


def _only(record: Record) -> Document | None:
    """Return the one JSON object of a record; None when it is anything else."""
    found = list(documents(record)) if record.raw else []
    if len(found) == 1 and isinstance(found[0], Document) and isinstance(found[0].value, dict):
        return found[0]
    return None


def _valid(document: dict[str, Any], notes: list[str]) -> bool:
    if not faults(document):
        return True
    notes += atif_repair.repair(document)
    return not faults(document)
