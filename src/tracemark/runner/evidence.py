"""What a run that is being recorded shows of its harness: the evidence of each part, and where the two disagree.

Invariants:
- evidence is written when it changes, and what the run asked for is taken back where it made no use of it;
- the process is compared when the run begins and when it ends, and the limits with each reply and its results;
- what is found by looking at all recorded steps is written once they are there; whoever asks before hears it too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from tracemark.digest import canonical
from tracemark.harness.match import Content, Contradiction, Matcher
from tracemark.harness.roles import Message
from tracemark.harness.version import Harness
from tracemark.importers.content import content_of, text_of
from tracemark.model.harness import PromptTemplate
from tracemark.runner import compare

Write = Callable[[str, dict[str, Any]], None]
"""Writes one event, by its name and its members."""

_CALLABLE = ("parser", "context_manager", "recovery")


class Evidence:
    """What is known so far of one run.

    Args:
        harness: the loaded harness.
        agent: the labels of the agent.
        write: called with each event that follows from what is known.
    """

    def __init__(self, harness: Harness, agent: Mapping[str, Any], write: Write) -> None:
        self._harness = harness
        self._limits = harness.manifest.runtime.limits
        self._agent = agent
        self._write = write
        self._parts: dict[tuple[str, str], str] = {}
        self._found: list[Contradiction] = []
        self._rendered: list[tuple[PromptTemplate, str]] = []
        # how many renderings the first reply could see; None before it
        self._before: int | None = None
        self._placed: set[str] = set()
        self._said: list[Message] = []
        self._said_later: list[Message] = []
        self._replies = 0
        self._steps: list[dict[str, Any]] = []
        self._tools: list[dict[str, Any]] | None = None
        self._requested = False

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Where run and harness disagree: what was written down, and what a reader of the run so far would find."""
        found = list(self._found)
        if not self._steps:
            return tuple(found)
        agent = {**self._agent, **({"tool_definitions": self._tools} if self._tools else {})}
        content = content_of({"agent": agent, "steps": self._steps})
        for more in (self._prompt().differing, self._foreign(), self._matcher.judge(content).contradictions):
            known = {(one.component, one.part) for one in found}
            found += [each for each in more if (each.component, each.part) not in known]
        return tuple(found)

    def surroundings(self) -> None:
        """Take the declared parts of the runtime as obtained, and compare those that the process can contradict."""
        for part in self._harness.identity.parts["runtime"]:
            if part not in _CALLABLE:
                self.obtained("runtime", part)
        self._compare_process()

    def obtained(self, component: str, part: str) -> None:
        """Note that the run asked the harness for a part; what is known of it already stands."""
        if (component, part) not in self._parts:
            self.note(component, part, "recorded")

    def note(self, component: str, part: str, evidence: str) -> None:
        """Note the evidence of a part."""
        if self._parts.get((component, part)) != evidence:
            self._parts[component, part] = evidence
            self._write("evidence", {"component": component, "part": part, "evidence": evidence})

    def rendered(self, template: PromptTemplate, text: str) -> None:
        """Note a text that a prompt template gave."""
        self._rendered.append((template, text))

    def offered(self, definitions: list[dict[str, Any]]) -> None:
        """Note the tools that the model is offered; the first list counts."""
        if self._tools is None:
            self._write("tools", {"definitions": definitions})
            self._tools = definitions

    def request(self, messages: Sequence[Mapping[str, Any]], tools: list[dict[str, Any]] | None) -> None:
        """Compare the first request to the model with what the harness gave; later requests are not looked at."""
        if self._requested:
            return
        self._requested = True
        contradictions, agreeing = compare.request(self._harness, self._rendered, messages, tools)
        self._placed.update(agreeing)
        for contradiction in contradictions:
            self._contradict(contradiction)
        if tools is not None:
            self.offered(tools)

    def sent(self, messages: Sequence[Mapping[str, Any]], tools: list[dict[str, Any]]) -> None:
        """Compare the first request as it was sent; what it offers counts, whatever was asked for before.

        Args:
            messages: as in OpenAI's chat format.
            tools: the definitions sent; empty when there are none.
        """
        self._requested = True
        contradictions, agreeing = compare.request(self._harness, self._rendered, _as_system(messages), tools)
        self._placed.update(agreeing)
        for contradiction in contradictions:
            self._contradict_once(contradiction)
        if not tools:
            # a prompt may tell the model of its tools, and then nobody sees whether it tells of these
            for name in self._harness.manifest.tool_bindings:
                self.note("tool_bindings", name, "claimed")
        if self._tools is None or sorted(map(canonical, self._tools)) != sorted(map(canonical, tools)):
            self._write("tools", {"definitions": tools})
            self._tools = tools

    def beside(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Look at a request that is taken for another agent's: one with the prompt of the harness is the agent's own.

        Then the first request was not, and the steps are those of the wrong conversation.

        Args:
            messages: as in OpenAI's chat format.
        """
        if not self._placed and compare.request(self._harness, self._rendered, _as_system(messages), None)[1]:
            said = "the first request was another agent's: a later one holds what the harness gave, and it did not"
            self._contradict_once(Contradiction("runtime", "recording", None, said))

    def offered_anew(self, definitions: list[dict[str, Any]]) -> None:
        """Note other tools than the run offered before: what it says of its tools so far no longer holds."""
        self._write("tools", {"definitions": definitions})
        for contradiction in self._matcher.judge(Content(tools=definitions)).contradictions:
            if contradiction.component == "tool_bindings":
                self.contradict(contradiction)

    def stops(self, sent: Any) -> None:
        """Compare `stop` of a request, of which the reply is the next step, with the stop strings of the harness."""
        self._contradict_once(compare.stop_strings(self._limits, sent, len(self._steps) + 1))

    def contradict(self, contradiction: Contradiction) -> None:
        """Write down a contradiction, unless there is one of its part."""
        self._contradict_once(contradiction)

    def step(self, step: dict[str, Any]) -> None:
        """Note a step that was written."""
        self._steps.append({"step_id": len(self._steps) + 1, **step})
        if step["source"] == "agent" and step.get("llm_call_count") != 0:
            if self._before is None:
                self._before = len(self._rendered)
            self._replies += 1
            self._contradict_once(compare.steps(self._limits, self._replies, len(self._steps)))
        elif self._before is None:
            self._said.append((step["source"], text_of(step["message"]), len(self._steps)))
        else:
            self._said_later.append((step["source"], text_of(step["message"]), len(self._steps)))

    def results(self, results: list[dict[str, Any]], ran: Collection[str]) -> None:
        """Note results of the last step that were written.

        Args:
            results: the results.
            ran: ids of the step's calls for which the code of their tool was called.
        """
        step = self._steps[-1]
        step.setdefault("observation", {"results": []})["results"].extend(results)
        exceeded = compare.parallel_calls(self._limits, len(ran), len(self._steps))
        self._contradict_once(exceeded)
        perhaps = compare.perhaps_made(self._harness.manifest.tool_bindings, step)
        if exceeded is None and compare.parallel_calls(self._limits, len(perhaps.union(ran)), len(self._steps)):
            self.note("runtime", "limits", "claimed")

    def settle(self, *, replied: bool, parsed: bool) -> None:
        """Take back at the end what the run asked for and, although the model replied, made no use of.

        Args:
            replied: whether the model replied.
            parsed: whether the parser was called.
        """
        compared = self._prompt()
        for contradiction in (*compared.differing, *self._foreign()):
            self._contradict_once(contradiction)
        self._compare_process()
        if not replied:
            return
        for template in self._harness.manifest.prompt_templates:
            placed = template.name in self._placed or template.name in compared.agreeing
            if template.agent is None and template.position == "first" and not placed:
                self._lower("prompt_templates", template.name)
        if not parsed:
            self._lower("runtime", "parser")

    def _prompt(self) -> compare.Renderings:
        """Compare what was rendered in front of the first reply with the messages there; the prompt ends with them."""
        return compare.renderings(self._harness, self._rendered[: self._before], self._said)

    def _foreign(self) -> list[Contradiction]:
        """Compare the system messages behind the first reply with all that was rendered."""
        return compare.foreign(self._harness, self._rendered, self._said, self._said_later)

    def _compare_process(self) -> None:
        contradictions, unknown = compare.surroundings(self._harness.manifest.runtime)
        for part in unknown:
            self.note("runtime", part, "claimed")
        for contradiction in contradictions:
            # several variables may differ, and each may have been told at the start
            if contradiction not in self._found:
                self._contradict(contradiction)

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._harness)

    def _lower(self, component: str, part: str) -> None:
        if (component, part) in self._parts:
            self.note(component, part, "claimed")

    def _contradict_once(self, contradiction: Contradiction | None) -> None:
        """Write down the first place of a part; None is none."""
        if contradiction is None:
            return
        if all(one[:2] != contradiction[:2] for one in self._found):
            self._contradict(contradiction)

    def _contradict(self, contradiction: Contradiction) -> None:
        self._found.append(contradiction)
        self._write("contradiction", {"contradiction": contradiction.as_json()})


def _as_system(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return messages in which a developer is called the system, as it was before."""
    return [{**each, "role": "system"} if each.get("role") == "developer" else each for each in messages]
