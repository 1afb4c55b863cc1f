from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracemark.cli import commands
from tracemark.cli.app import build, load
from tracemark.cli.command_table import COMMANDS, GROUPS, epilog, exits
from tracemark.cli.main import run
from tracemark.errors import NegativeAnswerError

HEAVY = [
    "pydantic", "pydantic_core", "rich", "sqlite_utils", "sqlite3", "jsonschema_rs", "ruamel", "pyarrow", "dvc",
    "jinja2", "zstandard", "orjson", "importlib.metadata", "concurrent.futures.process", "multiprocessing", "datasette",
    "ray", "tracemark.acts", "tracemark.store", "tracemark.model", "tracemark.harness",
]  # fmt: skip
PLACES = ["", *GROUPS, *COMMANDS]


def modules_after(*arguments: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded when the program has run."""
    code = (
        "import sys, json, contextlib, io\n"
        "from tracemark.cli.main import run\n"
        "with contextlib.redirect_stdout(io.StringIO()): run(json.loads(sys.argv[1]))\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    loaded = modules_after(argument)
    assert [name for name in HEAVY if name in loaded] == []


def test_one_file_is_ingested_without_the_machinery_for_many_or_for_terminals(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path)]) == 0
    steps = [
        {"step_id": 1, "source": "user", "message": "Where is it?"},
        {"step_id": 2, "source": "agent", "message": ""},
    ]
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": steps}
    (tmp_path / "inbox" / "a.json").write_text(json.dumps(document))
    loaded = modules_after("--root", str(tmp_path), "ingest", str(tmp_path / "inbox" / "a.json"))
    unused = (
        "rich",
        "sqlite_utils",
        "jinja2",
        "multiprocessing",
        "concurrent.futures.process",
        "tracemark.model.trajectory",
    )
    assert [name for name in unused if name in loaded] == []
    assert "tracemark.importers.atif" in loaded


def test_help_of_a_group_loads_none_of_its_commands() -> None:
    loaded = modules_after("harness", "--help")
    assert not [name for name in loaded if name.startswith(("tracemark.acts", "tracemark.cli.commands."))]


def test_every_module_of_commands_is_in_the_table_and_the_other_way_round() -> None:
    folder = Path(str(commands.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == {path.replace(" ", "_") for path in COMMANDS}


def test_every_group_of_the_table_has_commands() -> None:
    assert set(GROUPS) == {path.split()[0] for path in COMMANDS if " " in path}


@pytest.mark.parametrize("path", COMMANDS)
def test_the_table_and_the_help_page_say_the_same(path: str) -> None:
    assert load(path).help.splitlines()[0] == COMMANDS[path].help


@pytest.mark.parametrize("path", PLACES)
def test_every_help_page_ends_with_its_exit_codes(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*path.split(), "--help"]) == 0
    page = capsys.readouterr().out.rstrip("\n")
    codes = "\n".join(f"  {line}" for line in epilog(path).splitlines()[1:])
    assert page.endswith(codes)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_names_success_usage_and_bugs(path: str) -> None:
    assert {0, 2, 70} <= set(exits(path))


def test_a_group_has_the_codes_of_its_commands() -> None:
    assert set(exits("traces")) == set(exits("traces list")) | set(exits("traces show")) | set(exits("traces find"))


def test_what_a_negative_answer_is_each_command_says_in_words_of_its_own() -> None:
    assert exits("gate model")[1] == "the answer is no: the candidate is rejected"
    assert exits("harness diff")[1].startswith("the answer is no: they differ")
    assert exits("traces")[1] == exits("traces list")[1] == "the answer is no: findings of severity error"
    # a group has no words for commands that mean different things
    assert exits("gate")[1] == exits("")[1] == NegativeAnswerError.meaning
    assert {path for path in COMMANDS if 1 not in exits(path)} == {
        "init",
        "gate attribute",
        "model accept",
        "pipeline plots",
    }


def test_every_reporting_command_takes_output() -> None:
    silent = {"pipeline dvcfile"}
    without = {path for path in COMMANDS if not any("--output" in param.opts for param in load(path).params)}
    assert without == silent


def test_the_tree_knows_every_command_by_name() -> None:
    tree = build()
    for path in COMMANDS:
        node = tree
        for name in path.split():
            node = node.commands[name]
        assert node.get_short_help_str(200) == COMMANDS[path].help.rstrip(".") + "."


def test_init_lays_out_the_folder_that_is_named_or_that_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["--root", str(tmp_path / "there"), "init"]) == 0
    assert (tmp_path / "there" / "params.yaml").is_file()
    assert not any((tmp_path / "here").iterdir())
    assert run(["init"]) == 0
    assert (tmp_path / "here" / "params.yaml").is_file()
