"""The steps of a run as they are written, and which results answer which calls of which reply.

Whoever records, by hand or by listening to a client, writes through here, so that the same is asked of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracemark.errors import UsageError
from tracemark.harness.version import Harness
from tracemark.runner.answers import Answers
from tracemark.runner.evidence import Evidence, Write
from tracemark.runner.handled import Handled


class Turns:
    """The steps of one run.

    Args:
        harness: the loaded harness.
        evidence: told of each step and result.
        write: writes one event.
        now: tells the time.
    """

    def __init__(self, harness: Harness, evidence: Evidence, write: Write, now: Callable[[], str]) -> None:
        self._bindings = harness.manifest.tool_bindings
        self._evidence = evidence
        self._write = write
        self._now = now
        self.answers = Answers()
        """The calls of tools."""
        self.handled = Handled([handler.name for handler in harness.manifest.observation_handlers])
        """The calls of handlers."""
        self.replies = 0
        """How often the model replied."""
        self.steps = 0
        """How many steps were written."""
        self._replied = False
        self._calls_of_last: set[str] = set()

    def said(self, step: dict[str, Any]) -> None:
        """Write a step of anybody but the model."""
        self._write("step", {"step": {**step, "timestamp": self._now()}})
        self.steps += 1
        self._evidence.step(step)
        self.answers.expect({})
        self.handled.forget()
        self._calls_of_last = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        self._replied = False

    def replied(self, step: dict[str, Any]) -> None:
        """Write a reply of the model; results of its calls may follow."""
        self.said(step)
        self.answers.expect({call["tool_call_id"]: call["function_name"] for call in step.get("tool_calls", ())})
        self._replied = True
        self.replies += 1

    def answer(self, results: list[dict[str, Any]]) -> bool:
        """Write answers of a step that nobody need have made, see `shown`; return False when no agent's step is last.

        A result that answers no call of that step is kept without its link.
        """
        if not self._calls_of_last:
            return False
        made = [self._linked(result) for result in results]
        if self._replied:
            self.shown(made)
        else:
            self._write("observation", {"results": made})
            self._evidence.results(made, ())
        return True

    def shown(self, results: list[dict[str, Any]]) -> None:
        """Write what the model sees of the results of the last reply's calls.

        Raises:
            UsageError: when there is no reply that it could belong to, or a result answers none of its calls.
        """
        if not self._replied:
            raise UsageError(
                "there is no reply that the observation could belong to",
                hint="record the model's reply first: recorder.agent(…)",
            )
        for name in self.answers.take([result.get("source_call_id") for result in results]):
            binding = self._bindings.get(name)
            if binding is not None and binding.entry is not None:
                self._evidence.note("tool_bindings", name, "claimed")
        if self.answers.expected or not self._bindings:
            # what follows a reply without a call is, where there are tools, no result of one
            contents = [result["content"] for result in results if result.get("content") is not None]
            for name in self.handled.take(contents):
                self._evidence.note("observation_handlers", name, "claimed")
        self._write("observation", {"results": results})
        self._evidence.results(results, self.answers.ran)

    def _linked(self, result: dict[str, Any]) -> dict[str, Any]:
        link = result.get("source_call_id")
        if link is None or link in self._calls_of_last:
            return result
        kept = {name: value for name, value in result.items() if name != "source_call_id"}
        return {**kept, "extra": {**kept.get("extra", {}), "original_call_id": link}}
