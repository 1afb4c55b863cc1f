"""The smallest run in every format, with places for what is hostile: of these parts `test_hostile` builds its files.

All texts here are JSON text, not values: what is hostile about most of them no Python value has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

Files = dict[str, bytes]
"""The files of a source, by name."""

NOBODY = "0" * 64
"""The digest of no harness."""

_PLACE = '"uuid": ""'


class Format:
    """How one format writes a run in which a user asks, and what follows is given by the case."""

    name: ClassVar[str]
    """Name of the importer."""

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        """Return a run.

        Args:
            number: tells it from the others of a file.
            turns: what follows the user's message, each one JSON text.
            members: `"name": value` for a place where the importer keeps what it does not know; empty for nothing.
        """
        raise NotImplementedError

    def files(self, runs: Sequence[str]) -> Files:
        """Return the files that hold some runs: a line for each."""
        return {"runs.jsonl": "\n".join(runs).encode()}

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        """Return a turn of the agent."""
        tail = f', "tool_calls": {array(calls)}' if calls else ""
        return f'{{"role": "assistant", "content": {text}{tail}}}'

    def call(self, name: str = "c1", arguments: str = '"{}"') -> str:
        """Return a tool call, as it stands in a turn's list."""
        function = f'{{"name": "look_up", "arguments": {arguments}}}'
        return f'{{"id": "{name}", "type": "function", "function": {function}}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        """Return the turn in which a tool answers a call."""
        return f'{{"role": "tool", "tool_call_id": "{name}", "content": {text}}}'

    def spoken(self, role: str) -> str:
        """Return a turn of somebody else."""
        return f'{{"role": "{role}", "content": "Who speaks?"}}'


def array(parts: Sequence[str]) -> str:
    """Return a JSON array of values."""
    return f"[{', '.join(parts)}]"


def members_of(*parts: str) -> str:
    """Return a JSON object of `"name": value` texts; empty ones leave no comma."""
    return f"{{{', '.join(part for part in parts if part)}}}"


class _OneFileEach(Format):
    """A format in which a run is a file."""

    suffix: ClassVar[str] = ".json"

    def files(self, runs: Sequence[str]) -> Files:
        return {f"{number}{self.suffix}": run.encode() for number, run in enumerate(runs)}


class Atif(Format):
    name = "atif"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = f'"source": "user", "message": "Go. {number}"'
        steps = [f'{{"step_id": {at}, {turn}}}' for at, turn in enumerate(_with_answers([asked, *turns]), 1)]
        agent = '"agent": {"name": "desk", "version": "1"}'
        extra = f'"extra": {{{members}}}' if members else ""
        return members_of('"schema_version": "ATIF-v1.8"', agent, f'"steps": {array(steps)}', extra)

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        tail = f', "tool_calls": {array(calls)}' if calls else ""
        return f'"source": "agent", "message": {text}{tail}'

    def call(self, name: str = "c1", arguments: str = "{}") -> str:
        return f'{{"tool_call_id": "{name}", "function_name": "look_up", "arguments": {arguments}}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        results = f'[{{"source_call_id": "{name}", "content": {text}}}]'
        return f'"observation": {{"results": {results}}}'

    def spoken(self, role: str) -> str:
        return f'"source": "{role}", "message": "Who speaks?"'


def _with_answers(turns: Sequence[str]) -> list[str]:
    """Return steps of ATIF: an answer stands in the step that asked, and alone in one of the system where none did."""
    steps: list[str] = []
    for turn in turns:
        if not turn.startswith('"observation"'):
            steps.append(turn)
        elif '"tool_calls"' in steps[-1]:
            steps[-1] += f", {turn}"
        else:
            steps.append(f'"source": "system", "message": "", {turn}')
    return steps


class OpenAiChat(Format):
    name = "openai-chat"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = f'{{"role": "user", "content": "Go. {number}"}}'
        return members_of(f'"messages": {array([asked, *turns])}', members)


class Journal(_OneFileEach):
    name = "journal"
    suffix = ".journal.jsonl"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        empty = f'{{"digest": "{NOBODY}", "parts": []}}'
        names = ("prompt_templates", "tool_bindings", "observation_handlers", "runtime")
        components = members_of(*(f'"{name}": {empty}' for name in names))
        harness = f'"harness": {{"fingerprint": "tm1:{NOBODY}", "components": {components}}}'
        start = '"event": "start", "format": "tracemark/journal/1", "agent": {"name": "desk", "version": "1"}'
        extra = f', "extra": {{{members}}}' if members else ""
        asked = f'{{"event": "step", "step": {{"source": "user", "message": "Go."{extra}}}}}'
        lines = [f'{{{start}, "session": "j{number}", "run": {{}}, {harness}}}', asked, *turns]
        return "\n".join([*lines, '{"event": "end", "time": "2026-01-31T12:00:00Z"}', ""])

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        tail = f', "tool_calls": {array(calls)}' if calls else ""
        return f'{{"event": "step", "step": {{"source": "agent", "message": {text}{tail}}}}}'

    def call(self, name: str = "c1", arguments: str = "{}") -> str:
        return Atif().call(name, arguments)

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        return f'{{"event": "observation", "results": [{{"source_call_id": "{name}", "content": {text}}}]}}'

    def spoken(self, role: str) -> str:
        return f'{{"event": "step", "step": {{"source": "{role}", "message": "Who speaks?"}}}}'


