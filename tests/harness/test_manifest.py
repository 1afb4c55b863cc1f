"""Reading harness.yaml: everything wrong with it, with its place."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracemark.findings import CODES, Severity
from tracemark.harness.manifest import read
from tracemark.model.harness import Manifest

HEAD = "format: tracemark/harness/1\n"


def problems(text):
    reading = read(text.encode() if isinstance(text, str) else text)
    assert (reading.manifest is None) == bool(reading.problems)
    return [(problem.code, problem.where.removeprefix("harness.yaml:")) for problem in reading.problems]


def test_the_smallest_manifest_is_its_format():
    assert read(HEAD.encode()).manifest == Manifest(format="tracemark/harness/1")


def test_a_byte_order_mark_is_no_content():
    assert read(b"\xef\xbb\xbf" + HEAD.encode()).manifest is not None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("promt_templates: []\n", "2:1"),
        ("prompt_templates:\n  - {name: a, text: x, fil: y}\n", "3:24"),
        ("prompt_templates:\n  - {name: a, text: x, syntax: jinja, options: {trim: true}}\n", "3:49"),
        ("tool_bindings:\n  a: {schema: a.json, mutate: true}\n", "3:23"),
        ("observation_handlers:\n  - {name: a, entry: 'a.py:f', cap: 3}\n", "3:32"),
        ("runtime: {limit: 3}\n", "2:11"),
        ("runtime: {limits: {step: 3}}\n", "2:20"),
        ("runtime:\n  parser: {entry: 'a.py:f', arguments: {}}\n", "3:29"),
    ],
)
def test_an_unknown_key_is_an_error_in_every_mapping(text, where):
    assert problems(HEAD + text) == [("manifest-unknown-key", where)]


def test_an_unknown_key_near_a_known_one_is_explained():
    (problem,) = read((HEAD + "promt_templates: []\n").encode()).problems
    assert problem.hint is not None
    assert "did you mean `prompt_templates`?" in problem.hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "tool_bindings: {a: {schema: a.json, mutates: no}}\n",
            "`tool_bindings.a.mutates` must be true or false, not 'no'",
            "write true or false",
        ),
        (
            "tool_bindings: {a: []}\n",
            "`tool_bindings.a` must be an object",
            "correct the place named; tracemark harness check says what else is wrong",
        ),
        ("name: 5\n", "`name` must be a text, not 5", "put it in quotation marks"),
    ],
)
def test_a_value_of_another_kind_says_what_to_write(text, message, hint):
    (problem,) = read((HEAD + text).encode()).problems
    assert (problem.message, problem.hint) == (message, hint)


def test_every_problem_is_reported_at_once():
    text = HEAD + (
        "prompt_templates:\n"
        "  - {name: a, fil: x}\n"
        "  - {name: a, text: 5}\n"
        "tool_bindings:\n"
        "  b: {schema: 5}\n"
        "runtime: {limits: {steps: -1}, environment: {A: 5}}\n"
    )
    assert sorted(problems(text)) == [
        ("manifest-duplicate", "4:6"),
        ("manifest-invalid", "4:15"),
        ("manifest-invalid", "6:7"),
        ("manifest-invalid", "7:20"),
        ("manifest-invalid", "7:46"),
        ("manifest-unknown-key", "3:15"),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "1:1"),
        ("- 1\n", "1:1"),
        ("name: x\n", "1:1"),
        ("format: tracemark/harness/2\n", "1:1"),
        ("format: 1\n", "1:1"),
        (HEAD + "name: [\n", "3:1"),
        (HEAD + "name: 2026-01-31\n", "2:1"),
        (HEAD + "name: .nan\n", "2:1"),
        (HEAD + "name: !!python/object:os.system x\n", "2:1"),
        (HEAD + "description: &a x\nname: *a\n", "3:1"),
        (HEAD + "1: x\n", "2:1"),
        (HEAD + "? [a]\n: x\n", "2:3"),
        (HEAD + 'name: "\\ud800"\n', "2:1"),
        (HEAD + "name: ''\n", "2:1"),
        (HEAD + 'name: "a\\nb"\n', "2:1"),
        (HEAD + "---\nname: x\n", "2:1"),
        (HEAD + "roots: lib\n", "2:1"),
        (HEAD + "tool_bindings: []\n", "2:1"),
        (HEAD + "prompt_templates: [x]\n", "2:20"),
        (HEAD + "prompt_templates: [{name: a}]\n", "2:20"),
        (HEAD + "prompt_templates: [{name: a, text: x, file: y}]\n", "2:20"),
        (HEAD + "prompt_templates: [{name: a, text: x, syntax: mustache}]\n", "2:39"),
        (HEAD + "prompt_templates: [{name: a, text: x, options: {}}]\n", "2:20"),
        (HEAD + "prompt_templates: [{name: a, text: x, values: {b: y}}]\n", "2:20"),
        (HEAD + "observation_handlers: [{name: a}]\n", "2:24"),
        (HEAD + "observation_handlers: [{name: a, entry: a.py}]\n", "2:34"),
        (HEAD + "runtime: {offered: some}\n", "2:11"),
        (HEAD + "runtime: {packages: {numpy: 2.1}}\n", "2:22"),
    ],
)
def test_what_the_format_does_not_allow_is_an_error_with_its_place(text, where):
    found = problems(text)
    assert {code for code, _ in found} == {"manifest-invalid"}
    assert found[0][1] == where


def test_text_that_is_not_utf8_is_an_error_with_its_line():
    assert problems(HEAD.encode() + b"name: \xff\n") == [("manifest-invalid", "2")]


def test_a_nest_too_deep_is_an_error():
    assert problems(HEAD + "name: " + "[" * 600) == [("manifest-invalid", "harness.yaml")]


def test_a_repeated_key_is_an_error():
    assert problems(HEAD + "name: a\nname: b\n") == [("manifest-duplicate", "3:1")]


def test_two_parts_of_one_name_are_an_error():
    text = "observation_handlers:\n  - {name: a, entry: 'a.py:f'}\n  - {name: a, entry: 'a.py:g'}\n"
    assert problems(HEAD + text) == [("manifest-duplicate", "4:6")]


@pytest.mark.parametrize("schema", ["", "schema: entry, "])
def test_a_tool_with_an_entry_alone_has_its_schema_from_it(schema):
    text = f"tool_bindings:\n  a: {{{schema}entry: 'a.py:f'}}\n"
    manifest = read((HEAD + text).encode()).manifest
    assert manifest is not None
    assert manifest.tool_bindings["a"].definition == "entry"


def test_a_tool_with_neither_schema_nor_entry_is_an_error():
    assert problems(HEAD + "tool_bindings:\n  a: {mutates: true}\n") == [("manifest-invalid", "3:3")]


def test_values_keep_the_type_that_yaml_gives_them():
    text = "tool_bindings: {t: {schema: t.json, parameters: {a: 25, b: 25.0, c: yes, d: 'true', e: true, f: null}}}\n"
    manifest = read((HEAD + text).encode()).manifest
    assert manifest is not None
    values = manifest.tool_bindings["t"].parameters
    assert [repr(value) for value in values.values()] == ["25", "25.0", "'yes'", "'true'", "True", "None"]


def test_a_bare_entry_is_an_entry_without_parameters():
    short = read((HEAD + "runtime: {parser: 'a.py:f'}\n").encode()).manifest
    long = read((HEAD + "runtime: {parser: {entry: 'a.py:f', parameters: {}}}\n").encode()).manifest
    assert short == long is not None


@given(st.binary(max_size=60))
@example(b"\x00")
@example(b"%YAML 9.9\n---\na")
@example(b"!<!> x")
def test_bytes_of_any_kind_give_findings_and_no_traceback(raw):
    for data in (raw, HEAD.encode() + raw):
        reading = read(data)
        assert (reading.manifest is None) == bool(reading.problems)
        assert all(CODES[problem.code].severity is Severity.ERROR for problem in reading.problems)


@given(st.text(st.sampled_from("a: -[]{}'\"&*!|>%@#\n\t,?1"), max_size=40))
def test_yaml_of_any_form_gives_findings_and_no_traceback(text):
    reading = read((HEAD + text).encode())
    assert (reading.manifest is None) == bool(reading.problems)
