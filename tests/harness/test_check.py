"""Everything that is wrong or uncertain about harness versions."""

import dataclasses
import json

import pytest

from tracemark.findings import CODES, Severity
from tracemark.harness import snapshot
from tracemark.harness.check import check, check_folder, together


def findings(desk):
    return [(found.code, found.where) for found in check_folder(desk.path)]


def with_style(desk, members, *, variables="{}"):
    desk.replace("harness.yaml", "text: Be brief.", f"text: {json.dumps(members)}, variables: {variables}")


def test_a_sound_harness_has_no_findings(desk):
    assert check(desk.load()) == check_folder(desk.path) == []


def test_a_harness_without_any_part_is_a_finding(tmp_path):
    manifest = tmp_path / "harness.yaml"
    manifest.write_text("format: tracemark/harness/1\n")
    (found,) = check_folder(tmp_path)
    assert (found.code, found.where, found.severity) == ("harness-empty", "harness.yaml", Severity.WARNING)
    manifest.write_text("format: tracemark/harness/1\nruntime: {limits: {steps: 3}}\n")
    assert check_folder(tmp_path) == []


def test_a_snapshot_is_checked_like_its_folder(desk):
    desk.replace("logic/handlers.py", "def redact", "def hide")
    desk.replace("logic/helper.py", "return id", "return eval(id)")
    harness = desk.load()
    assert check(snapshot.read(snapshot.write(harness))) == check(harness) != []


def test_a_folder_that_cannot_be_read_gives_its_problems(desk):
    desk.remove("logic/reply.py")
    desk.write("notes.md", "x")
    assert findings(desk) == [("manifest-file-missing", "harness.yaml:15:3"), ("unassigned-file", "notes.md")]


def test_an_entry_in_a_file_without_a_name_is_a_problem_with_its_place(desk):
    desk.write("__init__.py", "def redact(text): return text\n")
    desk.replace("harness.yaml", "logic/handlers.py:redact", "__init__.py:redact")
    (found,) = [problem for problem in check_folder(desk.path) if problem.severity is Severity.ERROR]
    assert (found.code, found.where.startswith("harness.yaml:")) == ("manifest-invalid", True)
    assert found.hint


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
        ("jinja", "{{ tone | truncate(9) }}{% if 2 is even %}{{ ('x', 1)[0] }}{% endif %}", "{}", ["tone"]),
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


def test_nothing_that_a_template_would_compute_is_computed(desk):
    text = "{{ 10 ** 10 ** 9 }}{{ 'x' * 10 ** 12 }}{{ 1.5 | round(10 ** 9, 'ceil') }}{{ tone }}"
    with_style(desk, text)
    desk.replace("harness.yaml", "variables: {}", "syntax: jinja, variables: {tone: run}")
    assert check_folder(desk.path) == []


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
        ("def redact(): pass", "redact.__call__"),
        ("def redact(): pass\nredact.hard = redact", "redact.hard"),
        ("class A:\n    def redact(self): pass\nA.redact.hard = print", "A.redact.hard"),
        ("@some\ndef redact(): pass", "redact.hard"),
        ("def redact(): pass\nif 1:\n    redact = object()", "redact.hard"),
        ("class A(metaclass=M): pass", "A.redact"),
        ("class A:\n    class B:\n        def redact(self): pass", "A.B.redact"),
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
        ("def redact(): pass", "redact.hard"),
        ("async def redact(): pass", "redact.hard"),
        ("def redact():\n    hard = 1", "redact.hard"),
        ("def __getattr__(name): pass\ndef redact(): pass", "redact.hard"),
        ("class A:\n    def redact(self): pass", "A.redact.hard"),
        ("class A:\n    class B: pass", "A.B.redact"),
    ],
)
def test_an_entry_that_is_not_defined_is_an_error(desk, text, attribute):
    desk.write("logic/mask.py", text)
    desk.replace("harness.yaml", "logic/handlers.py:redact", f"logic/mask.py:{attribute}")
    (found,) = check_folder(desk.path)
    assert (found.code, found.where) == ("entry-missing", "harness.yaml")
    assert "observation_handlers 'redact'" in found.message


def test_a_schema_from_a_signature_that_gives_none_is_an_error(desk):
    desk.replace("harness.yaml", "schema: tools/look_up.json, ", "")
    desk.replace("logic/tools.py", "look_up(id)", "look_up(*ids)")
    (found,) = [one for one in check_folder(desk.path) if one.severity is Severity.ERROR]
    assert (found.code, "*ids" in found.message) == ("schema-invalid", True)


