"""What `params.yaml` tells the pipeline and the verbs, and the accepted pair that the ledger decided.

The values live beside the ledger because one of them does: `accepted` repeats what it decided, and `accepted_findings`
says where the two differ, which is also how an acceptance that was cut short in between, or an edit by hand, is found.
A value that the file does not state has its default here. The file itself is the business of `params_file`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from tracemark import digest
from tracemark.findings import Finding, finding
from tracemark.importers.base import Limits
from tracemark.ledger.entry import Entry
from tracemark.ledger.pair import CONFLICTS, label
from tracemark.ledger.state import LedgerState

NAME = "params.yaml"
"""The file's name in the root of a corpus."""


_LIMITS = Limits()


class Policy(StrEnum):
    """How well a trace's harness must be known before an export takes it."""

    RECORDED = "recorded"
    """Every part was recorded by the run itself."""
    UNIQUE = "unique"
    """Recorded; or nothing contradicts it, something corroborates it, and no other known harness fits."""
    CLAIMED = "claimed"
    """Somebody says so, and nothing contradicts it."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The accepted pair, as the file states it."""

    harness: str | None = None
    """Fingerprint of the accepted harness, which `tracemark harness accept` writes after the ledger; None when none
    is."""
    model: str | None = None
    """The accepted model, `NAME` or `NAME@REVISION`, which `tracemark model accept` and the gates write after the
    ledger; None when none is."""


@dataclass(frozen=True, slots=True)
class IngestParams:
    """What ingest is told."""

    success_reward: float = _LIMITS.success_reward
    """Reward at which a run without a verdict of its own counts as success; with any other it counts as failure. It
    concerns new traces only."""
    max_record: int = _LIMITS.max_record
    """Largest record in bytes; a larger one is refused."""
    max_expanded: int = _LIMITS.max_expanded
    """Bytes to which one compressed file may expand."""
    inbox: str = "partial"
    """`complete` when the pipeline fills the inbox, or every raw run is kept in it: then ingest may make again a store
    that is not pulled, if all that dvc.lock pins of it comes out. Else `partial`."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many traces, and of which length, a training export takes. None means that a limit is off."""

    per_task: int | None = 1
    """Most traces of one task; those of unknown task are each counted as a task of its own. None: no limit."""
    total: int | None = 100
    """Most traces in all. None: no limit."""
    minimum: int = 20
    """Fewest traces: an export with fewer is refused. 0 refuses none but the empty one."""
    tool_calls: tuple[int, int] | None = (2, 60)
    """Fewest and most tool calls of a trace, both allowed. None: no limit."""


@dataclass(frozen=True, slots=True)
class ExportParams:
    """What exports are told."""

    evidence: Policy = Policy.UNIQUE
    """How well a trace's harness must be known: one of the policies below."""
    models: tuple[str, ...] = ()
    """Models whose traces count, each `NAME` or `NAME@REVISION`; empty means every model, the unknown one too."""
    sft: Caps = field(default_factory=Caps)
    """Limits of the SFT export."""


@dataclass(frozen=True, slots=True)
class CandidateParams:
    """Which candidates the pipeline has gates judge, each against the accepted pair; empty means none."""

    harness: tuple[str, ...] = ()
    """Harness versions that the stage `gate-harness` judges, by name or fingerprint, each with the accepted model."""
    model: tuple[str, ...] = ()
    """Models that the stage `gate-model` judges, each `NAME` or `NAME@REVISION`, under the accepted harness."""


@dataclass(frozen=True, slots=True)
class GateParams:
    """What gates are told."""

    policy: str = "significant"
    """Which policy decides: `significant` (more tasks up than down, and the one-sided exact sign test gives at most
    0.05) or `cotrace` (more up than down; a tie passes if it is clean). Both are told."""
    infrastructure_errors: float = 0.0
    """Largest share of an evaluation's attempts that the infrastructure may have ended and nobody re-run, from 0 to 1;
    each counts against the candidate."""
    keep: tuple[str, ...] = ()
    """Tasks of which no score may go down, each `DOMAIN/TASK` or `TASK`."""
    pass_all_not_lower: bool = False
    """Whether pass^k for k = `evaluation.attempts` must not be lower than the incumbent's."""
    cost_not_above: bool = False
    """Whether the cost per success must not be above the incumbent's."""
    fresh: bool = False
    """Whether the incumbent's evaluation must be another one than that which installed it; if not, it is flagged."""
    candidates: CandidateParams = field(default_factory=CandidateParams)
    """Which candidates the pipeline has gates judge."""


