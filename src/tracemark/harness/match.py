"""Does the content of a trace agree with a harness that somebody names for it?

A matcher holds what of one harness can be compared with finished content. Its judgement says for each part whether the
content corroborates it, and lists every place where content and harness disagree. Content corroborates a part only
where it could have disagreed.

Invariants:
- nothing of a harness is executed; comparing is linear in the content;
- what is absent proves nothing: no message of a role, no recorded tools, an empty list, a tool that was never called;
- nor does a recorded definition of a bound tool that cannot be read, and it hides nothing of the others;
- prefixes, suffixes and length limits of handlers, and templates too short or with ends too short or open, can
  contradict and never corroborate; `runtime` is always only claimed;
- a system message in front of the first reply comes from the harness, so one that no template of it can give is a
  contradiction, unless the harness has a template of that role whose output cannot be told;
- a template of position `any` can corroborate and never contradict: it may stand behind the first reply, or nowhere;
- what stands in a hole of a template is compared with nothing;
- evidence `recorded` and `recovered` is not given here, and a judgement of one harness knows nothing of another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tracemark import digest
from tracemark.harness.templates import EXCERPT, Pattern, differing, pattern, shared_beginning
from tracemark.harness.tools import read_tools
from tracemark.model.harness import COMPONENTS, ObservationHandler, PromptTemplate

if TYPE_CHECKING:
    from tracemark.harness.version import Harness

MINIMUM_LITERAL = 64
"""Characters of literal text from which on a template that fits corroborates."""

MINIMUM_END = 16
"""Characters, white space not counted, that the first and the last literal piece of such a template hold at least.

