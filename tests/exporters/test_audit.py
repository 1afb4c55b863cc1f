"""The audit of an export: nothing that it says of itself is believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.exporters import manifest, sft
from tracemark.exporters.audit import Found, Present, audit, difference
from tracemark.exporters.choice import choose
from tracemark.exporters.manifest import Origin
from tracemark.exporters.select import Facts, Judged, Terms, judge
from tracemark.ledger.params import Caps, Policy
from tracemark.model.export import File

A, B = ("tm1:" + letter * 64 for letter in "ab")
TOOLS: dict[str, list[dict[str, Any]]] = {A: [{"name": "grep", "parameters": {"properties": {}, "type": "object"}}]}
TERMS = Terms(accepted=frozenset({A}), caps=Caps(minimum=1, tool_calls=None))


def stored(number: int) -> tuple[str, bytes]:
    steps = [
        {"step_id": 1, "source": "user", "message": f"question {number}"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "looking",
            "tool_calls": [{"tool_call_id": "c", "function_name": "grep", "arguments": {"n": number}}],
            "observation": {"results": [{"source_call_id": "c", "content": "found"}]},
        },
        {"step_id": 3, "source": "agent", "message": "answer"},
    ]
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": steps}
    line = {
        "format": "tracemark/trace/1",
        "harness": {},
        "outcome": {"status": "success"},
        "run": {"task": f"t-{number}"},
        "source": {"raw": "f" * 64},
        "trajectory": document,
    }
    return digest.of(document), digest.canonical(line)


@dataclass
class Export:
    """An export of three traces, and what it is held against."""

    folder: Path
    store: dict[str, Found]
    present: Present = field(init=False)

    def __post_init__(self) -> None:
        self.present = Present(terms=TERMS, fetch=self.store.get, tools=TOOLS.get, fits=lambda _: [A])

    def found(self) -> list[tuple[str, str]]:
        return [(found.code, found.where) for found in audit(self.folder, self.present).differences]

    def notes(self) -> list[tuple[str, str]]:
        return [(found.code, found.message) for found in audit(self.folder, self.present).notes]

    def under(self, **changes: Any) -> None:
        self.present = replace(self.present, terms=replace(self.present.terms, **changes))

    def change(self, name: str, **changes: Any) -> None:
        held = self.store[name]
        self.store[name] = replace(held, facts=held.facts._replace(**changes))

    def edit(self, name: str, edit: Callable[[bytes], bytes]) -> None:
        path = self.folder / name
        path.write_bytes(edit(path.read_bytes()))


@pytest.fixture
def export(tmp_path: Path) -> Export:
    lines = dict(stored(number) for number in range(3))
    store = {
        name: Found(line, Facts(id=name, fingerprint=A, status="success", tool_calls=1, evidence="recorded", task=name))
        for name, line in lines.items()
    }
    terms = TERMS
    judged = Judged()
    for held in store.values():
        judged.note(held.facts, judge(held.facts, terms, list, lambda: None))
    selected = choose(judged, terms.caps)
    rendered = [
        sft.render(digest.load_canonical(lines[name])["trajectory"], store[name].facts, TOOLS[A]).line
        for name in selected.ids
    ]
    rows = b"".join(line or b"" for line in rendered)
    data = {sft.FILE: rows, manifest.CARD: manifest.card(digest.sha256(rows))}
    files = {name: File(sha256=digest.sha256(content), bytes=len(content)) for name, content in data.items()}
    origin = Origin(fingerprint=A, label="a", components={}, corpus="c" * 64, objects={})
    data[manifest.NAME] = manifest.encode(manifest.build(selected, terms, origin, files))
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
    return Export(tmp_path, store)


def first(export: Export) -> str:
    return min(export.store)


def test_an_export_that_the_store_would_give_again_has_no_findings(export: Export) -> None:
    assert export.found() == []


def test_what_was_found_to_be_so_is_said_with_its_number(export: Export) -> None:
    assert audit(export.folder, export.present).proved() == (
        "rows that are, byte for byte, what the store gives now: 3 of 3",
        "rows whose trace is stored, and its bytes give its id: 3 of 3",
        "rows whose trace an export made now may take (limits of number aside): 3 of 3",
        "files with the SHA-256 that the manifest states: 2 of 2",
        "the manifest is the one that the store records, and its counts add up",
    )


def test_nothing_is_called_proved_of_a_row_or_file_that_has_a_difference(export: Export) -> None:
    one, two, three = sorted(export.store)
    export.change(one, retracted=True)
    held = export.store[two]
    export.store[two] = replace(held, line=held.line.replace(b"answer", b"another"))
    del export.store[three]
    export.edit(manifest.CARD, lambda data: data + b"more")
    export.edit(manifest.NAME, lambda data: data.replace(b'"policy": "unique"', b'"policy": "recorded"'))
    audited = audit(export.folder, export.present)
    assert (audited.rows, audited.ids, audited.usable, audited.files) == (1, 1, 1, 1)
    assert not any("manifest is the one" in sentence for sentence in audited.proved())
    (export.folder / manifest.NAME).unlink()
    assert audit(export.folder, export.present).proved() == ()


def same_as_now(export: Export) -> str:
    """Return what an audit says of the rows that are what the store gives now."""
    (said,) = [text for text in audit(export.folder, export.present).proved() if text.startswith("rows that are")]
    return said.removeprefix("rows that are, byte for byte, what the store gives now: ")


def test_a_row_of_damaged_bytes_is_not_called_proved_though_it_is_rendered_alike(export: Export) -> None:
    name = first(export)
    held = export.store[name]
    export.store[name] = replace(held, line=held.line.replace(b'"version":"1"', b'"version":"2"'))
    assert export.found() == [("export-trace-damaged", "sft.jsonl:1")]
    assert same_as_now(export) == "2 of 3"


def test_rows_in_the_place_of_others_are_not_called_proved_though_each_is_what_its_trace_gives(export: Export) -> None:
    def swap(data: bytes) -> bytes:
        one, two, three = data.splitlines(keepends=True)
        return two + one + three

    export.edit(sft.FILE, swap)
    assert export.found() == [
        ("export-file-differs", "sft.jsonl"),
        ("export-rows-differ", "sft.jsonl:1"),
        ("export-rows-differ", "sft.jsonl:2"),
    ]
    assert same_as_now(export) == "1 of 3"


def test_a_trace_that_is_gone_is_named(export: Export) -> None:
    del export.store[first(export)]
    assert export.found() == [("export-trace-missing", "sft.jsonl:1")]


def test_bytes_that_do_not_give_the_id_are_named(export: Export) -> None:
    name = first(export)
    held = export.store[name]
    export.store[name] = replace(held, line=held.line.replace(b"answer", b"another"))
    assert export.found() == [("export-trace-damaged", "sft.jsonl:1"), ("export-row-differs", "sft.jsonl:1")]
    export.store[name] = replace(held, line=b"{}")
    assert export.found() == [("export-trace-damaged", "sft.jsonl:1")]


def test_an_export_of_a_harness_that_is_no_longer_the_accepted_one_is_named_with_its_rows(export: Export) -> None:
    export.under(accepted=frozenset({B}))
    assert export.found() == [("export-other-harness", where) for where in ("manifest.json", *rows(1, 2, 3))]


def rows(*numbers: int) -> list[str]:
    return [f"sft.jsonl:{number}" for number in numbers]


def test_an_equivalent_harness_is_no_difference(export: Export) -> None:
    export.under(accepted=frozenset({A, B}))
    assert export.found() == []


@pytest.mark.parametrize(
    ("known", "terms", "reason"),
    [
        ({"mixed": True}, {}, "mixed"),
        ({"model": "n"}, {"models": frozenset({"m"})}, "other-model"),
        ({"evidence": "claimed", "corroborated": 0}, {}, "evidence"),
        ({"evidence": "corroborated"}, {"policy": Policy.RECORDED}, "evidence"),
        ({}, {"policy": Policy.RECORDED, "incomplete": frozenset({A})}, "evidence"),
        ({"status": "failure"}, {}, "outcome"),
        ({}, {"evaluation": frozenset({"t-eval"})}, "evaluation-task"),
        ({"untrainable": "rendered"}, {}, "not-trainable (rendered)"),
        ({"tool_calls": 99}, {"caps": Caps(minimum=1)}, "tool-calls"),
    ],
)
def test_a_row_that_would_be_left_out_now_is_named_with_the_reason(
    export: Export, known: dict[str, Any], terms: dict[str, Any], reason: str
) -> None:
    one, *others = sorted(export.store)
    for name in others:
        export.change(name, model="m", tool_calls=2)
    export.change(one, task="t-eval", **known)
    export.under(**terms)
    found = [found for found in audit(export.folder, export.present).differences if found.code == "export-row-excluded"]
    assert (found[0].where, found[0].message) == ("sft.jsonl:1", f"{one} would be left out now: {reason}")
    assert len(found) == (3 if "incomplete" in terms else 1)


def test_a_sibling_that_fits_as_well_takes_a_row_out_of_a_unique_export(export: Export) -> None:
    export.change(first(export), evidence="corroborated", corroborated=1)
    assert export.found() == []
    export.present = replace(export.present, fits=lambda _: [A, B])
    assert export.found() == [("export-row-excluded", "sft.jsonl:1")]
    assert audit(export.folder, export.present).usable == 2


def test_limits_of_number_and_other_parameters_that_changed_are_told_and_no_difference(export: Export) -> None:
    assert export.notes() == []
    export.under(caps=Caps(per_task=2, total=1, minimum=1, tool_calls=None), policy=Policy.CLAIMED)
    assert export.found() == []
    assert export.notes() == [
        ("export-terms-differ", 'export.evidence was "unique" when it was made, and is "claimed" now'),
        ("export-terms-differ", "per_task was 1 when it was made, and is 2 now"),
        ("export-terms-differ", "total was 100 when it was made, and is 1 now"),
    ]
    assert (
        "the manifest is the one that the store records, and its counts add up"
        in audit(export.folder, export.present).proved()
    )


def test_a_trace_that_cannot_be_read_is_still_judged_by_what_is_known_of_it(export: Export) -> None:
    name = first(export)
    export.store[name] = replace(export.store[name], line=b"{}")
    export.change(name, status="failure")
    assert export.found() == [("export-trace-damaged", "sft.jsonl:1"), ("export-row-excluded", "sft.jsonl:1")]


def test_a_row_whose_trace_is_now_of_another_harness_is_named(export: Export) -> None:
    export.change(first(export), fingerprint=B)
    found = export.found()
    assert ("export-other-harness", "sft.jsonl:1") in found
    assert all(where == "sft.jsonl:1" for _, where in found)


def test_a_trace_retracted_or_contested_since_is_named(export: Export) -> None:
    one, two, _ = sorted(export.store)
    export.change(one, retracted=True)
    export.change(two, contested=True)
    assert export.found() == [("export-trace-retracted", "sft.jsonl:1"), ("export-trace-contested", "sft.jsonl:2")]


def test_a_trace_regraded_since_is_named_with_the_column(export: Export) -> None:
    export.change(first(export), grader="another")
    (found,) = audit(export.folder, export.present).differences
    assert found.code == "export-row-differs"
    assert found.message == 'tracemark_grader is null instead of "another"'


def test_an_edited_row_is_named_with_the_column_and_the_place(export: Export) -> None:
    export.edit(sft.FILE, lambda data: data.replace(b"answer", b"answQr", 1))
    found = audit(export.folder, export.present).differences
    assert [one.code for one in found] == ["export-file-differs", "export-row-differs"]
    assert found[1].message == "messages[3].content differs from character 4: 'Qr' instead of 'er'"


def test_other_bytes_for_the_same_values_are_named(export: Export) -> None:
    export.edit(sft.FILE, lambda data: data.replace(b'{"messages"', b'{ "messages"', 1))
    assert export.found() == [("export-file-differs", "sft.jsonl"), ("export-row-differs", "sft.jsonl:1")]


def test_a_member_in_another_order_is_named_with_both_orders(export: Export) -> None:
    export.edit(sft.FILE, lambda data: data.replace(b'"role":"user","content":"question 0"', swapped(b"question 0"), 1))
    found = audit(export.folder, export.present).differences
    assert [one.code for one in found] == ["export-file-differs", "export-row-differs"]
    assert found[1].message == "messages[0] has its members as content, role instead of role, content"


def test_a_tool_whose_members_stand_in_another_order_is_named_with_both_orders(export: Export) -> None:
    assert export.found() == []
    (tool,) = TOOLS[A]
    reordered = dict(reversed(tool["parameters"].items()))
    export.present = replace(export.present, tools=lambda _: [{**tool, "parameters": reordered}])
    found = audit(export.folder, export.present).differences
    assert [one.code for one in found] == ["export-row-differs"] * 3
    assert found[0].message == (
        "tools[0].function.parameters has its members as properties, type instead of type, properties"
    )


def swapped(text: bytes) -> bytes:
    return b'"content":"%s","role":"user"' % text


def test_a_row_removed_or_added_is_named(export: Export) -> None:
    whole = (export.folder / sft.FILE).read_bytes()
    lines = whole.splitlines(keepends=True)
    export.edit(sft.FILE, lambda _: b"".join(lines[:2]))
    assert export.found() == [("export-file-differs", "sft.jsonl"), ("export-rows-differ", "sft.jsonl:3")]
    export.edit(sft.FILE, lambda _: whole + lines[0])
    assert export.found() == [("export-file-differs", "sft.jsonl"), ("export-rows-differ", "sft.jsonl:4")]


@pytest.mark.parametrize("line", [b"{\n", b"[]\n", b"{}\n", b'{"tracemark_trace_id": 5}\n', b"\xff\n", b"\n"])
def test_a_line_that_is_no_row_is_named(export: Export, line: bytes) -> None:
    export.edit(sft.FILE, lambda data: line + data.split(b"\n", 1)[1])
    assert export.found() == [("export-file-differs", "sft.jsonl"), ("export-row-unreadable", "sft.jsonl:1")]


def test_an_edited_manifest_is_named(export: Export) -> None:
    export.edit(manifest.NAME, lambda data: data.replace(b'"label": "a"', b'"label": "b"'))
    assert export.found() == [("export-manifest-edited", "manifest.json")]


def test_counts_edited_together_with_the_digest_do_not_add_up(export: Export) -> None:
    made, _ = manifest.decode((export.folder / manifest.NAME).read_bytes())
    counts = made.counts.model_copy(update={"traces": 9})
    export.edit(manifest.NAME, lambda _: manifest.encode(made.model_copy(update={"counts": counts})))
    assert export.found() == [("export-rows-differ", "manifest.json")]


def test_rows_of_models_that_do_not_add_up_are_named(export: Export) -> None:
    made, _ = manifest.decode((export.folder / manifest.NAME).read_bytes())
    counts = made.counts.model_copy(update={"models": {"m": 7}})
    export.edit(manifest.NAME, lambda _: manifest.encode(made.model_copy(update={"counts": counts})))
    assert export.found() == [("export-rows-differ", "manifest.json")]


@pytest.mark.parametrize("again", [b'{"policy": "recorded",', b'{"digest": "0",', b"{ "])
def test_a_manifest_of_equal_values_in_other_bytes_is_named(export: Export, again: bytes) -> None:
    export.edit(manifest.NAME, lambda data: data.replace(b"{", again, 1))
    assert export.found() == [("export-manifest-edited", "manifest.json")]


def test_a_manifest_that_the_store_does_not_record_is_named(export: Export) -> None:
    made, _ = manifest.decode((export.folder / manifest.NAME).read_bytes())
    recorded = frozenset({manifest.statement(made)["manifest"]})
    export.present = replace(export.present, recorded=recorded)
    assert export.found() == []
    export.present = replace(export.present, recorded=frozenset())
    assert export.found() == [("export-not-recorded", "manifest.json")]
    export.edit(manifest.NAME, lambda data: data.replace(b'"label": "a"', b'"label": "b"'))
    assert export.found() == [("export-manifest-edited", "manifest.json")]


def test_a_file_that_is_missing_or_not_listed_is_named(export: Export) -> None:
    (export.folder / manifest.CARD).unlink()
    (export.folder / "more.jsonl").write_bytes(b"{}\n")
    (export.folder / ".gitignore").write_bytes(b"")
    assert export.found() == [("export-file-differs", "README.md"), ("export-file-differs", "more.jsonl")]
    assert export.notes() == [("export-file-hidden", "no export writes it, and nothing is known of it")]


def test_a_missing_data_file_is_one_finding(export: Export) -> None:
    (export.folder / sft.FILE).unlink()
    assert export.found() == [("export-file-differs", "sft.jsonl")]


def test_a_name_in_the_manifest_is_never_followed_out_of_the_folder(export: Export) -> None:
    made, _ = manifest.decode((export.folder / manifest.NAME).read_bytes())
    files = made.files | {"../secret": File(sha256="0" * 64, bytes=1)}
    export.edit(manifest.NAME, lambda _: manifest.encode(made.model_copy(update={"files": files})))
    assert export.found() == [("export-manifest-edited", "manifest.json")]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"nonsense"])
def test_a_folder_without_a_manifest_is_no_export(export: Export, data: bytes | None) -> None:
    path = export.folder / manifest.NAME
    path.unlink() if data is None else path.write_bytes(data)
    assert export.found() == [("export-manifest-unreadable", "manifest.json")]


@pytest.mark.parametrize(
    ("row", "fresh", "words"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "x"}]}, None),
        ({"a": 1}, {"a": 1.0}, "a is 1 instead of 1.0"),
        ({"a": True}, {"a": 1}, "a is true instead of 1"),
        ({"a": None}, {}, "a should not be there"),
        ({}, {"a": None}, "a is missing"),
        ({"a": [1]}, {"a": [1, 2]}, "a[1] is missing"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1] should not be there"),
        ({"a": "abc"}, {"a": "abcd"}, "a differs from character 3: '' instead of 'd'"),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, "a is 1 instead of 2"),
        ({"a": "1"}, {"a": 1}, 'a is "1" instead of 1'),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, "the row has its members as b, a instead of a, b"),
        ({"b": {"d": 1, "c": 1}, "a": 2}, {"b": {"c": 1, "d": 1}, "a": 3}, "a is 2 instead of 3"),
        ([{"d": 1, "c": 1}], [{"c": 1, "d": 1}], "[0] has its members as d, c instead of c, d"),
    ],
)
def test_the_first_difference_is_named(row: Any, fresh: Any, words: str | None) -> None:
    assert difference(row, fresh) == words


def test_a_deep_row_is_compared_without_exhausting_the_stack() -> None:
    row: Any = 1
    for _ in range(5000):
        row = [row]
    assert difference(row, row) is None
