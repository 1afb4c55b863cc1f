"""The report of a gate: two cells of one evaluation set, what comparing them says, and what follows.

A report states content and nothing else: no time, no host, no git commit. So the same traces under the same terms give
the same report, and the ledger can bind a decision to its digest. It holds the ids of all traces that it rests on, so
that anybody can compute it again.

Invariants:
- it is `refused` exactly when something stands against the comparison, and then nothing is measured;
- both policies are told wherever something is measured.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tracemark.model.value import Digest, Fingerprint, Maybe, Value

FORMAT: Literal["tracemark/gate/1"] = "tracemark/gate/1"
"""The value of a report's `format`."""

Verdict = Literal["accept", "reject", "refused"]
"""What a gate says of a candidate; `refused` is no decision."""


class ModelOf(Value):
    """The model half of a pair. None means that nobody says."""

    name: str | None
    """The name under which it was called."""
    revision: str | None
    """Checkpoint or revision."""
    chat_template: str | None
    """The chat template of the server, by digest or name."""
    tokenizer: str | None
    """The tokenizer, by digest or name."""
    server: str | None
    """The serving program and its reply parser."""
    sampling: str | None
    """The sampling parameters as canonical JSON text, their seed apart."""


class OtherModels(Value):
    """Traces of a cell in which steps name another model than is recorded; who is right, a report cannot tell."""

    traces: Annotated[int, Field(ge=1)]
    """How many there are."""
    steps: Annotated[int, Field(ge=1)]
    """How many of their steps name another model."""
    of: Annotated[int, Field(ge=1)]
    """All steps of these traces in which a model spoke."""
    names: Annotated[list[str], Field(min_length=1)]
    """The other names, sorted."""


class RetractedAttempts(Value):
    """Attempts of a pair at the set that were retracted; why, the ledger says."""

    traces: Annotated[list[Digest], Field(min_length=1)]
    """Their ids, sorted."""
    statuses: dict[str, int]
    """How many of them had ended how."""
    replaced: Annotated[int, Field(ge=0)]
    """How many of those with a score others stand in the place of."""


class Evaluated(Value):
    """One cell: a pair, and the traces of its evaluation."""

    harness: Fingerprint
    """Fingerprint of the harness."""
    model: ModelOf
    """The model, as the traces name it."""
    components: dict[str, Digest]
    """Digests of the harness's components; empty when it was not at hand."""
    traces: list[Digest]
    """Ids of all its evaluation traces, sorted."""
    digest: Digest
    """SHA-256 of the canonical JSON of that list."""
    statuses: dict[str, int]
    """How many of them ended how."""
    evidence: dict[str, int]
    """How many of them are known how well to be of the harness."""
    graders: list[str]
    """Who judged them, `NAME VERSION`, sorted; `unrecorded` where of any with a score nobody is recorded."""
    other_models: Maybe[OtherModels] = None
    """What their steps say of the model, where some name another one; absent where none does."""
    reused: Maybe[Annotated[list[Digest], Field(min_length=1)]] = None
    """Those of the traces on which the decision rests that installed the pair, sorted; absent where there are none, and
    of a gate's incumbent, whose stand in `reused` of the report."""
    retracted: Maybe[RetractedAttempts] = None
    """Attempts that were retracted; absent where there are none."""

    @model_serializer(mode="wrap")
    def _absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = dump(self)
        for name in ("other_models", "reused", "retracted"):
            if members[name] is None:
                del members[name]
        return members


class FigureOf(Value):
    """A number, or why there is none."""

    value: float | None
    """The number; None when it is not defined, which is neither zero nor infinite."""
    withheld: str | None
    """Why there is none; None when there is one."""


class ReliabilityOf(Value):
    """pass^k for one k, the mean over tasks."""

    k: Annotated[int, Field(ge=1)]
    """How many attempts must all succeed."""
    combinations: float
    """C(c, k) / C(n, k)."""
    power: float
    """(c / n)^k."""


class FiguresOf(Value):
    """The figures of one cell."""

    attempts: int
    """Attempts counted."""
    successes: int
    """Those of them that succeeded."""
    score: float
    """The sum of the tasks' scores: how many tasks an average run solves."""
    reliability: list[ReliabilityOf]
    """pass^k for each k from 1 to the attempts of a task."""
    reliable: int
    """Tasks that succeeded in every attempt."""
    cost: FigureOf
    """What the agent cost, in US dollars."""
    cost_per_success: FigureOf
    """That over the successes."""
    cost_per_reliable_task: FigureOf
    """That over the reliable tasks."""
    open_errors: int
    """Attempts that the infrastructure ended and nobody re-ran; each is counted against the candidate."""
    rerun_errors: int
    """Attempts that the infrastructure ended and that were re-run; they are not counted."""


class ChangeOf(Value):
    """One task whose score changed."""

    task: str
    """The task, with its domain."""
    before: int
    """Successes of the incumbent."""
    after: int
    """Successes of the candidate."""


class RepeatedOf(Value):
    """How two evaluations of the incumbent differ: the one that installed it, and the one that is compared."""

    digest: Digest
    """SHA-256 of the canonical JSON of the sorted ids of the first one's traces."""
    difference: Annotated[int, Field(ge=0)]
    """|w − l| between them, in tasks."""
    moved: Annotated[int, Field(ge=0)]
    """w + l between them: how many tasks had another score."""


