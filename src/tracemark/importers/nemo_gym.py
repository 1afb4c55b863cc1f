"""Rollouts of NeMo Gym: JSON lines, each with a request and a response of the Responses API, and a reward.

`responses_create_params` is what the agent was given, `response` what it gave back: one reply, or the conversation that
it had, with the outputs of tools and the messages of a simulated user. All else in a row is the environment's.

Keeps: items of input and output as steps (see `responses_items`), `instructions` as the first one; tools of the request
as `agent.tool_definitions`; reward in `outcome`; task, rollout, model and sampling in `run`; what is left of the
request, of the response and of the row in the root's `extra.request`, `extra.response` and `extra.record`.
Drops: members of request and response that are null; the tools of the response, and those of the row, where they are
the request's and hold no more (a schema padded with null is the same).
Invents: `agent.version` ("unknown"), and `agent.name` where the row names no agent; ids of calls without one; an empty
system step for a row without messages. Replies in the input were written before this run: they are marked
`is_copied_context`, and no export takes a trace with one. Nor does one take a trace in which a summary that was asked
for stands in place of the reasoning (`run.rendered`): the model did not write it.

Where the output is one reply, its usage is the step's; else nobody says whether it is that of the last call or of all,
and it stays in `extra.response`. A row that the producer masks (`mask_sample`: the simulated user or the environment
failed) counts as an error, for it says nothing of the agent.

What the format shows of a harness. Prompt: the system message without the row's `policy`, where that stands in it once;
else as it was sent. Tools: those of the request. An agent that is wrapped (another program with tools of its own) is
sent none, so an empty list does not say that there were none. Runtime: `parallel_tool_calls`, where the request offers
tools. Handlers: nothing; system prompts in `instance_config` are not known to have been sent, and are kept as they are.

Known limits: items other than messages, reasoning, function calls and their outputs are refused. A reward beyond
`ingest.success_reward` is of another scale: its status is unknown (finding `verdict-unread`), and no other row of its
file is a success by its reward; of files in archives only the row itself is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tracemark import digest
from tracemark.findings import finding
from tracemark.harness.tools import read_tools
from tracemark.importers import recovery, supplied, unspoken
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Context, Document, Imported, Importer, Record, Refused, Unit
from tracemark.importers.content import text_of
from tracemark.importers.conversation import Conversation, time_text
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, UnfitError, drafted
from tracemark.importers.head import Head
from tracemark.importers.members import error_words, mapping, without_null
from tracemark.importers.recovery import Entry
from tracemark.importers.response_turn import is_summary
from tracemark.importers.responses_items import add_items
from tracemark.importers.rewards import rewarded_in
from tracemark.importers.usage import metrics_of
from tracemark.model.atif import VERSION

SUCCESS = (
    (
        "`error_kind` of the row, `error` of the response: anything but null, false or empty",
        "error, whatever the reward",
    ),
    ("`_ng_failure_class` of the row: what the producer files apart, such as `judge_failed`", "error"),
    ("`mask_sample` of the row or of its `instance_config`: true", "error"),
    ("`reward`, beyond ingest.success_reward", "unknown, with a finding"),
    ("`reward`", "by reward: success at ingest.success_reward, else failure"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    ("`metadata.instance_id` of the request, else `id`, `uuid` or `_ng_task_index` of the row", "run.task"),
    ("`_ng_rollout_index`; with the task `session_id`", "run.attempt"),
    ("`metadata.dataset_name`, `metadata.split` of the request, else of the row", "run.domain, run.split"),
    ("`model` of the response, else of the request", "run.model.name, agent.model_name"),
    ("`temperature`, `top_p`, limits and choices of the request that are not null", "run.sampling"),
    ("`agent_ref.name`", "agent.name"),
    ("`tools` of the request", "agent.tool_definitions"),
    (
        "`_ng_failure_class`, `terminal_state`, `error_kind`, else `incomplete_details` or `error` of the response",
        "outcome.termination",
    ),
    ("`usage` and `created_at` of a response with one reply", "the step's metrics and time"),
)
"""What goes to a place of its own; all else is kept in `extra`."""

_REQUEST, _RESPONSE = "responses_create_params", "response"
_SAMPLING = (
    "max_output_tokens",
    "max_tool_calls",
    "parallel_tool_calls",
    "reasoning",
    "temperature",
    "text",
    "tool_choice",
    "top_logprobs",
    "top_p",
    "truncation",
)


class NemoGymImporter(Importer):
    """Reads rollouts of NeMo Gym."""

    name = "nemo-gym"
    version = "2"
    surest = 95
    shows = ("prompt_templates", "tool_bindings", "runtime")

    def recognise(self, head: Head) -> int:
        """Return 95 for a row with `responses_create_params`."""
        return 95 if head.may_hold(b'"responses_create_params"') and head.members.get(_REQUEST) == "{" else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines."""
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each row in the record."""
        yield from each(self.name, record, partial(self._read, record))

    def _read(self, record: Record, document: Document) -> Imported | Refused:
        return drafted(self, record, document, partial(_draft, document, record.context))


def _draft(document: Document, context: Context) -> Draft:
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get(_REQUEST), dict):
        raise UnfitError(f"a rollout is an object with {_REQUEST}, and this is none")
    if not isinstance(value.get(_RESPONSE), dict):
        raise UnfitError(f"{_RESPONSE} is missing: a task, and no rollout of it")
    rest: dict[str, Any] = {name: member for name, member in value.items() if name not in (_REQUEST, _RESPONSE)}
    request, response = (without_null(value[name]) for name in (_REQUEST, _RESPONSE))
    repairs: list[str] = []
    is_summarised = _is_summarised(request, response)
    steps, replies = _steps(request, response, repairs)
    tools = _tools(request, response, rest)
    run = _run(rest, request, response)
    if is_summarised:
        run["rendered"] = True
        repairs.append("reasoning of which only a summary is there: the trace counts as rendered")
    shown = {"prompt_templates": _prompts(steps, rest.get("policy"))}
    if tools is not None:
        shown["runtime"] = recovery.settings(
            {"parallel_tool_calls": run.get("sampling", {}).get("parallel_tool_calls")}
        )
    if len(replies) == 1:
        _measure(replies[0], response)
    outcome, doubt = _outcome(rest, response, context)
    agent = named_agent(mapping(rest.get("agent_ref")).get("name"), None, run, tools)
    trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": steps}
    if "task" in run and "attempt" in run:
        trajectory["session_id"] = f"task-{run['task']}-rollout-{run['attempt']}"
    extra = {"request": request, "response": response, "record": rest}
    kept = {name: member for name, member in extra.items() if member}
    if kept:
        trajectory["extra"] = kept
    made = Draft(trajectory, run, outcome, repairs, shown, model_place="`model` of response or request")
    if doubt is not None and outcome["status"] == "unknown":
        made.findings.append(finding("verdict-unread", document.where, doubt))
    return made


def _steps(
    request: dict[str, Any], response: dict[str, Any], repairs: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Remove the items from request and response; return the steps, and the replies of this run among them."""
    conversation = Conversation(repairs)
    if isinstance(request.get("instructions"), str):
        conversation.add({"role": "system", "content": request.pop("instructions")}, f"{_REQUEST}/instructions")
        repairs.append("instructions of the request: read as its first system message")
    for step in add_items(conversation, request.pop("input", []), f"{_REQUEST}/input"):
        supplied.mark(step, repairs)
    replies = add_items(conversation, response.pop("output", []), f"{_RESPONSE}/output")
    return conversation.steps or unspoken.steps(repairs), replies


