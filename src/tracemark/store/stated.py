"""Does a stored line state what its kind says? Other programs write lines too.

Whatever passes here has the types that every reader relies on. Members that the catalogue does not read, such as the
trajectory, are judged where they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, ValidationError

from tracemark import digest
from tracemark.model.annotation import Annotation
from tracemark.model.faults import first
from tracemark.model.stamp import Stamp
from tracemark.model.trace import Outcome, Run
from tracemark.model.value import Digest, Fingerprint, Maybe, Value

EXPORTS = "exports."
"""How the kinds of annotations begin that record an export."""

_MOST = 256
_LONGEST = 65_536
_sound: set[bytes] = set()
"""Stamps that were found to be sound: most traces of a run share theirs."""


class StampStatement(Value):
    """The value of an annotation of kind `stamps`."""

    harness: Stamp
    """What is said of the harness."""


class OutcomeStatement(Value):
    """The value of an annotation of kind `outcomes`."""

    outcome: Maybe[Outcome] = None
    """How the run ended; None when nothing is said of that."""
    run: Maybe[Run] = None
    """Facts of the run; None when none are stated."""


class StatedSource(Value):
    """The source of a stored trace, or one more of it; what it does not say is absent."""

    raw: Digest | Literal[""]
    """SHA-256 of the raw record; empty when there is none."""
    format: Maybe[str] = None
    """Format of the source."""
    label: Maybe[str] = None
    """File name and place in the source."""
    importer: Maybe[str] = None
    """Name of the importer."""
    importer_version: Maybe[str] = None
    """Its version."""
    repairs: Maybe[list[str]] = None
    """What was changed while reading."""
    supersedes: Maybe[list[Digest]] = None
    """Ids of traces that an older importer version made of the same record."""


class SourceStatement(Value):
    """The value of an annotation of kind `sources`."""

    source: StatedSource
    """One more raw record that holds the trace, and who read it."""


class ExportStatement(Value):
    """The value of an annotation of kind `exports.…`; other members are the exporter's business."""

    model_config = ConfigDict(extra="ignore")

    fingerprint: Fingerprint
    """The harness of the rows."""
    manifest: Digest
    """Digest of the manifest."""
    policy: str
    """How well the harness of each row is known."""
    traces: list[Digest]
    """The traces that were taken, in the order of the rows."""


_OF_KIND: dict[str, type[Value]] = {
    "stamps": StampStatement,
    "outcomes": OutcomeStatement,
    "sources": SourceStatement,
}
_OF_TRACE: dict[Literal["outcome", "run", "source"], type[Value]] = {
    "outcome": Outcome,
    "run": Run,
    "source": StatedSource,
}


def wrong_in_annotation(line: Any) -> str | None:
    """Return what keeps a parsed line from being an annotation, with its place; None when nothing does.

    The value is judged where its kind is one of those that are read; of others it is any object.
    """
    found = _wrong(Annotation, line)
    if found is not None:
        return found
    kind = line["kind"]
    if kind in _OF_KIND and "trace" not in line:
        return "trace: missing"
    model = ExportStatement if kind.startswith(EXPORTS) else _OF_KIND.get(kind)
    return None if model is None else _wrong(model, line["value"], "value")


def wrong_in_trace(line: Mapping[str, Any]) -> str | None:
    """Return what is wrong with stamp, outcome, run or source of a parsed trace line; None when nothing is."""
    stamp = digest.canonical(line["harness"])
    if stamp not in _sound:
        found = _wrong(Stamp, line["harness"], "harness")
        if found is not None:
            return found
        if len(_sound) < _MOST and len(stamp) <= _LONGEST:
            _sound.add(stamp)
    for member, model in _OF_TRACE.items():
        found = _wrong(model, line[member], member)
        if found is not None:
            return found
    return None


def _wrong(model: type[Value], value: Any, *above: str) -> str | None:
    try:
        model.model_validate(value)
    except ValidationError:
        # seldom needed, and much to import
        from tracemark.model.trajectory import without_surrogates  # noqa: PLC0415

        try:
            # a lone surrogate is no fault: JSON can carry it, and so does the store
            model.model_validate(without_surrogates(value))
        except ValidationError as error:
            return ": ".join(first(error, value, *above))
    return None
