"""Near misses of ATIF become ATIF v1.8, and each change is named.

Nothing is thrown away: a value that the format has no place for moves to `extra` of the object it stood in, under its
own name, or under `original_<name>` when something else now stands in its place; a message that was not there is marked
by `message_missing`. A repair that would need a guess about what was said (an unknown speaker, no steps at all) is not
made; the models then refuse the document.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tracemark import digest
from tracemark.importers.atif_fields import (
    AGENT,
    CALL,
    FINAL,
    METRICS,
    REF,
    RESULT,
    ROOT,
    STEP,
    Check,
    is_number,
)
from tracemark.model.atif import AGENT_ONLY, VERSION

_KNOWN_VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_MAX_NOTES = 40
_SOURCES = {"assistant": "agent", "model": "agent", "human": "user"}
_MIME = {
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-m4a": "audio/mp4",
    "audio/x-aac": "audio/aac",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
    "image/jpg": "image/jpeg",
}


def raise_version(document: dict[str, Any], repairs: list[str]) -> str | None:
    """Write the newest version into `document`, with a note when it said anything else.

    Returns:
        Why the document cannot be read: it says a version that this program does not know. None when it can.
    """
    version = document.get("schema_version")
    if version == VERSION:
        return None
    if version is None:
        repairs.append(f"schema_version missing: read as {VERSION}")
    elif version in _KNOWN_VERSIONS:
        repairs.append(f"schema_version {version} raised to {VERSION}")
    elif isinstance(version, str) and f"ATIF-v{version.lower().removeprefix('atif').lstrip('-v')}" in _KNOWN_VERSIONS:
        repairs.append(f"schema_version {version!r} is written ATIF-v{version[-3:]}: raised to {VERSION}")
    else:
        return f"schema_version {str(version)[:40]!r} is none of ATIF-v1.0 to {VERSION}"
    document["schema_version"] = VERSION
    return None


def repair(document: dict[str, Any]) -> list[str]:
    """Change `document` in place towards ATIF v1.8; return what was changed, one short text each.

    The document may still be invalid afterwards: the models decide.
    """
    notes = _Notes()
    _root(document, "", notes)
    return notes.texts()


class _Notes:
    """What was changed: equal changes are counted under the first place."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, place: str, what: str) -> None:
        self._count[what] += 1
        self._first.setdefault(what, place)

    def texts(self) -> list[str]:
        texts = [
            f"{self._first[what]}: {what}" + (f" (×{count})" if count > 1 else "")
            for what, count in self._count.items()
        ]
        return texts if len(texts) <= _MAX_NOTES else [*texts[:_MAX_NOTES], f"and {len(texts) - _MAX_NOTES} more kinds"]


def stash(owner: dict[str, Any], name: str, value: Any) -> None:
    """Keep `value` in the `extra` of `owner` under `name`, or under the next free name like it."""
    extra = owner.get("extra")
    if not isinstance(extra, dict):
        extra = owner["extra"] = {} if extra is None else {"original_extra": extra}
    while name in extra:
        name += "_"
    extra[name] = value


def _fit(owner: dict[str, Any], fields: dict[str, Check], place: str, notes: _Notes) -> None:
    """Move what `fields` does not know, or what is of the wrong kind, into `extra`; null stays where it may stand."""
    for name in list(owner):
        value = owner[name]
        if name not in fields:
            stash(owner, name, owner.pop(name))
            notes.add(place, f"unknown member {name[:40]!r} moved to extra")
        elif value is not None and not fields[name](value):
            stash(owner, f"original_{name}", owner.pop(name))
            notes.add(place, f"{name} of the wrong kind moved to extra")


def _root(document: dict[str, Any], place: str, notes: _Notes) -> None:
    _fit(document, ROOT, place or "document", notes)
    prefix = f"{place}/" if place else ""
    agent = document.get("agent")
    if not isinstance(agent, dict):
        agent = document["agent"] = {}
    _agent(agent, f"{prefix}agent", notes)
    steps = document.get("steps")
    if isinstance(steps, list):
        for index, step in enumerate(steps, 1):
            if isinstance(step, dict):
                _step(step, index, f"{prefix}steps/{index}", notes)
    final = document.get("final_metrics")
    if isinstance(final, dict):
        _tokens(final, f"{prefix}final_metrics", notes, "total_")
        _fit(final, FINAL, f"{prefix}final_metrics", notes)
    _children(document, prefix, notes)