def _is_summarised(request: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    """Return whether the output shows summaries where the model thought.

    Servers of open models give the thoughts themselves as `summary`. It is one where one was asked for, or where the
    thoughts stand beside it, encrypted.
    """
    output = response.get("output")
    shown = [item for item in output if is_summary(item)] if isinstance(output, list) else []
    is_asked = any(mapping(one.get("reasoning")).get("summary") is not None for one in (request, response))
    return any(is_asked or item.get("encrypted_content") is not None for item in shown)


def _tools(request: dict[str, Any], response: dict[str, Any], rest: dict[str, Any]) -> list[Any] | None:
    """Remove the tools from the request and return them, and their copies; None when it offers none."""
    tools = request.get("tools")
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return None
    for holder in (response, rest):
        copy = holder.get("tools")
        if isinstance(copy, list) and _same_tools(copy, tools):
            del holder["tools"]
    return request.pop("tools") or None


def _same_tools(copy: list[Any], tools: list[Any]) -> bool:
    """Return whether two lists define the same tools, each of which can be read, and the copy says nothing else."""
    if digest.equal(copy, tools):
        return True
    said = {name for tool in tools for name in without_null(tool)}
    if not all(isinstance(tool, dict) and said.issuperset(without_null(tool)) for tool in copy):
        return False
    one, other = read_tools(copy), read_tools(tools)
    return not one.unreadable and not other.unreadable and digest.of(one.readable) == digest.of(other.readable)


def _run(rest: dict[str, Any], request: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {}
    of_request, of_row = mapping(request.get("metadata")), mapping(rest.get("metadata"))
    for task in (of_request.get("instance_id"), rest.get("id"), rest.get("uuid"), rest.get("_ng_task_index")):
        if type(task) in (str, int) and task != "":
            run["task"] = str(task)
            break
    if type(rest.get("_ng_rollout_index")) is int:
        run["attempt"] = rest.pop("_ng_rollout_index")
    for fact, name in (("domain", "dataset_name"), ("split", "split")):
        said = next((one[name] for one in (of_request, of_row) if isinstance(one.get(name), str)), None)
        if said is not None:
            run[fact] = said
    model = next((one["model"] for one in (response, request) if isinstance(one.get("model"), str)), None)
    if model is not None:
        run["model"] = {"name": model}
        response.pop("model", None)
    sampling = {name: request.pop(name) for name in _SAMPLING if name in request}
    if sampling:
        run["sampling"] = sampling
    return run


def _prompts(steps: list[dict[str, Any]], policy: Any) -> list[Entry]:
    """Return the system messages in front of the first reply, the policy of the row taken out."""
    found: list[Entry] = []
    for step in steps:
        if step["source"] == "agent" and step.get("llm_call_count") != 0:
            break
        text = text_of(step["message"]) if step["source"] == "system" else ""
        if not text or ("extra" in step and "event_type" in step["extra"]):
            continue
        part = "system" if not found else f"system-{len(found) + 1}"
        values = [policy] if isinstance(policy, str) else []
        found += recovery.substituted(part, text, values) or recovery.rendered(part, text)
    return found


def _measure(step: dict[str, Any], response: dict[str, Any]) -> None:
    """Give the only reply the usage and the time of its response."""
    metrics = metrics_of(response.get("usage"))
    if metrics:
        step["metrics"] = metrics
        del response["usage"]
    moment = time_text(response.get("created_at"))
    if moment is not None:
        step.setdefault("timestamp", moment)


def _outcome(rest: dict[str, Any], response: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], str | None]:
    outcome, doubt = rewarded_in(context, rest.get("reward"))
    if "reward" in outcome:
        del rest["reward"]
    if rest.get("error_kind"):
        outcome |= {"status": "error", "rule": "error_kind"}
    elif response.get("error"):
        outcome |= {"status": "error", "rule": "response.error"}
    elif rest.get("_ng_failure_class"):
        # its reward of 0 stands for a verdict that nobody gave
        outcome |= {"status": "error", "rule": "_ng_failure_class"}
    elif rest.get("mask_sample") is True or mapping(rest.get("instance_config")).get("mask_sample") is True:
        outcome |= {"status": "error", "rule": "mask_sample"}
    incomplete = mapping(response.get("incomplete_details")).get("reason")
    said = (*map(rest.get, ("_ng_failure_class", "terminal_state", "error_kind")), incomplete)
    for ended in (*said, error_words(response.get("error"))):
        if isinstance(ended, str) and ended:
            outcome["termination"] = ended
            break
    return outcome, doubt


IMPORTER = NemoGymImporter()
"""The importer, as the registry names it."""
