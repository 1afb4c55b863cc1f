"""τ²-bench: result files, one with all simulations, or a folder with one file for each.

A file `{timestamp, info, tasks, simulations}` is cut into its simulations while it is read. In the other layout each
simulation is a file in `simulations/`, and what is said of all of them stands in `results.json` above that folder.

Keeps: messages as steps, the user's turns as one step each (see `tau2_messages`); the provider's responses without what
the message repeats, in `extra.raw_data`, their usage and cost in `metrics`; ids, times, task, trial, seed, agent model,
its arguments, domain and limits in `session_id` and `run`; reward, its checks and later reviews in `outcome`;
`info` as it stands in `extra.info`, the task's definition in `extra.task`, all else of the simulation in
`extra.simulation`.
Drops: members that are null, in messages, responses and the simulation; `is_audio`, `is_final_chunk` and
`contains_speech` where they say of a text that it is one; `requestor` of the agent's own calls; of a response what its
message repeats (text, calls, usage, model); a simulation's policy that is the file's; the file's `timestamp` and
`simulation_index`, and other tasks.
Invents: `agent.version` ("unknown": the commit that the file states is that of the folder in which it was run);
`llm_call_count` 0 where no model spoke; `is_copied_context` of the messages with which the task begins; ids of calls
without one; an empty step for a run without messages, behind a user's last calls, and in front of answers to which no
agent spoke. Steps and ids so made are named in `source.repairs`.

Known limits: `run.model` is what the file states, also for runs of a file that was resumed with another model; what
each response names is the `model_name` of its step. The greeting bars a run from training: no model wrote it.

Not read: voice runs in full duplex (`ticks`: pieces of speech of both sides at once) and messages of sound. They are
refused.

Holds no harness evidence: the system message and the tools that the agent was given are in no file. The policy is a
part of the prompt alone, and two prompts around one policy look alike; the commit is that of the working folder;
and a resumed file says of its later runs what was true of the first. So all of `info` is a label. A run that proves it
to be untrue of itself (another policy, more turns than the limit) is stored as mixed, and no export takes it. Notes on
a changed prompt (`prompt_variant` files) are no templates: what was added around their text is not known.

The usage of the first call can contradict what is claimed: it is in `metrics.prompt_tokens` of the first agent step
without `llm_call_count` 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tracemark.findings import Finding, finding
from tracemark.importers import unspoken
from tracemark.importers.agent import named_agent
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
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.head import Head
from tracemark.importers.tau2_messages import Spoken, spoken
from tracemark.importers.tau2_results import Results, results_of
from tracemark.model.atif import VERSION

SUCCESS = (
    ("termination_reason: infrastructure_error, unexpected_error", "error, whatever the reward"),
    (
        "reward_info.reward: a number (0 where neither side ended the run, as for max_steps, agent_error, user_error)",
        "by reward: success at ingest.success_reward, else failure",
    ),
    ("no reward, and termination_reason: agent_error, user_error, too_many_errors", "error"),
    ("no reward, and a termination_reason that is not known", "unknown, with a finding"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`id`", "session_id"),
    ("`task_id`, `trial`, `seed`, `mode`", "run.task, run.attempt, run.seed, run.mode"),
    ("`start_time`, `end_time`", "run.start, run.end"),
    ("`info.environment_info.domain_name`", "run.domain"),
    ("`info.agent_info`: `implementation`, `llm`, `llm_args`", "agent.name, run.model.name, run.sampling"),
    ("`info.git_commit`, `max_steps`, `max_errors`; of `user_info` implementation and model", "run.environment"),
    ("`reward_info.reward`, `termination_reason`", "outcome.reward, outcome.termination"),
    ("what is left of `reward_info`; `review` and the other later judgements", "outcome.checks"),
    ("`agent_cost`", "final_metrics.total_cost_usd"),
    ("`raw_data.model`, `usage`, `cost` of an agent message", "model_name and metrics of its step"),
)
"""What of a simulation and its file goes to a place of its own; `extra` holds all else."""

_BROKEN = ("infrastructure_error", "unexpected_error")
_FAULTY = ("agent_error", "user_error", "too_many_errors")
_ENDED = ("user_stop", "agent_stop", "max_steps", "timeout", "context_window_exceeded")
_REVIEWS = ("review", "user_only_review", "auth_classification", "hallucination_check")
_NOTE = "a note on a changed prompt: what of the prompt its text was is not known, so it is no template"
_NOTES = ("prompt_variant", "prompt_variant_target")
_HEADER = (b'"agent_info"', b'"environment_info"')
_FOLDER = "simulations"


class Tau2Importer(Importer):
    """Reads simulations of τ²-bench."""

    name = "tau2"
    version = "1"
    surest = 95
    shows = ()

    def recognise(self, head: Head) -> int:
        """Return 95 for a result file and for a simulation, 90 for a note on a changed prompt."""
        if _is_simulation(head) or _is_results(head):
            return 95
        return 90 if _is_note(head) else 0

    def unit(self, head: Head) -> Unit:
        """Return an element of `simulations`; a simulation on its own is a document, or a line."""
        if _is_results(head):
            return Elements(_FOLDER, ("info", "tasks"), _FOLDER)
        return "line" if head.lines else "document"

    def beside(self, name: str, head: Head) -> str | None:
        """Return why a note on a prompt, and a result file whose simulations lie in a folder, hold no trace."""
        if _is_results(head):
            # of a document that is cut nobody knows what it holds
            lie_apart = head.complete and isinstance(head.value, dict) and _FOLDER not in head.members
            told = f"it says what is the same for all runs in the folder {_FOLDER}/, and is read with each of them"
            return told if lie_apart else None
        return _NOTE if _is_note(head) else self.beside_by_name(name)

    def beside_by_name(self, name: str) -> str | None:
        """Return why the text of a changed prompt holds no trace."""
        return _NOTE if name.endswith(".prompt_variant.txt") else None

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each simulation in the record."""
        yield from each(self.name, record, partial(self._read, record))

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document, record))