def _agent(agent: dict[str, Any], place: str, notes: _Notes) -> None:
    if isinstance(agent.get("model"), str) and agent.get("model_name") is None:
        agent["model_name"] = agent.pop("model")
        notes.add(place, "model read as model_name")
    version = agent.get("version")
    if is_number(version):
        agent["version"] = str(version)
        notes.add(place, "version was a number")
    _fit(agent, AGENT, place, notes)
    for name in ("name", "version"):
        if agent.get(name) is None:
            agent[name] = "unknown"
            notes.add(place, f"{name} missing: called 'unknown'")


def _children(document: dict[str, Any], prefix: str, notes: _Notes) -> None:
    taken: set[str] = set()
    for number, child in enumerate(document.get("subagent_trajectories") or (), 1):
        place = f"{prefix}subagent_trajectories/{number}"
        said: list[str] = []
        raise_version(child, said)
        for text in said:
            notes.add(place, text)
        _root(child, place, notes)
        name = child.get("trajectory_id")
        if name is None or name in taken:
            if name is not None:
                stash(child, "original_trajectory_id", name)
            child["trajectory_id"] = f"subagent-{number}"
            notes.add(place, "trajectory_id missing or not unique: made one")
        taken.add(child["trajectory_id"])


def _step(step: dict[str, Any], index: int, place: str, notes: _Notes) -> None:
    said = step.get("step_id")
    if said != index or isinstance(said, bool) or not isinstance(said, int):
        if said is not None and str(said) not in (str(index), f"{index}.0"):
            stash(step, "original_step_id", said)
        step["step_id"] = index
        notes.add(place, "step_id counted anew")
    source = step.get("source")
    if isinstance(source, str) and source in _SOURCES:
        step["source"] = _SOURCES[source]
        notes.add(place, f"source {source!r} read as {step['source']!r}")
    _message(step, "message", place, notes)
    _fit(step, STEP, place, notes)
    _speaker(step, place, notes)
    metrics = step.get("metrics")
    if isinstance(metrics, dict):
        _tokens(metrics, f"{place}/metrics", notes)
        _fit(metrics, METRICS, f"{place}/metrics", notes)
    for number, call in enumerate(step.get("tool_calls") or (), 1):
        _call(call, f"call_{index}_{number}", f"{place}/tool_calls/{number}", notes)
    _observation(step, place, notes)


def _speaker(step: dict[str, Any], place: str, notes: _Notes) -> None:
    """Move what the step's source may not have into `extra`."""
    if step.get("source") != "agent":
        for name in AGENT_ONLY:
            if step.get(name) is not None:
                value = step.pop(name)
                if value != []:
                    stash(step, name, value)
                notes.add(
                    place, f"{name} on a step that is not the agent's " + ("moved to extra" if value else "removed")
                )
    elif step.get("llm_call_count") == 0:
        for name in ("metrics", "reasoning_content"):
            if step.get(name) is not None:
                stash(step, name, step.pop(name))
                notes.add(place, f"{name} of a step without a model call moved to extra")


def _message(owner: dict[str, Any], name: str, place: str, notes: _Notes) -> None:
    """Make a message or a result's content text or parts."""
    value = owner.get(name)
    if value is None:
        if name == "message":
            if name in owner:
                stash(owner, "original_message", None)
            else:
                stash(owner, "message_missing", True)
            owner[name] = ""
            notes.add(place, "message null or missing: written as empty")
        return
    if isinstance(value, str):
        return
    if isinstance(value, list):
        for part in value:
            _part(part, place, notes)
        if all(isinstance(part, dict) and _sound_part(part) for part in value):
            return
    stash(owner, f"original_{name}", value)
    owner[name] = digest.canonical(value).decode("utf-8")
    notes.add(place, f"{name} that is neither text nor parts written as JSON text")


def _part(part: Any, place: str, notes: _Notes) -> None:
    source = part.get("source") if isinstance(part, dict) else None
    if isinstance(source, dict) and isinstance(source.get("media_type"), str) and source["media_type"] in _MIME:
        notes.add(place, f"media type {source['media_type']} written as {_MIME[source['media_type']]}")
        source["media_type"] = _MIME[source["media_type"]]