class NoiseOf(Value):
    """How far |w − l| of two evaluations of the incumbent reaches by chance. None means that it is withheld."""

    tasks: int | None
    """The 95 % point in tasks; a difference of up to this many lies inside the noise."""
    promoted: float | None
    """How often an identical candidate has w > l."""
    point: float
    """The point of the distribution."""
    method: str
    """How it was computed; it draws no random numbers, so there is no seed."""
    withheld: str | None
    """Why it is withheld; None when it is not."""
    repeated: Maybe[RepeatedOf] = None
    """What was seen of it; absent unless the evaluation that installed the incumbent and a later one are whole and were
    judged alike."""

    @model_serializer(mode="wrap")
    def _absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = dump(self)
        if self.repeated is None:
            del members["repeated"]
        return members


class PolicySays(Value):
    """What a policy says of w and l alone."""

    accepts: bool
    """Whether the candidate would take the incumbent's place."""
    reason: str
    """Why."""


class ConditionOf(Value):
    """What became of one further condition."""

    name: str
    """The condition."""
    met: bool
    """Whether it is met."""
    reason: str
    """Why."""


class MeasuredOf(Value):
    """What two comparable cells say."""

    n: int
    """Tasks compared."""
    attempts: int
    """Attempts of each task in each cell."""
    w: int
    """Tasks whose score went up."""
    l: int  # noqa: E741 - the name that the literature gives it
    """Tasks whose score went down."""
    ties: int
    """Tasks whose score did not change."""
    p: float
    """One-sided exact sign test of w against l."""
    noise: NoiseOf
    """The noise floor."""
    inside_noise: bool | None
    """Whether |w − l| is at most the noise floor; None when there is none."""
    clean: bool
    """Whether no result of the candidate is missing and none waits for a re-run."""
    ups: list[ChangeOf]
    """The tasks whose score went up, sorted."""
    downs: list[ChangeOf]
    """The tasks whose score went down, sorted."""
    incumbent: FiguresOf
    """Figures of the incumbent."""
    candidate: FiguresOf
    """Figures of the candidate."""
    cost_scope: str
    """What the costs cover."""
    policies: dict[str, PolicySays]
    """What each policy says, by its name."""
    conditions: list[ConditionOf]
    """What became of the conditions that were asked for beside the policy."""

    @model_validator(mode="after")
    def _adds_up(self) -> MeasuredOf:
        if (self.w, self.l) != (len(self.ups), len(self.downs)):
            raise ValueError("`w` and `l` must be the numbers of tasks in `ups` and `downs`")
        if self.w + self.l + self.ties != self.n:
            raise ValueError("`w`, `l` and `ties` must add up to `n`")
        return self


class RerunOf(Value):
    """One attempt that is still to be made."""

    side: Literal["incumbent", "candidate", "new harness", "new model", "new pair"]
    """Whose; the last three are of an attribution."""
    task: str
    """The task."""
    attempt: int | str | None
    """Its number; None when numbers do not say it."""
    trace: Digest | None
    """The trace that the infrastructure ended; None when there is none."""


class RefusalOf(Value):
    """One reason why the cells cannot be compared."""

    reason: str
    """Its name."""
    message: str
    """What is wrong and where."""
    hint: str
    """What to do next."""
    tasks: list[str]
    """The tasks concerned, sorted."""
    rerun: list[RerunOf]
    """The attempts to make."""
    traces: list[Digest] = Field(default_factory=list)
    """The traces of which something is to be done, such as to give them a verdict; sorted."""


class Stated(Value):
    """What the comparison was made under."""

    attempts: int | None
    """Scored attempts that each task had to have; None: as many as all had."""
    level: float
    """The largest p at which `significant` accepts."""
    infrastructure_limit: float
    """Largest share of attempts that the infrastructure may have ended and nobody re-run."""
    evaluation_tasks: int
    """Ids in the evaluation set."""
    evaluation_digest: Digest | None
    """Digest of the evaluation set; None when it has none."""
    frozen_digest: Digest | None
    """Digest under which it was frozen; None when it was not frozen."""


class GateReport(Value):
    """What a gate found."""

    format: Literal["tracemark/gate/1"] = "tracemark/gate/1"
    """Always `tracemark/gate/1`."""
    half: Literal["harness", "model"]
    """The half that is judged."""
    policy: Literal["significant", "cotrace"]
    """The policy that decides."""
    verdict: Verdict
    """What it says, all conditions included."""
    changed: list[str]
    """What differs between the two pairs: components of the harness, members of the model."""
    candidates: Annotated[int, Field(ge=0)]
    """How many candidates were evaluated on this set so far, this one included: pairs other than the incumbent, each as
    often as it was evaluated."""
    reused: list[Digest]
    """Ids of the incumbent's traces on which the decision that installed it rests, sorted."""
    terms: Stated
    """What the comparison was made under."""
    incumbent: Evaluated
    """The evaluation of the accepted pair."""
    candidate: Evaluated
    """The evaluation of the candidate."""
    refusals: list[RefusalOf]
    """Everything that stands against the comparison."""
    measured: Maybe[MeasuredOf] = None
    """What the comparison says; absent when it is refused."""

    @model_validator(mode="after")
    def _refused_or_measured(self) -> GateReport:
        refused = bool(self.refusals)
        if refused is not (self.verdict == "refused") or refused is not (self.measured is None):
            raise ValueError("a report has either refusals and the verdict `refused`, or `measured`")
        return self

    @model_serializer(mode="wrap")
    def _absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = dump(self)
        if self.measured is None:
            del members["measured"]
        return members
