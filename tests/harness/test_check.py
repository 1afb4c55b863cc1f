"""Everything that is wrong or uncertain about harness versions."""

import json

import pytest

from tracemark.findings import CODES, Severity
from tracemark.harness import snapshot
from tracemark.harness.check import check, check_folder, siblings


def findings(desk):
    return [(found.code, found.where) for found in check_folder(desk.path)]


def with_style(desk, members, *, variables="{}"):
    desk.replace("harness.yaml", "text: Be brief.", f"text: {json.dumps(members)}, variables: {variables}")


def test_a_sound_harness_has_no_findings(desk):
    assert check(desk.load()) == check_folder(desk.path) == []


def test_a_snapshot_is_checked_like_its_folder(desk):
    desk.replace("logic/handlers.py", "def redact", "def hide")
    desk.replace("logic/helper.py", "return id", "return eval(id)")
    harness = desk.load()
    assert check(snapshot.read(snapshot.write(harness))) == check(harness) != []


def test_a_folder_that_cannot_be_read_gives_its_problems(desk):
    desk.remove("logic/reply.py")
    desk.write("notes.md", "x")
    assert findings(desk) == [("manifest-file-missing", "harness.yaml:15:3"), ("unassigned-file", "notes.md")]


def test_what_was_uncertain_when_it_was_read_is_repeated(desk):
    desk.replace("logic/helper.py", "return id", "return eval(id)")
    assert findings(desk) == [("closure-incomplete", "logic/helper.py:1")]


@pytest.mark.parametrize("text", ["{", "}", "{day", "{}", "{0}", "{day!}", "{day:{}}"])
def test_a_format_template_that_does_not_parse_is_an_error(desk, text):
    desk.write("prompts/system.md", "{shop} {day} " + text)
    assert findings(desk) == [("template-invalid", "prompts/system.md")]


@pytest.mark.parametrize(
    ("text", "where"),
    [("{{ x", "harness.yaml:7:6"), ("{% if %}", "harness.yaml:7:6"), ("{% nothing %}", "harness.yaml:7:6")],
)
def test_a_jinja_template_that_does_not_parse_is_an_error(desk, text, where):
    desk.replace("harness.yaml", "text: Be brief.", f"syntax: jinja, text: {json.dumps(text)}")
    assert [code for code, _ in findings(desk)] == ["source-unparsable"]


def test_an_unknown_jinja_filter_is_an_error_with_its_line(desk):
    desk.write("prompts/style.j2", "Be\n{{ tone | shout }}")
    desk.replace("harness.yaml", "text: Be brief.", "file: prompts/style.j2, syntax: jinja, variables: {tone: run}")
    assert findings(desk) == [("template-invalid", "prompts/style.j2:2")]


def test_a_template_that_is_no_text_is_an_error(desk):
    desk.write("prompts/system.md", b"\xff{shop} {day}")
    assert findings(desk) == [("template-invalid", "prompts/system.md")]


def test_braces_in_a_literal_prompt_are_only_text(desk):
    with_style(desk, "{ not a variable }")
    assert findings(desk) == []


@pytest.mark.parametrize(
    ("syntax", "text", "declared", "named"),
    [
        ("format", "{tone}", "{}", ["tone"]),
        ("format", "{tone.name} {tone[0]:{width}}", "{tone: run}", ["width"]),
        ("format", "plain {{tone}}", "{tone: run}", ["tone"]),
        ("jinja", "{{ tone }}{% set x = 1 %}{{ x }}", "{}", ["tone"]),
        ("jinja", "{% for a in rows %}{{ a }}{% endfor %}", "{rows: task, a: run}", ["a"]),
        ("literal", "plain", "{tone: run}", ["tone"]),
        ("jinja", "{{ tone }}", "{tone: run}", []),
    ],
)
def test_variables_used_and_declared_are_compared(desk, syntax, text, declared, named):
    desk.replace(
        "harness.yaml", "text: Be brief.", f"syntax: {syntax}, text: {json.dumps(text)}, variables: {declared}"
    )
    found = check_folder(desk.path)
    assert [finding.code for finding in found] == ["template-variable"] * len(named)
    assert all(repr(name) in finding.message for name, finding in zip(named, found, strict=True))


