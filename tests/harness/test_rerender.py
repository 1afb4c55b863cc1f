"""Observations rendered again from raw output, within limits that no template can exceed."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness import rerender
from tracemark.harness.includes import TemplateSyntaxFault
from tracemark.harness.rerender import NotRenderedError, Rerendering

ELIDING = (
    "{% if output.error -%}\n<error>{{ output.error }}</error>\n{% endif -%}\n<code>{{ output.code }}</code>\n"
    "{% if output.text | length < 20 -%}\n<text>\n{{ output.text -}}\n</text>\n"
    "{%- else -%}\n{%- set left = output.text | length - 10 -%}\n"
    "{{ output.text[:5] }}\n{{ left }} characters left out\n{{ output.text[-5:] }}\n{%- endif -%}\n"
)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"text": "done\n", "code": 0, "error": ""}, "<code>0</code>\n<text>\ndone\n</text>"),
        ({"text": "", "code": -1, "error": "late"}, "<error>late</error>\n<code>-1</code>\n<text>\n</text>"),
        (
            {"text": "abcde" + "x" * 14 + "vwxyz", "code": 1, "error": None},
            "<code>1</code>\nabcde\n14 characters left out\nvwxyz",
        ),
    ],
)
def test_a_template_with_conditions_and_slices_is_rendered(output: dict[str, Any], expected: str) -> None:
    assert Rerendering(ELIDING).render({"output": output}) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{% for line in output.split('\n') %}{{ loop.index }} {{ line }};{% endfor %}", "1 a;2 b;"),
        ("{% for k, v in more.items() %}{{ k }}={{ v }};{% endfor %}", "x=1;y=2;"),
        ("{{ output | tojson }}", '"a\\nb"'),
        ("{{ output.strip() | upper | replace('A', 'z') }}", "z\nB"),
        ("{{ (output | length + 1) // 2 }}{{ '!' if more.x in [1, 3] else '?' }}", "2!"),
        ("{{ 'Output: ' + output }}", "Output: a\nb"),
        ("{% if more is defined %}{{ more.x | default(0) }}{{ none_at_all is none }}{% endif %}", "1True"),
        ("{{ output }}\n", "a\nb"),
    ],
)
def test_what_observation_templates_use_is_rendered_as_jinja_renders_it(template: str, expected: str) -> None:
    variables = {"output": "a\nb", "more": {"x": 1, "y": 2}, "none_at_all": None}
    assert Rerendering(template).render(variables) == expected
    from jinja2 import Template

    assert Template(template).render(variables) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{ missing }}",
        "{{ output.missing }}",
        "{% if output.missing %}{% endif %}",
        "{% if missing is defined %}<error>{{ missing }}</error>{% endif %}{{ output }}",
        "{% if output.missing is not string %}{{ output }}{% endif %}",
        "{{ missing | default('') }}{{ output }}",
        "{{ output.missing | d('none') }}",
    ],
)
def test_a_variable_that_the_source_does_not_hold_gives_nothing(template: str) -> None:
    with pytest.raises(NotRenderedError, match=r"has no attribute|is undefined"):
        Rerendering(template).render({"output": "text"})


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% include 'other' %}", "`Include`"),
        ("{% extends 'other' %}", "`Extends`"),
        ("{% import 'other' as other %}", "`Import`"),
        ("{% macro m() %}{{ m() }}{% endmacro %}", "`Macro`"),
        ("{{ output * 9 }}", "`Mul`"),
        ("{{ 2 ** 9 }}", "`Pow`"),
        ("{{ '%99d' % 1 }}", "`Mod`"),
        ("{{ output ~ output }}", "`Concat`"),
        ("{{ range(9) }}", "a call"),
        ("{{ output.format(1) }}", "a call"),
        ("{{ output.ljust(9) }}", "a call"),
        ("{{ output | center(9) }}", "the filter `center`"),
        ("{{ output | attr('x') }}", "the filter `attr`"),
        ("{{ output is callable }}", "the test `callable`"),
        ("{{ output | replace('', output) }}", "the filter `replace` with a computed or long argument"),
        ("{{ output | join('" + "x" * 65 + "') }}", "the filter `join` with a computed or long argument"),
        ("{{ output | join(**output) }}", "the filter `join` with a computed or long argument"),
        ("{{ [output, output] }}", "a list of what is computed"),
        ("{% set a, b = output %}", "an assignment to several names"),
        ("{% for a in output %}{% if a %}{% for b in output %}{% endfor %}{% endif %}{% endfor %}", "a loop in a loop"),
        ("{% for a in output recursive %}{% endfor %}", "a loop in a loop"),
        ("{{ " + "-" * 90 + "1 }}", "nesting"),
    ],
)
def test_what_is_not_rendered_is_named_and_never_run(template: str, reason: str) -> None:
    with pytest.raises(NotRenderedError) as refused:
        Rerendering("text\n" + template)
    assert str(refused.value) == f"line 2: {reason} is not rendered"


@pytest.mark.parametrize("template", ["{{ output", "{% if output %}", "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}"])
def test_a_template_that_does_not_parse_is_a_fault_of_syntax(template: str) -> None:
    with pytest.raises(TemplateSyntaxFault):
        Rerendering(template)


@pytest.mark.parametrize("template", ["{{ output.__class__ }}", "{{ output.strip.__self__ }}", "{{ self._x }}"])
def test_the_sandbox_shows_nothing_behind_a_value(template: str) -> None:
    with pytest.raises(NotRenderedError):
        Rerendering(template).render({"output": "text"})


@pytest.mark.parametrize(
    "template",
    [
        "{% set a = output %}" + "{% set a = a + a %}" * 60 + "{{ a | length }}",
        "{% set a = output | tojson %}" + "{% set a = a | tojson %}" * 60 + "{{ a | length }}",
        "{% set a = output %}" + "{% set a = a | replace('x', 'xxxxxxxx') %}" * 20 + "{{ a | length }}",
        "{% for a in output %}{{ output }}{% endfor %}",
        "{% for a in output %}{% if output[1:] == output %}{% endif %}{% endfor %}",
    ],
)
def test_what_writes_without_end_is_stopped(template: str) -> None:
    with pytest.raises(NotRenderedError, match="it writes too much"):
        Rerendering(template).render({"output": '"x' * 5_000})


@pytest.mark.parametrize(
    ("template", "output"),
    [
        ("".join(f"{{% set a{n} = output | list %}}" for n in range(20)), "\u4e2d" * 100_000),
        ("".join(f"{{% set a{n} = output.split('b') %}}" for n in range(20)), "ab" * 100_000),
        ("".join(f"{{% set a{n} = output.upper() %}}" for n in range(180)), "a" * 200_000),
        ("".join(f"{{% set a{n} = output[1:] %}}" for n in range(180)), "a" * 200_000),
        (
            "{{ output | replace('a', '" + "b" * 31 + "') | replace('b', '" + "c" * 64 + "') | length }}",
            "a" * 1_000_000,
        ),
    ],
)
def test_what_a_template_holds_at_once_is_bounded(template: str, output: str) -> None:
    with pytest.raises(NotRenderedError, match="it writes too much"):
        Rerendering(template).render({"output": output})


@pytest.mark.parametrize(
    "template",
    ["{{ 1.5 | round(999999999, 'ceil') }}", "{{ output | tojson(999999999) }}", "{{ output | tojson(indent=17) }}"],
)
def test_a_number_that_says_how_much_is_written_is_small(template: str) -> None:
    with pytest.raises(NotRenderedError, match="with a number above 16 is not rendered"):
        Rerendering(template)
    assert Rerendering("{{ 1.26 | round(1) }}{{ [1] | tojson(indent=2) }}").render({}) == "1.3[\n  1\n]"


def test_templates_and_raw_outputs_have_a_limit() -> None:
    Rerendering("x" * rerender.MAXIMUM_TEMPLATE)
    with pytest.raises(NotRenderedError, match="longer than"):
        Rerendering("x" * (rerender.MAXIMUM_TEMPLATE + 1))
    shown = Rerendering("{{ n }}")
    assert shown.render({"n": 1, "raw": "x" * (rerender.MAXIMUM_RAW - 100)}) == "1"
    longest = "x" * rerender.MAXIMUM_RAW
    for raw in (longest, list(range(rerender.MAXIMUM_RAW // 16)), {"a": [{"b": longest}]}):
        with pytest.raises(NotRenderedError, match="too long"):
            shown.render({"n": 1, "raw": raw})


def test_lists_are_not_added() -> None:
    with pytest.raises(NotRenderedError, match="only texts and numbers are added"):
        Rerendering("{{ output + output }}").render({"output": [1]})


def test_each_rendering_begins_anew() -> None:
    loop = Rerendering("{% for a in output %}{% endfor %}ok")
    for _ in range(3):
        with pytest.raises(NotRenderedError):
            loop.render({"output": "x" * 10_000})
        assert loop.render({"output": "x" * 4_000}) == "ok"


def test_a_deep_raw_output_gives_nothing_and_fails_nobody() -> None:
    deep: Any = "x"
    for _ in range(20_000):
        deep = [deep]
    for template in ("{{ output }}", "{{ output | tojson }}"):
        with pytest.raises(NotRenderedError, match="nested too deeply"):
            Rerendering(template).render({"output": deep})


def test_the_text_of_a_trace_is_never_a_template() -> None:
    assert (
        Rerendering("{{ output }}").render({"output": "{{ 7 * 7 }}{% include 'x' %}"}) == "{{ 7 * 7 }}{% include 'x' %}"
    )


@given(st.text(), st.integers(), st.text())
def test_rendering_agrees_with_jinja_and_changes_no_variable(text: str, code: int, error: str) -> None:
    from jinja2 import Template

    variables = {"output": {"text": text, "code": code, "error": error}}
    before = json.dumps(variables)
    assert Rerendering(ELIDING).render(variables) == Template(ELIDING).render(variables)
    assert json.dumps(variables) == before


EXPRESSIONS = st.sampled_from(
    [
        *(
            "output",
            "output.text",
            "output['n']",
            "output[0]",
            "output[1:]",
            "missing",
            "1",
            "'x'",
            "none",
            "loop.index",
        ),
        *("output.split('x')", "output.text.strip()", "output.items()", "output.get('n')", "output.text.splitlines()"),
        *("output | length", "output | tojson", "output.text | int", "output | join('-')", "output | truncate(3)"),
        *("output | first", "output.text | trim", "output | sum", "output | round", "output | replace('x', 'yy')"),
        *(
            "output + 1",
            "output.text + 'x'",
            "output.n // 0",
            "output.n / 2",
            "-output.n",
            "output.n > 2",
            "not output",
        ),
        *("output is defined", "output is divisibleby(0)", "'x' in output", "(output.n if output else 1)"),
    ]
)
BLOCKS = st.builds(
    lambda frame, one, other: frame.replace("ONE", one).replace("OTHER", other),
    st.sampled_from(
        [
            "{{ ONE }}",
            "{% if ONE %}{{ OTHER }}{% else %}no{% endif %}",
            "{% for x in ONE %}{{ x }}{{ OTHER }}{% endfor %}",
            "{% for k, v in ONE %}{{ v }}{% endfor %}",
            "{% set output = ONE %}{{ OTHER }}",
        ]
    ),
    EXPRESSIONS,
    EXPRESSIONS,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("x\n0é\ud800", max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["text", "n", "x"]), inside, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(BLOCKS, max_size=3), VALUES)
def test_whatever_a_template_runs_into_it_gives_a_text_or_nothing(blocks: list[str], output: Any) -> None:
    with suppress(NotRenderedError):
        assert isinstance(Rerendering("".join(blocks)).render({"output": output}), str)


@pytest.mark.shared_data
def test_every_observation_of_mini_swe_agent_is_given_again_by_the_template_of_its_run(shared_traces: Path) -> None:
    rendered = 0
    for path in sorted((shared_traces / "mini_swe_agent").iterdir()):
        document = json.loads(path.read_bytes())
        config = document["info"].get("config", {}) if isinstance(document, dict) else {}
        template = config.get("model", {}).get("observation_template")
        if template is None:
            continue
        rendering = Rerendering(template)
        for message in document["messages"]:
            extra = message.get("extra") or {}
            if "raw_output" in extra:
                output = {"output": extra["raw_output"]}
                output |= {name: extra.get(name) for name in ("returncode", "exception_info")}
                assert rendering.render({"output": output}) == message["content"], path.name
                rendered += 1
    assert rendered > 700
