"""What one Python file imports and does, read from its text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.source import Import, Source, UnparsableError, read


def hazards(text):
    return [(found.line, found.message.split()[0]) for found in read(text.encode()).hazards]


def read_or_refused(raw):
    """Whether the bytes were read, or refused with a reason."""
    try:
        return isinstance(read(raw), Source)
    except UnparsableError as error:
        return bool(str(error))


def test_each_import_keeps_its_line_its_dots_and_its_names():
    text = "import a.b as c, d\nfrom . import e\nfrom ..f.g import h as i, j\nfrom k import *\n"
    assert read(text.encode()).imports == (
        Import(1, 0, ("a", "b"), None),
        Import(1, 0, ("d",), None),
        Import(2, 1, (), ("e",)),
        Import(3, 2, ("f", "g"), ("h", "j")),
        Import(4, 0, ("k",), ("*",)),
    )


def test_a_name_that_is_imported_from_elsewhere_is_not_the_built_in_one():
    assert hazards("from re import compile\nfrom mine import exec\ncompile('a')\nexec(2)") == []


def test_an_attribute_is_not_the_built_in_of_its_name():
    assert hazards("import re\nre.compile('a')\nmodel.eval()\nself.open()\ncls.open()\nself.open = door") == []


@pytest.mark.parametrize(
    "text",
    [
        "import pathlib; pathlib.Path.open(p)",
        "import tarfile; tarfile.open('x')",
        "from tarfile import open as unpack; unpack('x')",
        "import tarfile; tarfile.TarFile('x')",
        "from mine import open; open('x')",
        "from .mine import open; open('x')",
        "import mine; mine.door.open('x')",
        "path.open()",
        "self.path.open()",
        "read = path.open",
        "Path('x').open()",
        "import shelve; shelve.open('x')",
        "import zipfile; zipfile.ZipFile('x')",
        "from zipfile import *; ZipFile('x')",
        "import sqlite3 as db; db.connect('x')",
        "import io; io.FileIO('x')",
        "import xml.etree.ElementTree as tree; tree.parse('x')",
        "x: io.FileIO = 1; import io; y: list = io.FileIO('x')",
        "import fileinput\nfor line in fileinput.input('x'): pass",
    ],
)
def test_whatever_opens_a_file_is_a_hazard(text):
    assert {message for _, message in hazards(text)} == {"opens"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import mine; mine.__file__", "uses"),
        ("import mine; mine.sub.__path__", "uses"),
        ("import mine; mine.__spec__.origin", "uses"),
        ("thing.__builtins__", "reaches"),
        ("list(map(Path.read_text, paths))", "reads"),
        ("import configparser; configparser.ConfigParser().read('x.ini')", "reads"),
        ("from configparser import ConfigParser\nparser = ConfigParser()\nparser.read(name)", "reads"),
        ("import pickle; pickle.loads(DATA)", "restores"),
        ("import pickle\nclass Mine(pickle.Unpickler): pass", "restores"),
        ("import ctypes", "uses"),
        ("import sys; sys.executable", "uses"),
        ("import subprocess; subprocess.run(['python', 'tool.py'])", "runs"),
        ("import subprocess; subprocess.run(args=[str(HERE / 'tool.py')])", "runs"),
        ("from subprocess import Popen as start; start('./run.sh --fast', shell=True)", "runs"),
        ("import os; os.system('python3 tool')", "runs"),
        ("import os; os.execv('tool.py', [])", "runs"),
        ("import asyncio; asyncio.create_subprocess_exec('node', 'tool.mjs')", "runs"),
    ],
)
def test_what_brings_in_a_file_by_another_way_is_a_hazard(text, word):
    assert {message for _, message in hazards(text)} == {word}


@pytest.mark.parametrize(
    "text",
    [
        "import sqlite3\ndef f(desk: sqlite3.Connection, c: sqlite3.Cursor) -> list: pass",
        "import zipfile\ndef f() -> zipfile.ZipFile | None: pass\nx: zipfile.ZipFile",
        "import configparser; configparser.ConfigParser().read_string('')",
        "stream.read(10)",
        "import subprocess; subprocess.run(['git', 'diff'])",
        "import subprocess; subprocess.run(['bash', '-c', command])",
        "import subprocess; subprocess.run(command, shell=True)",
        "import json, pickle; json.loads(x); pickle.dumps(x)",
    ],
)
def test_what_brings_in_no_text_is_no_hazard(text):
    assert hazards(text) == []


def test_a_built_in_counts_without_being_called():
    assert hazards("run = exec") == [(1, "executes")]


def test_a_hazard_is_named_once_per_line():
    assert hazards("eval(eval('1'))\neval('2')") == [(1, "executes"), (2, "executes")]


def test_variables_of_the_environment_are_named_where_the_text_names_them():
    named = "os.environ['A'], os.environ.get('B'), os.getenv('C'), 'D' in os.environ"
    text = f"import os\n{named}\nos.environ[x]\nos.environ\n"
    assert [tuple(use) for use in read(text.encode()).environment] == [
        (2, "A"), (2, "B"), (2, "C"), (2, "D"), (3, None), (4, None),
    ]  # fmt: skip


def test_a_mapping_of_another_name_is_no_environment():
    assert read(b"environ = {}\nenviron['A']\nconfig.environ.get('B')\n").environment == ()


def test_all_names_what_a_star_brings():
    assert read(b"__all__ = ['a', *b]\n__all__ += ('c',)\n__all__: list = ['d']\nother = ['e']\n").exported == (
        "a",
        "c",
        "d",
    )


def test_an_odd_escape_in_a_string_is_no_error():
    assert read(b"x = '\\d'\ny = 1 is 1\n").imports == ()


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_read_or_refused(raw):
    assert read_or_refused(raw)


@given(st.text(st.sampled_from("import fromas()[].*:\n\t'x=#"), max_size=60))
def test_text_of_any_form_is_read_or_refused(text):
    assert read_or_refused(text.encode())


@pytest.mark.parametrize("text", ["x = " + "(" * 150 + ")" * 150, "x = " + "-" * 5000 + "1", "a" + ".b" * 5000])
def test_a_deep_nest_is_read_or_refused(text):
    assert read_or_refused(text.encode())
