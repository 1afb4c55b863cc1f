"""Which live objects are an entry, and why the others are none."""

from __future__ import annotations

import functools
import json
import math
import sys
from pathlib import Path

import orjson
import pytest

from tracemark.harness.captured_code import Home, Located, UnrecordedError, guarded, home_of, locate, ordered

MODULE = """
import functools
from collections import namedtuple


def plain(x):
    return x


def make(n):
    def inner(x):
        return x + n

    def bare(x):
        return x

    return inner, bare


closing, nested = make(5)
bound = functools.partial(plain, 3)
short = lambda x: x
Pair = namedtuple("Pair", "a b")


@functools.lru_cache
def cached(x):
    return x


class Tool:
    def run(self, x):
        return x

    @staticmethod
    def still(x):
        return x

    @classmethod
    def made(cls, x):
        return x

    def __call__(self, x):
        return x

    class Inner:
        async def run(self, x):
            return x


class Below(Tool):
    pass


tool = Tool()
"""


@pytest.fixture
def module(lab):
    lab.write("pkg/__init__.py", "")
    return lab.load("pkg/mod.py", MODULE)


def reason(value: object) -> str:
    with pytest.raises(UnrecordedError) as raised:
        locate(value)
    return str(raised.value)


@pytest.mark.parametrize(
    "attribute",
    ["plain", "Tool", "Tool.run", "Tool.still", "Tool.made", "Tool.Inner", "Tool.Inner.run", "Below", "Below.made"],
)
def test_what_a_name_leads_to_is_the_entry_of_that_name(lab, module, attribute):
    value = functools.reduce(getattr, attribute.split("."), module)
    home = Home(lab.src.resolve(), None)
    assert locate(value) == Located(f"pkg.mod:{attribute}", home, (str(lab.src / "pkg" / "mod.py"),))


def test_a_class_method_of_a_base_class_in_another_file_is_that_of_the_class_it_is_bound_to(lab, module):
    above = lab.load("above.py", "from pkg.mod import Tool\n\n\nclass Above(Tool):\n    pass\n")
    found = locate(above.Above.made)
    assert (found.entry, found.code) == ("above:Above.made", (str(lab.src / "pkg" / "mod.py"),))


def test_an_inherited_function_is_that_of_the_class_which_defines_it(module):
    assert locate(module.Below.run).entry == "pkg.mod:Tool.run"


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("closing", "is defined within `make` and closes over values (n)"),
        ("nested", "is defined within `make`, so no name leads to it"),
        ("bound", "functools.partial holds arguments"),
        ("short", "a lambda has no name"),
        ("cached", "wrapped by an object of `functools._lru_cache_wrapper`, which holds state"),
        ("tool", "an object of `pkg.mod.Tool` that can be called, whose state no source states"),
        ("tool.run", "a method bound to an object of `pkg.mod.Tool`"),
        ("Pair", "no `def` or `class` of `Pair`"),
    ],
)
def test_what_holds_more_than_its_text_says_is_unrecorded_with_the_reason(module, attribute, said):
    assert said in reason(functools.reduce(getattr, attribute.split("."), module))


@pytest.mark.parametrize("value", [len, math.sqrt, orjson.dumps, [].append])
def test_compiled_code_is_unrecorded(value):
    assert reason(value) == "it is compiled (built in, or a C extension), so there is no source of it"


@pytest.mark.parametrize("value", [int, str.upper, orjson.Fragment])
def test_so_are_compiled_classes_and_their_methods(value):
    known = ("there is no source of it", "no function or class with a source", "has no `def` or `class`")
    assert any(said in reason(value) for said in known)


def test_the_standard_library_is_nobodys_harness():
    assert "standard library" in reason(json.dumps)


@pytest.mark.parametrize("value", [3, None, object(), [1]])
def test_what_is_no_code_is_unrecorded(value):
    assert "no function or class with a source" in reason(value)


def test_code_that_was_executed_from_a_text_has_no_file(module):
    namespace = {"__name__": "pkg.mod"}
    exec("def late(x): return x", namespace)
    module.late = namespace["late"]
    assert "was made at a prompt" in reason(module.late)


def test_a_name_that_leads_elsewhere_by_now_is_none(module):
    old = module.plain
    module.plain = module.short
    assert reason(old) == "`pkg.mod.plain` leads to something else than the object that was given"


def test_a_wrapper_put_on_after_the_module_was_loaded_is_in_no_text(module):
    @functools.wraps(module.plain)
    def run(x):
        return 0

    module.plain = run
    assert reason(run) == "it was wrapped again after its module was loaded"


def test_a_function_whose_source_is_gone_is_unrecorded(module):
    Path(module.__file__).unlink()
    assert reason(module.plain) == "the source of `pkg.mod` is gone"


def test_a_function_of_a_module_that_is_gone_is_unrecorded(module):
    del sys.modules["pkg.mod"]
    assert reason(module.plain) == "plain stands in no module that is loaded"


def test_a_module_loaded_under_another_name_than_its_place_has_is_no_entry(module):
    sys.modules["other"] = module
    module.__name__ = module.plain.__module__ = "other"
    assert "not loaded from the place that its name says" in reason(module.plain)


def test_a_text_names_an_entry_without_its_object(lab, module):
    assert locate("pkg.mod:short") == Located("pkg.mod:short", Home(lab.src.resolve(), None))


@pytest.mark.parametrize("text", ["pkg", "pkg/mod.py:plain", "pkg.mod:", ""])
def test_a_text_of_another_form_is_no_entry(module, text):
    assert "no entry of the form" in reason(text)


def test_a_name_of_no_package_is_no_entry():
    assert reason("there_is_none:f") == "there is no package 'there_is_none'"


def test_looking_for_a_package_imports_nothing(lab):
    lab.write("fresh/__init__.py", "raise SystemExit\n")
    assert home_of("fresh.below") == Home(lab.src.resolve(), "fresh")
    assert "fresh" not in sys.modules


def test_folders_stand_in_the_order_in_which_python_looks_them_up(tmp_path, monkeypatch):
    first, second, unknown = (Home(tmp_path / name, None) for name in "abc")
    monkeypatch.setattr(sys, "path", [str(first.folder), str(second.folder)])
    assert ordered([unknown, second, first, second]) == [first, second, unknown]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("x = 1\nif __name__ == '__main__':\n    run()\n", 3, True),
        ("if '__main__' == __name__:\n    if x:\n        run()\n", 3, True),
        ("if __name__ == '__main__':\n    pass\nrun()\n", 3, False),
        ("if __name__ == '__main__':\n    pass\nelse:\n    run()\n", 4, False),
        ("if x:\n    run()\n", 2, False),
        ("run()\nif __name__ == '__main__':\n    pass\n", 1, False),
        ("if (:\n", 1, False),
    ],
)
def test_a_line_is_guarded_where_it_runs_in_the_program_itself_alone(text, line, expected):
    assert guarded(text.encode(), line) is expected
