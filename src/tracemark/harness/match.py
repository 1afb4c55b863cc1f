"""Does the content of a trace agree with a harness that somebody names for it?

A matcher holds what of one harness can be compared with finished content. Its judgement says for each part whether the
content corroborates it, and lists every place where content and harness disagree. Content corroborates a part only
where it could have disagreed.

Invariants:
- nothing of a harness is executed; comparing is linear in the content (`prompts` says how messages are compared);
- what is absent proves nothing: no message of a role, no recorded tools, an empty list, a tool that was never called;
- nor does a recorded definition of a bound tool that cannot be read, and it hides nothing of the others;
- prefixes, suffixes and length limits of handlers, limits of the runtime, and templates too short or with ends too
  short or open, can contradict and never corroborate; `runtime` is always only claimed;
- a handler is corroborated only by observations that its template gives again from their raw output, to the letter
  (`observations`);
- a system message comes from the harness wherever it stands, so one that no template of it can give is a contradiction,
  unless the harness has a template of that role whose output cannot be told;
- a template of position `any` can corroborate and never contradict: it may stand behind the first reply, or nowhere;
- what stands in a hole of a template is compared with nothing;
- a part that a recorder saw at work excludes every harness that has another one in its place, or none;
- evidence `recorded` and `recovered` is not given here, and a judgement of one harness knows nothing of another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tracemark import digest
from tracemark.harness.limits import PART, Steps
from tracemark.harness.observations import Handlers, Observation, RawOutput
from tracemark.harness.prompts import Prompts
from tracemark.harness.templates import EXCERPT, differing, shared_beginning
from tracemark.harness.tools import read_tools
from tracemark.model.harness import COMPONENTS

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

_CACHE = 256
_DIGITS = 16
_CACHED_KEY = 262_144


@dataclass(slots=True)
class Content:
    """What of one trace harnesses are compared with; built once per trace by its importer."""

    messages: Sequence[tuple[str, str, int | None]] = ()
    """(role, text, step id) of every message before the agent's first reply, in order; a producer's events are none."""
    later_system: Sequence[tuple[str, str, int | None]] = ()
    """(role, text, step id) of every system message behind the first reply, in order; as above, events are none."""
    tools: Sequence[dict[str, Any]] | None = None
    """Recorded tool definitions as the source holds them; None when it records none."""
    tools_key: bytes | None = None
    """Canonical bytes of `tools`, which let equal lists be judged once, unless they are very long; None means that they
    are not remembered."""
    calls: Sequence[tuple[str, int | None, str]] = ()
    """(tool name, step id, answer) of each tool that the agent called: of its first call that was answered without an
    error (`ok`), else of its first call (`error`, or `none` when nothing answers it)."""
    observations: Sequence[Observation] = ()
    """(step id, text) of every observation that the agent saw."""
    raw_outputs: Sequence[RawOutput] = ()
    """(step id, variables, text) of each of the observations of which the source holds what the tool gave, before any
    handler, apart from what the agent saw; a source that holds one text alone holds no raw output."""
    replies: Sequence[int] = ()
    """Step id of every reply of the model that the source holds, in order; copies of an earlier document's are none."""
    prompt_cut: str | None = None
    """Text that the format fixes behind the prompt template, where the task begins; None when it fixes none."""
    recorded: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Component to part to digest, of what a recorder saw at work; empty where none did."""


class Contradiction(NamedTuple):
    """One place where content and harness disagree."""

    component: str
    """One of `COMPONENTS`."""
    part: str
    """The part concerned; a tool that the harness does not have is named as well, and a message of no template of it is
    called `system`, `system-2` and so on, as the observed digests are."""
    step: int | None
    """Step id in the trajectory; None when the place is not a step."""
    text: str
    """What was expected and what was found, with its place in the text; at most `EXCERPT` characters."""

    def as_json(self) -> dict[str, Any]:
        """Return the stored form; `step` is absent when there is none."""
        step = {} if self.step is None else {"step": self.step}
        return {"component": self.component, "part": self.part, **step, "text": self.text}


@dataclass(slots=True)
class Judgement:
    """What content says of one harness."""

    evidence: Mapping[str, Mapping[str, str]]
    """Component to part to `corroborated` or `claimed`, for every part of the harness. Shared between judgements."""
    contradictions: list[Contradiction] = field(default_factory=list)
    """Every disagreement; empty when the content does not exclude the harness."""

    @property
    def contradicted(self) -> bool:
        """Whether the content excludes the harness."""
        return bool(self.contradictions)


class _Tools(NamedTuple):
    corroborated: frozenset[str]
    contradictions: tuple[Contradiction, ...]


_NOTHING = _Tools(frozenset(), ())


class Matcher:
    """Compares traces with one harness.

    Args:
        harness: the harness; only its manifest, the text of its files and its identity are used.
    """

    def __init__(self, harness: Harness) -> None:
        manifest = harness.manifest
        self.fingerprint = harness.identity.fingerprint
        """The harness's fingerprint."""
        self._parts = {component: dict(harness.identity.parts[component]) for component in COMPONENTS}
        self._prompts = Prompts(harness)
        self._tools = {name: harness.tool_schema(name) for name in manifest.tool_bindings}
        self._subset = manifest.runtime.offered == "subset"
        self._handlers = Handlers(harness)
        self._steps = Steps(harness)
        self._seen_tools: dict[bytes, _Tools] = {}
        self._seen_evidence: dict[tuple[frozenset[str], ...], dict[str, dict[str, str]]] = {}

    @property
    def compared(self) -> Hashable:
        """All that content is compared with: harnesses in which it is equal are excluded by the same content."""
        return (
            self._prompts.compared,
            digest.canonical(self._tools),
            self._subset,
            self._handlers.compared,
            self._steps.compared,
        )

    def judge(self, content: Content) -> Judgement:
        """Return which parts the content corroborates and where it disagrees."""
        contradictions: list[Contradiction] = []
        prompts = self._judge_prompts(content, contradictions)
        tools = self._judge_tools(content)
        contradictions += tools.contradictions
        self._judge_calls(content, contradictions)
        contradictions += self._judge_observations(content)
        contradictions += self._judge_steps(content)
        contradictions += self._judge_recorded(content)
        handlers = self._handlers.corroborated(content.observations, content.raw_outputs)
        return Judgement(self._evidence(prompts, tools.corroborated, handlers), contradictions)

    def excludes(self, content: Content) -> bool:
        """Return `judge(content).contradicted`, found sooner: cheap comparisons come first, and one fault will do."""
        if self._judge_tools(content).contradictions or any(self._judge_recorded(content)):
            return True
        if self._judge_steps(content):
            return True
        found: list[Contradiction] = []
        self._judge_calls(content, found)
        if not found:
            self._judge_prompts(content, found)
        return bool(found or self._judge_observations(content))

    def _judge_prompts(self, content: Content, contradictions: list[Contradiction]) -> frozenset[str]:
        verdict = self._prompts.judge(content.messages, content.prompt_cut, content.later_system)
        contradictions += [Contradiction("prompt_templates", *difference) for difference in verdict.differences]
        return verdict.corroborated

    def _judge_tools(self, content: Content) -> _Tools:
        if not content.tools:
            return _NOTHING
        key = content.tools_key
        known = self._seen_tools.get(key) if key is not None else None
        if known is None:
            known = self._compare_tools(content.tools)
            if key is not None and len(key) <= _CACHED_KEY:
                if len(self._seen_tools) >= _CACHE:
                    self._seen_tools.clear()
                self._seen_tools[key] = known
        return known

    def _compare_tools(self, recorded: Sequence[dict[str, Any]]) -> _Tools:
        found = read_tools(recorded)
        readable = {tool["name"] for tool in found.readable}
        corroborated, contradictions = [], []
        for tool in found.readable:
            name, shown = tool["name"], digest.canonical(tool).decode("utf-8", "replace")
            bound = self._tools.get(name)
            if bound is None:
                contradictions.append(_tool_contradiction(name, f"offered, but not bound: {shown}"))
            elif shown != (ours := digest.canonical(bound).decode("utf-8", "replace")):
                at = shared_beginning(ours, shown)
                said = "another definition, "
                where = differing(ours, at, shown, at, room=EXCERPT - len(said))
                contradictions.append(_tool_contradiction(name, said + where))
            else:
                corroborated.append(name)
        for name in dict.fromkeys(name for name in found.unreadable if name is not None):
            if name not in self._tools:
                contradictions.append(_tool_contradiction(name, f"offered, but not bound: {name}"))
            elif name in readable:
                contradictions.append(_tool_contradiction(name, f"offered twice, with different definitions: {name}"))
        if not self._subset and None not in found.unreadable:
            # a definition without a name may be any tool's
            missing = sorted(set(self._tools) - readable - set(found.unreadable))
            contradictions += [_tool_contradiction(name, "bound, but not offered") for name in missing]
        return _Tools(frozenset(corroborated), tuple(contradictions))

    def _judge_calls(self, content: Content, contradictions: list[Contradiction]) -> None:
        if not self._tools:
            # a harness that binds no tools reads actions out of the reply; whoever wrote the trace named them as calls
            return
        named: set[str] = set()
        for name, step, answered in content.calls:
            if name not in self._tools and answered == "ok" and name not in named:
                named.add(name)
                text = f"called and answered, but not bound: {name}"
                contradictions.append(Contradiction("tool_bindings", name, step, text[:EXCERPT]))

    def _judge_observations(self, content: Content) -> list[Contradiction]:
        found = self._handlers.differences(content.observations, content.raw_outputs)
        return [Contradiction("observation_handlers", *difference) for difference in found]

    def _judge_steps(self, content: Content) -> list[Contradiction]:
        excess = self._steps.excess(content.replies)
        return [] if excess is None else [Contradiction("runtime", PART, *excess)]

    def _judge_recorded(self, content: Content) -> Iterator[Contradiction]:
        for component, parts in content.recorded.items():
            for part, seen in parts.items():
                own = self._parts.get(component, {}).get(part)
                if own != seen:
                    here = "this harness has none of that name" if own is None else f"this harness has {own[:_DIGITS]}"
                    yield Contradiction(component, part, None, f"recorded was {seen[:_DIGITS]}, {here}")

    def _evidence(self, *corroborated: frozenset[str]) -> dict[str, dict[str, str]]:
        """Return the evidence of all parts, by the corroborated ones of each component that can have such."""
        known = self._seen_evidence.get(corroborated)
        if known is None:
            strong = dict(zip(COMPONENTS, corroborated, strict=False))
            known = {
                component: {part: "corroborated" if part in strong.get(component, ()) else "claimed" for part in parts}
                for component, parts in self._parts.items()
            }
            if len(self._seen_evidence) >= _CACHE:
                self._seen_evidence.clear()
            self._seen_evidence[corroborated] = known
        return known


def fits(matchers: Iterable[Matcher], content: Content) -> list[str]:
    """Return the fingerprints that the content does not exclude, sorted, each once."""
    return sorted({matcher.fingerprint for matcher in matchers if not matcher.excludes(content)})


def _tool_contradiction(name: str, text: str) -> Contradiction:
    return Contradiction("tool_bindings", name, None, text[:EXCERPT])
