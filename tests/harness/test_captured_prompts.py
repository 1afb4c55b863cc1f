"""What live prompts are: texts, Jinja templates with their sources, code."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
from jinja2 import (
    ChoiceLoader,
    DebugUndefined,
    DictLoader,
    Environment,
    FileSystemLoader,
    StrictUndefined,
    Template,
    select_autoescape,
)
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tracemark.harness.capture import capture
from tracemark.harness.captured_code import UnrecordedError
from tracemark.harness.captured_prompts import members

SYSTEM = (
    "{% include 'parts/rules.jinja' %}\nYou serve {{ shop|upper }}{% if day is defined %} on {{ day }}{% endif %}.\n"
)
FILES = {"system.jinja": SYSTEM, "parts/rules.jinja": "{% import 'm.jinja' as m %}Be exact.", "m.jinja": ""}


def reason(value: Any) -> str:
    with pytest.raises(UnrecordedError) as raised:
        members(value, {})
    return str(raised.value)


def template(text: str = "Hello {{ x }}.", **options: Any) -> Template:
    environment = Environment(loader=DictLoader({"t": text}), **options)
    return environment.get_template("t")


def test_a_text_is_a_text_and_a_path_is_the_text_of_its_file(tmp_path):
    (tmp_path / "a.md").write_bytes(b"Be brief.\r\n")
    assert members("Be brief.\r\n", {}) == members(tmp_path / "a.md", {}) == {"text": "Be brief.\r\n"}


def test_a_path_to_no_text_is_unrecorded(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\xff")
    assert "'a.md' cannot be read as text" in reason(tmp_path / "a.md")
    assert "'b.md' cannot be read as text" in reason(tmp_path / "b.md")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trim_blocks": True},
        {"lstrip_blocks": True, "keep_trailing_newline": True},
        {"undefined": StrictUndefined},
        {"autoescape": True},
    ],
)
def test_a_jinja_template_is_its_source_its_options_and_what_it_brings_in(lab, options):
    for name, text in FILES.items():
        lab.write(name, text, below="templates")
    environment = Environment(loader=FileSystemLoader(lab.path / "templates"), **options)
    captured = capture(prompt_templates={"system": environment.get_template("system.jinja")})
    stated = {name: "strict" if name == "undefined" else value for name, value in options.items()}
    wants = lab.declare(
        prompt_templates=[{"name": "system", "file": "system.jinja", "syntax": "jinja", "options": stated}], files=FILES
    )
    assert captured.require().identity == wants.identity
    assert dict(captured.require().includes) == {("prompt_templates", "system"): ("m.jinja", "parts/rules.jinja")}


def test_members_beside_a_template_count_as_in_a_manifest(lab):
    given = {"text": template("{{ x }}"), "role": "user", "variables": {"x": "task"}}
    wants = lab.declare(prompt_templates=[{**given, "name": "p", "text": "{{ x }}", "syntax": "jinja"}])
    assert capture(prompt_templates={"p": given}).fingerprint == wants.fingerprint


def test_code_may_make_the_text(lab):
    made = lab.load("made.py", "def text(day):\n    return day\n").text
    wants = lab.declare(prompt_templates=[{"name": "p", "entry": "made:text", "role": "user"}])
    for given in ({"entry": made, "role": "user"}, {"text": made, "role": "user"}):
        assert capture(prompt_templates={"p": given}).fingerprint == wants.fingerprint


def test_line_ends_of_a_file_are_kept_as_a_folder_keeps_them(tmp_path):
    (tmp_path / "a").write_bytes(b"one\rtwo\r\n{{ x }}")
    found = members(Environment(loader=FileSystemLoader(tmp_path)).get_template("a"), {})
    assert found["text"] == "one\rtwo\r\n{{ x }}"


@pytest.mark.parametrize(
    "environment",
    [
        Environment(loader=ChoiceLoader([DictLoader({}), DictLoader({"t": "x"})])),
        ImmutableSandboxedEnvironment(loader=DictLoader({"t": "x"})),
        Environment(loader=DictLoader({"t": "x"}), autoescape=select_autoescape(default_for_string=False)),
    ],
)
def test_how_a_template_is_found_and_guarded_is_no_part_of_it(environment):
    assert members(environment.get_template("t"), {})["options"] == members(template("x"), {})["options"]


@pytest.mark.parametrize("made", [Template("Hello"), Environment().from_string("Hello")])
def test_a_template_made_of_a_text_keeps_no_source(made):
    assert "keeps no source; give the text, with `syntax: jinja`" in reason(made)


def test_a_source_changed_since_it_was_compiled_is_noticed(tmp_path):
    (tmp_path / "a").write_text("{% block b %}one{% endblock %}")
    found = Environment(loader=FileSystemLoader(tmp_path)).get_template("a")
    (tmp_path / "a").write_text("{% block b %}two{% endblock %}")
    assert reason(found) == "its source is not what was compiled: it was changed since"
    (tmp_path / "a").unlink()
    assert "finds no source" in reason(found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variable_start_string": "<<"}, "`variable_start_string` of its own"),
        ({"line_statement_prefix": "#"}, "`line_statement_prefix` of its own"),
        ({"finalize": str}, "`finalize` of its own"),
        ({"extensions": ["jinja2.ext.do"]}, "extensions: jinja2.ext.ExprStmtExtension"),
        ({"undefined": DebugUndefined}, "a class of undefined values of its own"),
    ],
)
def test_an_environment_that_no_manifest_describes_leaves_its_templates_unrecorded(options, said):
    assert said in reason(template(**options))


class Joining(Environment):
    def join_path(self, name, parent):
        return f"{parent}-{name}"


@pytest.mark.parametrize("kind", [NativeEnvironment, Joining])
def test_an_environment_of_another_class_may_render_otherwise(kind):
    found = kind(loader=DictLoader({"t": "{{ x }}"})).get_template("t")
    assert reason(found) == f"its environment is of a class of its own, `{kind.__name__}`"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("policies", {**Environment().policies, "json.dumps_kwargs": {"ensure_ascii": False}}),
        ("context_class", type("Context", (Environment.context_class,), {})),
        ("concat", "; ".join),
        ("code_generator_class", type("Generator", (Environment.code_generator_class,), {})),
    ],
)
def test_what_was_changed_in_an_environment_is_in_no_manifest(member, value):
    environment = Environment(loader=DictLoader({"t": "{{ x|tojson }}"}))
    setattr(environment, member, value)
    assert f"`{member}` of its own" in reason(environment.get_template("t"))


@pytest.mark.parametrize("text", ["{{ x|map('mine') }}", "{{ x|map(y) }}", "{{ x|map(*y) }}"])
def test_a_filter_of_ones_own_that_another_filter_is_given_is_in_no_source(text):
    environment = Environment(loader=DictLoader({"t": text}))
    assert members(environment.get_template("t"), {})["text"] == text
    environment.filters["mine"] = str
    assert "'mine', a filter" in reason(environment.overlay().get_template("t"))


@pytest.mark.parametrize("text", ["{{ x|select('mine') }}", "{{ x|rejectattr('a.b', 'mine') }}"])
def test_so_is_a_test(text):
    environment = Environment(loader=DictLoader({"t": text}))
    environment.tests["mine"] = bool
    assert "'mine', a test" in reason(environment.get_template("t"))


def test_a_template_is_escaped_as_what_it_brings_in_or_unrecorded():
    texts = {"a.html": "{% include 'b.txt' %}{{ x }}", "b.txt": "{{ x }}"}
    chosen, all_of_them = (
        Environment(loader=DictLoader(texts), autoescape=option).get_template("a.html")
        for option in (select_autoescape(["html"]), True)
    )
    assert chosen.render(x="<") != all_of_them.render(x="<")
    assert reason(chosen) == "it brings in 'b.txt', of which `autoescape` is another than its own"
    assert members(all_of_them, {})["options"]["autoescape"] is True


def test_filters_tests_and_globals_of_ones_own_are_in_no_source():
    environment = Environment(loader=DictLoader({"f": "{{ x|mine }}", "t": "{{ x is mine }}", "g": "{{ mine }}"}))
    environment.filters["mine"] = environment.tests["mine"] = str
    environment.globals["mine"] = "value"
    assert [reason(environment.get_template(name)) for name in "ftg"] == [
        "it uses 'mine', a filter of its environment's own",
        "it uses 'mine', a test of its environment's own",
        "it uses 'mine', a global of its environment, whose value no source states",
    ]


def test_a_value_given_to_one_template_is_in_no_source():
    environment = Environment(loader=DictLoader({"t": "{{ mine }}"}))
    assert members(environment.get_template("t"), {})["text"] == "{{ mine }}"
    environment.cache.clear()
    assert "'mine', a global" in reason(environment.get_template("t", globals={"mine": 1}))


def test_a_replaced_filter_is_ones_own_and_an_unused_one_does_no_harm():
    environment = Environment(loader=DictLoader({"a": "{{ x|upper }}", "b": "{{ x }}{{ range(3) }}"}))
    environment.filters["upper"] = str
    environment.globals["mine"] = 1
    assert "'upper', a filter" in reason(environment.get_template("a"))
    assert members(environment.get_template("b"), {})["text"] == "{{ x }}{{ range(3) }}"


def test_what_an_included_template_uses_counts_as_well():
    environment = Environment(loader=DictLoader({"a": "{% include 'b' %}", "b": "{{ mine }}"}))
    environment.globals["mine"] = 1
    assert "'mine', a global" in reason(environment.get_template("a"))


def test_two_templates_of_one_name_that_others_bring_in_are_told_apart():
    first, second = (
        Environment(loader=DictLoader({"a": "{% include 'b' %}", "b": text})).get_template("a") for text in "xy"
    )
    captured = capture(prompt_templates={"one": first, "two": second, "three": first})
    assert captured.unrecorded == {
        ("prompt_templates", "two"): "it brings in 'b', which is another text in another template"
    }


def test_a_template_that_is_not_there_leaves_the_part_unrecorded():
    environment = Environment(loader=DictLoader({"a": "{% include 'b' %}"}))
    (said,) = capture(prompt_templates={"p": environment.get_template("a")}).unrecorded.values()
    assert "'b' cannot be brought in" in said


def test_a_template_with_a_name_that_leads_out_of_a_folder_is_unrecorded():
    environment = Environment(loader=DictLoader({"a": "{% include '../b' %}", "../b": "x"}))
    (said,) = capture(prompt_templates={"p": environment.get_template("a")}).unrecorded.values()
    assert "leaves the harness folder" in said


@pytest.mark.parametrize(
    ("value", "said"), [(string.Template("$x"), "syntax of its own"), (3, "no text"), (b"bytes", "no text")]
)
def test_what_is_no_text_is_unrecorded(value, said):
    assert said in reason(value)


def test_a_path_that_is_a_folder_is_unrecorded():
    assert "cannot be read" in reason(Path())
