"""Which files an entry consists of, found by reading alone."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.closure import ClosureReader, module_name
from tracemark.harness.folder import PACKAGE, ROOT, HarnessFolder


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class Place:
    """A folder `h`, roots and packages beside it, and what an entry in it consists of."""

    def __init__(self, path):
        self.path = path
        (path / "h").mkdir()

    def write(self, **files):
        for name, text in files.items():
            self.put("h/" + name.replace("__", "/") + ".py", text)

    def put(self, name, text=""):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def closure(self, entry="a.py:f", roots=(), packages=(), listed=(), declared=()):
        folder = HarnessFolder(self.path / "h")
        for root in roots:
            assert folder.add_base(root, ROOT) is None
        for package in packages:
            assert folder.add_base(package, PACKAGE) is None
        return ClosureReader(folder, listed, declared).read(entry)

    def files(self, entry="a.py:f", **options):
        closure = self.closure(entry, **options)
        assert closure.findings == closure.problems == ()
        return sorted(set(closure.modules.values()))


@pytest.mark.parametrize(
    "statement",
    [
        "import b",
        "import b as other",
        "import os, b",
        "from b import x",
        "from b import *",
        "from . import b",
        "from .b import x",
        "if 0:\n    import b",
        "try:\n    import b\nexcept ImportError:\n    pass",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b",
        "def f():\n    import b",
        "class C:\n    def m(self):\n        from b import x",
        "async def f():\n    from b import x",
        "match 1:\n    case 1:\n        import b",
        "lambda: 0\nwith open_door():\n    import b",
    ],
)
def test_an_import_counts_wherever_it_stands(place, statement):
    place.write(a=statement, b="x = 1")
    assert place.files() == ["a.py", "b.py"]


def test_imports_of_imports_count(place):
    place.write(a="import b", b="import c", c="import d", d="")
    assert place.files() == ["a.py", "b.py", "c.py", "d.py"]


def test_an_import_cycle_ends(place):
    place.write(a="import b", b="import c", c="import a, b")
    assert place.files() == ["a.py", "b.py", "c.py"]


def test_every_parent_of_a_module_counts(place):
    place.write(a="import p.q.r", p____init__="", p__q____init__="", p__q__r="", p__s="")
    place.put("h/p/__init__.py", "import e")
    place.put("h/e.py")
    place.put("h/p/q/__init__.py")
    assert place.files() == ["a.py", "e.py", "p/__init__.py", "p/q/__init__.py", "p/q/r.py"]


def test_the_parents_of_the_entry_count(place):
    place.put("h/p/__init__.py", "from p import side")
    place.put("h/p/side.py")
    place.put("h/p/entry.py")
    assert place.files("p/entry.py:f") == ["p/__init__.py", "p/entry.py", "p/side.py"]


def test_a_name_taken_from_a_package_counts_when_it_is_a_module(place):
    place.write(a="from p import m, VALUE")
    place.put("h/p/__init__.py", "VALUE = 1")
    place.put("h/p/m.py")
    assert place.files() == ["a.py", "p/__init__.py", "p/m.py"]


def test_a_star_import_takes_the_modules_in_all(place):
    place.write(a="from p import *")
    place.put("h/p/__init__.py", "__all__ = ['m', 'VALUE']\n__all__ += ['n']\nVALUE = 1")
    for name in ("m", "n", "o"):
        place.put(f"h/p/{name}.py")
    assert place.files() == ["a.py", "p/__init__.py", "p/m.py", "p/n.py"]


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("from . import x", "p/q/x.py"),
        ("from .x import y", "p/q/x.py"),
        ("from .. import x", "p/x.py"),
        ("from ..x import y", "p/x.py"),
        ("from ..r import x", "p/r/x.py"),
        ("from ..r.x import y", "p/r/x.py"),
        ("import x", "x.py"),
    ],
)
def test_dots_lead_from_the_file_upwards(place, statement, file):
    place.put("h/p/q/entry.py", statement)
    for name in ("p/q/x.py", "p/x.py", "p/r/x.py", "x.py"):
        place.put(f"h/{name}")
    assert place.files("p/q/entry.py:f") == sorted(["p/q/entry.py", file])


def test_dots_in_an_init_file_lead_from_its_package(place):
    place.put("h/p/__init__.py", "from . import m\nfrom .m import x")
    place.put("h/p/m.py")
    assert place.files("p/__init__.py:f") == ["p/__init__.py", "p/m.py"]
    assert place.files("p:f") == ["p/__init__.py", "p/m.py"]


@pytest.mark.parametrize("entry", ["__init__.py:f", "./__init__.py:f", ".py:f", "p/.py:f"])
def test_a_file_without_a_name_of_its_own_is_no_entry(place, entry):
    for path in ("h/__init__.py", "h/.py", "h/p/.py"):
        place.put(path)
    (problem,) = place.closure(entry).problems
    assert problem.code == "manifest-invalid"
    assert repr(entry) in problem.message
    assert "agent.py:run" in problem.hint


@pytest.mark.parametrize(
    ("entry", "name"),
    [("a.py:f", "a"), ("./p//a.py:f", "p.a"), ("p/__init__.py:f", "p"), ("x__init__.py:f", "x__init__")],
)
def test_an_entry_stands_under_its_dotted_name(place, entry, name):
    for path in ("h/a.py", "h/p/a.py", "h/p/__init__.py", "h/x__init__.py"):
        place.put(path)
    assert module_name(entry) == name
    assert name in place.closure(entry).modules


def test_dots_that_leave_the_folder_are_a_finding(place):
    place.put("h/p/entry.py", "from ... import x")
    closure = place.closure("p/entry.py:f")
    assert [(found.code, found.where) for found in closure.findings] == [("closure-incomplete", "p/entry.py:1")]


def test_modules_are_looked_up_in_the_folder_then_in_roots_then_in_packages(place):
    place.write(a="import one, two, three")
    place.put("h/one.py")
    place.put("root/two.py")
    place.put("src/three/__init__.py", "from . import inner")
    place.put("src/three/inner.py")
    place.put("src/four.py")
    assert place.files(roots=["../root"], packages=["../src/three"]) == [
        "a.py", "one.py", "package:three/__init__.py", "package:three/inner.py", "root:two.py",
    ]  # fmt: skip


def test_a_package_gives_its_own_name_and_nothing_beside_it(place):
    place.write(a="import four")
    place.put("src/three/__init__.py")
    place.put("src/four.py")
    closure = place.closure(packages=["../src/three"])
    assert [found.code for found in closure.findings] == ["closure-incomplete"]


def test_a_root_inside_the_folder_gives_plain_paths(place):
    place.write(a="import x")
    place.put("h/lib/x.py")
    closure = place.closure(roots=["lib"])
    assert closure.modules == {"a": "a.py", "x": "lib/x.py"}
    assert closure.findings == ()


def test_an_entry_may_be_a_module_of_a_root(place):
    place.put("root/desk/tools.py", "from . import rules")
    place.put("root/desk/rules.py")
    place.put("root/desk/__init__.py")
    assert place.files("desk.tools:f", roots=["../root"]) == [
        "root:desk/__init__.py", "root:desk/rules.py", "root:desk/tools.py",
    ]  # fmt: skip


def test_two_packages_of_one_name_are_a_finding_and_the_first_is_taken(place):
    place.write(a="import desk")
    place.put("one/desk/__init__.py", "A = 1")
    place.put("two/desk/__init__.py", "A = 2")
    for options in ({"roots": ["../one", "../two"]}, {"packages": ["../one/desk", "../two/desk"]}):
        closure = place.closure(**options)
        assert [found.code for found in closure.findings] == ["module-ambiguous"]
        assert "'../one/desk/__init__.py' and '../two/desk/__init__.py'" in closure.findings[0].message
        assert not closure.incomplete


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        (["h/b.py", "root/b.py"], "b.py"),
        (["h/b/__init__.py", "h/b.py"], "b/__init__.py"),
        (["root/b.py", "src/b/__init__.py"], "root:b.py"),
        (["h/b.py", "h/b.cpython-311-x86_64-linux-gnu.so"], "b.py"),
    ],
)
def test_two_places_that_answer_are_a_finding(place, files, taken):
    place.write(a="import b")
    place.put("src/b/other.py")
    for name in files:
        place.put(name)
    (place.path / "root").mkdir(exist_ok=True)
    closure = place.closure(roots=["../root"], packages=["../src/b"])
    assert {found.code for found in closure.findings} == {"module-ambiguous"}
    assert closure.modules["b"] == taken


def test_one_file_reached_by_two_ways_is_no_finding(place):
    place.write(a="import desk")
    place.put("src/desk/__init__.py")
    assert place.files(roots=["../src", "../src/../src"], packages=["../src/desk"]) == ["a.py", "root:desk/__init__.py"]


@pytest.mark.parametrize("listed", [(), ("calendar",)])
def test_a_local_module_named_as_a_foreign_one_is_a_finding(place, listed):
    place.write(a="import calendar", calendar="")
    closure = place.closure(listed=listed)
    assert [(found.code, found.where) for found in closure.findings] == [("module-ambiguous", "a.py:1")]
    assert closure.modules["calendar"] == "calendar.py"


def test_a_namespace_package_is_followed_over_all_places(place):
    place.write(a="import ns.one\nfrom ns import two\nimport ns")
    place.put("h/ns/one.py")
    place.put("root/ns/two.py")
    assert place.files(roots=["../root"]) == ["a.py", "ns/one.py", "root:ns/two.py"]


def test_a_package_beats_a_namespace_package_that_comes_before_it(place):
    place.write(a="import desk.tools")
    place.put("h/desk/notes.md")
    place.put("root/desk/__init__.py")
    place.put("root/desk/tools.py")
    assert place.files(roots=["../root"]) == ["a.py", "root:desk/__init__.py", "root:desk/tools.py"]


def test_a_folder_of_data_does_not_answer_to_an_import(place):
    place.write(a="import yaml.nodes")
    place.put("h/yaml/x.yaml")
    assert place.files(listed=["yaml"]) == ["a.py"]


def test_the_standard_library_is_taken_for_granted(place):
    place.write(
        a="from __future__ import annotations\nimport os.path, json, concurrent.futures\nfrom email import message"
    )
    assert place.files() == ["a.py"]


def test_an_unlisted_third_party_import_is_a_finding(place):
    place.write(a="import numpy.linalg\nfrom yaml import load")
    closure = place.closure(listed=["NumPy"])
    assert [(found.code, found.where) for found in closure.findings] == [("closure-incomplete", "a.py:2")]
    assert "`yaml`" in closure.findings[0].message
    assert closure.incomplete


@pytest.mark.parametrize(
    "statement", ["import p.gone", "from .gone import x", "from ns import gone", "from p.gone import x"]
)
def test_a_local_module_that_is_not_there_is_a_finding(place, statement):
    place.write(a=statement)
    place.put("h/p/__init__.py")
    place.put("h/ns/x.py")
    closure = place.closure()
    assert [(found.code, found.where) for found in closure.findings] == [("closure-incomplete", "a.py:1")]


@pytest.mark.parametrize(
    "statement",
    [
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module",
        "__import__(name)",
        "exec(text)",
        "run = eval",
        "compile(text, '', 'exec')",
        "import builtins",
        "import runpy",
        "open('data.json')",
        "from io import open as o\no('data.json')",
        "import pathlib\npathlib.Path(__file__)",
        "from pathlib import Path\nPath('data.json').read_text()",
        "from pathlib import Path\nPath('data.json').open()",
        "import pkgutil\npkgutil.get_data(__name__, 'x')",
        "import sys\nsys.path.insert(0, 'x')",
        "import os\nos.environ['HOME']",
        "import os\nos.environ.get(name)",
        "import os\ndict(os.environ)",
        "from os import getenv as g\ng('HOME')",
        "from os import *\ngetenv('HOME')",
    ],
)
def test_what_no_import_statement_shows_is_a_finding(place, statement):
    place.write(a="import b", b=statement)
    closure = place.closure()
    assert {found.code for found in closure.findings} == {"closure-incomplete"}
    assert {found.where.partition(":")[0] for found in closure.findings} == {"b.py"}
    assert closure.incomplete


@pytest.mark.parametrize(
    "use", ["os.environ['MODE']", "os.environ.get('MODE', 1)", "os.getenv('MODE')", "e['MODE']", "'MODE' in os.environ"]
)
def test_a_declared_variable_is_no_finding(place, use):
    place.write(a=f"import os\nfrom os import environ as e\n{use}\n")
    assert place.files(declared=["MODE"]) == ["a.py"]
    assert place.closure(declared=["OTHER"]).incomplete


@pytest.mark.parametrize("text", ["def f(:", "\x00", "x = '", "f(" * 3000, "# -*- coding: no-such-code -*-\n"])
def test_a_file_that_does_not_parse_is_a_problem(place, text):
    place.write(a="import b", b=text)
    closure = place.closure()
    assert [problem.code for problem in closure.problems] == ["source-unparsable"]
    assert closure.problems[0].where.startswith("b.py")


def test_a_file_says_its_own_encoding(place):
    place.write(a="import b")
    place.put("h/b.py", "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    assert place.files() == ["a.py", "b.py"]


@pytest.mark.parametrize("entry", ["gone.py:f", "gone:f", "p/gone.py:f", "p.gone:f", "json:loads"])
def test_an_entry_that_is_not_there_is_a_problem(place, entry):
    place.put("h/p/__init__.py")
    assert [problem.code for problem in place.closure(entry).problems] == ["manifest-file-missing"]


@pytest.mark.parametrize("entry", ["../x.py:f", "/etc/x.py:f", "p/../../x.py:f", "..\\x.py:f", "~/x.py:f"])
def test_an_entry_that_leaves_the_folder_is_a_problem(place, entry):
    place.put("x.py")
    assert [problem.code for problem in place.closure(entry).problems] == ["manifest-path-outside"]


def test_an_entry_that_is_no_python_file_is_a_problem(place):
    place.put("h/tools/run.sh")
    assert [problem.code for problem in place.closure("tools/run.sh:f").problems] == ["manifest-invalid"]


def test_a_link_out_of_the_folder_or_of_a_package_is_a_problem(place):
    place.write(a="import b, desk.c")
    place.put("secret.py")
    place.put("src/beside.py")
    place.put("src/desk/__init__.py")
    (place.path / "h/b.py").symlink_to("../secret.py")
    (place.path / "src/desk/c.py").symlink_to("../beside.py")
    problems = place.closure(packages=["../src/desk"]).problems
    assert [(problem.code, problem.where) for problem in problems] == [
        ("manifest-path-outside", "b.py"),
        ("manifest-path-outside", "package:desk/c.py"),
    ]


def test_a_compiled_module_counts_and_is_a_finding(place):
    place.write(a="import fast")
    place.put("h/fast.so", b"\x7fELF")
    closure = place.closure()
    assert closure.modules == {"a": "a.py", "fast": "fast.so"}
    assert [found.code for found in closure.findings] == ["closure-incomplete"]


def test_nothing_is_imported_or_run(place, tmp_path):
    before = set(sys.modules)
    place.write(
        a=f"import b\n(0 / 0)\n__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()", b="raise SystemExit"
    )
    place.closure()
    assert not (tmp_path / "ran").exists()
    assert set(sys.modules) == before


def test_a_folder_name_may_hold_a_dot(place):
    place.put("h/v1.2/a.py", "from . import b")
    place.put("h/v1.2/b.py")
    assert place.files("v1.2/a.py:f") == ["v1.2/a.py", "v1.2/b.py"]
    assert module_name("./v1.2//a.py:f") == "v1.2.a"
    assert module_name("p/__init__.py:f") == "p"


@given(st.permutations(["import b", "import p.m", "from p import n", "def f():\n    import c"]))
def test_the_order_of_imports_does_not_matter(tmp_path_factory, statements):
    place = Place(tmp_path_factory.mktemp("order"))
    place.write(a="\n".join(statements), b="import c", c="")
    for name in ("__init__", "m", "n"):
        place.put(f"h/p/{name}.py")
    assert list(place.closure().modules) == ["a", "b", "c", "p", "p.m", "p.n"]


graphs = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.sets(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
)


@given(graphs)
def test_the_closure_is_what_can_be_reached(tmp_path_factory, graph):
    place = Place(tmp_path_factory.mktemp("graph"))
    for node, targets in enumerate(graph):
        place.put(f"h/m{node}.py", "\n".join(f"import m{target}" for target in sorted(targets)))
    reached, pending = {0}, [0]
    while pending:
        for target in graph[pending.pop()] - reached:
            reached.add(target)
            pending.append(target)
    assert place.files("m0.py:f") == sorted(f"m{node}.py" for node in reached)