@pytest.mark.parametrize(
    "parameters",
    [{"type": "objekt"}, {"type": "object", "properties": {"id": {"type": 5}}}, {"required": "id"}, {"minimum": "x"}],
)
def test_a_schema_that_is_no_valid_json_schema_is_an_error(desk, parameters):
    desk.write("tools/refund.json", json.dumps({"name": "refund", "parameters": parameters}))
    assert findings(desk) == [("schema-invalid", "tools/refund.json")]


def test_a_tool_without_parameters_is_no_finding(desk):
    desk.write("tools/refund.json", '{"name": "refund"}')
    assert findings(desk) == []


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("def redact(x): return x", "redact"),
        ("async def redact(x): return x", "redact"),
        ("class redact: pass", "redact"),
        ("redact = str.strip", "redact"),
        ("a, (redact, *b) = 1, (2, 3)", "redact"),
        ("redact: object = str", "redact"),
        ("from logic.base import Base as redact", "redact"),
        ("from logic.base import *", "redact"),
        ("if 1:\n    def redact(x): return x", "redact"),
        ("try:\n    import re as redact\nexcept ImportError:\n    redact = None", "redact"),
        ("def __getattr__(name): return str", "redact"),
        ("class A:\n    def redact(self): pass", "A.redact"),
        ("class A:\n    redact = str", "A.redact"),
        ("class A(dict): pass", "A.redact"),
        ("@some\nclass A: pass", "A.redact"),
        ("redact = object()", "redact.anything"),
    ],
)
def test_an_entry_that_is_defined_is_no_finding(desk, text, attribute):
    desk.write("logic/mask.py", text)
    desk.replace("harness.yaml", "logic/handlers.py:redact", f"logic/mask.py:{attribute}")
    assert findings(desk) == []


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("def hide(x): return x", "redact"),
        ("def f():\n    redact = 1", "redact"),
        ("class A:\n    def redact(self): pass", "redact"),
        ("class A: pass", "A.redact"),
        ("x = lambda: (redact := 1)", "redact"),
        ("print(redact)", "redact"),
    ],
)
def test_an_entry_that_is_not_defined_is_an_error(desk, text, attribute):
    desk.write("logic/mask.py", text)
    desk.replace("harness.yaml", "logic/handlers.py:redact", f"logic/mask.py:{attribute}")
    (found,) = check_folder(desk.path)
    assert (found.code, found.where) == ("entry-missing", "harness.yaml")
    assert "observation_handlers 'redact'" in found.message


def test_a_schema_from_an_entry_is_reported_as_not_supported(desk):
    desk.replace("harness.yaml", "schema: tools/look_up.json, ", "")
    assert [code for code, _ in findings(desk)] == ["manifest-unsupported"]


def test_siblings_that_differ_only_in_a_handler_are_a_warning(desk, other):
    other.replace("logic/handlers.py", "return text\n", "return text.strip()\n")
    (found,) = siblings([desk.load(), other.load()])
    assert (found.code, found.severity) == ("siblings-differ-in-handler", Severity.WARNING)


def test_siblings_that_differ_elsewhere_or_nowhere_are_none(desk, other):
    assert siblings([desk.load(), other.load()]) == []
    other.replace("prompts/system.md", "exact", "kind")
    assert siblings([desk.load(), other.load()]) == []
    other.replace("logic/handlers.py", "return text\n", "return text.strip()\n")
    assert siblings([desk.load(), other.load()]) == []


def test_every_finding_is_in_the_table_with_a_next_step(desk):
    desk.write("tools/refund.json", '{"name": "refund", "parameters": {"type": 5}}')
    desk.write("notes.md", "x")
    desk.replace("logic/handlers.py", "def redact", "def hide")
    found = check_folder(desk.path)
    assert {finding.code for finding in found} == {"schema-invalid", "unassigned-file", "entry-missing"}
    assert all(finding.severity is CODES[finding.code].severity and finding.hint for finding in found)
