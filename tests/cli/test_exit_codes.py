"""Every exit code of the table is reached for real: a corpus is brought into the state that the code stands for."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark import durable
from tracemark.cli.command_table import COMMANDS, exits
from tracemark.cli.main import run

PROMPT = "You answer the customers of a shop. Look an order up before you change it, and say what you did.\n"
MANIFEST = """\
format: tracemark/harness/1
name: {name}
prompt_templates:
  - {{name: system, file: system.txt, syntax: literal}}
"""

Scenario = Callable[[Path], list[str]]
SCENARIOS: dict[str, tuple[int, Scenario]] = {}


def scenario(code: int) -> Callable[[Scenario], Scenario]:
    """Register a function that spoils a corpus and returns the command that must end with `code`."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = (code, function)
        return function

    return register


def document(task: str, prompt: str = PROMPT, said: str = "Done.") -> dict[str, object]:
    return {
        "schema_version": "ATIF-v1.6",
        "session_id": f"session-{task}",
        "agent": {"name": "desk", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "system", "message": prompt},
            {"step_id": 2, "source": "user", "message": f"Please see to {task}."},
            {"step_id": 3, "source": "agent", "message": said},
        ],
    }


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with one harness version and two traces that are claimed and corroborated for it."""
    root = tmp_path_factory.mktemp("pattern") / "corpus"
    assert run(["init", str(root)]) == 0
    version = root / "harness_versions" / "desk_a"
    version.mkdir()
    (version / "harness.yaml").write_text(MANIFEST.format(name="desk_a"))
    (version / "system.txt").write_text(PROMPT)
    batch = root / "inbox" / "first"
    batch.mkdir()
    (batch / "runs.jsonl").write_text("".join(json.dumps(document(task)) + "\n" for task in ("t-1", "t-2")))
    assert run(["--root", str(root), "ingest", str(batch), "--harness", "desk_a"]) == 0
    return root


@pytest.fixture
def corpus(pattern: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the corpus, to be spoiled, as the working directory."""
    root = tmp_path / "corpus"
    shutil.copytree(pattern, root)
    monkeypatch.chdir(root)
    return root


