"""What a Harbor trial folder says around its trajectory: `result.json`, `config.json`, `exception.txt`.

Paths, hosts and job ids in these files are labels of one machine and are not taken over. Times are kept as written;
Harbor writes them without a zone.

Invariants:
- a file of the trial that is there and cannot be used is never silent: a doubt says which one and why;
- a file says nothing about this trial where it names another one than its folder does and something else speaks
  against it: the other file, or that the named trial lies beside this one. A folder that is merely called otherwise was
  renamed; its files are used, and a doubt says so.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.importers.base import REWARD_RULES, Context, outcome_of_reward

_RESULT, _CONFIG = "result.json", "config.json"
_RENDERER = "terminus-2"
_TIMEOUT = "AgentTimeoutError"
_RAW_REPLY = re.compile(r'"commands"\s*:|<commands>')
_SHOWN = 80
_SAMPLING = ("temperature", "top_p", "reasoning_effort", "max_tokens")

_UNUSED_IF = "the file is not used if the other one names another trial, or a folder of that name lies beside"

MEMBERS = (
    ("`task_name` of result.json", "run.task"),
    ("`source` of result.json, else `task.source` of config.json", "run.domain"),
    ("`started_at`, `finished_at` of result.json", "run.start, run.end, as written"),
    ("`attempt` of config.json, else of result.json", "run.attempt"),
    ("`agent.model_name` of config.json", "run.model.name"),
    (f"{', '.join(f'`{name}`' for name in _SAMPLING)} in `agent.kwargs` of config.json", "run.sampling"),
    ("`environment.type` of config.json", "run.environment.type"),
    ("`agent.kwargs.trajectory_config.raw_content` of config.json", "run.rendered, of Terminus-2"),
    ("`verifier_result` of result.json (`rewards`, `reward`)", "outcome.checks, outcome.reward, and by it the status"),
    ("`exception_info` of result.json, exception.txt", "outcome.termination, status error"),
    ("`id` of result.json", "session_id of a document that has none"),
    (
        "`trial_name` of result.json, of config.json",
        f"nothing; where it is not the folder's, a finding, and {_UNUSED_IF}",
    ),
)
"""What is read of the files of a trial (`config.json`, else the `config` in `result.json`), and what it becomes."""


class Facts(NamedTuple):
    """What the trial tells of its trajectory."""

    run: dict[str, Any]
    outcome: dict[str, Any]
    key: str | None = None
    """The trial's own id; None when it has none."""
    doubts: tuple[tuple[str, str], ...] = ()
    """A key of `findings.CODES`, and what of the trial cannot be used, in words."""


def facts(trajectory: dict[str, Any], context: Context) -> Facts:
    """Return what the trial around `trajectory` says; an empty run and an unknown outcome outside a trial."""
    if context.trial is None:
        return Facts(rendering(trajectory), {"status": "unknown"})
    doubts: list[tuple[str, str]] = []
    files = {name: _object(name, context, doubts) for name in (_RESULT, _CONFIG)}
    _leave_out_others(files, context, doubts)
    result = files[_RESULT]
    config = files[_CONFIG] or _dict(result, "config")
    key = result.get("id")
    outcome = _outcome(result, context)
    if outcome["status"] == "unknown" and result.get("verifier_result") and _is_graded(result["verifier_result"]):
        doubts.append(("verdict-unread", "verifier_result in result.json of the trial: not read as a verdict"))
    return Facts(_run(trajectory, result, config), outcome, key if isinstance(key, str) else None, tuple(doubts))


def conflict(carried: Mapping[str, Any], trial: Mapping[str, Any]) -> str | None:
    """Return in words where the outcome that a document carries and that of its trial disagree; None where not.

    What is carried counts: an export of ours wrote it, and it may be graded anew.
    """
    for name in ("status", "reward"):
        one, other = carried.get(name), trial.get(name)
        if None not in (one, other) and "unknown" not in (one, other) and one != other:
            said = f"extra.tracemark says {name} {_shown(one)}, the files of the trial {_shown(other)}"
            return f"{said}: extra.tracemark counts"
    return None