@dataclass(frozen=True, slots=True)
class FailureParams:
    """What the failure log is told."""

    conditions: str | None = None
    """File of the corpus with conditions of one's own, in the form of the shipped ones. None when there is none."""


@dataclass(frozen=True, slots=True)
class PlanParams:
    """What `plan` is told."""

    attempts: int = 4
    """Attempts that a task gets before it is given up without a success."""
    quotas: Mapping[str, float] = field(default_factory=dict)
    """Wanted share of each class of tasks in the training set, from 0 to 1, as `DOMAIN/KIND: SHARE`. Together at most
    1; empty means that no share is wanted."""
    runs: int | None = None
    """Most runs that one plan lists. None: no limit."""


@dataclass(frozen=True, slots=True)
class Params:
    """All of `params.yaml`."""

    accepted: Accepted = field(default_factory=Accepted)
    """The accepted pair as the file states it; the ledger is the evidence for it."""
    ingest: IngestParams = field(default_factory=IngestParams)
    """What ingest is told."""
    evaluation: frozenset[str] = frozenset()
    """Ids of the tasks kept for evaluation, never in a training export: a list of ids, or `{file: PATH}` with a file of
    the corpus that holds one id a line (blank lines and lines that begin with `#` count for nothing). `DOMAIN/TASK`
    means the task of that domain, `TASK` alone the one of that name in any domain. Where the list is not empty, a trace
    whose task nobody knows is left out as well."""
    evaluation_file: str | None = None
    """The file that lists them, relative to the corpus; None when `params.yaml` itself does."""
    evaluation_attempts: int = 4
    """Attempts at each task of the evaluation set that a gate asks for, in each of the two evaluations."""
    export: ExportParams = field(default_factory=ExportParams)
    """What exports are told."""
    gates: GateParams = field(default_factory=GateParams)
    """What gates are told."""
    failures: FailureParams = field(default_factory=FailureParams)
    """What the failure log is told."""
    plan: PlanParams = field(default_factory=PlanParams)
    """What `plan` is told."""


def digest_of(params: Params) -> str:
    """Return a digest of all that `params.yaml` tells but the accepted pair, defaults filled in.

    So a decision can name what it was made under, and the decision itself changes nothing of that.
    """
    told = asdict(params)
    del told["accepted"]
    return digest.of({**told, "evaluation": sorted(params.evaluation)})


@dataclass(frozen=True, slots=True)
class _Half:
    """How findings speak of one half of the accepted pair."""

    code: str
    """The code of the finding that the file and the ledger differ."""
    accept: str
    """The command that accepts one."""
    shown: Callable[[str], str]
    """Gives a value as messages show it."""


_OF = {
    "harness": _Half("accepted-differs", "tracemark harness accept", str),
    "model": _Half("accepted-model-differs", "tracemark model accept", repr),
}


def accepted_findings(params: Params, state: LedgerState, half: str) -> tuple[Finding, ...]:
    """Return where one half of `accepted` and the ledger differ, with the command that makes them agree.

    Nothing is returned when concurrent decisions about it disagree: that is a finding of the ledger's own.

    Args:
        params: what the file says.
        state: what the ledger decided.
        half: `harness` or `model`.
    """
    stated = getattr(params.accepted, half)
    decided, by = (state.harness, state.accepted_by) if half == "harness" else (label(state.model), state.model_by)
    if stated == decided or any(conflict.code == CONFLICTS[half] for conflict in state.conflicts):
        return ()
    of, anew = _OF[half], f"{_OF[half].accept} {shlex.quote(stated or '')} --reason TEXT"
    if decided is None:
        said = "none"
        hint = _to_none(by) or f"{anew}, or set it to null"
    else:
        said = of.shown(decided)
        hint = f"{of.accept} {shlex.quote(decided)} --reason TEXT writes what the ledger decided"
        if stated is not None:
            hint += f"; {anew} decides anew"
    message = f"accepted.{half} is {'null' if stated is None else of.shown(stated)}, and the ledger accepted {said}"
    return (finding(of.code, f"{NAME}: accepted.{half}", message, hint),)


def _to_none(decided: Entry | None) -> str | None:
    """Return what finishes a decision that a half is none, which only a roll-back can be; None where nobody decided."""
    if decided is None:
        return None
    to = str(decided.decision.subject["to"])
    return f"tracemark gate rollback --to {to[:12]} --reason TEXT writes what the ledger decided"