def alike(*versions):
    found = together([version.load() for version in versions])
    assert {(CODES[one.code].severity, one.severity) for one in found} <= {(Severity.WARNING, Severity.WARNING)}
    return [one for one in found if one.code == "siblings-alike"]


@pytest.mark.parametrize(
    ("file", "old", "new", "component"),
    [
        ("logic/handlers.py", "return text\n", "return text.strip()\n", "observation_handlers"),
        ("logic/tools.py", "return 1", "return 2", "tool_bindings"),
        ("logic/reply.py", "\n", "\n\n", "runtime"),
    ],
)
def test_siblings_that_no_content_can_tell_apart_are_a_warning(desk, other, file, old, new, component):
    other.write(file, (other.path / file).read_text().replace(old, new, 1))
    (found,) = alike(desk, other)
    assert f"they differ only in {component}, " in found.message
    assert all(version.load().fingerprint[:16] in found.where for version in (desk, other))


def test_siblings_that_content_can_tell_apart_or_that_are_the_same_are_none(desk, other):
    assert alike(desk, other) == []
    other.replace("prompts/system.md", "exact", "kind")
    assert alike(desk, other) == []
    other.replace("logic/handlers.py", "return text\n", "return text.strip()\n")
    assert alike(desk, other) == []


def test_many_that_are_alike_are_one_finding(desk, other):
    versions = [desk.load()]
    for number in range(3):
        other.write("logic/handlers.py", (other.path / "logic/handlers.py").read_text() + f"# {number}\n")
        versions.append(other.load())
    (found,) = [one for one in together(versions) if one.code == "siblings-alike"]
    assert all(version.fingerprint[:16] in found.where for version in versions)


def test_the_snapshot_of_an_edited_folder_is_said_to_be_what_it_was(desk):
    before = snapshot.read(snapshot.write(desk.load()))
    desk.replace("logic/handlers.py", "return text\n", "return text.strip()\n")
    (found,) = together([desk.load(), before])
    assert "(folder, " in found.where
    assert "(snapshot, " in found.where
    assert f"the snapshot is what {desk.load().name!r} was before it was edited" in found.message


def test_two_versions_that_answer_to_one_name_are_a_warning(desk, other):
    other.replace("prompts/system.md", "exact", "kind")
    other.replace("harness.yaml", "name: desk", "name: third")
    assert together([desk.load(), other.load()]) == []
    for label in (desk.load().name, desk.path.name):
        named = dataclasses.replace(other.load(), name=label)
        (found,) = together([desk.load(), named])
        assert (found.code, found.severity) == ("name-shared", Severity.WARNING)
        assert found.where == f"harness_versions/{desk.path.name}, harness_versions/{other.path.name}"
        assert repr(label) in found.message
    # a folder and its own earlier snapshot share their name rightly
    assert together([desk.load(), dataclasses.replace(other.load(), name=desk.load().name, folder=None)]) == []


def test_every_finding_is_in_the_table_with_a_next_step(desk):
    desk.write("tools/refund.json", '{"name": "refund", "parameters": {"type": 5}}')
    desk.write("notes.md", "x")
    desk.replace("logic/handlers.py", "def redact", "def hide")
    found = check_folder(desk.path)
    assert {finding.code for finding in found} == {"schema-invalid", "unassigned-file", "entry-missing"}
    assert all(finding.severity is CODES[finding.code].severity and finding.hint for finding in found)


@pytest.fixture
def declare(desk):
    """Return a function that gives a handler a template, and what is found then."""

    def declaring(handler, template):
        desk.replace("harness.yaml", f"name: {handler}, ", f"name: {handler}, template: '{template}', ")
        found = findings(desk)
        desk.replace("harness.yaml", f"template: '{template}', ", "")
        return found

    return declaring


def test_a_handler_template_that_is_not_rendered_is_a_finding_that_says_why(declare):
    where = "harness.yaml: handler 'redact'"
    assert declare("redact", "<seen>{{ output | trim }}</seen>") == []
    assert declare("redact", "{{ output * 2 }}") == [("template-not-rendered", where)]


def test_a_template_of_another_than_the_last_handler_is_a_finding(declare):
    assert declare("cut", "{{ output }}") == [("template-not-rendered", "harness.yaml: handler 'cut'")]
