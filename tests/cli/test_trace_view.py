from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from tracemark.cli.trace_view import write_trace
from tracemark.findings import Report


@dataclass(frozen=True)
class Shown(Report):
    trace_id: str
    harness: dict[str, Any]
    outcome: dict[str, Any]
    run: dict[str, Any]
    source: dict[str, Any]
    trajectory: dict[str, Any]


def shown(*steps: dict[str, Any], harness: dict[str, Any] | None = None) -> str:
    stream = io.StringIO()
    write_trace(Shown((), "a" * 64, harness or {}, {"status": "success"}, {}, {}, {"steps": list(steps)}), stream)
    return stream.getvalue()


def test_a_step_shows_thoughts_words_calls_and_results() -> None:
    step = {
        "step_id": 3,
        "source": "agent",
        "message": "Let me look.",
        "reasoning_content": "An order?",
        "tool_calls": [{"tool_call_id": "c1", "function_name": "get_order", "arguments": {"order": "#1"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "shipped\nto Graz"}]},
    }
    assert shown(step).endswith(
        '\n3 agent\n  (thinks) An order?\n  Let me look.\n  → get_order {"order": "#1"}\n  ← shipped\n  to Graz\n'
    )


def test_the_harness_stated_stands_above_the_steps() -> None:
    text = shown(harness={"declared": {"name": "desk_a", "fingerprint": "tm1:abc", "components": {}}})
    assert text.startswith(f"trace id     {'a' * 64}\nharness      desk_a\nfingerprint  tm1:abc\n")


def test_a_message_in_parts_shows_its_text_and_names_the_rest() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": {"path": "x.png"}}]
    assert shown({"step_id": 1, "source": "user", "message": parts}).endswith("1 user\n  see\n  [image]\n")


def test_hostile_text_stays_text() -> None:
    step = {"step_id": 1, "source": "agent\x1b]0;x\x07", "message": "\x1b[2J\u202etxt"}
    assert "\x1b" not in shown(step)
    assert r"\x1b[2J\u202etxt" in shown(step)
