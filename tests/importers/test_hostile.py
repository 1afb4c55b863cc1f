"""What becomes of hostile input, format by format: the table says where it is kept, or why it is refused.

Each case is one run between two ordinary ones, which are read whatever becomes of it. Nothing is altered without a
word: a value stands in the trace as it was written, or a note in `source.repairs` says what was done, and no other note
is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pytest

from tracemark import digest
from tracemark.importers import detect
from tracemark.importers.base import Imported

from .conftest import Inbox, Read
from .hostile_formats import FORMATS, Atif, Format

DEEP = "[" * 10_000 + "]" * 10_000
LARGE = 2**64
SMALL = -(2**63) - 1
Run = tuple[list[str], str]
"""The turns behind the user's message, and members for a place where the importer keeps what it does not know."""


# --- the cases: what is hostile about a run


def nesting(_: Format) -> Run:
    """A value nested 10,000 levels deep: deeper than is read, so that all versions of Python store the same."""
    return [], f'"note": {DEEP}'


def repeated_keys(_: Format) -> Run:
    return [], '"note": 1, "note": 2'


def large_integers(_: Format) -> Run:
    return [], f'"note": [{LARGE}, {SMALL}]'


def numbers_json_has_not(_: Format) -> Run:
    return [], '"note": [NaN, -Infinity, 1e999]'


def lone_surrogates(form: Format) -> Run:
    return [form.said('"half \\ud83d"')], '"note": {"\\udead": "\\ud800x"}'


def nul_and_ansi(form: Format) -> Run:
    return [form.said('"\\u0000\\u001b[31m\\u202e"')], ""


def unknown_role(form: Format) -> Run:
    return [form.said('"Done."'), form.spoken("oracle")], ""


def orphan_result(form: Format) -> Run:
    return [form.said('"Done."'), form.answer("c9")], ""


def result_before_call(form: Format) -> Run:
    return [form.answer("c1"), form.said(calls=[form.call("c1")])], ""


def call_id_used_twice(form: Format) -> Run:
    return [form.said(calls=[form.call("c1")]), form.answer("c1", '"first"')] * 2, ""


def calls_as_texts(form: Format) -> Run:
    return [form.said(calls=[json.dumps(form.call("c1"))]), form.answer("c1")], ""


def arguments_that_are_no_json(form: Format) -> Run:
    return [form.said(calls=[form.call("c1", '"ls -la {"')]), form.answer("c1")], ""


def arguments_nested_in_a_text(form: Format) -> Run:
    return [form.said(calls=[form.call("c1", json.dumps(f'{{"x": {DEEP}}}'))]), form.answer("c1")], ""


CASES: dict[str, Callable[[Format], Run]] = {
    case.__name__: case
    for case in (
        nesting,
        repeated_keys,
        large_integers,
        numbers_json_has_not,
        lone_surrogates,
        nul_and_ansi,
        unknown_role,
        orphan_result,
        result_before_call,
        call_id_used_twice,
        calls_as_texts,
        arguments_that_are_no_json,
        arguments_nested_in_a_text,
    )
}


# --- the outcomes


@dataclass(frozen=True)
class Kept:
    """The run is a trace that holds `values`, each at its place in the trajectory, and `notes` say what was altered."""

    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Not:
    """The run is refused, with this code and words."""

    code: str
    words: str = ""


Outcome = Kept | Not

TOO_DEEP = Not("record-not-json", "nested too deeply to be read")
UNKNOWN_ROLE = Not("unknown-role", "'oracle'")


def of_json(place: str) -> dict[str, Outcome]:
    """Return what becomes of unusual JSON in a member of which no importer knows, kept at `place`."""
    not_json = ("NaN is not JSON: kept as text", "-Infinity is not JSON: kept as text")
    return {
        "nesting": TOO_DEEP,
        "repeated_keys": Kept({place: 2}, ("duplicate key 'note': the last value was kept",)),
        "large_integers": Kept({place: [LARGE, SMALL]}),
        "numbers_json_has_not": Kept(
            {place: ["NaN", "-Infinity", "1e999"]}, (*not_json, "1e999 is beyond a double: kept as text")
        ),
        "lone_surrogates": Kept({place: {"\udead": "\ud800x"}, "steps/1/message": "half \ud83d"}),
        "nul_and_ansi": Kept({"steps/1/message": "\0\x1b[31m\u202e"}),
    }


