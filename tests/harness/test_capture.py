"""A harness of live objects is the harness of a `harness.yaml` that declares the same parts."""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracemark
from tracemark.errors import ManifestError, UsageError
from tracemark.harness.capture import Captured, capture
from tracemark.harness.snapshot import from_bytes, to_bytes
from tracemark.harness.version import Harness

TOOLS = '''
"""The desk's tools."""
from desk import helper
from desk.base import Base

LIMIT = 3


def look_up(order: str, days: int = LIMIT):
    """Find an order.

    Args:
        order: its number
    """
    return helper.find(order, days)


class Cut(Base):
    size = 400

    def apply(self, text):
        return text[: self.size]

    @classmethod
    def whole(cls, text):
        return text
'''
HELPER = "def find(order, days):\n    return order, days\n"
BASE = "class Base:\n    mark = '…'\n\n    def end(self):\n        return self.mark\n"


@pytest.fixture
def desk(lab):
    lab.write("desk/__init__.py", "")
    lab.write("desk/helper.py", HELPER)
    lab.write("desk/base.py", BASE)
    return lab.load("desk/tools.py", TOOLS)


def parts(desk: Any) -> dict[str, Any]:
    """Live parts of every kind."""
    return {
        "prompt_templates": {
            "system": {"text": "You serve {shop}.\r\n", "syntax": "format", "variables": {"shop": "task"}},
            "style": "Be brief.",
        },
        "tool_bindings": {"look_up": desk.look_up, "wait": {"schema": {"name": "wait"}, "mutates": True}},
        "observation_handlers": [
            {"name": "cut", "entry": desk.Cut.apply, "parameters": {"n": 3}, "max_characters": 400},
            {"name": "whole", "entry": desk.Cut.whole},
        ],
        "runtime": {"parser": desk.look_up, "limits": {"steps": 5, "stop_strings": ["END"]}, "environment": {"A": "b"}},
    }


def declared(lab: Any) -> Harness:
    """What a folder says of the same parts."""
    schema = {
        "type": "object",
        "properties": {"order": {"type": "string", "description": "its number"}, "days": {"type": "integer"}},
        "required": ["order"],
    }
    definition = {"name": "look_up", "description": "Find an order.", "parameters": schema}
    return lab.declare(
        prompt_templates=[
            {"name": "system", "file": "system.txt", "syntax": "format", "variables": {"shop": "task"}},
            {"name": "style", "text": "Be brief."},
        ],
        tool_bindings={
            "wait": {"schema": {"type": "function", "function": {"name": "wait"}}, "mutates": True},
            "look_up": {"schema": "look_up.json", "entry": "desk.tools:look_up"},
        },
        observation_handlers=[
            {"name": "cut", "entry": "desk.tools:Cut.apply", "parameters": {"n": 3}, "max_characters": 400},
            {"name": "whole", "entry": "desk.tools:Cut.whole"},
        ],
        runtime={
            "parser": "desk.tools:look_up",
            "limits": {"steps": 5, "stop_strings": ["END"]},
            "environment": {"A": "b"},
        },
        files={"system.txt": "You serve {shop}.\n", "look_up.json": json.dumps(definition)},
    )


def test_parts_of_every_kind_have_the_fingerprint_of_the_folder_that_declares_them(lab, desk):
    captured = capture(**parts(desk), name="desk")
    assert captured.unrecorded == {}
    assert captured.require().identity == declared(lab).identity
    assert (captured.fingerprint, captured.name) == (declared(lab).fingerprint, "desk")
    assert captured.parts == captured.require().identity.parts


def test_tracemark_and_the_harness_itself_offer_it(desk):
    captured = tracemark.capture(**parts(desk))
    assert isinstance(captured, Captured)
    assert Harness.capture(**parts(desk)) == captured


def test_a_captured_harness_is_no_place_of_this_machine(lab, desk):
    harness = capture(**parts(desk)).require()
    assert harness.folder is None
    assert str(lab.path).encode() not in to_bytes(harness)
    again = from_bytes(to_bytes(harness))
    assert (again.identity, again.manifest) == (harness.identity, harness.manifest)


CONSTANT = "LIMIT = 3", "LIMIT = 4"
METHOD = "return self.mark", "return self.mark * 2"
FUNCTION = "return order, days", "return order"


