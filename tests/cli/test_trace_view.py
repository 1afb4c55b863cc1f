from __future__ import annotations

import io
from typing import Any

from tracemark.acts.traces import TraceShown
from tracemark.cli.trace_view import write_trace


def shown(*steps: dict[str, Any], **members: Any) -> str:
    stream = io.StringIO()
    known: dict[str, Any] = {
        "findings": (),
        "trace_id": "a" * 64,
        "fingerprint": None,
        "harness": None,
        "evidence": "claimed",
        "status": "success",
        "flags": [],
        "conflicts": [],
        "outcome": {"status": "success"},
        "run": {},
        "source": {},
        "agent": {"name": "terminus-2", "version": "2.0.0"},
        "differs_from_first": [],
        "first": {"harness": {}, "outcome": {}, "run": {}},
        "trajectory": {"steps": list(steps)},
    }
    write_trace(TraceShown(**known | members), stream)
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


def test_what_is_true_now_stands_above_the_steps() -> None:
    text = shown(harness="desk_a", fingerprint="tm1:abc", flags=["retracted"])
    assert text.startswith(
        f"trace id     {'a' * 64}\n"
        "fingerprint  tm1:abc\n"
        "harness      desk_a\n"
        "evidence     claimed\n"
        "status       success\n"
        "flags        retracted\n"
    )
    assert "first statement" not in text


def test_where_the_first_statement_said_otherwise_is_said() -> None:
    differences = [
        {"member": "harness", "first": "desk_b", "now": "desk_a"},
        {"member": "outcome.reward", "first": None, "now": 1.0},
    ]
    text = shown({"step_id": 1, "source": "user", "message": "Hi."}, differs_from_first=differences)
    assert (
        "\nthe first statement said otherwise:\n"
        "member          first   now\n"
        "harness         desk_b  desk_a\n"
        "outcome.reward  -       1.0\n"
        "\n1 user\n"
    ) in text


def test_a_message_in_parts_shows_its_text_and_names_the_rest() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": {"path": "x.png"}}]
    assert shown({"step_id": 1, "source": "user", "message": parts}).endswith("1 user\n  see\n  [image]\n")


def test_hostile_text_stays_text() -> None:
    step = {"step_id": 1, "source": "agent\x1b]0;x\x07", "message": "\x1b[2J\u202etxt"}
    assert "\x1b" not in shown(step)
    assert r"\x1b[2J\u202etxt" in shown(step)
