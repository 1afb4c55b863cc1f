"""Which templates a Jinja template brings in."""

import pytest

from tracemark.harness.folder import HarnessFolder
from tracemark.harness.includes import TemplateSyntaxFault, collect, references
from tracemark.model.harness import JinjaOptions


@pytest.fixture
def folder(tmp_path):
    def write(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.j2").write_bytes(text.encode() if isinstance(text, str) else text)
        return HarnessFolder(tmp_path)

    return write


@pytest.mark.parametrize(
    ("text", "names", "optional"),
    [
        ("{% include 'a.j2' %}", ("a.j2",), False),
        ("{% include 'a.j2' ignore missing %}", ("a.j2",), True),
        ("{% include ['a.j2', 'b.j2'] %}", ("a.j2", "b.j2"), True),
        ("{% extends 'a.j2' %}", ("a.j2",), False),
        ("{% import 'a.j2' as m %}", ("a.j2",), False),
        ("{% from 'a.j2' import m %}", ("a.j2",), False),
        ("{% if x %}{% include 'a.j2' %}{% endif %}", ("a.j2",), False),
        ("{% include name %}", (), False),
        ("{% include 'a' ~ x %}", (), False),
        ("{% extends 'a' if x else 'b' %}", (), False),
        ("{% include ['a.j2', x] %}", (), True),
    ],
)
def test_every_way_to_bring_in_a_template_is_seen(text, names, optional):
    assert [(found.names, found.optional) for found in references(text, None)] == [(names, optional)]


def test_plain_text_brings_in_nothing():
    assert references("Be {{ tone }}. {# {% include 'a' %} #}{% raw %}{% include 'a' %}{% endraw %}", None) == []


def test_a_template_that_does_not_parse_says_where():
    with pytest.raises(TemplateSyntaxFault) as caught:
        references("one\n{% if %}", JinjaOptions())
    assert caught.value.line == 2


def test_templates_are_followed_and_a_cycle_ends(folder):
    place = folder(a="{% include 'b.j2' %}", b="{% include 'a.j2' %}{% import 'c.j2' as c %}", c="")
    found = collect(place, "{% include 'a.j2' %}", "start", None)
    assert (found.files, found.findings, found.problems) == (["a.j2", "b.j2", "c.j2"], [], [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{% include 'gone.j2' %}", "manifest-file-missing"),
        ("{% include '../gone.j2' %}", "manifest-path-outside"),
        ("{% include '/etc/hostname' ignore missing %}", "manifest-path-outside"),
        ("{% include 'bytes.j2' %}", "source-unparsable"),
        ("{% include 'broken.j2' %}", "source-unparsable"),
        ("{% broken", "source-unparsable"),
    ],
)
def test_a_template_that_cannot_be_followed_is_a_problem(folder, text, code):
    found = collect(folder(bytes=b"\xff", broken="{% if %}"), text, "start", None)
    assert [problem.code for problem in found.problems] == [code]


def test_a_computed_name_is_a_finding_with_its_place(folder):
    place = folder(a="one\n{% include x %}")
    found = collect(place, "{% include 'a.j2' %}", "start", None)
    assert [(finding.code, finding.where) for finding in found.findings] == [("closure-incomplete", "a.j2:2")]


def test_of_a_choice_those_that_are_there_count(folder):
    assert collect(folder(b=""), "{% include ['a.j2', 'b.j2'] %}", "start", None).files == ["b.j2"]
