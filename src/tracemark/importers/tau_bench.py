"""τ-bench, the first one: result files of its `run.py`, an array with one element per task and trial.

An element is `{task_id, reward, info, traj, trial}`; `traj` holds chat messages, the system message that was sent
among them. Elements are read also one by one and as JSON lines.

Keeps: messages, calls and answers as steps (see `conversation`); task and trial in `run`, and together as `session_id`,
for they are the file's own key of a run; reward, and what the environment compared (`info.reward_info`), in `outcome`;
the rest of `info` (the task's text and expected actions, the price of the simulated user, error and traceback of a run
that failed) in the root's `extra.info`; every other member in the root's `extra.record`.
Drops: members of messages and calls that are null, apart from `content`; an empty list of calls, and the word
`function` as the type of a call.
Invents: `agent.name` and `agent.version` ("unknown"), ids of calls without one, an empty system step for a run without
messages and in front of answers to which no agent spoke. Ids and steps so made are named in `source.repairs`.

Few-shot files (JSON lines of `{messages_display}`) hold texts that the few-shot agent puts into its system message:
conversations written as one text, their calls left out. Each becomes a trace of one system step with
`run.demonstration`, which no export takes; who speaks where in the text is not guessed.

Known limits: the file names neither domain nor model nor agent (state them in `batch.yaml`). The agent carries out the
first call of a reply and leaves the others out of the file, which nothing betrays. The agents `act` and `react` write
their tools into the system message and their calls into the text, and there they stay.

Of the harness it shows the system message as it was sent. The few-shot agent draws its examples anew for each run, so
unequal messages prove nothing. Tools and handlers are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tracemark.importers import unspoken
from tracemark.importers.base import (
    Document,
    Elements,
    Imported,
    Importer,
    Record,
    Refused,
    Unit,
    outcome_of_reward,
)
from tracemark.importers.conversation import Conversation
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.head import SPACE, Head
from tracemark.importers.members import error_words
from tracemark.model.atif import VERSION

SUCCESS = (
    ("info.error: anything but null, false or empty", "error, whatever the reward"),
    ("reward: a number (0 also for a run cut short)", "by reward: success at ingest.success_reward, else failure"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`task_id`, `trial`", "run.task, run.attempt; together `session_id`"),
    ("`traj`", "steps"),
    ("`reward`", "outcome.reward"),
    ("`info.reward_info`", "outcome.checks"),
    ("what `info.error` says in words", "outcome.termination"),
    ("what is left of `info`", "`extra.info`"),
    ("`messages_display`", "the one step of a demonstration"),
)
"""What of a record goes to which place; all else is kept in `extra.record`."""

_DISPLAY = "messages_display"


class TauBenchImporter(Importer):
    """Reads results of τ-bench v1."""

    name = "tau-bench"
    version = "2"
    surest = 95
    shows = ("prompt_templates",)

    def recognise(self, head: Head) -> int:
        """Return 95 for elements with `task_id`, `reward` and `traj`, and for lines of `messages_display` alone."""
        if head.may_hold(b'"traj"'):
            members = head.members
            if "task_id" in members and "reward" in members and members.get("traj") == "[":
                return 95
        is_display = head.may_hold(b'"messages_display"') and set(head.members) == {_DISPLAY}
        return 95 if is_display else 0

    def unit(self, head: Head) -> Unit:
        """Return an element of the array, or `line` for JSON lines."""
        if head.data.lstrip(SPACE)[:1] == b"[":
            return Elements()
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each run in the record."""
        yield from each(self.name, record, partial(self._read, record))

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document, record.context.limits.success_reward))


def _draft(document: Document, success_reward: float) -> Draft:
    value = document.value
    if not isinstance(value, dict):
        raise UnfitError("a run is an object, and this is none")
    is_display = isinstance(value.get(_DISPLAY), str) and "traj" not in value
    return _demonstration(value) if is_display else _run(value, success_reward)


def _run(value: dict[str, Any], success_reward: float) -> Draft:
    """Return what a run becomes.

    Raises:
        UnfitError, NotMessagesError, UnknownRoleError: when it has not the shape of the format.
    """
    rest, repairs = dict(value), list[str]()
    messages = rest.pop("traj", None)
    if not isinstance(messages, list):
        raise UnfitError("traj is no list of messages")
    conversation = Conversation(repairs)
    for index, message in enumerate(messages):
        conversation.add(message, f"traj/{index}")
    steps = conversation.steps or unspoken.steps(repairs)
    trajectory: dict[str, Any] = {
        "schema_version": VERSION,
        "agent": {"name": "unknown", "version": "unknown"},
        "steps": steps,
    }
    run: dict[str, Any] = {}
    if _is_name(rest.get("task_id")):
        run["task"] = str(rest.pop("task_id"))
    if _is_name(rest.get("trial")):
        run["attempt"] = rest.pop("trial")
    if len(run) == 2:
        trajectory["session_id"] = f"task-{run['task']}-trial-{run['attempt']}"
    outcome = _outcome(rest, success_reward)
    extra = {"info": rest.pop("info")} if "info" in rest else {}
    if rest:
        extra["record"] = rest
    if extra:
        trajectory["extra"] = extra
    return Draft(trajectory, run, outcome, repairs)


def _outcome(rest: dict[str, Any], success_reward: float) -> dict[str, Any]:
    """Return the outcome, and remove from the record what became a part of it."""
    outcome = outcome_of_reward(rest.get("reward"), success_reward)
    if outcome["status"] != "unknown":
        outcome["rule"] = "reward"
    if "reward" in outcome:
        del rest["reward"]
    info = rest.get("info")
    if isinstance(info, dict):
        if info.get("error"):
            outcome |= {"status": "error", "rule": "info.error"}
            if (words := error_words(info["error"])) is not None:
                outcome["termination"] = words
        if info.get("reward_info") is not None:
            rest["info"] = {name: member for name, member in info.items() if name != "reward_info"}
            outcome["checks"] = info["reward_info"]
    return outcome


def _demonstration(value: dict[str, Any]) -> Draft:
    """Return the trace of a text that was shown to a model: no run, and no message of its own."""
    rest = dict(value)
    step = {"step_id": 1, "source": "system", "message": rest.pop(_DISPLAY), "extra": {"event_type": _DISPLAY}}
    trajectory: dict[str, Any] = {
        "schema_version": VERSION,
        "agent": {"name": "unknown", "version": "unknown"},
        "steps": [step],
    }
    if rest:
        trajectory["extra"] = {"record": rest}
    return Draft(trajectory, {"demonstration": True}, {"status": "unknown"})


def _is_name(value: Any) -> bool:
    """Return whether a value names a task or a trial: a text, or a whole number."""
    return (isinstance(value, str) and value != "") or type(value) is int


IMPORTER = TauBenchImporter()
"""The importer, as the registry names it."""