@pytest.mark.parametrize(
    ("file", "change"),
    [("tools.py", CONSTANT), ("tools.py", ("size = 400", "size = 500")), ("base.py", METHOD), ("helper.py", FUNCTION)],
    ids=["constant", "class constant", "base-class method", "module-level helper"],
)
def test_classes_that_differ_only_in_what_they_rest_on_are_different(lab, desk, file, change):
    before = capture(observation_handlers={"cut": desk.Cut}).fingerprint
    path = lab.src / "desk" / file
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    lab.forget()
    after = capture(observation_handlers={"cut": importlib.import_module("desk.tools").Cut}).fingerprint
    assert None not in (before, after)
    assert before != after


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.sampled_from(["look_up", "Cut", "Cut.apply", "Cut.whole"])
HANDLERS = st.lists(
    st.tuples(NAMES, st.dictionaries(st.sampled_from("xy"), st.integers() | TEXTS, max_size=2)), max_size=3
)
LIMITS = st.fixed_dictionaries({}, optional={"steps": st.integers(0, 9), "stop_strings": st.lists(TEXTS, max_size=2)})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(TEXTS, max_size=3), st.sets(NAMES.filter(lambda name: name != "Cut"), max_size=2), HANDLERS, LIMITS)
def test_whatever_is_captured_equals_what_a_folder_declares(lab, desk, texts, tools, handlers, limits):
    def live(name: str) -> Any:
        return functools.reduce(getattr, name.split("."), desk)

    def named(entry: Any) -> dict[str, Any]:
        return {
            "prompt_templates": [{"name": f"p{n}", "text": text} for n, text in enumerate(texts)],
            "tool_bindings": {f"t-{name}": {"schema": "entry", "entry": entry(name)} for name in sorted(tools)},
            "observation_handlers": [
                {"name": f"h{n}", "entry": entry(name), "parameters": given} for n, (name, given) in enumerate(handlers)
            ],
            "runtime": {"limits": limits, "recovery": {"entry": entry("look_up"), "parameters": {"n": 1}}},
        }

    captured = capture(**named(live))
    assert captured.require().identity == lab.declare(**named("desk.tools:{}".format)).identity


def test_the_order_of_handlers_counts_and_that_of_tools_does_not(desk):
    handlers = {"a": desk.look_up, "b": desk.Cut}
    tools = {"a": {"name": "a"}, "b": {"name": "b"}}
    turned = [dict(reversed(each.items())) for each in (handlers, tools)]
    first = capture(observation_handlers=handlers, tool_bindings=tools)
    assert first.fingerprint == capture(observation_handlers=handlers, tool_bindings=turned[1]).fingerprint
    assert first.fingerprint != capture(observation_handlers=turned[0], tool_bindings=tools).fingerprint


def test_an_unrecorded_part_leaves_no_fingerprint_and_everything_else_known(desk):
    given = parts(desk)
    given["observation_handlers"][0]["entry"] = lambda text: text
    captured = capture(**given)
    whole = capture(**parts(desk))
    assert (captured.harness, captured.fingerprint) == (None, None)
    assert list(captured.unrecorded) == [("observation_handlers", "cut")]
    assert captured.components["observation_handlers"] is None
    assert captured.components["tool_bindings"] == whole.components["tool_bindings"]
    assert list(captured.parts["observation_handlers"]) == ["cut", "whole"]
    assert captured.parts["observation_handlers"]["cut"] is None
    assert captured.parts["observation_handlers"]["whole"] == whole.parts["observation_handlers"]["whole"]
    with pytest.raises(ManifestError, match="observation_handlers 'cut': a lambda has no name"):
        captured.require()


def test_parts_of_two_places_are_found_by_the_way_that_they_were_imported(lab, desk, monkeypatch):
    lab.write("other/extra/__init__.py", "", below="")
    lab.write("other/extra/more.py", "from desk import helper\n\n\ndef more(x):\n    return x\n", below="")
    monkeypatch.syspath_prepend(str(lab.path / "other"))
    more = importlib.import_module("extra.more").more
    harness = capture(tool_bindings={"more": more}, observation_handlers={"cut": desk.Cut}).require()
    assert sorted(set(harness.closures["extra.more:more"].values())) == [
        *("root:desk/__init__.py", "root:desk/helper.py", "root:extra/__init__.py", "root:extra/more.py"),
    ]