def _run(trajectory: dict[str, Any], result: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    agent = _dict(config, "agent")
    kwargs = _dict(agent, "kwargs")
    said = {
        "task": result.get("task_name"),
        "domain": result.get("source") or _dict(config, "task").get("source"),
        "start": result.get("started_at"),
        "end": result.get("finished_at"),
    }
    run: dict[str, Any] = {name: value for name, value in said.items() if isinstance(value, str) and value}
    attempt = config.get("attempt", result.get("attempt"))
    if isinstance(attempt, int) and not isinstance(attempt, bool):
        run["attempt"] = attempt
    model = agent.get("model_name")
    if isinstance(model, str):
        run["model"] = {"name": model}
    sampling = {name: kwargs[name] for name in _SAMPLING if name in kwargs}
    if sampling:
        run["sampling"] = sampling
    kind = _dict(config, "environment").get("type")
    if isinstance(kind, str):
        run["environment"] = {"type": kind}
    if trajectory["agent"]["name"] == _RENDERER and kwargs:
        return run | {"rendered": _dict(kwargs, "trajectory_config").get("raw_content") is not True}
    return run | rendering(trajectory)


def rendering(trajectory: dict[str, Any]) -> dict[str, Any]:
    """Return the run fact `rendered` as far as the document shows it: whether the agent's texts are a rendering.

    Only Terminus-2 rewrites what the model wrote, unless told `raw_content`; a trial's config says whether it was told.
    Without one the texts do: a rendering has synthetic calls or begins with the word that the renderer puts first, and
    a raw reply names its commands. What is neither counts as rendered; a document without a reply says nothing.
    """
    if trajectory["agent"]["name"] != _RENDERER:
        return {}
    replies = [step for step in trajectory["steps"] if step["source"] == "agent"]
    return {"rendered": not all(map(_is_raw, replies))} if replies else {}


def has_synthetic_calls(trajectory: dict[str, Any]) -> bool:
    """Return whether calls show that the texts are a rendering: the model of Terminus-2 makes none, its renderer does.

    So whoever says otherwise, a config or a carried fact, is wrong.
    """
    return trajectory["agent"]["name"] == _RENDERER and any(
        step.get("tool_calls") for step in trajectory["steps"] if step["source"] == "agent"
    )


def _is_raw(step: dict[str, Any]) -> bool:
    message = step["message"]
    return not step.get("tool_calls") and isinstance(message, str) and _RAW_REPLY.search(message) is not None


def _outcome(result: dict[str, Any], context: Context) -> dict[str, Any]:
    exception = result.get("exception_info")
    stopped = ""
    if isinstance(exception, dict):
        stopped = str(exception.get("exception_type") or "exception")
    elif exception is not None or context.trial_file("exception.txt") is not None:
        stopped = "exception"
    verdict = _verdict(result, context.limits.success_reward)
    if stopped and not (stopped == _TIMEOUT and verdict):
        verdict = {**(verdict or {}), "status": "error", "rule": "exception"}
    outcome = verdict or {"status": "unknown"}
    return {**outcome, "termination": stopped} if stopped else outcome


def _verdict(result: dict[str, Any], success_reward: float) -> dict[str, Any] | None:
    verifier = result.get("verifier_result")
    if not isinstance(verifier, dict):
        return None
    rewards = verifier.get("rewards")
    reward = verifier.get("reward")
    outcome: dict[str, Any] = {}
    if isinstance(rewards, dict):
        outcome["checks"] = rewards
        reward = rewards.get("reward", next(iter(rewards.values())) if len(rewards) == 1 else None)
    if reward is None:
        return {**outcome, "status": "unknown"} if outcome else None
    judged = outcome_of_reward(reward, success_reward)
    return {**outcome, **judged, "grader": {"name": "harbor-verifier"}, "rule": REWARD_RULES[0]}


def _is_graded(verifier: Any) -> bool:
    """Return whether what a verifier left says anything; Harbor writes null, or null rewards, where it did not run."""
    return not isinstance(verifier, dict) or any(verifier.get(name) not in (None, {}) for name in ("rewards", "reward"))


def _object(name: str, context: Context, doubts: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the object in a file of the trial; {}, with a doubt, where there is one that cannot be used."""
    raw = context.trial_file(name)
    if raw is None:
        return {}
    fault: str | None = raw if isinstance(raw, str) else None
    if isinstance(raw, bytes):
        try:
            value = digest.loads(raw).value
        except NotJSONError as error:
            fault = f"it is no JSON that can be read: {error}"
        else:
            if isinstance(value, dict):
                return value
            fault = "it holds no JSON object"
    doubts.append(("trial-unread", _unused(name, fault)))
    return {}


def _leave_out_others(files: dict[str, dict[str, Any]], context: Context, doubts: list[tuple[str, str]]) -> None:
    """Empty each file that is of another trial, and add a doubt for it, or for a folder that was merely renamed."""
    named = {file: name for file, value in files.items() if isinstance(name := value.get("trial_name"), str) and name}
    renamed: dict[str, list[str]] = {}
    for file, name in named.items():
        if _is_named_after(name, context):
            continue
        if len(set(named.values())) > 1:
            (other,) = (each for each in named if each != file)
            fault = f"it is of the trial {_shown(name)}, and {other} of another one"
        elif context.beside_trial(name):
            fault = f"it is of the trial {_shown(name)}, whose folder lies beside this one"
        else:
            renamed.setdefault(name, []).append(file)
            continue
        files[file] = {}
        doubts.append(("trial-unread", _unused(file, fault)))
    for name, used in renamed.items():
        words = f"of the trial {_shown(name)}, and the folder has another name: used all the same"
        doubts.append(("trial-renamed", f"{' and '.join(used)} {'is' if len(used) == 1 else 'are'} {words}"))


def _is_named_after(trial: str, context: Context) -> bool:
    """Return whether the folder bears the name of a trial.

    Harbor names the folder after the trial; whoever collects trials puts something in front of the name.
    """
    # the folder may have been given through a link, or as `.`
    for given in (str(context.trial), os.path.realpath(str(context.trial))):
        folder = PurePath(given).name
        if folder.endswith(trial) and not folder.removesuffix(trial)[-1:].isalnum():
            return True
    return False


def _unused(file: str, fault: str | None) -> str:
    return f"{file} of the trial is not used: {fault}"


def _shown(value: Any) -> str:
    text = digest.canonical(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