CALL, RESULT = "steps/1/tool_calls/0/", "steps/1/observation/results/0/"
UNLINKED = "answers to no open call of the step in front of them: left unlinked"

OF_CHAT: dict[str, Outcome] = {
    "unknown_role": UNKNOWN_ROLE,
    "orphan_result": Kept({RESULT + "extra/original_call_id": "c9"}, (UNLINKED,)),
    "result_before_call": Kept(
        {RESULT + "extra/original_call_id": "c1", "steps/2/tool_calls/0/tool_call_id": "c1"},
        (UNLINKED, "answers in front of which no agent spoke: put under an empty system step"),
    ),
    "call_id_used_twice": Kept(
        {
            CALL + "tool_call_id": "c1",
            RESULT + "content": "first",
            "steps/2/tool_calls/0/tool_call_id": "c1#2",
            "steps/2/tool_calls/0/extra/original_id": "c1",
            "steps/2/observation/results/0/source_call_id": "c1#2",
        },
        ("tool call ids used more than once: made unique",),
    ),
    "calls_as_texts": Kept(
        {CALL + "function_name": "look_up", RESULT + "source_call_id": "c1"},
        ("tool calls written as JSON text: read",),
    ),
    "arguments_that_are_no_json": Kept(
        {CALL + "arguments": {"_raw": "ls -la {"}, CALL + "extra/arguments": "ls -la {"},
    ),
    "arguments_nested_in_a_text": Kept(
        {CALL + "arguments": {"_raw": f'{{"x": {DEEP}}}'}, CALL + "extra/arguments": f'{{"x": {DEEP}}}'},
    ),
}
"""What becomes of unusual messages of a chat, whichever file they stand in."""

DAMAGED = "journal-damaged"
LATE = "result of a call that is not in this step: link moved to extra"

TABLE: dict[str, dict[str, Outcome]] = {
    "atif": {
        **of_json("extra/note"),
        "unknown_role": Not("not-atif", "steps/2/source: must be one of"),
        "orphan_result": Kept(
            {"steps/2/observation/results/0/extra/original_call_id": "c9"}, (f"steps/3/observation/1: {LATE}",)
        ),
        "result_before_call": Kept({RESULT + "extra/original_call_id": "c1"}, (f"steps/2/observation/1: {LATE}",)),
        # unique within a step is all that ATIF asks for
        "call_id_used_twice": Kept({CALL + "tool_call_id": "c1", "steps/2/tool_calls/0/tool_call_id": "c1"}),
        "calls_as_texts": Kept(
            {"steps/1/extra/original_tool_calls": [Atif().call("c1")]},
            (
                "steps/2: tool_calls of the wrong kind moved to extra",
                f"steps/2/observation/1: {LATE}",
            ),
        ),
        "arguments_that_are_no_json": Kept(
            {CALL + "arguments": {"_raw": "ls -la {"}},
            ("steps/2/tool_calls/1: arguments that are no object read as one",),
        ),
        "arguments_nested_in_a_text": Kept(
            {CALL + "arguments": {"_raw": f'{{"x": {DEEP}}}'}},
            ("steps/2/tool_calls/1: arguments that are no object read as one",),
        ),
    },
    "openai-chat": of_json("extra/record/note") | OF_CHAT,
    "journal": {
        **of_json("steps/0/extra/note"),
        "nesting": Not(DAMAGED, "nested too deeply to be read"),
        "unknown_role": Not(DAMAGED, "source: must be one of"),
        "orphan_result": Not(DAMAGED, "'c9' is no call of this step"),
        "result_before_call": Not(DAMAGED, "an observation follows no step of the agent"),
        "call_id_used_twice": Kept({CALL + "tool_call_id": "c1", "steps/2/tool_calls/0/tool_call_id": "c1"}),
        "calls_as_texts": Not(DAMAGED, "must be an object"),
        "arguments_that_are_no_json": Not(DAMAGED, "arguments: must be an object"),
        "arguments_nested_in_a_text": Not(DAMAGED, "arguments: must be an object"),
    },
    "tau-bench": of_json("extra/record/note") | OF_CHAT,
    "tau2": of_json("extra/simulation/note") | OF_CHAT,
    "mini-swe-agent": of_json("extra/note") | OF_CHAT,
    "swe-agent": of_json("extra/note") | OF_CHAT,
    "inspect": of_json("extra/sample/note") | OF_CHAT,
    "verifiers": of_json("extra/record/info/note") | OF_CHAT,
    "nemo-gym": {
        **of_json("extra/record/note"),
        **OF_CHAT,
        "calls_as_texts": Not("record-unfit", "is an item of the type 'None', which is not read"),
    },
    "thinkingbox": {
        **of_json("extra/record/note"),
        **OF_CHAT,
        "calls_as_texts": Not("record-unfit", "is no list of calls"),
    },
    "claude-code": {
        **of_json("steps/0/extra/note"),
        **OF_CHAT,
        "nesting": Kept({"steps/0/message": "Done."}, ("lines that are no record, left out: 1 (nested too deeply)",)),
        "calls_as_texts": Kept(
            {"steps/1/extra/original_content": [FORMATS["claude-code"].call("c1")], RESULT + "content": "on its way"},
            (UNLINKED,),
        ),
    },
    "codex": {
        **of_json("extra/session_meta/note"),
        **OF_CHAT,
        "nesting": Kept({"steps/1/message": "Done."}, ("lines that are no record, left out: 1 (nested too deeply)",)),
        "calls_as_texts": Kept(
            {RESULT + "extra/original_call_id": "c1"},
            (
                "lines that are no record, left out: 3 (no record)",
                UNLINKED,
                "answers in front of which no agent spoke: put under an empty system step",
            ),
        ),
    },
    "otel-genai": of_json("extra/calls/0/note") | OF_CHAT,
    "openhands": {
        **of_json("extra/record/note"),
        **OF_CHAT,
        "orphan_result": Kept(
            {"steps/2/observation/results/0/extra/original_call_id": "c9"},
            ("answers to calls that are not there: put under system steps of their own",),
        ),
        "result_before_call": Kept(
            {RESULT + "source_call_id": "c1"},
            ("answers that stood in front of their call, or behind what followed it: put behind the call",),
        ),
    },
}


