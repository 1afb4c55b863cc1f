"""A decision: one entry of the ledger, made by a person.

Decisions are added and never changed. Each names the entries that were the newest ones in the ledger that its maker had
read (its parents), so the ledger is a graph in which order of lines means nothing and in which two branches that were
merged are both parents of the next decision. The time in an entry is a label: it is what a clock said, and orders
nothing.

Subjects by kind:
- `accept`: `{"harness": FINGERPRINT, "label"?: NAME}` makes this harness the accepted one, `{"model": MODEL}` this
  model; neither says anything of the other half;
- `freeze`: `{"tasks": DIGEST, "count": NUMBER, "attempts": NUMBER}` keeps the evaluation set as it is;
- `install`: `{"half": "harness" | "model", "harness": FINGERPRINT, "model": MODEL | null}` makes the half that a gate
  judged the accepted one; the other member is the half with which it was judged;
- `reject`: `{"half": …, "candidate": FINGERPRINT | MODEL, "incumbent": FINGERPRINT | MODEL}` keeps what a gate found
  against a candidate, and changes nothing;
- `roll-back`: `{"harness": FINGERPRINT | null, "model": MODEL | null, "to": DIGEST}` makes both halves what they were
  right after the entry `to`;
- `retract`, `reinstate`: `{"trace": ID, "raw"?: DIGEST, "also"?: [DIGEST, …]}` bars a trace and the raw records that
  hold it from use, or lifts that;
- `stamp`: `{"trace": ID, "fingerprint": FINGERPRINT | null}` settles under which harness a contested trace counts;
- `equivalent`, `distinct`: `{"fingerprints": [FINGERPRINT, FINGERPRINT, …]}` lets exports treat these as one, or takes
  that back.

A MODEL is an object with the members of `model.gate.ModelOf`.

A kind that this version does not know is kept and chained like any other; it changes nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tracemark.model.faults import first
from tracemark.model.gate import MeasuredOf, ModelOf
from tracemark.model.value import Digest, Fingerprint, Maybe, Value

FORMAT = "tracemark/ledger/1"
"""The value of an entry's `format`."""


class Kind(StrEnum):
    """What is decided, as far as this version knows kinds."""

    ACCEPT = "accept"
    FREEZE = "freeze"
    INSTALL = "install"
    REJECT = "reject"
    ROLL_BACK = "roll-back"
    RETRACT = "retract"
    REINSTATE = "reinstate"
    STAMP = "stamp"
    EQUIVALENT = "equivalent"
    DISTINCT = "distinct"


class AcceptSubject(Value):
    """What an `accept` is about: one half of the pair, or both."""

    harness: Maybe[Fingerprint] = None
    """The harness that is accepted from here on; absent when the harness stays."""
    model: Maybe[ModelOf] = None
    """The model that is accepted from here on; absent when the model stays."""
    label: str | None = None
    """The folder's name when the harness was accepted; no identity. None when it had none."""

    @model_validator(mode="after")
    def _one_half_at_least(self) -> AcceptSubject:
        if self.harness is None and self.model is None:
            raise ValueError("it must name a `harness` or a `model`")
        return self


class FreezeSubject(Value):
    """What a `freeze` is about."""

    tasks: Digest
    """SHA-256 of the canonical JSON of the evaluation set's ids, sorted."""
    count: Annotated[int, Field(ge=1)]
    """How many ids there are."""
    attempts: Annotated[int, Field(ge=1)]
    """Attempts at each task that gates ask for."""


class InstallSubject(Value):
    """What an `install` is about."""

    half: Literal["harness", "model"]
    """The half that was judged and is accepted from here on."""
    harness: Fingerprint
    """The harness: the accepted one from here on, or that with which the model was judged."""
    model: ModelOf | None
    """The model: the accepted one from here on, or that with which the harness was judged; None when nobody says."""

    @model_validator(mode="after")
    def _half_is_there(self) -> InstallSubject:
        if self.half == "model" and self.model is None:
            raise ValueError("where the half is `model` there must be one")
        return self


class RejectSubject(Value):
    """What a `reject` is about."""

    half: Literal["harness", "model"]
    """The half that was judged."""
    candidate: Fingerprint | ModelOf
    """The candidate: a fingerprint or a model, as the half says."""
    incumbent: Fingerprint | ModelOf
    """What stays accepted, likewise."""

    @model_validator(mode="after")
    def _both_are_of_the_half(self) -> RejectSubject:
        if {isinstance(one, str) for one in (self.candidate, self.incumbent)} != {self.half == "harness"}:
            raise ValueError("`candidate` and `incumbent` must be fingerprints or models, as `half` says")
        return self


class RollBackSubject(Value):
    """What a `roll-back` is about."""

    harness: Fingerprint | None
    """The accepted harness from here on; None when none is."""
    model: ModelOf | None
    """The accepted model from here on; None when none is."""
    to: Digest
    """The entry right after which the pair was this one."""


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


class FreezeEvidence(Value):
    """What a `freeze` rests on."""

    tasks: Annotated[list[str], Field(min_length=1)]
    """The ids of the evaluation set, sorted, so that what is changed later can be named; they have the digest of its
    subject."""


class TracesOf(Value):
    """Digests of the lists of traces that a gate compared: SHA-256 of the canonical JSON of their ids, sorted."""

    incumbent: Digest
    """Of the incumbent's."""
    candidate: Digest
    """Of the candidate's."""


class GateEvidence(Value):
    """What an `install` or a `reject` rests on."""

    report: Digest
    """SHA-256 of the gate report's canonical JSON."""
    traces: TracesOf
    """Digests of the lists of traces that were compared."""
    params: Digest
    """SHA-256 of the canonical JSON of all that `params.yaml` told but the accepted pair, defaults filled in."""
    evaluation: Digest
    """Digest under which the evaluation set was frozen."""
    policy: Literal["significant", "cotrace"]
    """The policy that decided."""
    candidates: Annotated[int, Field(ge=1)]
    """How many candidates had been evaluated on the set by then, each as often as it was evaluated."""
    reused: Annotated[int, Field(ge=0)]
    """How many of the incumbent's traces were those that had installed it."""
    measured: MeasuredOf
    """What the report measured."""
    accepted_traces: Maybe[list[Digest]] = None
    """Of an `install` the ids of the candidate's traces, so that they are known when they are used again; absent of a
    `reject`."""


_SUBJECTS: dict[str, type[Value]] = {
    Kind.ACCEPT: AcceptSubject,
    Kind.FREEZE: FreezeSubject,
    Kind.INSTALL: InstallSubject,
    Kind.REJECT: RejectSubject,
    Kind.ROLL_BACK: RollBackSubject,
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
    (`equal-trees` or `forced`), the modules that are `alike` as syntax trees, and the `differences` that were forced;
    of a `freeze` what `FreezeEvidence` says, of an `install` or a `reject` what `GateEvidence` says. None when it rests
    on the reason alone."""

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