def test_first_party_packages_count_wherever_they_are_installed(lab, desk, monkeypatch):
    site = lab.path / "venv" / "site-packages"
    for name in ("ours", "theirs"):
        lab.write(f"{name}/__init__.py", "def f():\n    return 1\n", below="venv/site-packages")
    monkeypatch.syspath_prepend(str(site))
    uses = lab.load("uses.py", "import ours\nimport theirs\n\n\ndef run():\n    return ours.f()\n")
    alone = capture(runtime={"parser": uses.run})
    assert {found.message for found in alone.findings} == {
        *("imports `ours`, which is neither here nor listed", "imports `theirs`, which is neither here nor listed"),
    }
    wants = lab.declare(runtime={"parser": "uses:run"}, packages=["../../venv/site-packages/ours"])
    for package in ("ours", importlib.import_module("ours"), site / "ours"):
        captured = capture(runtime={"parser": uses.run}, packages=[package])
        assert captured.fingerprint == wants.fingerprint
        assert [found.message for found in captured.findings] == ["imports `theirs`, which is neither here nor listed"]
    lab.write("ours/__init__.py", "def f():\n    return 2\n", below="venv/site-packages")
    lab.forget()
    assert capture(runtime={"parser": importlib.import_module("uses").run}, packages=["ours"]).fingerprint not in {
        *(None, wants.fingerprint),
    }


def test_code_in_an_installed_package_brings_that_package_alone(lab, monkeypatch):
    site = lab.path / "venv" / "site-packages"
    lab.write("ours/__init__.py", "import theirs\n\n\ndef f():\n    return 1\n", below="venv/site-packages")
    lab.write("theirs.py", "x = 1\n", below="venv/site-packages")
    monkeypatch.syspath_prepend(str(site))
    captured = capture(tool_bindings=[importlib.import_module("ours").f])
    assert set(captured.require().files) == {"package:ours/__init__.py"}
    assert captured.require().incomplete == {"tool_bindings": ("f",)}


@pytest.mark.parametrize("package", ["there_is_none_of_that_name", "_json", Path("nowhere")])
def test_a_package_that_is_not_there_is_an_error_of_the_call(package):
    with pytest.raises(UsageError, match="`packages`"):
        capture(packages=[package])


def test_what_a_decorator_of_the_harness_wraps_is_known_with_the_decorator(lab):
    lab.write(
        "deco.py",
        "import functools\n\n\ndef twice(f):\n    @functools.wraps(f)\n    def run(*a):\n        f(*a)\n"
        "        return f(*a)\n\n    return run\n",
    )
    run = lab.load("wrapped.py", "from deco import twice\n\n\n@twice\ndef run(x):\n    return x\n").run
    captured = capture(runtime={"parser": run})
    assert captured.fingerprint == lab.declare(runtime={"parser": "wrapped:run"}).fingerprint
    assert set(captured.require().files) == {"root:deco.py", "root:wrapped.py"}


def test_a_wrapper_that_is_somebody_elses_leaves_the_part_unrecorded(lab, monkeypatch):
    lab.write(
        "theirs.py",
        "import functools\n\n\ndef twice(f):\n    @functools.wraps(f)\n    def run(*a):\n"
        "        return f(*a)\n\n    return run\n",
        below="venv/site-packages",
    )
    monkeypatch.syspath_prepend(str(lab.path / "venv" / "site-packages"))
    run = lab.load("wrapped.py", "from theirs import twice\n\n\n@twice\ndef run(x):\n    return x\n").run
    assert "somebody else's" in capture(runtime={"parser": run}).unrecorded["runtime", "parser"]
    assert capture(runtime={"parser": run}, packages=["theirs"]).fingerprint is not None


def test_a_helper_edited_since_it_was_imported_leaves_the_parts_that_import_it_unrecorded(lab, desk):
    lab.write("desk/helper.py", HELPER.replace("order, days\n", "order\n"))
    captured = capture(runtime={"parser": desk.look_up, "recovery": importlib.import_module("desk.base").Base})
    assert list(captured.unrecorded) == [("runtime", "parser")]
    assert "`desk.helper` differs from its file: `find`" in captured.unrecorded["runtime", "parser"]


def test_a_module_imported_from_another_file_than_is_found_leaves_the_part_unrecorded(lab, desk, monkeypatch):
    lab.write("desk_helper.py", "x = 1\n", below="elsewhere")
    monkeypatch.syspath_prepend(str(lab.path / "elsewhere"))
    uses = lab.load("uses.py", "import desk_helper\n\n\ndef run():\n    return 1\n")
    lab.write("desk_helper.py", "x = 1\n")
    reason = capture(runtime={"parser": uses.run}).unrecorded["runtime", "parser"]
    assert "`desk_helper` was imported from another file" in reason


