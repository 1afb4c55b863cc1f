"""What the header of an Inspect AI log says of all of its samples: task, model, solver, and labels of where it ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracemark.importers.members import mapping
from tracemark.importers.recovery import Entry, settings

_LABELS = (
    "created",
    "eval_id",
    "eval_set_id",
    "model_base_url",
    "packages",
    "revision",
    "run_id",
    "sandbox",
    "task_file",
    "task_id",
    "task_version",
)
"""Members of `eval` that say when and where a log was made; identity of nothing."""

_LIMITS = ("message_limit", "token_limit", "turn_limit")
_SETTINGS = ("max_tool_output", "parallel_tool_calls", "stop_seqs")
_PLACED = (*_LABELS, "model", "solver", "solver_args", "task")
_DROPPED = ("metrics", "scorers", "solver_args_passed", "task_args_passed")
"""Members of `eval` that change when a log is graded again, or repeat others: a trace is the same before and after."""


def session_of(sample: dict[str, Any], spec: Mapping[str, Any]) -> str | None:
    """Take out the run's own key and return it; None where the log has none.

    Logs of before 2025 have no key of a sample; that of the log with the sample's id and epoch is as good.
    """
    own = sample.get("uuid")
    if isinstance(own, str) and own:
        del sample["uuid"]
        return own
    keys = [spec.get("eval_id")] if isinstance(spec.get("eval_id"), str) else [spec.get("run_id"), spec.get("task_id")]
    if not all(isinstance(key, str) and key for key in keys):
        return None
    parts = [*keys, sample.get("id"), sample.get("epoch")]
    return "/".join(str(part) for part in parts) if all(_is_name(part) for part in parts) else None


def run_of(
    sample: dict[str, Any], spec: Mapping[str, Any], plan: Any, first: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Take the run facts out of a sample and return them.

    Args:
        sample: altered in place.
        spec: the header's `eval`.
        plan: the header's `plan`.
        first: the agent's first model call; None where the log holds none.
    """
    run: dict[str, Any] = {}
    if _is_name(sample["id"]):
        # the kind of an id is kept where the text does not tell it
        run["task"] = str(sample.pop("id") if isinstance(sample["id"], str) else sample["id"])
    if _is_name(sample["epoch"]):
        run["attempt"] = sample.pop("epoch")
    for name, member in (("start", "started_at"), ("end", "completed_at")):
        if isinstance(sample.get(member), str):
            run[name] = sample.pop(member)
    if isinstance(spec.get("task"), str):
        run["domain"] = spec["task"]
    model = next((name for name in (mapping(first).get("model"), spec.get("model")) if isinstance(name, str)), None)
    if model is not None:
        run["model"] = {"name": model}
    config = _config(spec, plan, first)
    if config:
        run["sampling"] = config
    seeds = (mapping(spec.get("config")).get("seed"), config.get("seed"))
    seed = next((seed for seed in seeds if seed.__class__ is int), None)
    if seed is not None:
        run["seed"] = seed
    labels = {name: spec[name] for name in _LABELS if spec.get(name) is not None}
    if sample.get("sandbox") is not None:
        labels["sandbox"] = sample.pop("sandbox")
    if labels:
        run["environment"] = labels
    return run


def agent_of(spec: Mapping[str, Any], plan: Any, repairs: list[str]) -> dict[str, Any]:
    """Return the agent: its labels, and in `extra` the plan by which it ran."""
    steps = mapping(plan).get("steps")
    named = [mapping(step).get("solver") for step in steps] if isinstance(steps, list) else []
    name = spec["solver"] if isinstance(spec.get("solver"), str) else ", ".join(str(one) for one in named)
    version = mapping(spec.get("packages")).get("inspect_ai")
    agent: dict[str, Any] = {
        "name": name or "unknown",
        "version": version if isinstance(version, str) else "unknown",
    }
    if "unknown" in (name or "unknown", agent["version"]):
        repairs.append("agent labels that the log does not record: unknown")
    if isinstance(spec.get("model"), str):
        agent["model_name"] = spec["model"]
    extra = {name: spec[name] for name in ("solver", "solver_args") if spec.get(name) is not None}
    if plan is not None:
        extra["plan"] = plan
    if extra:
        agent["extra"] = extra
    return agent


def header_extra(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the header is kept in the root's `extra`."""
    rest = {name: value for name, value in spec.items() if value is not None and name not in (*_PLACED, *_DROPPED)}
    dataset = rest.get("dataset")
    if isinstance(dataset, dict) and "sample_ids" in dataset:
        rest["dataset"] = {name: value for name, value in dataset.items() if name != "sample_ids"}
    # what has a place of its own and is of another kind than that
    rest |= {name: spec[name] for name in ("model", "task") if not isinstance(spec.get(name), (str, type(None)))}
    return {"eval": rest} if rest else {}


def runtime_of(spec: Mapping[str, Any], plan: Any, first: Mapping[str, Any] | None) -> list[Entry]:
    """Return the limits and settings of the runtime that the log holds."""
    limits, config = mapping(spec.get("config")), _config(spec, plan, first)
    held = {name: limits.get(name) for name in _LIMITS} | {name: config.get(name) for name in _SETTINGS}
    return settings(held)


def _config(spec: Mapping[str, Any], plan: Any, first: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return how the model was called: by the first request, else by the plan."""
    if first is not None and isinstance(first.get("config"), dict):
        config = {**first["config"], "tool_choice": first.get("tool_choice")}
    else:
        config = {**mapping(spec.get("model_generate_config")), **mapping(mapping(plan).get("config"))}
    return {name: value for name, value in config.items() if value is not None}


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)