# --- the tests


def read(inbox: Inbox, form: Format, run: str) -> Read:
    """Read a run between two ordinary ones."""
    ordinary = [form.run(number, [form.said('"Done."')]) for number in (0, 2)]
    for name, data in form.files([ordinary[0], run, ordinary[1]]).items():
        inbox.write(name, data)
    return inbox.read()


def notes(item: Imported) -> list[str]:
    return item.source.get("repairs", [])


def at(value: Any, place: str) -> Any:
    """Return what stands at a place such as `steps/0/message`."""
    return reduce(lambda inner, name: inner[int(name) if isinstance(inner, list) else name], place.split("/"), value)


ROWS = [(name, case) for name, row in TABLE.items() for case in row]


@pytest.mark.parametrize(("name", "case"), ROWS, ids=[f"{name}-{case}" for name, case in ROWS])
def test_hostile(name: str, case: str, inbox: Inbox) -> None:
    form, outcome = FORMATS[name], TABLE[name][case]
    turns, members = CASES[case](form)
    run = form.run(1, turns or [form.said('"Done."')], members)
    found = read(inbox, form, run)
    if isinstance(outcome, Not):
        [refused] = found.refused
        assert (refused.code, len(found.traces)) == (outcome.code, 2)
        assert outcome.words in refused.message
        assert refused.excerpt.strip() == run.encode().strip()
        assert refused.raw_digest in (digest.sha256(run.encode()), digest.sha256(run.encode().strip()))
        return
    assert not found.refused, found.refused
    before, trace, after = found.traces
    assert {trace.source["importer"] for trace in found.traces} == {name}
    stored = digest.load_canonical(trace.trajectory_bytes)
    assert {place: at(stored, place) for place in outcome.values} == outcome.values
    assert [note for note in notes(trace) if note not in notes(before)] == list(outcome.notes)
    assert notes(before) == notes(after)


def test_the_table_names_every_importer_and_every_case() -> None:
    assert sorted(TABLE) == sorted(FORMATS) == sorted(detect.IMPORTERS.names())
    assert {name: sorted(row) for name, row in TABLE.items()} == dict.fromkeys(TABLE, sorted(CASES))
