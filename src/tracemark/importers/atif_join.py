"""ATIF documents of one folder that belong together: sub-agents are embedded, continuations are linked.

A name that comes out of a document is only ever looked up as a plain file name in the document's own folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tracemark.importers import atif_repair
from tracemark.importers.base import Context, Document, Imported, Record, Refused, documents
from tracemark.importers.strict import faults

Reader = Callable[[Record, Document, Context], Imported | Refused]
"""Reads one document in a context."""

_CONTINUATION = re.compile(r"(.+)\.cont-(\d{1,6})\.json")
_SUBAGENT = re.compile(r"trajectory\.summarization-\d+-\w+\.json")
_DEPTH = 8


def is_embedded_elsewhere(read: Reader, record: Record) -> bool:
    """Return whether another document of the folder, readable itself, embeds this record."""
    context = record.context
    for name in context.part_of:
        raw = context.sibling(name)
        if raw is None:
            continue
        around = replace(context, name=name, part_of=(), continues=None)
        owner = _only(Record(raw.strip(), name, name, around))
        if owner is None:
            continue
        trace = read(record, owner, around)
        if isinstance(trace, Imported) and _note(context.name) in trace.source.get("repairs", ()):
            return True
    return False


def embed(document: dict[str, Any], context: Context, above: tuple[str, ...] = ()) -> list[str]:
    """Put the sub-agents' documents that `document` names by path into its `subagent_trajectories`.

    A document that is missing, broken or invalid is left out, and the reference stays as it was.

    Args:
        document: altered in place.
        context: where its siblings are.
        above: names of the documents that this one is being embedded in.

    Returns:
        What was done, as repairs.
    """
    repairs: list[str] = []
    for ref in _references(document):
        name = ref.get("trajectory_path")
        if not isinstance(name, str) or name == context.name or name in above or len(above) >= _DEPTH:
            continue
        children = document.get("subagent_trajectories")
        known = {child.get("trajectory_id") for child in children or () if isinstance(child, dict)}
        if ref.get("trajectory_id") in known - {None}:
            continue
        raw = context.sibling(name)
        found = None if raw is None else _only(Record(raw.strip(), name, name))
        if found is None:
            continue
        child, notes = found.value, list(found.repairs)
        if atif_repair.raise_version(child, notes):
            continue
        notes += embed(child, replace(context, name=name), (*above, context.name))
        if not _valid(child, notes):
            continue
        if not child.get("trajectory_id"):
            child["trajectory_id"] = ref.get("trajectory_id") or name
            notes.append(f"{name}: no trajectory_id: named {child['trajectory_id']}")
        if child["trajectory_id"] in known or (children is not None and not isinstance(children, list)):
            continue
        ref["trajectory_id"] = child["trajectory_id"]
        document["subagent_trajectories"] = [*(children or ()), child]
        repairs += [_note(name), *notes]
    return repairs


def _role(document: dict[str, Any], context: Context) -> str | None:
    """Return `subagent` or `continuation` for a document that is only a part of a run; None for any other."""
    extra = document["agent"].get("extra") or {}
    if context.part_of or "parent_session_id" in extra or _SUBAGENT.fullmatch(context.name):
        return "subagent"
    index = extra.get("continuation_index")
    if context.continues or (isinstance(index, int) and index > 0):
        return "continuation"
    return None


def links_of(document: dict[str, Any], context: Context) -> dict[str, Any]:
    """Return the run facts `role`, `continues` and `continued_by`, as far as they are known."""
    links: dict[str, Any] = {}
    role = _role(document, context)
    if role:
        links["role"] = role
    before = context.continues
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
    return f"sub-agent document {name} embedded"


def _only(record: Record) -> Document | None:
    """Return the one JSON object of a record; None when it is anything else."""
    found = list(documents(record)) if record.raw else []
    if len(found) == 1 and isinstance(found[0], Document) and isinstance(found[0].value, dict):
        return found[0]
    return None


def _references(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every sub-agent reference in a document of unchecked shape."""
    for step in _list(document.get("steps")):
        observation = step.get("observation") if isinstance(step, dict) else None
        results = observation.get("results") if isinstance(observation, dict) else None
        for result in _list(results):
            refs = result.get("subagent_trajectory_ref") if isinstance(result, dict) else None
            yield from (ref for ref in _list(refs) if isinstance(ref, dict))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _valid(document: dict[str, Any], notes: list[str]) -> bool:
    if faults(document):
        notes += atif_repair.repair(document)
        return not faults(document)
    return True
