"""What somebody gives the recorder: made what a trace can hold, or refused before anything of it is written.

An agent has OpenAI's shapes at hand, so they are understood, as the importer of chats understands them: content parts,
tool calls whose arguments are JSON text, messages that answer a call.

Invariants:
- what is returned is JSON through and through, shares nothing with what was given, and is judged by the models that
  judge it again when the journal is read;
- a member that a trace has no place for goes to the `extra` beside it; nothing is left out, and nothing is made up;
- an error names the argument and the place in it, and where one thing alone would do, says what to give instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from tracemark import digest
from tracemark.errors import UsageError
from tracemark.importers.content import walk
from tracemark.importers.conversation import Conversation
from tracemark.importers.strict import fast, faults
from tracemark.model.atif import VERSION
from tracemark.model.faults import first
from tracemark.model.trace import Outcome, Run
from tracemark.model.trajectory import Agent, Metrics, ObservationResult, ToolCall

_DEEPEST = 200
"""How many lists and objects may stand in each other in one argument: what every reader of a trace can follow."""

_ATIF_PARTS = {"text": {"type", "text"}, "image": {"type", "source"}, "audio": {"type", "source"}}
_OWN_TIMES = ("start", "end")

RUN_FACTS = tuple(name for name in Run.model_fields if name not in _OWN_TIMES)
"""What may be stated of a run: all that a trace holds of one but the times, which the recorder tells."""

OUTCOME_FACTS = tuple(Outcome.model_fields)
"""What may be stated of an outcome: all that a trace holds of one."""

_JSON_ALONE = "give texts, finite numbers, true, false, None, lists, and objects whose members are named by texts"
_CALL_SHAPES = (
    'OpenAI: {"id": …, "type": "function", "function": {"name": …, "arguments": …}};'
    ' ATIF: {"tool_call_id": …, "function_name": …, "arguments": {…}}'
)
_NOBODY = {"name": "", "version": ""}


def plain(value: Any, what: str) -> Any:
    """Return `value` as the journal will give it back: lists, objects, texts and numbers that nobody else holds.

    Raises:
        UsageError: when it holds something that JSON has not, or is nested deeper than a reader can follow.
    """
    _refuse_depth(value, what)
    try:
        return digest.loads(digest.canonical(value)).value
    except (TypeError, ValueError) as problem:
        raise UsageError(f"{what} is no JSON: {problem}", hint=_JSON_ALONE) from None


def run_facts(run: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts of a run.

    Raises:
        UsageError: for a fact that is not known, and for times, which the recorder tells.
    """
    facts = _members({} if run is None else run, "run")
    for name in _OWN_TIMES:
        if name in facts:
            raise UsageError(f"run.{name}: the recorder tells it", hint="give a clock=, or leave it out")
    _check(Run, facts, "run", RUN_FACTS)
    return facts