class TauBench(Format):
    name = "tau-bench"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '{"role": "user", "content": "Go."}'
        head = f'"task_id": {number}, "reward": 1.0, "trial": 0, "info": {{}}'
        return members_of(head, f'"traj": {array([asked, *turns])}', members)

    def files(self, runs: Sequence[str]) -> Files:
        return {"runs.json": array(runs).encode()}


class Tau2(Format):
    name = "tau2"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '{"role": "user", "content": "Go."}'
        head = (
            f'"id": "s{number}", "task_id": "t", "termination_reason": "user_stop", "start_time": "2026-01-02T10:00:00"'
        )
        return members_of(head, f'"messages": {array([asked, *turns])}', members)

    def files(self, runs: Sequence[str]) -> Files:
        info = '"info": {"agent_info": {}, "environment_info": {}}, "tasks": []'
        return {"results.json": f'{{{info}, "simulations": {array(runs)}}}'.encode()}

    def call(self, name: str = "c1", arguments: str = "{}") -> str:
        return f'{{"id": "{name}", "name": "look_up", "arguments": {arguments}, "requestor": "assistant"}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        return f'{{"role": "tool", "id": "{name}", "content": {text}, "requestor": "assistant"}}'


class MiniSweAgent(_OneFileEach):
    name = "mini-swe-agent"
    suffix = ".traj.json"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = f'{{"role": "user", "content": "Go. {number}"}}'
        head = '"info": {"mini_version": "2.2.7"}, "trajectory_format": "mini-swe-agent-1.1"'
        return members_of(head, f'"messages": {array([asked, *turns])}', members)


class SweAgent(_OneFileEach):
    name = "swe-agent"
    suffix = ".traj"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = f'{{"role": "user", "content": "Go. {number}", "agent": "main"}}'
        head = '"environment": "main", "trajectory": [], "info": {"exit_status": "submitted"}'
        return members_of(head, f'"history": {array([asked, *turns])}', members)

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        return f'{{"role": "tool", "tool_call_ids": ["{name}"], "content": {text}}}'


class Inspect(Format):
    name = "inspect"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '{"role": "user", "content": "Go."}'
        head = f'"id": {number}, "epoch": 1, "uuid": "u{number}"'
        return members_of(head, f'"messages": {array([asked, *turns])}', members)

    def files(self, runs: Sequence[str]) -> Files:
        head = '"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "packages": {}}'
        head += ', "plan": {"steps": [{"solver": "generate"}]}'
        return {"log.json": f'{{{head}, "samples": {array(runs)}}}'.encode()}

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        tail = f', "tool_calls": {array(calls)}' if calls else ""
        return f'{{"role": "assistant", "content": {text}, "source": "generate"{tail}}}'

    def call(self, name: str = "c1", arguments: str = "{}") -> str:
        return f'{{"id": "{name}", "function": "look_up", "arguments": {arguments}, "type": "function"}}'


class Verifiers(Format):
    name = "verifiers"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '{"role": "user", "content": "Go."}'
        head = f'"example_id": {number}, "reward": 1.0, "info": {{{members}}}'
        return members_of(head, f'"prompt": {array([asked])}', f'"completion": {array(turns)}')


class NemoGym(Format):
    name = "nemo-gym"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        request = f'"responses_create_params": {{"input": "Go. {number}", "tools": []}}'
        return members_of(request, f'"response": {{"output": {array(turns)}}}', '"reward": 1.0', members)

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        content = f'[{{"type": "output_text", "text": {text}}}]'
        return ", ".join([f'{{"type": "message", "role": "assistant", "content": {content}}}', *calls])

    def call(self, name: str = "c1", arguments: str = '"{}"') -> str:
        return f'{{"type": "function_call", "call_id": "{name}", "name": "look_up", "arguments": {arguments}}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        return f'{{"type": "function_call_output", "call_id": "{name}", "output": {text}}}'


class ThinkingBox(Format):
    name = "thinkingbox"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '{"T": "Text", "role": "user", "content": "Go."}'
        head = f'"uid": "t{number}", "is_system_error": false, "finish_reason": "done"'
        return members_of(head, f'"messages": {array([asked, *turns])}', members)

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        spoken = f'{{"T": "Text", "role": "assistant", "content": {text}}}'
        return f'{spoken}, {{"T": "ParallelToolCall", "tool_calls": {array(calls)}}}' if calls else spoken

    def call(self, name: str = "c1", arguments: str = "{}") -> str:
        return f'{{"T": "ToolCall", "name": "look_up", "arguments": {arguments}, "id": "{name}"}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        return f'{{"T": "ToolResponse", "name": "look_up", "content": {text}, "id": "{name}"}}'

    def spoken(self, role: str) -> str:
        return f'{{"T": "Text", "role": "{role}", "content": "Who speaks?"}}'


