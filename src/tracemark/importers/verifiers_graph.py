"""Traces of verifiers v1: a graph of messages, and each path from a root of it to a leaf is a run of its own.

A node names the message before it, and is written after it, so a graph that says otherwise is none. `sampled` tells
what a call of the model gave from what was supplied; the role of a message cannot. Calls stand apart and name their
nodes.

Invariants:
- a branch is told by its place among the leaves, in the order in which these were written;
- what only other branches hold is no part of a branch;
- the branches of one trace are read one after the other, and have no more messages together than `MESSAGES`.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.findings import finding
from tracemark.importers import recorded_config, recovery, supplied, unspoken, verifiers_outcome
from tracemark.importers.agent import named_agent
from tracemark.importers.base import Context, Document
from tracemark.importers.conversation import Conversation, time_text
from tracemark.importers.finish import Draft, NewerError, UnfitError
from tracemark.importers.members import mapping
from tracemark.importers.usage import is_number, metrics_of
from tracemark.model.atif import VERSION

CONFIG = "config.toml"
"""The settings of an evaluation, in the folder of its traces."""

MESSAGES = 1_000_000
"""Messages that the branches of one trace may have together: many branches off a long path are as many copies of it."""

_VERSION = 1
_LIMITS = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens")
_NOTHING: Mapping[str, Any] = {}
_OF_NODE = ("parent", "message", "timestamp", "sampled", "tools")
_REWRITTEN = "replies that handlers rewrote before they were recorded: nobody says which, the run counts as rendered"
_SEVERAL = "the last reply is one of several to one request, and nobody says which was graded: not read as a verdict"
_OTHERS = "a trace that trains nobody beside one that does, as a judge's or a simulated user's: no run of the agent"


class Branch(NamedTuple):
    """One run of a document."""

    document: Document
    """What its raw digest is of."""
    trace: Mapping[str, Any]
    """The trace that it is a branch of; empty for an episode that has none."""
    episode: Mapping[str, Any]
    """What stands beside the traces of an episode; empty for a line that is one trace."""
    path: tuple[int, ...] = ()
    """Its nodes."""
    number: int = 0
    """Its place among the branches of the trace."""
    branches: int = 1
    """How many the trace has."""
    is_beside: bool = False
    """Whether the trace is of another agent than the one whose run it is: it trains nobody, and another one does."""
    is_one_of_several: bool = False
    """Whether it ends in a reply to a request to which the model gave another one too."""


def runs(document: Document) -> Iterator[Branch]:
    """Return the runs of a line: each branch of each of its traces.

    Raises:
        UnfitError: when it is no episode and no trace.
        NewerError: when a trace is of a version that is not known.
    """
    value: dict[str, Any] = document.value
    traces: Any = [value] if "nodes" in value else value["traces"]
    episode = _NOTHING if "nodes" in value else {name: one for name, one in value.items() if name != "traces"}
    if not isinstance(traces, list) or not all(isinstance(trace, dict) for trace in traces):
        raise UnfitError("traces is no list of traces")
    for version in (trace.get("version") for trace in traces):
        if type(version) is int and version > _VERSION:
            raise NewerError(f"version {str(version)[:40]} of traces is newer than the one that is read ({_VERSION})")
    leaves = [(trace, _leaves(trace)) for trace in traces]
    return _branches(document, episode, leaves)


def draft(branch: Branch, context: Context) -> Draft:
    """Return what a branch becomes.

    Raises:
        UnfitError, NotMessagesError, UnknownRoleError: when it has not the shape of the format.
    """
    rest = {name: member for name, member in branch.trace.items() if name not in ("nodes", "calls", "tools")}
    nodes, repairs = branch.trace.get("nodes", []), list[str]()
    calls = _Calls(branch.trace.get("calls"))
    conversation = Conversation(repairs)
    for index in branch.path:
        _add(conversation, nodes[index], index, calls.of_node.get(index))
    steps = conversation.steps or unspoken.steps(repairs)
    tools = _tools(branch, nodes)
    if tools is None and branch.trace.get("tools"):
        rest["tools"] = branch.trace["tools"]
    settings = context.once(("verifiers-settings", context.folder), lambda: _settings(context))
    first = next((calls.of_node[index] for index in branch.path if index in calls.of_node), _NOTHING)
    run = _run(branch, first, settings)
    if branch.trace.get("response_rewrites"):
        run["rendered"] = True
        repairs.append(_REWRITTEN)
    if branch.is_beside:
        run["role"] = "subagent"
        repairs.append(_OTHERS)
    outcome, doubt = verifiers_outcome.take(rest, branch.episode, context.limits.success_reward)
    if outcome["status"] != "error" and branch.is_one_of_several:
        outcome, doubt = {**outcome, "status": "unknown"}, _SEVERAL
        outcome.pop("rule", None)
    name = mapping(_config(branch.trace).get("harness")).get("id")
    agent = named_agent(name, mapping(branch.trace.get("verifiers")).get("version"), run, tools)
    trajectory: dict[str, Any] = {"schema_version": VERSION, "agent": agent, "steps": steps}
    if isinstance(rest.get("id"), str) and rest["id"]:
        trajectory["session_id"] = rest.pop("id")
        if branch.branches > 1:
            trajectory["trajectory_id"] = f"{trajectory['session_id']}#{branch.number}"
    several = {"number": branch.number, "branches": branch.branches} if branch.branches > 1 else {}
    extra = {"trace": rest, "calls": calls.others, "episode": branch.episode, "branch": several}
    trajectory["extra"] = {name: member for name, member in extra.items() if member}
    if not trajectory["extra"]:
        del trajectory["extra"]
    made = Draft(trajectory, run, outcome, repairs)
    if doubt is not None and outcome["status"] == "unknown":
        made.findings.append(finding("verdict-unread", branch.document.where, doubt))
    made.model_place = "the branch's first call, the agent of the trace or config.toml"
    _limits(made, branch, nodes)
    return made


class _Calls:
    """The calls of the model, by the node that each gave."""

    def __init__(self, calls: Any) -> None:
        self.of_node: dict[int, Mapping[str, Any]] = {}
        self.others: list[Any] = []
        """Calls that gave no node, as those that failed, and those whose node a later one gave again."""
        for call in calls if isinstance(calls, list) else ():
            node = call.get("node") if isinstance(call, dict) else None
            if type(node) is not int:
                self.others.append(call)
                continue
            if node in self.of_node:
                self.others.append(self.of_node[node])
            self.of_node[node] = call
        if calls is not None and not isinstance(calls, list):
            self.others.append(calls)


def _leaves(trace: Mapping[str, Any]) -> list[int]:
    """Return the nodes behind which none stands, after the graph was found sound; empty for a trace without nodes."""
    nodes = trace.get("nodes")
    if not isinstance(nodes, list):
        raise UnfitError("nodes is no list of nodes")
    depths: list[int] = []
    inner = set()
    for index, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("message"), dict):
            raise UnfitError(f"nodes/{index} holds no message")
        parent = node.get("parent")
        if parent is not None and (type(parent) is not int or not 0 <= parent < index):
            raise UnfitError(f"nodes/{index} has the parent {str(parent)[:40]!r}, and only one in front of it can be")
        depths.append(1 if parent is None else depths[parent] + 1)
        inner.add(parent)
    leaves = [index for index in range(len(nodes)) if index not in inner]
    together = sum(depths[leaf] for leaf in leaves)
    if together > MESSAGES:
        raise UnfitError(f"its branches have {together} messages together, and no more than {MESSAGES} are read")
    return leaves


def _branches(
    document: Document, episode: Mapping[str, Any], traces: Sequence[tuple[Mapping[str, Any], list[int]]]
) -> Iterator[Branch]:
    if not traces:
        yield Branch(document, _NOTHING, episode)
    total = sum(max(1, len(leaves)) for _, leaves in traces)
    # of traces none of which trains, as of a model that is only evaluated, one may be the agent's
    has_agent = any(_trains(trace) for trace, _ in traces) or not episode
    for place, (trace, leaves) in enumerate(traces):
        is_beside = has_agent and not _trains(trace)
        sampled = [node for node in trace.get("nodes", ()) if node.get("sampled") is True]
        replies = Counter(node.get("parent") for node in sampled)
        for number, leaf in enumerate(leaves or [None]):
            path: list[int] = []
            node = leaf
            while node is not None:
                path.append(node)
                node = trace["nodes"][node].get("parent")
            own = document if total == 1 else _part(document, place, number)
            last = trace["nodes"][leaf] if leaf is not None else {}
            is_one = last.get("sampled") is True and replies[last.get("parent")] > 1
            yield Branch(own, trace, episode, tuple(reversed(path)), number, len(leaves) or 1, is_beside, is_one)


def _trains(trace: Mapping[str, Any]) -> bool:
    """Return whether a trace is of an agent whose text trains a model, which the trace may deny."""
    return mapping(trace.get("agent")).get("trainable") is not False


def _part(document: Document, place: int, number: int) -> Document:
    """Return one of several runs of a document: its raw digest is that of the document's digest and its place."""
    raw = digest.canonical({"record": digest.sha256(document.raw), "trace": place, "branch": number})
    return Document(document.value, raw, f"{document.where}#{place}.{number}", document.repairs)