def test_a_module_that_captures_while_it_is_loaded_cannot_be_part_of_what_it_captures(lab):
    lab.write("loop/__init__.py", "from loop.harness import FOUND\n")
    lab.write("loop/tools.py", "def run():\n    return 1\n")
    lab.write(
        "loop/harness.py",
        "import tracemark\nfrom loop.tools import run\n\nFOUND = tracemark.capture(runtime={'parser': run})\n",
    )
    found = importlib.import_module("loop").FOUND
    assert "still being loaded" in found.unrecorded["runtime", "parser"]


SCRIPT = """
    import sys
    import tracemark
    import beside

    def look(order: str):
        return beside.find(order)

    def main():
        captured = tracemark.capture(tool_bindings=[look], runtime={"parser": beside.find})
        print(captured.fingerprint, *captured.unrecorded.values())

    if __name__ == "__main__":
        main()
    """


def run_script(folder: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_script_is_the_module_of_its_name(lab):
    lab.write("beside.py", "def find(order):\n    return order\n")
    lab.write("agent.py", dedent(SCRIPT))
    wants = lab.declare(
        tool_bindings={"look": {"entry": "agent:look"}},
        runtime={"parser": "beside:find"},
    )
    assert run_script(lab.path, "src/agent.py") == wants.fingerprint
    assert run_script(lab.src, "-m", "agent") == wants.fingerprint


def test_a_script_that_would_run_again_when_it_is_recorded_is_unrecorded(lab):
    lab.write("beside.py", "def find(order):\n    return order\n")
    lab.write("agent.py", dedent(SCRIPT).replace('if __name__ == "__main__":', "if True:"))
    said = run_script(lab.path, "src/agent.py")
    assert said.startswith("None `agent`, which belongs to it, is still being loaded")


def test_a_function_typed_at_a_prompt_is_unrecorded(lab):
    text = dedent(SCRIPT).replace("import beside", "import types; beside = types; types.find = print")
    assert "was made at a prompt" in run_script(lab.src, "-c", text)


def test_values_that_no_manifest_states_leave_the_part_unrecorded(desk):
    handlers = [
        {"name": f"h{n}", "entry": desk.Cut, "parameters": {"x": value}}
        for n, value in enumerate([object(), {1}, float("nan"), {2: 3}, "\ud800", MappingProxyType({})])
    ]
    assert list(capture(observation_handlers=handlers).unrecorded.values()) == [
        "`x` holds an object of `object`, which no manifest can state",
        "`x` holds an object of `set`, which no manifest can state",
        "`x` holds what JSON has no value for: nan is not a JSON number",
        "`x` has a key that is no text: 2",
        "`x` holds half of a surrogate pair, which no manifest may",
        "`x` holds an object of `mappingproxy`, which no manifest can state",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "none"}, "stands for no harness"),
        ({"runtime": {"parsre": 1}}, "no member 'parsre'"),
        ({"runtime": {"limits": {"steps": -1}}}, "limits.steps"),
        ({"runtime": {"parser": {"parameters": {}}}}, "member `entry`"),
        ({"prompt_templates": "You serve."}, "neither a mapping nor a list"),
        ({"prompt_templates": ["You serve."]}, "has no name"),
        ({"prompt_templates": [{"name": "a", "text": "x"}, {"name": "a", "text": "y"}]}, "two parts"),
        ({"prompt_templates": {"a": {"role": "user"}}}, "exactly one of"),
        ({"prompt_templates": {"a": {"text": "x", "rôle": "user"}}}, "unknown member"),
        ({"tool_bindings": 3}, "no mapping, no list"),
        ({"tool_bindings": [{"description": "x"}]}, "has no name"),
        ({"tool_bindings": SimpleNamespace(tools=[], nextCursor="2")}, "further pages"),
        ({"observation_handlers": {"": len}}, "name"),
    ],
)
def test_what_is_no_part_at_all_is_an_error_of_the_call(desk, given, message):
    if given.get("observation_handlers"):
        given = {"observation_handlers": {"": desk.Cut}}
    with pytest.raises(UsageError) as raised:
        capture(**given)
    assert message in f"{raised.value} {raised.value.where}"


def test_nothing_captured_is_the_empty_harness(lab):
    assert capture().fingerprint == lab.declare().fingerprint