def ask(*arguments: str) -> Any:
    """Return the answer of a command that must succeed."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(stream):
        assert run([*arguments, "--output", "json"]) == 0
    return json.loads(stream.buffer.getvalue())


def first_trace() -> str:
    return str(ask("traces", "list")["traces"][0]["trace_id"])


def segment(root: Path) -> Path:
    return next((root / "traces" / "segments").rglob("*.jsonl.zst"))


@scenario(1)
def a_retraction_that_is_not_there(root: Path) -> list[str]:
    return ["reinstate", first_trace(), "--reason", "mistake"]


@scenario(1)
def harnesses_that_differ(root: Path) -> list[str]:
    version = root / "harness_versions" / "desk_b"
    version.mkdir()
    (version / "harness.yaml").write_text(MANIFEST.format(name="desk_b"))
    (version / "system.txt").write_text(PROMPT + "Be brief.\n")
    return ["harness", "diff", "desk_a", "desk_b"]


@scenario(1)
def a_run_that_its_claimed_harness_cannot_have_made(root: Path) -> list[str]:
    (root / "inbox" / "other.json").write_text(json.dumps(document("t-3", prompt="Another prompt altogether.")))
    return ["ingest", "inbox/other.json", "--harness", "desk_a"]


@scenario(2)
def an_unknown_harness(root: Path) -> list[str]:
    return ["harness", "show", "nobody"]


@scenario(2)
def a_misspelt_parameter(root: Path) -> list[str]:
    (root / "params.yaml").write_text("acepted: {}\n")
    return ["ingest", "inbox/first"]


@scenario(2)
def an_unknown_key_in_a_manifest(root: Path) -> list[str]:
    (root / "harness_versions" / "desk_a" / "harness.yaml").write_text(MANIFEST.format(name="desk_a") + "promt: x\n")
    (root / "traces" / "harnesses").rename(root / "elsewhere")
    return ["harness", "show", "desk_a"]


@scenario(2)
def an_export_into_a_file(root: Path) -> list[str]:
    assert run(["harness", "accept", "desk_a", "--reason", "first"]) == 0
    params = root / "params.yaml"
    params.write_text(params.read_text().replace("minimum: 20", "minimum: 1").replace("[2, 60]", "null"))
    won = {**document("t-3"), "extra": {"tracemark": {"run": {"task": "t-3"}, "outcome": {"status": "success"}}}}
    (root / "inbox" / "won.json").write_text(json.dumps(won))
    assert run(["ingest", "inbox/won.json", "--harness", "desk_a"]) == 0
    return ["export", "sft", "--out", "params.yaml/x"]


@scenario(2)
def a_corpus_to_be_made_below_a_file(root: Path) -> list[str]:
    return ["init", "params.yaml/x"]


@scenario(2)
def a_file_where_the_store_belongs(root: Path) -> list[str]:
    (root / "new").mkdir()
    (root / "new" / "traces").write_text("")
    return ["init", "new"]


@scenario(2)
def a_dead_link_where_the_store_belongs(root: Path) -> list[str]:
    (root / "new").mkdir()
    (root / "new" / "traces").symlink_to(root / "nowhere" / "at all")
    return ["init", "new"]


@scenario(2)
def a_folder_where_the_ledger_belongs(root: Path) -> list[str]:
    (root / "ledger.jsonl").unlink()
    (root / "ledger.jsonl").mkdir()
    return ["traces", "list"]


@scenario(2)
def a_file_where_the_catalogue_belongs(root: Path) -> list[str]:
    shutil.rmtree(root / ".tracemark")
    (root / ".tracemark").write_text("")
    return ["ingest", "inbox/first"]


@scenario(30)
def a_store_that_names_no_format(root: Path) -> list[str]:
    (root / "traces" / "STORE").write_text("{}")
    return ["init", "."]


@scenario(10)
def no_store(root: Path) -> list[str]:
    (root / "traces").rename(root / "elsewhere")
    return ["traces", "list"]


def pin_more_than_there_is(root: Path) -> None:
    (root / "dvc.lock").write_text(
        "schema: '2.0'\nstages:\n  ingest:\n    cmd: tracemark ingest inbox\n    outs:\n"
        "    - {path: traces/segments, md5: 0123456789abcdef0123456789abcdef.dir, nfiles: 9}\n"
    )


@scenario(10)
def data_that_is_not_pulled(root: Path) -> list[str]:
    pin_more_than_there_is(root)
    return ["ingest", "inbox/first"]


@scenario(10)
def data_that_is_not_pulled_to_be_listed(root: Path) -> list[str]:
    pin_more_than_there_is(root)
    return ["traces", "list"]


@scenario(12)
def a_store_of_a_newer_program(root: Path) -> list[str]:
    (root / "traces" / "STORE").write_text('{"format": "tracemark/store/9"}\n')
    return ["traces", "list"]


@scenario(20)
def a_source_with_nothing_in_it(root: Path) -> list[str]:
    (root / "inbox" / "empty.jsonl").write_text("")
    return ["ingest", "inbox/empty.jsonl"]


@scenario(30)
def a_segment_whose_bytes_have_changed(root: Path) -> list[str]:
    trace = first_trace()
    path = segment(root)
    data = path.read_bytes()
    path.write_bytes(data[:16] + bytes(byte ^ 0xFF for byte in data[16:]))
    return ["traces", "show", trace]


@scenario(31)
def a_ledger_that_was_edited(root: Path) -> list[str]:
    assert run(["harness", "accept", "desk_a", "--reason", "first"]) == 0
    trace = first_trace()
    ledger = root / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"first"', '"other"'))
    return ["retract", trace, "--reason", "mistake"]


@scenario(40)
def an_export_with_too_few_traces(root: Path) -> list[str]:
    assert run(["harness", "accept", "desk_a", "--reason", "first"]) == 0
    return ["export", "sft", "--out", "exports/sft"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_corpus_with(name: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, spoil = SCENARIOS[name]
    arguments = spoil(corpus)
    capsys.readouterr()
    assert run([*arguments, "--output", "json"]) == code
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert "Traceback" not in err
    assert answer.get("exit_code", code) == code
    assert code == 1 or answer.get("hint") or answer["findings"][0]["hint"]
    assert code in exits(command_of(arguments))


def test_a_ledger_that_is_being_written(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = first_trace()
    (corpus / "ledger.jsonl").write_text('{"format":"tracemark/led')
    with durable.lock(corpus / ".tracemark" / "ledger.lock"):
        assert run(["reinstate", trace, "--reason", "mistake", "--output", "json"]) == 11
    assert json.loads(capsys.readouterr().out)["error"] == "LockedError"


def test_every_exit_code_is_reached() -> None:
    # 11 and 70 have tests of their own, the latter in test_main: a bug cannot be arranged from outside
    assert {code for code, _ in SCENARIOS.values()} | {0, 11, 70} == set(exits(""))


def command_of(arguments: list[str]) -> str:
    """Return the path of the command that arguments name."""
    return arguments[0] if arguments[0] in COMMANDS else " ".join(arguments[:2])