def _is_results(head: Head) -> bool:
    return all(map(head.may_hold, _HEADER)) and head.members.get("info") == "{" and "task_id" not in head.members


def _is_simulation(head: Head) -> bool:
    members = head.members if head.may_hold(b'"termination_reason"') else ()
    return all(name in members for name in ("id", "task_id", "termination_reason", "start_time"))


def _is_note(head: Head) -> bool:
    return head.may_hold(b'"prompt_variant"') and all(name in head.members for name in _NOTES)


def _draft(document: Document, record: Record) -> Draft:
    value = document.value
    if not isinstance(value, dict) or not {"task_id", "messages", "ticks"} & set(value):
        raise UnfitError("it is no simulation: it has no messages")
    repairs: list[str] = []
    results = results_of(record)
    known = results or Results({}, {})
    rest = {name: member for name, member in value.items() if member is not None}
    said = _spoken(rest, known.history(str(value.get("task_id"))), repairs)
    outcome = _outcome(rest, record.context.limits.success_reward)
    mixed = known.contradictions(value, said.turns, len(said.steps))
    if rest.get("policy") is not None and rest["policy"] == known.policy:
        del rest["policy"]
    run = _run(rest, known)
    if said.rendered:
        run["rendered"] = True
    trajectory = _trajectory(rest, said, known, run)
    made = Draft(trajectory, run, outcome, repairs, mixed=mixed, observed={"prompt_templates": []})
    made.findings = _findings(outcome, results, document.where)
    # without the file nothing is known, which is told of all of it
    made.model_place = None if results is None else "`agent_info.llm` of the file's `info`"
    return made


def _spoken(rest: dict[str, Any], history: list[Any], repairs: list[str]) -> Spoken:
    """Remove the messages from a simulation and return their steps."""
    if "ticks" in rest or rest.get("mode") == "full_duplex":
        raise UnfitError("a voice run: its ticks hold pieces of speech of both sides at once, which are not read")
    messages = rest.pop("messages", [])
    if not isinstance(messages, list):
        raise UnfitError("messages is no list")
    if not messages:
        return Spoken(unspoken.steps(repairs), 0, False)
    said = spoken(messages, history, repairs)
    return said if said.steps else Spoken(unspoken.steps(repairs), 0, False)


