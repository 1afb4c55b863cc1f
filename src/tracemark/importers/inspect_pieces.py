"""A sample of an Inspect AI archive that is stored in pieces, as very long ones are: put together again.

Its folder holds `sample.json` without its longest members, and the pieces of four sequences: `messages` (the pool to
which conversation and requests refer), `events`, `calls` and `attachments` (named by their index). A piece is named by
the index of its first element, so the next one is found by counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tracemark import digest
from tracemark.importers.base import Context, Record
from tracemark.importers.finish import UnfitError

REFERENCES = "message_refs"
"""The member by which a sample says that it is stored in pieces: which messages of the pool are its conversation."""


def put_together(sample: Mapping[str, Any], record: Record) -> dict[str, Any]:
    """Return a sample as it is when it is stored whole.

    Raises:
        UnfitError: when a piece is missing or no JSON, or all of them are more than a record may be.
    """
    pieces = _Pieces(record)
    messages = pieces.sequence("messages")
    events, names = pieces.sequence("events"), pieces.value("events/uuids.json")
    if isinstance(names, list) and len(names) != len(events):
        raise UnfitError(f"a piece of the sample is missing: it has {len(names)} events, {len(events)} were found")
    metadata = pieces.value("metadata.json")  # written where it is not empty
    return {
        **{name: value for name, value in sample.items() if name != REFERENCES},
        "metadata": {} if metadata is None else metadata,
        "messages": _conversation(sample[REFERENCES], messages),
        "events": events,
        "attachments": {str(index): text for index, text in enumerate(pieces.sequence("attachments"))},
        "events_data": {"messages": messages},
    }


def _conversation(references: Any, pool: list[Any]) -> list[Any]:
    found: list[Any] = []
    for pair in references if isinstance(references, list) else (references,):
        is_range = isinstance(pair, list) and len(pair) == 2 and all(end.__class__ is int for end in pair)
        if not is_range or not 0 <= pair[0] <= pair[1] <= len(pool):
            raise UnfitError("a piece of the sample is missing: its conversation names messages that are not there")
        found += pool[pair[0] : pair[1]]
    return found


class _Pieces:
    def __init__(self, record: Record) -> None:
        self._context: Context = record.context
        self._left = record.context.limits.max_record
        # the label ends with the archive's own name and the member's
        archive = PurePath(record.context.archive or "").name
        at = record.label.find(f"{archive}/samples/")
        self._folder = record.label[at + len(archive) + 1 :].rpartition("/")[0]

    def value(self, name: str) -> Any:
        """Return the JSON value of a member of the sample's folder; None when there is none."""
        raw = self._context.member(f"{self._folder}/{name}")
        if raw is None:
            return None
        self._left -= len(raw)
        if self._left < 0:
            raise UnfitError(f"the pieces of the sample are more than {self._context.limits.max_record} bytes")
        try:
            return digest.loads(raw).value
        except digest.NotJSONError as error:
            raise UnfitError(f"the piece {name} of the sample is no JSON: {error}") from None

    def sequence(self, name: str) -> list[Any]:
        """Return the elements of one of the sequences."""
        found: list[Any] = []
        while isinstance(piece := self.value(f"{name}/{len(found)}.json"), list) and piece:
            found += piece
        return found
