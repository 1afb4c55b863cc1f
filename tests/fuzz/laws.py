"""The laws of reading, which hold for every input, and the answers by which inputs are told apart."""

from __future__ import annotations

import re
from typing import Any

from tracemark import digest
from tracemark.exporters.interchange import document
from tracemark.findings import CODES
from tracemark.importers import detect
from tracemark.importers.base import Context, Imported, Record, Refused
from tracemark.importers.guard import FAILED
from tracemark.importers.strict import faults
from tracemark.model.stamp import Stamp
from tracemark.model.trace import Outcome, Run, Source

Items = list[Imported | Refused]

_UNREAD = ("empty-file", "format-unknown", "invalid-utf8", "record-not-json", "record-truncated", "utf-16")
"""Refusals of what no importer looked at: one of each is enough."""


def broken(items: Items, again: Items, folder: str) -> str | None:
    """Return the first law of reading that the answers to one input break; None when they keep all of them."""
    if list(map(_said, items)) != list(map(_said, again)):
        return "a second reading gave something else"
    for item in items:
        fault = _refusal(item) if isinstance(item, Refused) else _trace(item)
        if fault is None and folder in repr(item):
            fault = "it names the folder that was read"
        if fault is not None:
            return f"{item.where}: {fault}"
    return None


def _refusal(item: Refused) -> str | None:
    if item.code == FAILED:
        return item.message
    if item.code not in CODES:
        return f"{item.code} is no code"
    return None if re.fullmatch(r"[0-9a-f]{64}", item.raw_digest) else f"its digest is {item.raw_digest!r}"


def _trace(item: Imported) -> str | None:
    found = faults(item.trajectory)
    if found:
        return f"no ATIF: {found[0]}"
    raw = item.trajectory_bytes
    if digest.canonical(item.trajectory) != raw:
        return "not the canonical bytes"
    decoded = digest.loads(raw)
    if decoded.value != item.trajectory or decoded.repairs or digest.canonical(decoded.value) != raw:
        return f"its bytes are read as something else {decoded.repairs}"
    for model, value in ((Run, item.run), (Outcome, item.outcome), (Source, item.source)):
        model.model_validate(value)
    Stamp.model_validate({"observed": item.observed})
    return None if item.embedded else _exported(item)


def _exported(item: Imported) -> str | None:
    """Return what is wrong with an export of a trace that is read again."""
    said = {"harness": {"observed": item.observed} if item.observed else {}, "run": item.run, "outcome": item.outcome}
    text = document(item.trajectory_bytes, [said], digest.sha256(item.trajectory_bytes))
    [again] = detect.importer("atif").read(Record(text, "a.json", "a.json", Context()))
    if isinstance(again, Refused):
        return f"its export is refused: {again.message}"
    if again.trajectory_bytes != item.trajectory_bytes:
        return "its export is read as another trajectory"
    if (again.run, again.outcome) != (item.run, item.outcome):
        return "its export is read with other facts"
    return None


def _said(item: Imported | Refused) -> Any:
    if isinstance(item, Refused):
        return item
    return item.trajectory_bytes, item.run, item.outcome, item.source, item.observed, item.mixed, item.where


def answers(items: Items) -> set[str]:
    """Return with what an input was answered, in words without its own values."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, Refused):
            found.add(item.code if item.code in _UNREAD else f"{item.code} {in_words(item.message)}")
            continue
        found.update(in_words(note) for note in item.source.get("repairs", ()))
        found.update(f"{one.code} {in_words(one.message)}" for one in item.findings)
        found.update(f"mixed {in_words(text)}" for text in item.mixed)
        found.update(f"{entry['form']} {name}" for name, entries in item.observed.items() for entry in entries)
        found.add(f"{item.outcome['status']} {item.outcome.get('rule')}")
    return found


def in_words(text: str) -> str:
    return re.sub(r"\b[a-z_]+/\S+|'[^']*'|\"[^\"]*\"|[0-9]+", "…", text.partition(" (×")[0])[:60]