class OpenHands(Format):
    name = "openhands"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '{"action": "message", "source": "user", "args": {"content": "Go."}}'
        head = f'"instance_id": "t{number}", "metadata": {{}}'
        return members_of(head, f'"history": {array([asked, *turns])}', members)

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        if not calls:
            return f'{{"action": "message", "source": "agent", "args": {{"content": {text}}}}}'
        message = f'{{"role": "assistant", "content": {text}, "tool_calls": {array(calls)}}}'
        metadata = f'{{"tool_call_id": "c1", "model_response": {{"choices": [{{"message": {message}}}]}}}}'
        return f'{{"action": "read", "source": "agent", "args": {{}}, "tool_call_metadata": {metadata}}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        metadata = f'{{"tool_call_id": "{name}"}}'
        return f'{{"observation": "read", "source": "agent", "content": {text}, "tool_call_metadata": {metadata}}}'

    def spoken(self, role: str) -> str:
        return f'{{"action": "message", "source": "{role}", "args": {{"content": "Who speaks?"}}}}'


class Otel(Format):
    """A span for each run, of a call that returned nothing: its history holds what was said."""

    name = "otel-genai"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = f'{{"role": "user", "content": "Go. {number}"}}'
        held = f'"gen_ai.operation.name": "chat", "gen_ai.input.messages": {array([asked, *turns])}'
        head = f'"traceId": "{number + 1:032x}", "spanId": "{1:016x}"'
        return members_of(head, f'"attributes": {{{held}}}', members)


class ClaudeCode(_OneFileEach):
    """A reply is a record with its blocks; each record names the one in front of it."""

    name = "claude-code"
    suffix = ".jsonl"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        asked = '"type": "user", "message": {"role": "user", "content": "Go."}'
        lines = [members_of(asked, members, _PLACE)[1:-1], *turns]
        return "".join(f"{{{line.replace(_PLACE, self._place(number, at))}}}\n" for at, line in enumerate(lines))

    def _place(self, number: int, at: int) -> str:
        parent = f'"u{at - 1}"' if at else "null"
        return f'"uuid": "u{at}", "parentUuid": {parent}, "sessionId": "s{number}", "version": "2.0.1"'

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        blocks = array([*([] if calls else [f'{{"type": "text", "text": {text}}}']), *calls])
        return f'"type": "assistant", "message": {{"role": "assistant", "content": {blocks}}}, {_PLACE}'

    def call(self, name: str = "c1", arguments: str = "{}") -> str:
        return f'{{"type": "tool_use", "id": "{name}", "name": "look_up", "input": {arguments}}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        block = f'{{"type": "tool_result", "tool_use_id": "{name}", "content": {text}}}'
        return f'"type": "user", "message": {{"role": "user", "content": [{block}]}}, {_PLACE}'

    def spoken(self, role: str) -> str:
        return f'"type": "assistant", "message": {{"role": "{role}", "content": "Who speaks?"}}, {_PLACE}'


class Codex(_OneFileEach):
    """A reply is a line for its text and one for each call."""

    name = "codex"
    suffix = ".jsonl"

    def run(self, number: int, turns: Sequence[str], members: str = "") -> str:
        meta = members_of(f'"id": "s{number}"', '"cli_version": "1.2.0"', members)
        asked = _item('"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]')
        return "\n".join([_line("session_meta", meta), asked, *turns, ""])

    def said(self, text: str = '""', calls: Sequence[str] = ()) -> str:
        if calls:
            return "\n".join(_line("response_item", call) for call in calls)
        content = f'[{{"type": "output_text", "text": {text}}}]'
        return _item(f'"type": "message", "role": "assistant", "content": {content}')

    def call(self, name: str = "c1", arguments: str = '"{}"') -> str:
        return f'{{"type": "function_call", "name": "look_up", "arguments": {arguments}, "call_id": "{name}"}}'

    def answer(self, name: str = "c1", text: str = '"on its way"') -> str:
        return _item(f'"type": "function_call_output", "call_id": "{name}", "output": {text}')

    def spoken(self, role: str) -> str:
        content = '[{"type": "input_text", "text": "Who speaks?"}]'
        return _item(f'"type": "message", "role": "{role}", "content": {content}')


def _item(members: str) -> str:
    return _line("response_item", f"{{{members}}}")


def _line(kind: str, payload: str) -> str:
    return f'{{"timestamp": "2026-08-01T10:00:00.000Z", "type": "{kind}", "payload": {payload}}}'


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Atif(),
        OpenAiChat(),
        Journal(),
        TauBench(),
        Tau2(),
        MiniSweAgent(),
        SweAgent(),
        Inspect(),
        Verifiers(),
        NemoGym(),
        ThinkingBox(),
        OpenHands(),
        ClaudeCode(),
        Codex(),
        Otel(),
    )
}
"""Every format by the name of its importer."""