def agent_facts(agent: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the producer calls the agent, with a name and a version in any case.

    Raises:
        UsageError: for a label of another kind, and for tools, which `tools` and `request` record.
    """
    stated = _members({} if agent is None else agent, "agent")
    if "tool_definitions" in stated:
        raise UsageError(
            "agent.tool_definitions: the tools offered are recorded by tools() or request()", hint="leave it out"
        )
    made = _extended({"name": "agent", "version": "unknown", **stated}, Agent, "agent")
    _judge({"source": "user", "message": ""}, "", made)
    return made


def outcome_facts(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stated of an outcome; None states nothing.

    Raises:
        UsageError: for another member or a value that is not allowed.
    """
    outcome = _members({name: value for name, value in stated.items() if value is not None}, "outcome")
    _check(Outcome, {"status": "unknown", **outcome}, "outcome", OUTCOME_FACTS)
    return outcome


def names(given: Iterable[str]) -> list[str]:
    """Return names sorted, each once.

    Raises:
        UsageError: when one is no text, or a text stands in place of a list.
    """
    listed = [] if isinstance(given, str) else list(given)
    if isinstance(given, str) or not all(isinstance(name, str) for name in listed):
        raise UsageError("names: a list of texts is needed", hint='tools(["NAME", …]), or tools() for all')
    return sorted(set(listed))


def objects(given: Any, what: str) -> list[dict[str, Any]]:
    """Return a list of objects, each as it was given.

    Raises:
        UsageError: when it is none, or something in it is none.
    """
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise UsageError(f"{what}: a list is needed, not {type(given).__name__}", hint="give a list of objects")
    return [_object(each, f"{what}.{number}") for number, each in enumerate(given)]


def said(source: str, text: Any) -> dict[str, Any]:
    """Return the step of a system's or a user's message.

    Raises:
        UsageError: when the text is neither a text nor parts that a trace can hold.
    """
    step = {"source": source, **_content(plain(text, "text"), "message", "text")}
    _judge(step, "text")
    return step


def reply(message: Any, tool_calls: Any, reasoning_content: Any, metrics: Any) -> dict[str, Any]:
    """Return the step of a model's reply; see `Recorder.agent` for the arguments.

    Raises:
        UsageError: when one of them is nothing that a trace can hold.
    """
    step: dict[str, Any] = {"source": "agent"}
    if message is None:
        # as the importer of chats keeps it: null and the empty text stay apart
        step.update({"message": "", "extra": {"original_content": None}})
    else:
        step.update(_content(plain(message, "message"), "message", "message"))
    given = [] if tool_calls is None else objects(tool_calls, "tool_calls")
    calls = [_call(plain(call, f"tool_calls.{number}"), f"tool_calls.{number}") for number, call in enumerate(given)]
    ids = [call["tool_call_id"] for call in calls]
    if twice := [each for each in ids if ids.count(each) > 1]:
        raise UsageError(
            f"tool_calls: two calls of one reply share the id {twice[0]!r}",
            hint="give each call an id of its own, and its result the same one",
        )
    if calls:
        step["tool_calls"] = calls
    if reasoning_content is not None:
        step["reasoning_content"] = plain(reasoning_content, "reasoning_content")
    if metrics is not None:
        step["metrics"] = _cost(_members(metrics, "metrics"))
    _judge(step, "message")
    return step


def results(given: Any) -> list[dict[str, Any]]:
    """Return the results of an observation; which calls they answer is judged elsewhere.

    Raises:
        UsageError: when one of them is nothing that a trace can hold.
    """
    made = [_result(_members(each, f"results.{i}"), f"results.{i}") for i, each in enumerate(objects(given, "results"))]
    linked = {link for result in made if isinstance(link := result.get("source_call_id"), str)}
    calls = [{"tool_call_id": link, "function_name": "", "arguments": {}} for link in sorted(linked)]
    step = {"source": "agent", "message": "", "tool_calls": calls, "observation": {"results": made}}
    _judge(step, "results")
    return made


def _check(model: type[BaseModel], value: Mapping[str, Any], what: str, known: Iterable[str]) -> None:
    try:
        model.model_validate(value)
    except ValidationError as error:
        place, reason = first(error, value, what)
        raise UsageError(f"{place}: {reason}", hint=f"known of {what}: " + ", ".join(known)) from None


def _judge(step: dict[str, Any], text: str, agent: Mapping[str, Any] = _NOBODY) -> None:
    """Do nothing when a trace can hold `step`, else name the argument: `text` is the one that became the message."""
    document = {"schema_version": VERSION, "agent": dict(agent), "steps": [{**step, "step_id": 1}]}
    if fast(document) and walk(document).sound:
        return
    found = faults(document)
    if found:
        place, reason = found[0]
        place = place.removeprefix("steps/0/").removeprefix("observation/")
        if place.partition("/")[0] == "message":
            place = text + place.removeprefix("message")
        raise UsageError(f"{place.replace('/', '.')}: {reason}")


def _refuse_depth(value: Any, what: str) -> None:
    """Refuse what is nested too deeply; what holds itself is."""
    open_ones = [(value, 0)]
    while open_ones:
        each, depth = open_ones.pop()
        if not isinstance(each, (dict, list, tuple)):
            continue
        if depth == _DEEPEST:
            raise UsageError(
                f"{what} is nested too deeply: {depth} lists and objects stand in each other",
                hint="give it as a text, as json.dumps writes it",
            )
        held = each.values() if isinstance(each, dict) else each
        open_ones += [(item, depth + 1) for item in held if isinstance(item, (dict, list, tuple))]


def _object(value: Any, what: str) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        # such are the replies of OpenAI's own client
        return value.model_dump(exclude_none=True)
    if not isinstance(value, Mapping):
        raise UsageError(f"{what}: an object is needed, not {type(value).__name__}")
    return dict(value)


def _members(value: Any, what: str) -> dict[str, Any]:
    made = _object(value, what)
    if not all(isinstance(name, str) for name in made):
        raise UsageError(f"{what}: its members are named by texts", hint=_JSON_ALONE)
    return {name: plain(member, f"{what}.{name}") for name, member in made.items()}


def _extended(value: dict[str, Any], model: type[BaseModel], what: str) -> dict[str, Any]:
    """Return `value` with each member that the model does not know in its `extra`."""
    unknown = {name: member for name, member in value.items() if name not in model.model_fields}
    if not unknown:
        return value
    known = {name: member for name, member in value.items() if name not in unknown}
    return _with_extra(known, unknown, what)


def _with_extra(value: dict[str, Any], more: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return `value` with more in its `extra`, and nothing in it lost."""
    extra = value.get("extra")
    extra = {} if extra is None else extra
    if not isinstance(extra, dict):
        raise UsageError(f"{what}.extra: an object is needed, not {type(extra).__name__}")
    for name, member in more.items():
        if name in extra and digest.canonical(extra[name]) != digest.canonical(member):
            raise UsageError(f"{what}.{name}: another value stands in {what}.extra", hint="leave out one of them")
    return {**value, "extra": {**extra, **more}}


def _content(value: Any, member: str, what: str) -> dict[str, Any]:
    """Return content under the name that it has in its owner, with the owner's `extra` where parts lost something."""
    if isinstance(value, str):
        return {member: value}
    if not isinstance(value, list):
        kind = "nothing" if value is None else type(value).__name__
        raise UsageError(f"{what}: a text or a list of content parts is needed, not {kind}", hint="give what was said")
    parts = [_part(part, f"{what}.{number}") for number, part in enumerate(value)]
    exact = {} if all(kept for _, kept in parts) else {"extra": {"original_content": value}}
    return {member: [part for part, _ in parts], **exact}


def _part(part: Any, what: str) -> tuple[dict[str, Any], bool]:
    """Return a content part as ATIF has it, and whether nothing of it was lost."""
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and set(part) == _ATIF_PARTS.get(kind):
        return part, True
    repairs: list[str] = []
    step = Conversation(repairs).add({"role": "user", "content": [part]}, what)
    if repairs:
        raise UsageError(
            f"{what}: a trace cannot hold this content part",
            hint='texts, images as data: URL, and {"type": "image", "source": {"media_type": …, "path": …}} can be',
        )
    return step["message"][0], "extra" not in step


def _call(call: dict[str, Any], what: str) -> dict[str, Any]:
    if "function" in call and "function_name" not in call:
        repairs: list[str] = []
        step = Conversation(repairs).add({"role": "assistant", "content": "", "tool_calls": [call]}, what)
        if repairs:
            raise UsageError(f"{what}: a call needs its id, and its function an object with a name", hint=_CALL_SHAPES)
        made: dict[str, Any] = step["tool_calls"][0]
        # a text may hold what an object may not
        _refuse_depth(made, what)
        return made
    for member, kind in (("tool_call_id", str), ("function_name", str), ("arguments", dict)):
        if not isinstance(call.get(member), kind):
            other = " (or OpenAI's id, beside a function)" if member == "tool_call_id" else ""
            asked = f"{member}{other}, {'an object' if kind is dict else 'a text'}"
            raise UsageError(f"{what}: a tool call needs {asked}", hint=_CALL_SHAPES)
    return _extended(call, ToolCall, what)


def _cost(metrics: dict[str, Any]) -> dict[str, Any]:
    details = metrics.get("prompt_tokens_details")
    if "cached_tokens" not in metrics and isinstance(details, dict) and type(details.get("cached_tokens")) is int:
        metrics["cached_tokens"] = details["cached_tokens"]
    return _extended(metrics, Metrics, "metrics")


def _result(result: dict[str, Any], what: str) -> dict[str, Any]:
    if "tool_call_id" in result:
        # a message that answers a call, as it is sent
        link = result.pop("tool_call_id")
        if result.setdefault("source_call_id", link) != link:
            raise UsageError(f"{what}.tool_call_id: another id stands in source_call_id", hint="leave out one of them")
        if result.get("role") == "tool":
            del result["role"]
    result = _extended(result, ObservationResult, what)
    if result.get("content") is None:
        return result
    content = _content(result["content"], "content", f"{what}.content")
    lost = content.pop("extra", {})
    return {**(_with_extra(result, lost, what) if lost else result), **content}
