"""Evaluations of verifiers: `results.jsonl` of the first generation, and `traces.jsonl` of the second (v1).

A row of `results.jsonl` is a rollout: `prompt`, `completion`, `reward`; `metadata.json` beside it says of which
environment and model all rows are (`verifiers_rows`). A line of `traces.jsonl` is an episode with its traces, or one
trace; a trace holds its messages as a graph, and each path from a root to a leaf, a branch, becomes a trace of its own
(`verifiers_graph`): a branch with another system message or other tools is of another harness.

Keeps: messages, calls, answers and reasoning as steps (see `conversation`); tools as `agent.tool_definitions`; reward,
metrics and what stopped the run in `outcome`; environment, model, sampling and versions in `run`; of a model call usage
and cost, token ids and log probabilities as the step's metrics; what else a node and its call say in the step's
`extra.node` and `extra.call`; every other member in the root's `extra.record` (rows), `extra.trace` and
`extra.episode`, calls that gave no node in `extra.calls`.
Drops: of `metadata.json` and `config.toml` what is of the file as a whole (counts, averages, costs, paths, places to
save to); members of messages that are null, an empty list of calls, the word `function` as the type of a call; of nodes
what is null or empty; of a branch the nodes and calls of the others.
Invents: `agent.name` and `agent.version` ("unknown") where neither environment nor program is recorded; ids of calls
without one; `outcome.reward` of v1, the sum of its weighted rewards; an empty system step for a run without messages.
Text of the assistant that no model wrote in this run (in a row's `prompt`; of a node without `sampled`) is marked
`is_copied_context`, and counts no model call where it has no reasoning; no export takes it. So it is with a user's
message of a prompt that holds nothing, as where an image was not kept (`extra.message_missing`). Where handlers rewrote
replies (`response_rewrites`), nobody says which, and the run counts as `run.rendered`. A trace whose agent does not
train (`trainable` false: a judge, a simulated user) beside one that does, or alone in its line, has `run.role`
subagent: it is a part of another run.

Known limits: rows say nothing of which attempt they are, and stand in the order in which they ended, so `run.attempt`
stays unknown. A reward beyond `ingest.success_reward` says that rewards of the environment have another scale: its
status is unknown (finding `verdict-unread`), and no other row of its file is a success by its reward; of files in
archives only the row itself is looked at. Judge such an environment by a success reward of its own. Rows of text
completion, without messages, are refused. Two branches begin with the same steps, so rows that are made of them repeat
these. The raw digest of one of several branches is that of its record's digest and its place in it.

What the format shows of a harness. Prompt: the system message as it was sent. Tools: those of the row, or of the trace;
table formats pad their schemas with null, which counts for nothing. A trace records the tools of its last request that
offered any, and where it has several branches, nobody says whose that was: then a branch has those that its first node
names. No tools in a record do not say that none were offered. Runtime: the limits in the agent's configuration (v1),
unless the run went beyond them (finding `config-contradicted`). Handlers: nothing. Versions and arguments of the
environment are labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tracemark.importers import verifiers_graph, verifiers_rows
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, Unit, refuse
from tracemark.importers.documents import documents, elements
from tracemark.importers.finish import UNFIT, Draft, NewerError, UnfitError, drafted
from tracemark.importers.guard import guarded
from tracemark.importers.head import Head

SUCCESS = (
    ("`error` of a row: anything but null, false or empty; `errors` of a trace that is not `ok`", "error"),
    ("`ok` of a trace: false", "error"),
    (
        "a branch that ends in one of several replies to one request: nobody says which was graded",
        "unknown, with a finding",
    ),
    ("reward, or the sum of weighted rewards, beyond ingest.success_reward", "unknown, with a finding"),
    ("reward, or the sum of weighted rewards", "by reward: success at ingest.success_reward, else failure"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`example_id`, else `id` of a row; `task.key`, else `task.data.name` or `idx`, else `task.hash`", "run.task"),
    ("`env_id` or `env` of metadata.json; `env.id` of an episode, else of config.toml", "run.domain"),
    (
        "`model` of metadata.json; that of the branch's first call, else of the agent or of config.toml",
        "run.model.name",
    ),
    ("`sampling_args`, or `max_tokens` and `temperature`; `sampling` of the first call, else as above", "run.sampling"),
    ("`env_args`, `base_url`, `version_info`, `date`; `verifiers` of a trace", "run.environment, as labels"),
    ("`timing.start_time` or `timing.start`", "run.start"),
    (
        "`tool_defs`, else `info.oai_tools`; `tools` of the branch's first node, else of the trace",
        "agent.tool_definitions",
    ),
    ("`metrics` and any other number of a row; `rewards` and `metrics` of a trace", "outcome.checks"),
    ("`stop_condition`; without one, what the error says that ended the run", "outcome.termination"),
    ("`token_usage`", "final_metrics"),
    ("`id` of a trace, with the number of the branch where it has several", "session_id; trajectory_id"),
)
"""What goes to a place of its own; all else is kept in `extra`."""

_METADATA = ("model", "num_examples", "rollouts_per_example")
_SETTINGS = ("env", "model", "num_rollouts", "sampling")
_BESIDE = "what verifiers says of all runs of an evaluation; it is read with them where it stands beside them"
_CONFIG = "settings of a program, such as those of an evaluation by verifiers, which are read with its traces"


class VerifiersImporter(Importer):
    """Reads rollouts of verifiers."""

    name = "verifiers"
    version = "2"
    surest = 95
    shows = ("prompt_templates", "tool_bindings", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 95 for an episode or a trace, 90 for a row and for a file of metadata."""
        if head.may_hold(b'"nodes"') or head.may_hold(b'"traces"'):
            members = head.members
            if _is_trace(members) or (members.get("traces") == "[" and members.get("env") == "{" and "ok" in members):
                return 95
        if head.may_hold(b'"completion"') and head.may_hold(b'"prompt"') and head.may_hold(b'"reward"'):
            members = head.members
            is_row = all(name in members for name in ("prompt", "completion", "reward"))
            return 90 if is_row and ("example_id" in members or "id" in members) else 0
        return 90 if _is_metadata(head) else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines."""
        return "line" if head.lines else "document"

    def beside(self, name: str, head: Head) -> str | None:  # noqa: ARG002
        """Return what a file of metadata is."""
        return _BESIDE if _is_metadata(head) else None

    def beside_by_name(self, name: str) -> str | None:
        """Return what the settings of an evaluation are."""
        return _CONFIG if name == verifiers_graph.CONFIG else None

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each row, or of each branch."""
        for document in documents(record):
            is_array = isinstance(document, Document) and isinstance(document.value, list)
            parts = elements(record, document) if is_array else (document,)  # type: ignore[arg-type]  # is one
            for part in parts:
                if isinstance(part, Refused):
                    yield part
                else:
                    yield from self._read(record, part)

    def _read(self, record: Record, document: Document) -> Iterator[Imported | Refused]:
        value = document.value
        if not isinstance(value, dict):
            yield refuse(UNFIT, document, "a row or an episode is an object, and this is none")
        elif "completion" not in value and ("nodes" in value or "traces" in value):
            try:
                runs = verifiers_graph.runs(document)
            except NewerError as error:
                yield refuse("newer-format", document, str(error))
                return
            except UnfitError as error:
                yield refuse(UNFIT, document, str(error))
                return
            for run in runs:
                yield guarded(self.name, run.document, partial(self._finished, record, run.document, run))
        else:
            yield guarded(self.name, document, partial(self._finished, record, document, None))

    def _finished(self, record: Record, document: Document, run: verifiers_graph.Branch | None) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, record, document, run))


def _draft(record: Record, document: Document, run: verifiers_graph.Branch | None) -> Draft:
    if run is not None:
        return verifiers_graph.draft(run, record.context)
    return verifiers_rows.draft(document, record.context)


def _is_trace(members: Any) -> bool:
    return all(members.get(name) == kind for name, kind in (("nodes", "["), ("task", "{"), ("agent", "{")))


def _is_metadata(head: Head) -> bool:
    if head.may_hold(b'"num_rollouts"'):
        return all(name in head.members for name in _SETTINGS)
    if not (head.may_hold(b'"rollouts_per_example"') and head.may_hold(b'"num_examples"')):
        return False
    members = head.members
    is_named = "env" in members or "env_id" in members
    return is_named and all(name in members for name in _METADATA)


IMPORTER = VerifiersImporter()
"""The importer, as the registry names it."""
