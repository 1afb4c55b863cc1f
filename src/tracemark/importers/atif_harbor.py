"""What a Harbor trial folder says around its trajectory: `result.json`, `config.json`, `exception.txt`.

Paths, hosts and job ids in these files are labels of one machine and are not taken over. Times are kept as written;
Harbor writes them without a zone.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import NotJSONError
from tracemark.importers.base import REWARD_RULES, Context, outcome_of_reward

_RENDERER = "terminus-2"
_TIMEOUT = "AgentTimeoutError"
_RAW_REPLY = re.compile(r'"commands"\s*:|<commands>')
_SAMPLING = ("temperature", "top_p", "reasoning_effort", "max_tokens")

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
)
"""What is read of the files of a trial (`config.json`, else the `config` in `result.json`), and what it becomes."""


class Facts(NamedTuple):
    """What the trial tells of its trajectory."""

    run: dict[str, Any]
    outcome: dict[str, Any]
    key: str | None = None
    """The trial's own id; None when it has none."""


def facts(trajectory: dict[str, Any], context: Context) -> Facts:
    """Return what the trial around `trajectory` says; an empty run and an unknown outcome outside a trial."""
    if context.trial is None:
        return Facts(rendering(trajectory), {"status": "unknown"})
    result = _object(context.trial_file("result.json"))
    config = _object(context.trial_file("config.json")) or _dict(result, "config")
    key = result.get("id")
    return Facts(_run(trajectory, result, config), _outcome(result, context), key if isinstance(key, str) else None)


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


def _object(raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        return {}
    try:
        value = digest.loads(raw).value
    except NotJSONError:
        return {}
    return value if isinstance(value, dict) else {}


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