A hole swallows whatever stands in it. Behind a hole in front of a single `.` the whole rest of a changed prompt may
stand, as long as it ends with a full stop: an end proves something only when no other text is likely to end so."""

_CACHE = 256
_SYSTEM = "system"
_ROLES = {"developer": "system", "agent": "assistant"}


@dataclass(slots=True)
class Content:
    """What of one trace harnesses are compared with; built once per trace by its importer."""

    messages: Sequence[tuple[str, str, int | None]] = ()
    """(role, text, step id) of every message before the agent's first reply, in order; a producer's events are none."""
    tools: Sequence[dict[str, Any]] | None = None
    """Recorded tool definitions as the source holds them; None when it records none."""
    tools_key: bytes | None = None
    """Canonical bytes of `tools`, which let equal lists be judged once; None means that they are not remembered."""
    calls: Sequence[tuple[str, int | None, str]] = ()
    """(tool name, step id, answer) of each tool that the agent called: of its first call that was answered without an
    error (`ok`), else of its first call (`error`, or `none` when nothing answers it)."""
    observations: Sequence[tuple[int | None, str]] = ()
    """(step id, text) of every observation that the agent saw."""
    prompt_cut: str | None = None
    """Text that the format fixes behind the prompt template, where the task begins; None when it fixes none."""


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


class _Template(NamedTuple):
    name: str
    pattern: Pattern


class _Prompts(NamedTuple):
    """What the main agent's templates of one role say."""

    ordered: tuple[_Template | None, ...]
    """Those of position `first`: the n-th stands in the n-th message. None is one that can be compared with nothing."""
    anywhere: tuple[_Template, ...]
    """Those of position `any`."""


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
        self._parts = {component: list(harness.identity.parts[component]) for component in COMPONENTS}
        self._prompts = _prompts(harness)
        self._givers = _givers(harness, self._prompts)
        self._tools = {name: harness.tool_schema(name) for name in manifest.tool_bindings}
        self._subset = manifest.runtime.offered == "subset"
        self._handlers = [handler for handler in manifest.observation_handlers if _claims(handler)]
        self._cut: dict[tuple[str, str], Pattern] = {}
        self._seen_tools: dict[bytes, _Tools] = {}
        self._seen_evidence: dict[tuple[frozenset[str], frozenset[str]], dict[str, dict[str, str]]] = {}

    @property
    def compared(self) -> Hashable:
        """All that content is compared with: harnesses in which it is equal are excluded by the same content."""
        return (
            frozenset((role, _patterns(prompts.ordered)) for role, prompts in self._prompts.items() if prompts.ordered),
            None if self._givers is None else frozenset(_patterns(self._givers)),
            digest.canonical(self._tools),
            self._subset,
            frozenset((one.max_characters, one.prefix or "", one.suffix or "") for one in self._handlers),
        )

    def judge(self, content: Content) -> Judgement:
        """Return which parts the content corroborates and where it disagrees."""
        contradictions: list[Contradiction] = []
        prompts = self._judge_prompts(content, contradictions)
        tools = self._judge_tools(content)
        contradictions += tools.contradictions
        self._judge_calls(content, contradictions)
        for handler in self._handlers:
            broken = _broken_claim(handler, content.observations)
            if broken is not None:
                contradictions.append(broken)
        return Judgement(self._evidence(prompts, tools.corroborated), contradictions)

    def excludes(self, content: Content) -> bool:
        """Return `judge(content).contradicted`, found sooner: cheap comparisons come first, and one fault will do."""
        if self._judge_tools(content).contradictions:
            return True
        found: list[Contradiction] = []
        self._judge_calls(content, found)
        if not found:
            self._judge_prompts(content, found)
        return bool(found) or any(_broken_claim(handler, content.observations) for handler in self._handlers)

    def _judge_prompts(self, content: Content, contradictions: list[Contradiction]) -> frozenset[str]:
        corroborated = []
        for role, prompts in self._prompts.items():
            found = _of_role(content, role)
            for template, (_, text, step) in zip(prompts.ordered, found, strict=False):
                if template is None:
                    continue
                verdict = self._fits(template, text, content.prompt_cut)
                if verdict:
                    corroborated.append(template.name)
                elif verdict is None:
                    difference = self._difference(template, text, content.prompt_cut)
                    contradictions.append(Contradiction("prompt_templates", template.name, step, difference))
            # those of position `any` may come after the first reply, or not at all
            corroborated += [
                template.name
                for template in prompts.anywhere
                if any(self._fits(template, text, content.prompt_cut) for _, text, _ in found)
            ]
        contradictions += self._foreign(content)
        return frozenset(corroborated)

    def _foreign(self, content: Content) -> Iterable[Contradiction]:
        """Yield each system message that nothing of the harness gives; a user may say what he likes."""
        if self._givers is None:
            return
        ordered = self._prompts[_SYSTEM].ordered if _SYSTEM in self._prompts else ()
        for number, (_, text, step) in enumerate(_of_role(content, _SYSTEM), 1):
            # one that stands in the place of a template has been compared with it
            if number <= len(ordered):
                continue
            if all(self._fits(template, text, content.prompt_cut) is None for template in self._givers):
                part = _SYSTEM if number == 1 else f"{_SYSTEM}-{number}"
                shown = f"no template gives this message: {text[:EXCERPT]!r}"
                yield Contradiction("prompt_templates", part, step, shown[:EXCERPT])

    def _fits(self, template: _Template, text: str, separator: str | None) -> bool | None:
        """Return None when the text cannot come from the template, else whether it corroborates it."""
        whole = template.pattern.disagreement(text) is None
        place = text.find(separator) if separator else -1
        if place < 0 or separator is None:
            return _proves(template.pattern) if whole else None
        prefix = self._prefix(template, separator)
        before = prefix.disagreement(text[:place]) is None
        if prefix is template.pattern:
            # the template stops short of the separator, or is a whole message that happens to hold it
            if before or whole:
                return _proves(prefix)
            whole = prefix.in_front_of(separator).disagreement(text) is None
        if not whole:
            return None
        # the first separator may stand in a hole, and the template's own behind it: not excluded, and not shown either
        return before and (_proves(prefix) or _proves(template.pattern))

    def _prefix(self, template: _Template, separator: str) -> Pattern:
        known = self._cut.get((template.name, separator))
        if known is None:
            known = template.pattern.before(separator)
            if len(self._cut) < _CACHE:
                self._cut[template.name, separator] = known
        return known

    def _difference(self, template: _Template, text: str, separator: str | None) -> str:
        place = text.find(separator) if separator else -1
        if separator and place >= 0:
            prefix = self._prefix(template, separator)
            if prefix.disagreement(text[:place]) is not None:
                return prefix.followed_by(separator).difference(text[: place + len(separator)])
        return template.pattern.difference(text)

    def _judge_tools(self, content: Content) -> _Tools:
        if not content.tools:
            return _NOTHING
        key = content.tools_key
        known = self._seen_tools.get(key) if key is not None else None
        if known is None:
            known = self._compare_tools(content.tools)
            if key is not None:
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

    def _evidence(self, prompts: frozenset[str], tools: frozenset[str]) -> dict[str, dict[str, str]]:
        known = self._seen_evidence.get((prompts, tools))
        if known is None:
            strong = {"prompt_templates": prompts, "tool_bindings": tools}
            known = {
                component: {part: "corroborated" if part in strong.get(component, ()) else "claimed" for part in parts}
                for component, parts in self._parts.items()
            }
            if len(self._seen_evidence) >= _CACHE:
                self._seen_evidence.clear()
            self._seen_evidence[prompts, tools] = known
        return known


