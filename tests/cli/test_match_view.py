"""Observed groups and comparisons as text: what fits, what is ruled out and by what; nothing is printed raw."""

from __future__ import annotations

import io
from typing import Any

from tracemark.acts.matching import HarnessMatch
from tracemark.cli.match_view import write_harnesses, write_match

FINGERPRINT = "tm1:" + "a" * 64


def row(name: str, **members: Any) -> dict[str, Any]:
    made = {"name": name, "fingerprint": FINGERPRINT, "source": "snapshot", "fits": 0, "corroborated": []}
    return {**made, "excluded_by": [], **members}


def text(**members: Any) -> str:
    made: dict[str, Any] = {"target": "observed:12", "traces": 2, "known": {}, "harnesses": (), "groups": ()}
    stream = io.StringIO()
    write_match(HarnessMatch((), **{**made, **members}), stream)
    return stream.getvalue()


def by(part: str, traces: int = 1, **members: Any) -> dict[str, Any]:
    return {"component": "prompt_templates", "part": part, "traces": traces, "trace": "b" * 64, "text": "no", **members}


def test_what_fits_is_told_apart_from_what_is_ruled_out() -> None:
    rows = row("one", fits=2, corroborated=["tool_bindings/look"]), row("two", excluded_by=[by("system", step=3)])
    assert text(known={"tool_bindings": {"look": "schema " + "c" * 64}}, harnesses=rows) == (
        "observed:12: 2 traces\n"
        "  tool_bindings: look schema cccccccccccc\n"
        "\n"
        "fits:\n"
        "  one (tm1:aaaaaaaaaaaa, snapshot), 2 of 2\n"
        "    corroborated: tool_bindings/look\n"
        "\n"
        "ruled out:\n"
        "  two (tm1:aaaaaaaaaaaa, snapshot)\n"
        "    by prompt_templates/system in 1 trace: step 3: no\n"
    )


def test_a_harness_that_nothing_corroborates_is_said_to_be_only_not_ruled_out() -> None:
    assert "only not ruled out" in text(harnesses=(row("one", fits=2),))
    assert "no known harness" in text()


def test_a_harness_may_fit_some_traces_and_be_ruled_out_by_others() -> None:
    written = text(harnesses=(row("one", fits=1, excluded_by=[by("system")]),))
    assert "one (tm1:aaaaaaaaaaaa, snapshot), 1 of 2" in written
    assert "by prompt_templates/system in 1 trace: no" in written


def test_other_groups_are_told_with_what_they_prove() -> None:
    groups = (
        {"name": "observed:34", "traces": 1, "comparison": "different", "parts": ["tool_bindings/look"]},
        {"name": "observed:56", "traces": 3, "comparison": "unknown", "parts": []},
    )
    written = text(groups=groups)
    assert "  observed:34 (1 trace): another harness, by tool_bindings/look\n" in written
    assert "  of 1 group it cannot be told: nothing that both show differs\n" in written


def test_of_very_many_parts_and_groups_the_first_are_shown_and_the_rest_counted() -> None:
    groups = tuple(
        {"name": f"observed:{n}", "traces": 1, "comparison": "different", "parts": list("abcdef")} for n in range(23)
    )
    many = [by(f"p{number}") for number in range(25)]
    written = text(harnesses=(row("one", excluded_by=many),), groups=groups)
    assert "… and by 5 more parts; --output json lists all" in written
    assert "… and 3 more; --output json lists all" in written
    assert "by a, b, c, d and 2 more" in written
    assert "p19" in written
    assert "p20" not in written


def test_control_characters_of_traces_are_made_visible() -> None:
    odd = "\x1b[31mred\n"
    written = text(
        known={"tool_bindings": {odd: "schema 00"}},
        harnesses=(row(odd, fits=2, corroborated=[odd]), row(odd, excluded_by=[by(odd, text=odd)])),
        groups=({"name": "observed:34", "traces": 1, "comparison": "different", "parts": [odd]},),
    )
    assert "\x1b" not in written
    listed = io.StringIO()
    observed = {"name": "observed:34", "source": "observed", "formats": {odd: 1}, "traces": 1, "tasks": 1}
    write_harnesses([{**observed, "known": {"tool_bindings": {odd: "schema 00"}}, "open": {}, "trace": ""}], listed)
    assert "\x1b" not in listed.getvalue()


def observed(number: int, **known: Any) -> dict[str, Any]:
    members = {"formats": {"atif": number}, "traces": number, "tasks": 1, "known": known, "trace": "b" * 64}
    return {"name": f"observed:{number}", "source": "observed", **members, "open": {"runtime": "never"}}


def test_declared_harnesses_are_a_table_and_observed_groups_stand_behind_it() -> None:
    stream = io.StringIO()
    declared = {"name": "desk", "fingerprint": FINGERPRINT, "source": "snapshot", "traces": 1, "successes": 1}
    tools = {f"t{number}": "schema " + "d" * 64 for number in range(5)}
    write_harnesses([declared, observed(3, tool_bindings=tools), observed(1)], stream)
    assert stream.getvalue() == (
        "name  fingerprint       source    traces  successes\n"
        "desk  tm1:aaaaaaaaaaaa  snapshot  1       1\n"
        "\n"
        "observed, of traces under no harness:\n"
        "  observed:3  3 traces, atif\n"
        "    first: trace bbbbbbbbbbbb\n"
        "    tool_bindings: 5 parts (schema)\n"
        "    runtime: open, never\n"
        "  observed:1  1 trace, atif\n"
        "    first: trace bbbbbbbbbbbb\n"
        "    runtime: open, never\n"
        "known versions are compared with one of these by: tracemark harness match OBSERVED\n"
    )


def test_a_group_is_told_with_words_of_its_first_trace() -> None:
    stream = io.StringIO()
    write_harnesses([{**observed(1), "agent": "desk\x1b 1", "label": "a.jsonl"}], stream)
    assert "    first: trace bbbbbbbbbbbb, agent desk\\x1b 1, label a.jsonl\n" in stream.getvalue()


def test_of_very_many_groups_the_first_twenty_are_shown() -> None:
    stream = io.StringIO()
    write_harnesses([observed(number) for number in range(22)], stream)
    assert "… and 2 more groups; --output json lists all" in stream.getvalue()
    assert stream.getvalue().startswith("observed, of traces")
