"""One stored trace: a run of one task, with what is first said of it.

The stored form is one line of canonical JSON with the members below. Its id is the SHA-256 of the canonical bytes of
`trajectory` alone, so what is said about a run (stamp, outcome, source) can be stated again later without touching its
identity. Sorted member order puts `trajectory` last, as one contiguous slice of the line.

Absent and null are different everywhere: tracemark leaves out what it does not know and never writes null for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from tracemark.model.stamp import Stamp
from tracemark.model.value import Digest, Maybe, Value

FORMAT = "tracemark/trace/1"
"""The value of a stored line's `format`."""

Status = Literal["success", "failure", "error", "unknown"]
"""How a run ended."""

STATUSES: tuple[str, ...] = get_args(Status)
"""Every status."""


class Model(Value):
    """The model that played: its own identity, no part of the harness."""

    name: Maybe[str] = None
    """The name under which it was called."""
    revision: Maybe[str] = None
    """Checkpoint or revision."""
    chat_template: Maybe[str] = None
    """Digest or name of the chat template that the server used."""
    tokenizer: Maybe[str] = None
    """Digest or name of the tokenizer."""
    server: Maybe[str] = None
    """Serving program and its reply parser."""


def model_label(name: str | None, revision: str | None) -> str | None:
    """Return what a model is called, `NAME` or `NAME@REVISION`; None when nobody names it."""
    return f"{name}@{revision}" if name and revision else name


class Run(Value):
    """Facts of a run that are not its harness."""

    task: Maybe[str] = None
    """The task's name as its source gives it."""
    domain: Maybe[str] = None
    """The environment or benchmark that the task belongs to."""
    split: Maybe[str] = None
    """Such as `train` or `test`, as the source says."""
    attempt: Maybe[int | str] = None
    """Which try at the task this is."""
    seed: Maybe[int | str] = None
    """The seed, where the run had one."""
    mode: Maybe[str] = None
    """How the run was driven, as the source says."""
    model: Maybe[Model] = None
    """The model that played."""
    sampling: Maybe[dict[str, Any]] = None
    """Sampling parameters verbatim."""
    environment: Maybe[dict[str, Any]] = None
    """Labels of where it ran (image, host, versions); never identity."""
    start: Maybe[str] = None
    """As the source wrote it."""
    end: Maybe[str] = None
    """As the source wrote it."""
    role: Maybe[Literal["subagent", "continuation"]] = None
    """None for the agent's own, whole run; the others are never demonstrations of their own."""
    continues: Maybe[str] = None
    """File name of the document that this one continues, as the producer wrote it."""
    continued_by: Maybe[str] = None
    """File name of the document that continues this one, as the producer wrote it."""
    rendered: Maybe[bool] = None
    """True when the assistant's text is a rendering that the model never wrote."""
    demonstration: Maybe[bool] = None
    """True when the trajectory was shown to a model and not made by one."""
    note: Maybe[str] = None
    """The batch's note."""


class Grader(Value):
    """Who judged."""

    name: str
    """The grader's name."""
    version: Maybe[str] = None
    """Its version; None when the source does not say."""


class Outcome(Value):
    """How the run ended, in the source's own words."""

    status: Status
    """How it ended: `success` by the source's verdict, else full reward; `error` when the infrastructure ended it."""
    reward: Maybe[int | float] = None
    """The source's reward; None when it gave none."""
    checks: Any = None
    """The grader's single results verbatim."""
    grader: Maybe[Grader] = None
    """Who judged; None when the source does not say."""
    termination: Maybe[str] = None
    """Why the run stopped, in the source's word."""
    rule: Maybe[str] = None
    """Which rule turned the source's words into `status`."""


class Source(Value):
    """Where the bytes came from."""

    format: str
    """The importer's format name."""
    label: str
    """File name relative to the path that was given, and the place in it; never absolute."""
    raw: Digest
    """SHA-256 of the raw record's bytes."""
    importer: str
    """The importer's name."""
    importer_version: str
    """Its version."""
    repairs: Maybe[list[str]] = None
    """What was changed while reading, in order; None when nothing was."""
    supersedes: Maybe[list[Digest]] = None
    """Ids of traces that an older importer version made of the same record; None when there are none."""


class Trace(Value):
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


def statement(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a stored line states about its run, and what a duplicate is compared by: stamp, outcome and run."""
    return {"harness": line["harness"], "outcome": line["outcome"], "run": line["run"]}