def role_of(name: str) -> str:
    """Return the role under which a message or template is compared: formats have two words for some."""
    return _ROLES.get(name, name)


def fits(matchers: Iterable[Matcher], content: Content) -> list[str]:
    """Return the fingerprints that the content does not exclude, sorted, each once."""
    return sorted({matcher.fingerprint for matcher in matchers if not matcher.excludes(content)})


def _prompts(harness: Harness) -> dict[str, _Prompts]:
    """Return the templates of each role."""
    found: dict[str, _Prompts] = {}
    # a template of another agent of the harness is never in the main agent's messages
    for template in [template for template in harness.manifest.prompt_templates if template.agent is None]:
        role = role_of(template.role)
        before = found.get(role, _Prompts((), ()))
        comparable = _comparable(harness, template)
        if template.position == "first":
            found[role] = before._replace(ordered=(*before.ordered, comparable))
        elif comparable is not None:
            found[role] = before._replace(anywhere=(*before.anywhere, comparable))
    return found


def _givers(harness: Harness, prompts: Mapping[str, _Prompts]) -> tuple[_Template, ...] | None:
    """Return the templates that can give a system message; None when something that cannot be compared may give one.

    A harness without any template sends no system message: its prompt component says that there is none.
    """
    declared = harness.manifest.prompt_templates
    main = [template for template in declared if template.agent is None]
    if declared and not main:
        # which of the agents named is the main one is not said
        return None
    found = prompts.get(_SYSTEM, _Prompts((), ()))
    givers = tuple(template for template in (*found.ordered, *found.anywhere) if template is not None)
    return givers if len(givers) == sum(role_of(template.role) == _SYSTEM for template in main) else None


def _of_role(content: Content, role: str) -> list[tuple[str, str, int | None]]:
    # a message without text is none that a harness could have written
    return [message for message in content.messages if message[1] and role_of(message[0]) == role]


def _comparable(harness: Harness, template: PromptTemplate) -> _Template | None:
    try:
        text = harness.prompt_text(template.name)
    except UnicodeDecodeError:
        # what is no text can be compared with no message
        text = None
    found = None if text is None else pattern(template, text)
    return None if found is None else _Template(template.name, found)


def _patterns(templates: Iterable[_Template | None]) -> tuple[Pattern | None, ...]:
    return tuple(template and template.pattern for template in templates)


@lru_cache(maxsize=1024)
def _proves(fitting: Pattern) -> bool:
    if not (fitting.begins and fitting.ends) or fitting.size < MINIMUM_LITERAL:
        return False
    return all(len("".join(end.split())) >= MINIMUM_END for end in (fitting.literals[0], fitting.literals[-1]))


def _tool_contradiction(name: str, text: str) -> Contradiction:
    return Contradiction("tool_bindings", name, None, text[:EXCERPT])


def _claims(handler: ObservationHandler) -> bool:
    return handler.max_characters is not None or bool(handler.prefix) or bool(handler.suffix)


def _broken_claim(handler: ObservationHandler, observations: Sequence[tuple[int | None, str]]) -> Contradiction | None:
    limit, prefix, suffix = handler.max_characters, handler.prefix or "", handler.suffix or ""
    for step, text in observations:
        if limit is not None and len(text) > limit:
            found = f"expected at most {limit} characters found {len(text)}: {text[:60]!r}"
        elif prefix and not text.startswith(prefix):
            found = f"expected to begin with {prefix[:60]!r} found {text[:60]!r}"
        elif suffix and not text.endswith(suffix):
            found = f"expected to end with {suffix[-60:]!r} found {text[-60:]!r}"
        else:
            continue
        return Contradiction("observation_handlers", handler.name, step, found[:EXCERPT])
    return None