def _run(rest: dict[str, Any], known: Results) -> dict[str, Any]:
    """Return the run facts, and remove from the simulation what became one."""
    agent, user = known.part("agent_info"), known.part("user_info")
    domain = known.part("environment_info").get("domain_name")
    facts = {
        "attempt": _take(rest, "trial", int, str),
        "seed": _take(rest, "seed", int, str),
        "mode": _take(rest, "mode", str),
        "start": _take(rest, "start_time", str),
        "end": _take(rest, "end_time", str),
        "domain": domain if isinstance(domain, str) else None,
        "model": {"name": agent["llm"]} if isinstance(agent.get("llm"), str) else None,
        "sampling": agent.get("llm_args") if isinstance(agent.get("llm_args"), dict) else None,
        "environment": {
            name: label
            for name, label in (
                *((name, known.info.get(name)) for name in ("git_commit", "max_steps", "max_errors")),
                *((f"user_{name}", user.get(name)) for name in ("implementation", "llm")),
            )
            if label is not None
        },
    }
    task = _take(rest, "task_id", int, str)
    return {
        **({} if task is None else {"task": str(task)}),
        **{name: fact for name, fact in facts.items() if fact not in (None, {})},
    }


def _outcome(rest: dict[str, Any], success_reward: float) -> dict[str, Any]:
    """Return the outcome by `SUCCESS`, and remove from the simulation what became a part of it."""
    info = rest.get("reward_info")
    reward = info.get("reward") if isinstance(info, dict) else None
    outcome: dict[str, Any] = {"status": "unknown"}
    checks: dict[str, Any] = {}
    if isinstance(info, dict):
        del rest["reward_info"]
        checks = dict(info)
        if isinstance(reward, (int, float)) and not isinstance(reward, bool):
            del checks["reward"]
            outcome = {**outcome_of_reward(reward, success_reward), "rule": "reward"}
    ended = _take(rest, "termination_reason", str)
    if ended is not None:
        outcome["termination"] = ended
    if ended in _BROKEN or (ended in _FAULTY and "reward" not in outcome):
        outcome |= {"status": "error", "rule": "termination_reason"}
    for name in _REVIEWS:
        if name in rest:
            # the names of reward_info's own members are others
            checks[name if name not in checks else f"{name}_"] = rest.pop(name)
    if checks:
        outcome["checks"] = checks
    return outcome


def _trajectory(rest: dict[str, Any], said: Spoken, known: Results, run: dict[str, Any]) -> dict[str, Any]:
    """Return the document; what is left of the simulation stands in its `extra`."""
    agent = named_agent(known.part("agent_info").get("implementation"), None, run)
    trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": said.steps}
    if isinstance(rest.get("id"), str) and rest["id"]:
        trajectory["session_id"] = rest.pop("id")
    cost = _take(rest, "agent_cost", int, float)
    if cost is not None:
        trajectory["final_metrics"] = {"total_cost_usd": cost}
    extra = {"info": known.info, "task": known.tasks.get(run.get("task", "")), "simulation": rest}
    kept = {place: member for place, member in extra.items() if member}
    if kept:
        trajectory["extra"] = kept
    return trajectory


def _findings(outcome: dict[str, Any], results: Results | None, where: str) -> list[Finding]:
    found = []
    ended = outcome.get("termination")
    if outcome["status"] == "unknown" and ended is not None and ended not in _ENDED:
        found.append(finding("verdict-unread", where, f"termination_reason {ended[:40]!r}: not read as a verdict"))
    if results is None:
        found.append(finding("header-missing", where, "there is no results.json above the folder that could be read"))
    return found


def _take(rest: dict[str, Any], name: str, *kinds: type) -> Any:
    """Remove and return a member when it is of one of the kinds (a truth value is no number); else None."""
    return rest.pop(name) if type(rest.get(name)) in kinds else None


IMPORTER = Tau2Importer()
"""The importer, as the registry names it."""
