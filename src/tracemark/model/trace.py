"""One stored trace: a run of one task, with what is first said of it.

The stored form is one line of canonical JSON with the members below. Its id is the SHA-256 of the canonical bytes of
`trajectory` alone, so what is said about a run (stamp, outcome, source) can be stated again later without touching its
identity. Sorted member order puts `trajectory` last, as one contiguous slice of the line.

Absent and null are different everywhere: tracemark leaves out what it does not know and never writes null for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tracemark.model.stamp import Stamp

FORMAT = "tracemark/trace/1"
"""The value of a stored line's `format`."""

STATUSES = ("success", "failure", "error", "unknown")
"""How a run ended. `success`: the source's own verdict, else full reward; `error`: the infrastructure ended it."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Model(_Value):
    """The model that played: its own identity, no part of the harness."""

    name: str | None = None
    """The name under which it was called."""
    revision: str | None = None
    """Checkpoint or revision."""
    chat_template: str | None = None
    """Digest or name of the chat template that the server used."""
    server: str | None = None
    """Serving program and its reply parser."""


class Run(_Value):
    """Facts of a run that are not its harness."""

    task: str | None = None
    """The task's name as its source gives it."""
    domain: str | None = None
    """The environment or benchmark that the task belongs to."""
    split: str | None = None
    """Such as `train` or `test`, as the source says."""
    attempt: int | str | None = None
    """Which try at the task this is."""
    seed: int | str | None = None
    """The seed, where the run had one."""
    mode: str | None = None
    """How the run was driven, as the source says."""
    model: Model | None = None
    """The model that played."""
    sampling: dict[str, Any] | None = None
    """Sampling parameters verbatim."""
    environment: dict[str, Any] | None = None
    """Labels of where it ran (image, host, versions); never identity."""
    start: str | None = None
    """As the source wrote it."""
    end: str | None = None
    """As the source wrote it."""
    role: Literal["subagent", "continuation"] | None = None
    """None for the agent's own, whole run; the others are never demonstrations of their own."""
    continues: str | None = None
    """File name of the document that this one continues, as the producer wrote it."""
    continued_by: str | None = None
    """File name of the document that continues this one, as the producer wrote it."""
    rendered: bool | None = None
    """True when the assistant's text is a rendering that the model never wrote."""
    demonstration: bool | None = None
    """True when the trajectory was shown to a model and not made by one."""
    note: str | None = None
    """The batch's note."""


class Grader(_Value):
    """Who judged."""

    name: str
    """The grader's name."""
    version: str | None = None
    """Its version; None when the source does not say."""


class Outcome(_Value):
    """How the run ended, in the source's own words."""

    status: Literal["success", "failure", "error", "unknown"]
    """See `STATUSES`."""
    reward: int | float | None = None
    """The source's reward; None when it gave none."""
    checks: Any = None
    """The grader's single results verbatim."""
    grader: Grader | None = None
    """Who judged; None when the source does not say."""
    termination: str | None = None
    """Why the run stopped, in the source's word."""
    rule: str | None = None
    """Which rule turned the source's words into `status`."""


class Source(_Value):
    """Where the bytes came from."""

    format: str
    """The importer's format name."""
    label: str
    """File name relative to the path that was given, and the place in it; never absolute."""
    raw: str
    """SHA-256 of the raw record's bytes."""
    importer: str
    """The importer's name."""
    importer_version: str
    """Its version."""
    repairs: list[str] | None = None
    """What was changed while reading, in order; None when nothing was."""
    supersedes: list[str] | None = None
    """Ids of traces that an older importer version made of the same record; None when there are none."""


class Trace(_Value):
    """One stored line."""

    format: Literal["tracemark/trace/1"]
    """Always `tracemark/trace/1`; a line without it is not a trace."""
    harness: Stamp
    """What is said of the harness."""
    outcome: Outcome
    """How it ended."""
    run: Run
    """Facts of the run."""
    source: Source
    """Where it came from."""
    trajectory: dict[str, Any]
    """ATIF v1.8, see `model.trajectory`."""


def outcome_from_reward(reward: float | None, success_reward: float = 1.0) -> str:
    """Return the status that a bare reward means: full reward is success, less is failure, none is unknown."""
    if reward is None:
        return "unknown"
    return "success" if reward == success_reward else "failure"


def statement(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a stored line states about its run, and what a duplicate is compared by: stamp, outcome and run."""
    return {"harness": line["harness"], "outcome": line["outcome"], "run": line["run"]}
