"""What differs between two harnesses, and the texts concerned."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark.harness.diff import Kind, compare


def summary(differences):
    return [(d.component, d.part, d.kind.value, d.members) for d in differences]


def test_equal_harnesses_have_no_difference(desk, other):
    other.replace("harness.yaml", "name: desk", "name: shop")
    assert compare(desk.load(), other.load()) == []


def test_a_changed_helper_shows_in_each_part_that_uses_it(desk, other):
    other.replace("logic/base.py", "LIMIT = 400", "LIMIT = 500")
    found = compare(desk.load(), other.load())
    assert summary(found) == [
        ("observation_handlers", "cut", "changed", ("entry",)),
        ("observation_handlers", "redact", "changed", ("entry",)),
    ]
    assert found[0].text == (
        "--- a/logic/base.py\n+++ b/logic/base.py\n@@ -1,4 +1,4 @@\n-LIMIT = 400\n+LIMIT = 500\n \n \n class Base:"
    )
    assert found[0].texts == found[1].texts


def test_a_changed_prompt_shows_its_text(desk, other):
    other.replace("prompts/system.md", "exact", "kind")
    (found,) = compare(desk.load(), other.load())
    assert (found.component, found.part, found.kind, found.members) == (
        "prompt_templates",
        "system",
        Kind.CHANGED,
        ("text",),
    )
    assert found.text.splitlines()[-2:] == ["-Be exact.", "+Be kind."]


def test_a_changed_member_shows_its_value(desk, other):
    other.replace("harness.yaml", "mutates: true", "mutates: false")
    other.replace("harness.yaml", "steps: 30", "steps: 31")
    tool, limits = compare(desk.load(), other.load())
    assert tool.members == ("mutates",)
    assert '-  "mutates": true\n+  "mutates": false' in tool.text
    assert (limits.component, limits.part) == ("runtime", "limits")
    assert '-  "steps": 30\n+  "steps": 31' in limits.text


def test_a_changed_schema_shows_the_reduced_schemas(desk, other):
    other.replace("tools/look_up.json", "Find an order.", "Find orders.")
    (found,) = compare(desk.load(), other.load())
    assert found.members == ("schema",)
    assert '-  "description": "Find an order."\n+  "description": "Find orders."' in found.text


def test_parts_are_added_and_removed(desk, other):
    other.replace("harness.yaml", "  - {name: redact, entry: 'logic/handlers.py:redact'}\n", "")
    assert summary(compare(desk.load(), other.load())) == [
        ("observation_handlers", "redact", "removed", ("entry", "name", "parameters"))
    ]
    assert summary(compare(other.load(), desk.load())) == [
        ("observation_handlers", "redact", "added", ("entry", "name", "parameters"))
    ]


def test_a_change_of_order_is_told_from_a_change_of_parts(desk, other):
    lines = (other.path / "harness.yaml").read_text().splitlines(keepends=True)
    first, second = (next(line for line in lines if f"{{name: {name}," in line) for name in ("cut", "redact"))
    other.replace("harness.yaml", first + second, second + first)
    (found,) = compare(desk.load(), other.load())
    assert (found.component, found.part, found.kind) == ("observation_handlers", "", Kind.REORDERED)
    assert found.text.splitlines()[2:] == ["@@ -1,2 +1,2 @@", "+redact", " cut", "-redact"]
    other.replace("harness.yaml", "max_characters: 400", "max_characters: 300")
    assert [d.kind for d in compare(desk.load(), other.load())] == [Kind.CHANGED, Kind.REORDERED]


def test_a_renamed_entry_shows_old_and_new(desk, other):
    other.replace("logic/handlers.py", "def redact", "def hide")
    other.replace("harness.yaml", "handlers.py:redact", "handlers.py:hide")
    found = {d.part: d for d in compare(desk.load(), other.load())}
    assert '-  "entry": "logic/handlers.py:redact"\n+  "entry": "logic/handlers.py:hide"' in found["redact"].text


def test_an_unassigned_file_shows_its_text(desk, other):
    other.write("notes.md", "Later.")
    (found,) = compare(desk.load(), other.load())
    assert (found.component, found.part, found.kind, found.members) == (
        "runtime",
        "unassigned",
        Kind.ADDED,
        ("notes.md",),
    )
    assert found.text.splitlines()[3:] == ["+Later.", "\\ no line feed at the end"]


def test_a_line_feed_at_the_end_is_a_difference_that_shows(desk, other):
    other.write("prompts/system.md", "You serve {shop} on {day}.\nBe exact.")
    (found,) = compare(desk.load(), other.load())
    assert found.text.splitlines()[-3:] == ["-Be exact.", "+Be exact.", "\\ no line feed at the end"]


def test_bytes_that_are_no_text_are_named(desk, other):
    desk.write("logo.bin", b"\xff\xfe")
    other.write("logo.bin", b"\xff\xfd")
    (found,) = compare(desk.load(), other.load())
    assert found.text.endswith("(not UTF-8: the bytes differ)")


def test_control_characters_are_left_to_the_printer(desk, other):
    other.replace("prompts/system.md", "exact", "\x1b[31mexact")
    assert "+Be \x1b[31mexact." in compare(desk.load(), other.load())[0].text


def test_a_changed_include_shows_its_text(desk, other):
    for folder, rule in ((desk, "one"), (other, "two")):
        folder.replace("harness.yaml", "text: Be brief.", "text: '{% include \"rules.j2\" %}', syntax: jinja")
        folder.write("rules.j2", f"Rule {rule}.\n")
    (found,) = compare(desk.load(), other.load())
    assert (found.part, found.members) == ("style", ("includes",))
    assert "-Rule one.\n+Rule two." in found.text


def test_a_difference_is_plain_data(desk, other):
    other.replace("prompts/system.md", "exact", "kind")
    (found,) = compare(desk.load(), other.load())
    data = found.as_json()
    assert list(data) == ["component", "part", "kind", "members", "texts"]
    assert json.loads(json.dumps(data)) == data


EDITS = [
    ("prompts/system.md", "exact", "kind"),
    ("logic/base.py", "LIMIT = 400", "LIMIT = 500"),
    ("harness.yaml", "steps: 30", "steps: 31"),
    ("harness.yaml", "mutates: true", "mutates: false"),
    ("harness.yaml", "  - {name: redact, entry: 'logic/handlers.py:redact'}\n", ""),
    ("harness.yaml", "runtime:\n", "runtime:\n  offered: subset\n"),
    ("logic/helper.py", "return id", "return  id"),
]


@settings(max_examples=20)
@given(st.sets(st.sampled_from(EDITS)), st.sets(st.sampled_from(EDITS)))
def test_there_is_a_difference_exactly_when_the_fingerprints_differ(make_desk, tmp_path_factory, one, other):
    pair = []
    for edits in (one, other):
        folder = make_desk(tmp_path_factory.mktemp("desk"))
        for edit in sorted(edits):
            folder.replace(*edit)
        pair.append(folder.load())
    forth, back = compare(*pair), compare(*reversed(pair))
    assert bool(forth) == (pair[0].fingerprint != pair[1].fingerprint)
    assert {(d.component, d.part) for d in forth} == {(d.component, d.part) for d in back}
    assert all(d.texts for d in forth)


@pytest.mark.parametrize("kind", list(Kind))
def test_kinds_are_words(kind):
    assert kind.value == kind.name.lower()
