"""What runs is the text that was hashed, and nothing else."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tracemark.errors import ManifestError, TracemarkError, UnknownNameError, UsageError
from tracemark.harness.loading import load
from tracemark.runner.live import Live

ENTRY = {"observation_handlers": [{"name": "show", "entry": "handler.py:show"}]}


def test_a_format_template_renders_as_str_format(make_harness: Any) -> None:
    prompt = Live(load(make_harness())).prompt("system")
    assert prompt.render(today="Monday").endswith("It is Monday; write in full sentences.")
    assert (prompt.template.role, prompt.template.position) == ("system", "first")


def test_a_jinja_template_renders_with_conditions(make_harness: Any) -> None:
    prompt = Live(load(make_harness())).prompt("task")
    assert prompt.render(request="Help", urgent=True) == "Hurry. Help"
    assert prompt.render(request="Help", urgent=False) == "Help"


def test_a_literal_template_and_code_that_makes_a_prompt(make_harness: Any) -> None:
    folder = make_harness(
        files={"made.py": "def make(who):\n    return f'Hello {who}'\n"},
        prompt_templates=[{"name": "text", "text": "{as} it {{is}}"}, {"name": "code", "entry": "made.py:make"}],
    )
    live = Live(load(folder))
    assert live.prompt("text").render() == "{as} it {{is}}"
    assert live.prompt("code").render(who="you") == "Hello you"


def test_line_ends_of_a_template_are_those_that_were_hashed(make_harness: Any) -> None:
    folder = make_harness()
    (folder / "prompts/system.txt").write_bytes(b"One\r\nTwo {today}\r\n")
    assert Live(load(folder)).prompt("system").render(today="x") == "One\nTwo x\n"


def test_an_included_template_comes_from_memory(make_harness: Any) -> None:
    folder = make_harness(
        files={"prompts/task.jinja": "{% include 'prompts/tail.jinja' %}!", "prompts/tail.jinja": "tail"}
    )
    live = Live(load(folder))
    (folder / "prompts/tail.jinja").write_text("changed")
    assert live.prompt("task").render(request="", urgent=False) == "tail!"


def test_a_template_cannot_reach_out_of_the_sandbox(make_harness: Any) -> None:
    folder = make_harness(files={"prompts/task.jinja": "{{ request.__class__.__mro__ }}{{ urgent.append(1) }}"})
    with pytest.raises(UsageError, match="rendered"):
        Live(load(folder)).prompt("task").render(request="", urgent=[])


@pytest.mark.parametrize("name", ["system", "task"])
def test_a_missing_variable_is_a_usage_error(make_harness: Any, name: str) -> None:
    strict = {"options": {"undefined": "strict"}}
    templates = [
        {"name": "system", "text": "{today}", "syntax": "format"},
        {"name": "task", "text": "{{ request }}", "syntax": "jinja", **strict},
    ]
    with pytest.raises(UsageError, match="rendered") as caught:
        Live(load(make_harness(prompt_templates=templates))).prompt(name).render()
    assert {"system": "no value is given for 'today'", "task": "'request' is undefined"}[name] in caught.value.message
    assert (caught.value.where, str(caught.value.hint)[:7]) == (name, "render(")


def test_a_declared_value_is_filled_in_and_cannot_be_replaced(make_harness: Any) -> None:
    declared = {"variables": {"who": "constant"}, "values": {"who": "us"}}
    template = {"name": "system", "text": "Ask {who} on {day}", "syntax": "format", **declared}
    prompt = Live(load(make_harness(prompt_templates=[template]))).prompt("system")
    assert prompt.render(day="Monday") == "Ask us on Monday"
    with pytest.raises(UsageError, match="who"):
        prompt.render(day="Monday", who="them")


def test_tools_and_handlers_run_with_their_bound_parameters(make_harness: Any) -> None:
    live = Live(load(make_harness()))
    assert live.tool("get")("desk", key="a") == {"row": "alp", "on": "desk"}
    assert live.handler("show")({"row": "alp"}) == "> alp"
    assert live.runtime("parser")(" x ") == "x"


def test_bound_parameters_cannot_be_replaced_by_a_call(make_harness: Any) -> None:
    with pytest.raises(TypeError, match="limit"):
        Live(load(make_harness())).tool("get")("desk", key="a", limit=100)


def test_an_edit_after_loading_changes_nothing_that_runs(make_harness: Any) -> None:
    folder: Path = make_harness()
    harness = load(folder)
    for path in folder.rglob("*.*"):
        path.write_text("broken(")
    live = Live(harness)
    assert live.tool("get")("desk", key="a")["row"] == "alp"
    assert live.prompt("system").render(today="x").startswith("You answer")


def test_two_versions_with_equal_module_names_stay_apart(make_harness: Any) -> None:
    one = Live(load(make_harness("one")))
    two = Live(load(make_harness("two", files={"code/store.py": "ROWS = {'a': 'other'}\n"})))
    results = [live.tool("get")("desk", key="a")["row"] for live in (one, two, one, two)]
    assert results == ["alp", "oth", "alp", "oth"]


def test_modules_of_one_version_are_shared_among_its_entries(make_harness: Any) -> None:
    live = Live(
        load(
            make_harness(files={"handler.py": "from code.store import ROWS\n\ndef show(raw, mark):\n    return ROWS\n"})
        )
    )
    assert live.handler("show")(None) is sys.modules[live.tool("get").__closure__[0].cell_contents.__module__].ROWS


def test_the_harness_shadows_an_installed_module_and_others_import_normally(make_harness: Any) -> None:
    folder = make_harness(
        files={"handler.py": "import json\nimport code.store\n\ndef show():\n    return json, code.store.ROWS\n"},
        **ENTRY,
    )
    module, rows = Live(load(folder)).handler("show")()
    import json

    assert module is json
    assert rows["b"] == "beta"
    assert "store" not in vars(__import__("code"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from pkg.low import VALUE\n\ndef show():\n    return VALUE\n", 1),
        ("from pkg import low\n\ndef show():\n    return low.VALUE\n", 1),
        ("import pkg.low as renamed\n\ndef show():\n    return renamed.VALUE\n", 1),
        ("import pkg.low\n\ndef show():\n    return pkg.low.VALUE\n", 1),
        ("from pkg.deep.inner import VALUE\n\ndef show():\n    return VALUE\n", 3),
        ("from pkg.deep import *\n\ndef show():\n    return inner.VALUE\n", 3),
        ("def show():\n    from pkg.deep import inner\n    return inner.VALUE\n", 3),
        ("from spread.part import VALUE\n\ndef show():\n    return VALUE\n", 5),
    ],
)
def test_every_form_of_import_is_answered_from_memory(make_harness: Any, text: str, expected: int) -> None:
    files = {
        "handler.py": text,
        "pkg/__init__.py": "",
        "pkg/low.py": "VALUE = 1\n",
        "pkg/deep/__init__.py": "__all__ = ['inner']\n",
        "pkg/deep/inner.py": "from ..low import VALUE as ONE\nfrom . import near\nVALUE = ONE + near.TWO\n",
        "pkg/deep/near.py": "TWO = 2\n",
        "spread/part.py": "VALUE = 5\n",
    }
    folder: Path = make_harness(files=files, **ENTRY)
    harness = load(folder)
    for path in files:
        (folder / path).unlink()
    assert Live(harness).handler("show")() == expected


def test_circular_imports_work_as_in_python(make_harness: Any) -> None:
    files = {
        "handler.py": "from pkg.a import show\n",
        "pkg/__init__.py": "",
        "pkg/a.py": "from pkg import b\n\nNAME = 'a'\n\ndef show():\n    return b.name()\n",
        "pkg/b.py": "from pkg import a\nimport pkg.a as again\n\ndef name():\n    return a.NAME + again.NAME\n",
    }
    assert Live(load(make_harness(files=files, **ENTRY))).handler("show")() == "aa"


def test_roots_and_packages_outside_the_folder_are_answered_from_memory(make_harness: Any, tmp_path: Path) -> None:
    for path, text in {
        "lib/top.py": "A = 1\n",
        "vendor/pack/__init__.py": "from pack.sub import B\n",
        "vendor/pack/sub.py": "B = 2\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    folder = make_harness(
        files={"handler.py": "from top import A\nfrom pack import B\n\ndef show():\n    return A + B\n"},
        roots=["../../lib"],
        packages=["../../vendor/pack"],
        **ENTRY,
    )
    harness = load(folder)
    for path in ("lib/top.py", "vendor/pack/__init__.py", "vendor/pack/sub.py"):
        (tmp_path / path).unlink()
    assert Live(harness).handler("show")() == 3


def test_dataclasses_and_type_hints_work(make_harness: Any) -> None:
    text = (
        "from __future__ import annotations\n"
        "from dataclasses import dataclass, field\nfrom typing import ClassVar, get_type_hints\n\n"
        "@dataclass\nclass Seen:\n    rows: list[Seen] = field(default_factory=list)\n    kind: ClassVar[str] = 'x'\n\n"
        "def show():\n    return get_type_hints(Seen)['rows'], Seen, Seen()\n"
    )
    hint, kind, value = Live(load(make_harness(files={"handler.py": text}, **ENTRY))).handler("show")()
    assert hint == list[kind]
    assert value.rows == []


def test_a_dotted_attribute_is_followed(make_harness: Any) -> None:
    text = "class Handlers:\n    @staticmethod\n    def show():\n        return 'shown'\n"
    members = {"observation_handlers": [{"name": "show", "entry": "handler.py:Handlers.show"}]}
    assert Live(load(make_harness(files={"handler.py": text}, **members))).handler("show")() == "shown"


@pytest.mark.parametrize("place", ["./code//x.py", "code/__init__.py", "x__init__.py", "a.b.py"])
def test_an_entry_by_path_is_found_as_its_closure_names_it(make_harness: Any, place: str) -> None:
    files = dict.fromkeys(("code/x.py", "code/__init__.py", "x__init__.py"), "def run(raw):\n    return 'ran'\n")
    files["a.b.py"] = files["code/x.py"]
    handler = {"name": "show", "entry": f"{place}:run"}
    live = Live(load(make_harness(files=files, observation_handlers=[handler])))
    assert live.handler("show")("x") == "ran"
    live.close()


def test_closing_leaves_no_module_behind_and_what_was_handed_out_goes_on(make_harness: Any) -> None:
    before = set(sys.modules)
    live = Live(load(make_harness()))
    get = live.tool("get")
    assert {name for name in set(sys.modules) - before if name.startswith("_tracemark")}
    live.close()
    assert not {name for name in set(sys.modules) - before if name.startswith("_tracemark")}
    assert get("desk", key="b")["row"] == "bet"


def test_a_traceback_shows_the_text_that_ran(make_harness: Any) -> None:
    folder: Path = make_harness(
        files={"handler.py": "def show():\n    raise ValueError('here')  # as hashed\n"}, **ENTRY
    )
    live = Live(load(folder))
    (folder / "handler.py").write_text("\n\n# changed\n")
    with pytest.raises(ValueError, match="here") as caught:
        live.handler("show")()
    assert "as hashed" in str(caught.traceback[-1].statement)


def test_code_that_fails_when_it_is_loaded_is_tried_again_and_leaves_nothing(make_harness: Any) -> None:
    live = Live(
        load(make_harness(files={"handler.py": "raise RuntimeError('no')\n\ndef show():\n    pass\n"}, **ENTRY))
    )
    before = set(sys.modules)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            live.handler("show")
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda live: live.prompt("gone"), "system, task"),
        (lambda live: live.tool("gone"), "get"),
        (lambda live: live.handler("gone"), "show"),
        (lambda live: live.runtime("recovery"), "parser"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(make_harness: Any, ask: Any, named: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ask(Live(load(make_harness())))
    assert named in str(caught.value.hint)


def test_a_tool_that_runs_elsewhere_has_no_code(make_harness: Any) -> None:
    bindings = {"far": {"schema": {"name": "far", "parameters": {}}}}
    with pytest.raises(UnknownNameError, match="elsewhere"):
        Live(load(make_harness(tool_bindings=bindings))).tool("far")


def test_a_template_that_is_no_text_is_a_typed_error(make_harness: Any) -> None:
    folder: Path = make_harness()
    (folder / "prompts/system.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(TracemarkError) as caught:
        Live(load(folder)).prompt("system")
    assert isinstance(caught.value, ManifestError)