def _sound_part(part: dict[str, Any]) -> bool:
    """Return whether a part has the shape of one; the models look closer."""
    if part.get("type") == "text":
        return isinstance(part.get("text"), str) and set(part) == {"type", "text"}
    return part.get("type") in ("image", "audio") and isinstance(part.get("source"), dict) and "text" not in part


def _call(call: dict[str, Any], fallback: str, place: str, notes: _Notes) -> None:
    function = call.get("function")
    if "function_name" not in call and isinstance(function, dict) and isinstance(function.get("name"), str):
        call["function_name"] = function["name"]
        call.setdefault("arguments", function.get("arguments"))
        notes.add(place, "name and arguments taken out of 'function'")
    name = call.get("tool_call_id")
    if not isinstance(name, str):
        call["tool_call_id"] = fallback if name is None else str(name)
        notes.add(place, "tool_call_id missing or no text: made one")
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        call["arguments"], verbatim = arguments_of(arguments)
        if verbatim is not None:
            stash(call, "original_arguments", verbatim)
        notes.add(place, "arguments that are no object read as one")
    _fit(call, CALL, place, notes)
    if not isinstance(call.get("function_name"), str):
        call["function_name"] = ""
        notes.add(place, "function_name missing: left empty")


def arguments_of(value: Any) -> tuple[dict[str, Any], Any]:
    """Return call arguments as an object, and what they were when that is not plain from it (else None).

    A text that holds a JSON object becomes it, and the text is kept; null becomes no arguments; anything else becomes
    `{"_raw": value}`.
    """
    if value is None:
        return {}, None
    if isinstance(value, str):
        try:
            parsed = digest.loads(value.encode("utf-8", "surrogatepass"))
        except digest.NotJSONError:
            return {"_raw": value}, None
        if isinstance(parsed.value, dict):
            return parsed.value, value
    return {"_raw": value}, None


def _observation(step: dict[str, Any], place: str, notes: _Notes) -> None:
    said = step.get("extra", {}).get("original_observation") if isinstance(step.get("extra"), dict) else None
    if "observation" not in step and isinstance(said, str):
        step["observation"] = {"results": [{"content": said}]}
    observation = step.get("observation")
    if not isinstance(observation, dict):
        return
    results = observation.get("results")
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        if results is not None:
            stash(step, "original_results", results)
        results = observation["results"] = []
        notes.add(place, "observation without a list of results: left empty")
    for name in list(observation):
        if name != "results":
            stash(step, f"observation_{name}", observation.pop(name))
            notes.add(place, f"unknown member {name[:40]!r} of the observation moved to extra")
    calls = {call["tool_call_id"] for call in step.get("tool_calls") or ()}
    for number, result in enumerate(results, 1):
        _result(result, calls, f"{place}/observation/{number}", notes)


def _result(result: dict[str, Any], calls: set[str], place: str, notes: _Notes) -> None:
    if isinstance(result.get("subagent_trajectory_ref"), dict):
        result["subagent_trajectory_ref"] = [result["subagent_trajectory_ref"]]
        notes.add(place, "one sub-agent reference read as a list of one")
    _message(result, "content", place, notes)
    _fit(result, RESULT, place, notes)
    name = result.get("source_call_id")
    if name is not None and name not in calls:
        stash(result, "original_call_id", result.pop("source_call_id"))
        notes.add(place, "result of a call that is not in this step: link moved to extra")
    for ref in result.get("subagent_trajectory_ref") or ():
        _fit(ref, REF, place, notes)
        if ref.get("trajectory_id") is None and ref.get("trajectory_path") is None:
            ref["trajectory_id"] = ref.get("session_id") or "unknown"
            notes.add(place, "sub-agent reference of ATIF v1.6 (session alone): its session read as trajectory_id")


def _tokens(metrics: dict[str, Any], place: str, notes: _Notes, prefix: str = "") -> None:
    """Write whole numbers that were written as a text or with a fraction of zero as whole numbers."""
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "steps"):
        value: Any = metrics.get(prefix + name)
        whole = value.is_integer() if isinstance(value, float) else isinstance(value, str) and _is_digits(value)
        if not whole:
            continue
        metrics[prefix + name] = int(value)
        notes.add(place, f"{prefix}{name} {value!r} written as a whole number")


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