def _add(conversation: Conversation, node: Mapping[str, Any], index: int, call: Mapping[str, Any] | None) -> None:
    """Add the message of a node, with what the node and its call say."""
    message = node["message"]
    if node.get("timestamp") is not None and "timestamp" not in message:
        message = {**message, "timestamp": node["timestamp"]}
    count = len(conversation.steps)
    step = conversation.add(message, f"nodes/{index}")
    left = {name: value for name, value in node.items() if name not in _OF_NODE and value not in (None, [], {})}
    is_answer = "observation" in step
    sampled = node.get("sampled", False)
    if step["source"] == "agent" and not is_answer:
        if sampled is True:
            _measure(step, left, call)
        else:
            supplied.mark(step, conversation.repairs)
    elif sampled is not False:
        left["sampled"] = sampled
    holder = step["observation"]["results"][-1] if is_answer else step
    said = {"node": left, "call": {} if call is None else _said(call, step)}
    kept = {name: value for name, value in said.items() if value}
    if kept and (is_answer or len(conversation.steps) > count):
        holder["extra"] = {**holder.get("extra", {}), **kept}


def _measure(step: dict[str, Any], left: dict[str, Any], call: Mapping[str, Any] | None) -> None:
    """Give a reply its metrics and its model, and take from the rest of its node what became one."""
    usage = call.get("usage") if call is not None else None
    metrics: dict[str, Any] = {}
    if isinstance(usage, dict):
        counts = dict(usage)
        cost = counts.pop("cost") if is_number(counts.get("cost")) else None
        cached = counts.pop("cached_input_tokens") if type(counts.get("cached_input_tokens")) is int else None
        metrics = metrics_of(counts, cost)
        if cached is not None:
            metrics["cached_tokens"] = cached
    metrics |= _tokens(left)
    if metrics:
        step["metrics"] = metrics
    if call is not None and isinstance(call.get("model"), str):
        step.setdefault("model_name", call["model"])


