"""A decision: one entry of the ledger, made by a person.

Decisions are added and never changed. Each names the entries that were the newest ones in the ledger that its maker had
read (its parents), so the ledger is a graph in which order of lines means nothing and in which two branches that were
merged are both parents of the next decision. The time in an entry is a label: it is what a clock said, and orders
nothing.

Subjects by kind:
- `accept`: `{"harness": FINGERPRINT, "label"?: NAME}` makes this harness the accepted one;
- `retract`, `reinstate`: `{"trace": ID, "raw"?: DIGEST, "also"?: [DIGEST, …]}` bars a trace and the raw records that
  hold it from use, or lifts that;
- `stamp`: `{"trace": ID, "fingerprint": FINGERPRINT | null}` settles under which harness a contested trace counts;
- `equivalent`, `distinct`: `{"fingerprints": [FINGERPRINT, FINGERPRINT, …]}` lets exports treat these as one, or takes
  that back.

A kind that this version does not know is kept and chained like any other; it changes nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tracemark.model.faults import first
from tracemark.model.value import Digest, Fingerprint, Maybe, Value

FORMAT = "tracemark/ledger/1"
"""The value of an entry's `format`."""


class Kind(StrEnum):
    """What is decided, as far as this version knows kinds."""

    ACCEPT = "accept"
    RETRACT = "retract"
    REINSTATE = "reinstate"
    STAMP = "stamp"
    EQUIVALENT = "equivalent"
    DISTINCT = "distinct"


class AcceptSubject(Value):
    """What an `accept` is about."""

    harness: Fingerprint
    """The harness that is accepted from here on."""
    label: str | None = None
    """The folder's name when it was accepted; no identity. None when it had none."""


class TraceSubject(Value):
    """What a `retract` or a `reinstate` is about."""

    trace: Digest
    """The trace's id."""
    raw: Digest | None = None
    """Digest of the raw record, so that importing it again does not bring it back; None bars the id alone."""
    also: Maybe[Annotated[list[Digest], Field(min_length=1)]] = None
    """Digests of the other records that were known to hold the same run, sorted; absent when there was none."""


class StampSubject(Value):
    """What a `stamp` is about."""

    trace: Digest
    """The trace's id."""
    fingerprint: Fingerprint | None
    """The harness under which it counts; None means that it counts under none."""


class EquivalentSubject(Value):
    """What an `equivalent` or a `distinct` is about."""

    fingerprints: Annotated[list[Fingerprint], Field(min_length=2)]
    """The fingerprints that exports treat as one, or of which that is taken back; order means nothing."""


_SUBJECTS: dict[str, type[Value]] = {
    Kind.ACCEPT: AcceptSubject,
    Kind.RETRACT: TraceSubject,
    Kind.REINSTATE: TraceSubject,
    Kind.STAMP: StampSubject,
    Kind.EQUIVALENT: EquivalentSubject,
    Kind.DISTINCT: EquivalentSubject,
}


class Decision(Value):
    """One entry of the ledger."""

    format: Literal["tracemark/ledger/1"] = "tracemark/ledger/1"
    """Always `tracemark/ledger/1`."""
    kind: Annotated[str, StringConstraints(pattern=r"\A[a-z][a-z-]*\z")]
    """What is decided; one of `Kind`, or a kind of a later version."""
    time: Annotated[str, StringConstraints(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\z")]
    """What the clock said, RFC 3339 in UTC; a label that orders nothing."""
    reason: Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
    """Why, in the words of whoever decided; never empty."""
    parents: list[Digest]
    """Digests of all heads of the ledger on which this was decided, sorted; empty when nothing was in it."""
    subject: dict[str, Any]
    """What it is about; the members depend on the kind."""
    evidence: dict[str, Any] | None = None
    """What the decision rests on: of an `accept` the `components` of the harness; of an `equivalent` the `rule`
    (`equal-trees` or `forced`), the modules that are `alike` as syntax trees, and the `differences` that were forced.
    None when it rests on the reason alone."""

    @model_validator(mode="after")
    def _subject_fits_kind(self) -> Decision:
        subject = _SUBJECTS.get(self.kind)
        if subject is not None:
            try:
                subject.model_validate(self.subject)
            except ValidationError as error:
                place, reason = first(error, self.subject, "subject")
                raise ValueError(f"{place}: {reason}") from None
        if self.parents != sorted(set(self.parents)):
            raise ValueError("`parents` must be sorted, each named once")
        return self

    def as_json(self) -> dict[str, Any]:
        """Return the entry as JSON members; `evidence` is left out when there is none."""
        members = {name: getattr(self, name) for name in type(self).model_fields}
        if self.evidence is None:
            del members["evidence"]
        return members
