"""Loaded modules that are no longer what their files say are told from those that are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tracemark.harness.compiled import difference

SOURCE = '''"""A module."""
import functools
from dataclasses import dataclass, field
from enum import Enum

LIMIT = 3
NAMES: tuple[str, ...] = ("a", "b")
TABLE = {"a": 1}
CACHE = {}
FILLED = [1]
FILLED.append(2)
WORDS = {"a", "b", "c", "d"}
FIRST = SECOND = 7
LEFT, (RIGHT, LAST) = "l", ("r", 5)
MADE = KEPT = [1]
KEPT.append(2)
count = 0
again = 1
again = 2


def helper(x, n=3, *, deep=(1, 2)):
    # a comment
    return [y for y in x if y != n and y not in {"aa", "bb", "cc", "dd", "ee", "ff"}]


def typed(x: int, *rest: "str", word: list[int] | None = None) -> str:
    return word


def bump():
    global count
    count += 1


@functools.cache
def cached(x):
    return x


class Base:
    """What all have."""

    mark = "x"
    __secret = 4
    up, down = 1, 2

    def run(self):
        return super().__repr__()

    def said(self, word: str) -> str:  # of a method
        return word

    def __private(self):
        return 1

    @property
    def shown(self):
        return self.mark

    @staticmethod
    def still(x):
        return x


class Below(Base):
    limit = 5

    def __init_subclass__(cls):
        cls.seen = True


@dataclass(frozen=True)
class Value:
    a: int = 1
    b: list = field(default_factory=list)
    width: int = field(default=3)


class Colour(str, Enum):
    RED = "red"


Kind = int


def early(x: Kind) -> "Kind":
    return x


Kind = str


if LIMIT > 2:
    def late():
        return 1
else:
    def late():
        return 2
'''


@pytest.fixture
def module(lab):
    return lab.load("mod.py", SOURCE)


def after(module, old: str = "", new: str = "") -> str | None:
    assert old in SOURCE
    return difference(module, SOURCE.replace(old, new, 1).encode(), str(Path(module.__file__).resolve()))


def test_what_was_just_loaded_is_what_its_file_says(module):
    assert after(module) is None


def test_what_a_module_does_to_its_own_names_is_no_change(module):
    module.bump()
    module.CACHE["a"] = 1
    for _ in range(5000):
        module.helper([1, 2, 3])
    module.cached(1)
    assert after(module) is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("y != n", "y == n", "`helper`"),
        ("y != n", "y != -n", "`helper`"),
        ("    # a comment\n", "", "`"),
        ("n=3", "n=4", "`helper`"),
        ("deep=(1, 2)", "deep=(1, 3)", "`helper`"),
        ("(x, n=3", "(x, n", "`helper`"),
        ("return x\n", "return -x\n", "`cached`"),
        ("__repr__()", "__str__()", "`Base.run`"),
        ("return 1", "return 2", "`Base.__private`"),
        ("return self.mark", "return self.mark * 2", "`Base.shown`"),
        ("LIMIT = 3", "LIMIT = 4", "`LIMIT`"),
        ("LIMIT = 3", "LIMIT = 3.0", "`LIMIT`"),
        ('("a", "b")', '("a", "c")', "`NAMES`"),
        ('{"a": 1}', '{"a": 2}', "`TABLE`"),
        ('"c", "d"}', '"c", "e"}', "`WORDS`"),
        ('"ee", "ff"', '"ee", "gg"', "`helper`"),
        ('mark = "x"', 'mark = "y"', "`Base.mark`"),
        ("limit = 5", "limit = 6", "`Below.limit`"),
        ("a: int = 1", "a: int = 2", "`Value.a`"),
        ("FIRST = SECOND = 7", "FIRST = SECOND = 8", "`FIRST`"),
        ('"l", ("r", 5)', '"m", ("r", 5)', "`LEFT`"),
        ('"l", ("r", 5)', '"l", ("r", 6)', "`LAST`"),
        ("__secret = 4", "__secret = 5", "`Base.__secret`"),
        ("up, down = 1, 2", "up, down = 1, 3", "`Base.down`"),
        ("(x: int", "(x: str", "`typed`"),
        ("(x: int", "(x", "`typed`"),
        ('"str"', '"int"', "`typed`"),
        (") -> str", ") -> int", "`typed`"),
        ("word: str) -> str:  # of a method", "word: int) -> str:  # of a method", "`Base.said`"),
        ("width: int", "width: str", "`Value.width`"),
        ("A module.", "Another module.", "docstring of the module"),
        ('"""A module."""', "", "docstring of the module"),
        ("What all have.", "What some have.", "docstring of `Base`"),
        ("class Below(Base)", "class Below", "`Below`"),
        ("        cls.seen = True", "        cls.seen = 1", "`Below.__init_subclass__`"),
        ("        return 1\nelse", "        return 3\nelse", "`late`"),
        ("class Colour", "def more():\n    return 1\n\n\nclass Colour", "`more`"),
    ],
)
def test_an_edit_of_what_runs_is_seen(module, old, new, named):
    found = after(module, old, new)
    assert found is not None
    assert named in found.replace("_Base__private", "__private")


@pytest.mark.parametrize(
    "line",
    [
        "module.helper = lambda x, n=3: x",
        "module.helper = len",
        "module.LIMIT = 4",
        "module.Base.run = lambda self: 1",
        "module.Base.mark = 'y'",
        "module.Below.__bases__ = (module.Value,)",
        "module.Base = module.Value",
        "module.helper.__defaults__ = (4,)",
        "module.helper.__kwdefaults__ = {'deep': 1}",
        "module.typed.__annotations__['x'] = str",
        "module.helper.__code__ = module.bump.__code__",
        "del module.helper",
        "del module.LIMIT",
    ],
)
def test_what_was_put_in_the_place_of_something_is_seen(module, line):
    try:
        exec(line)
    except TypeError:
        pytest.skip("this interpreter does not let it happen")
    assert after(module) is not None


def test_a_line_that_moved_within_a_function_is_seen(module):
    _, found, behind = SOURCE.partition("    # a comment\n")
    line = behind.partition("\n")[0] + "\n"
    assert "`helper`" in str(after(module, found + line, line + found))


def test_an_edit_behind_everything_that_is_compared_is_none(module):
    assert after(module, "else:\n", "else:  # nothing\n") is None


def test_annotations_that_are_kept_as_texts_are_compared(lab):
    text = "from __future__ import annotations\n\n\ndef f(x: dict[str, 'A'] | None = None) -> int:\n    return x\n"
    module = lab.load("late.py", text)
    path = str(Path(module.__file__).resolve())
    assert difference(module, text.encode(), path) is None
    assert "`f`" in str(difference(module, text.replace("str", "int", 1).encode(), path))


@pytest.mark.parametrize(
    "text",
    [
        "def worded(c):\n    c.__doc__ = 'b'\n    return c\n\n\n@worded\nclass A:\n    'a'\n",
        "'a'\n__doc__ += 'b'\n",
        "class A:\n    'a'\n    __doc__ = 'b'\n",
        "first, *rest = 1, 2, 3\n",
        "*rest, last = 1, 2, 3\n",
        "T = str\n\n\nclass A:\n    T = int\n\n    def f(self, x: T): ...\n",
        "def f(x: int): ...\n\n\nclass int: ...\n",
        "[first, last], other = (1, 2), 3\nlast = 4\n",
        "A = B = [1]\nB.append(2)\n",
        "def bare(f):\n    f.__annotations__ = {'y': str}\n    return f\n\n\n@bare\ndef f(x: int, y: str): ...\n",
        "import functools\n\n\ndef other(x: str): ...\n\n\n@functools.wraps(other)\ndef f(x: int): ...\n",
        "from typing import NamedTuple\n\n\nclass A(NamedTuple):\n    x: 'int'\n    y: None = None\n",
        "class A:\n    def int(self): ...\n\n    def f(self, x: int): ...\n",
        "class A:\n    x: int\n\n    class int: ...\n",
    ],
)
def test_what_a_file_does_to_its_own_words_and_names_is_no_change(lab, text):
    module = lab.load("own.py", text)
    assert difference(module, text.encode(), str(Path(module.__file__).resolve())) is None


@pytest.mark.parametrize(("old", "new"), [("-> None", "-> int"), ("-> int", "-> None"), ("-> 'int'", "-> None")])
def test_what_is_returned_is_compared(lab, old, new):
    text = f"def f() {old}: ...\n"
    module = lab.load("returned.py", text)
    assert "`f`" in str(difference(module, text.replace(old, new).encode(), str(Path(module.__file__).resolve())))


def test_a_file_that_does_not_compile_is_a_difference(module):
    assert "does not compile" in str(after(module, "def bump", "def def"))


@pytest.mark.parametrize(
    "name", ["argparse", "ast", "dataclasses", "enum", "json.decoder", "logging", "pathlib", "shutil", "textwrap"]
)
def test_a_module_in_common_use_is_what_its_file_says(name):
    module = importlib.import_module(name)
    path = Path(module.__file__).resolve()
    assert difference(module, path.read_bytes(), str(path)) is None


def test_a_package_in_common_use_is_what_its_files_say():
    importlib.import_module("jinja2.sandbox")
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.startswith("jinja2.") and file and file.endswith(".py"):
            path = Path(file).resolve()
            found[name] = difference(module, path.read_bytes(), str(path))
    assert len(found) > 10
    assert {name: said for name, said in found.items() if said is not None} == {}