def _tokens(left: dict[str, Any]) -> dict[str, Any]:
    """Return the tokens that the model gave, with their log probabilities; both leave the node where they fit."""
    ids, mask, logprobs = left.get("token_ids"), left.get("mask"), left.get("logprobs")
    if not isinstance(ids, list) or not isinstance(mask, list) or len(ids) != len(mask):
        return {}
    if not (_are(ids, int) and _are(mask, bool)):
        return {}
    given = list(compress(ids, mask))
    found: dict[str, Any] = {"completion_token_ids": given} if given else {}
    if given and isinstance(logprobs, list) and len(logprobs) == len(given) and _are(logprobs, int, float):
        found["logprobs"] = left.pop("logprobs")
    if len(given) == len(ids):
        del left["token_ids"], left["mask"]
    return found


def _are(values: list[Any], *kinds: type) -> bool:
    """Return whether all values are of these kinds; there are as many as a reply has tokens."""
    return set(map(type, values)) <= set(kinds)


def _said(call: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call says beside the metrics of its step."""
    taken = {"node"}
    if "metrics" in step:
        taken.add("usage")
    if call.get("model") == step.get("model_name"):
        taken.add("model")
    return {name: value for name, value in call.items() if name not in taken and value is not None}


def _tools(branch: Branch, nodes: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    """Return the tools that are known to be the branch's; None when none are.

    A trace names those of its last request that offered any. Of several branches nobody says whose that was.
    """
    for tools in (
        nodes[branch.path[0]].get("tools") if branch.path else None,
        branch.trace.get("tools") if branch.branches == 1 else None,
    ):
        if isinstance(tools, list) and tools and all(isinstance(tool, dict) for tool in tools):
            return tools
    return None


def _run(branch: Branch, call: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    config, run = _config(branch.trace), dict[str, Any]()
    task = mapping(branch.trace.get("task") or branch.episode.get("task"))
    data = mapping(task.get("data"))
    for name in (task.get("key"), data.get("name"), data.get("idx"), task.get("hash")):
        if type(name) in (str, int) and name != "":
            run["task"] = str(name)
            break
    for environment in (branch.episode.get("env"), settings.get("env")):
        domain = mapping(environment).get("id")
        if isinstance(domain, str) and domain:
            run["domain"] = domain
            break
    for model in (call.get("model"), config.get("model"), settings.get("model")):
        if isinstance(model, str):
            run["model"] = {"name": model}
            break
    for sampling in (call.get("sampling"), config.get("sampling"), _plain(settings.get("sampling"))):
        if isinstance(sampling, dict) and sampling:
            run["sampling"] = sampling
            break
    build = mapping(branch.trace.get("verifiers"))
    labels = {f"verifiers_{name}": build[name] for name in ("version", "commit") if isinstance(build.get(name), str)}
    if labels:
        run["environment"] = labels
    start = time_text(mapping(branch.trace.get("timing")).get("start"))
    if start is not None:
        run["start"] = start
    return run


def _limits(made: Draft, branch: Branch, nodes: Sequence[Mapping[str, Any]]) -> None:
    """Show the limits of the agent's configuration, or say that the run went beyond them."""
    limits = {name: value for name, value in _config(branch.trace).items() if name in _LIMITS and type(value) is int}
    turns = sum(node.get("sampled") is True for node in nodes)
    if "max_turns" in limits and turns > limits["max_turns"]:
        told = f"the model spoke {turns} times, and the recorded configuration allows {limits['max_turns']}"
        made.findings.append(finding(recorded_config.CONTRADICTED, branch.document.where, told))
    elif limits:
        made.observed = {"runtime": recovery.settings(limits)}


def _config(trace: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(trace.get("agent")).get("config"))


def _settings(context: Context) -> Mapping[str, Any]:
    """Return the settings beside the traces; empty when they cannot be read."""
    raw = context.sibling(CONFIG)
    try:
        return tomllib.loads(raw.decode("utf-8")) if raw is not None else {}
    except (ValueError, RecursionError):
        return {}


def _plain(settings: Any) -> dict[str, Any]:
    """Return what JSON can hold of a table of settings: TOML has times, and numbers that are none."""
    return {
        name: value
        for name, value in mapping(settings).items()
        if isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    }
