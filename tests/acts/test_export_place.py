"""Where nothing is written, whichever command is told to write there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracemark.cli.main import run as tracemark
from tracemark.durable import is_there

from .evaluated import Bench

COMMANDS = [
    ("export", "sft"),
    ("export", "atif"),
    ("failures", "export"),
    ("plan",),
    ("gate", "harness", "--candidate", "desk_b"),
    ("gate", "model", "--candidate", "m@2"),
    ("gate", "attribute", "--harness", "desk_b", "--model", "m@2"),
    ("pipeline", "plots", "x.json"),
]
FILES = ["ledger.jsonl", "params.yaml", "dvc.yaml", "dvc.lock", ".gitignore"]
READ = [*FILES, "inbox/x", "traces/x", ".git/x", ".dvc", "harness_versions", "domains/x", "reports/decisions/x.json"]


def state(root: Path) -> dict[str, bytes | None]:
    found = (path for path in root.rglob("*") if ".tracemark" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_writes_where_the_corpus_keeps_what_it_reads(
    bench: Bench, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(bench.root)
    for place in READ:
        assert tracemark(["--root", str(bench.root), *command, "--out", str(bench.root / place)]) == 2, place
        assert "the corpus keeps what it reads there" in capsys.readouterr().err, place
    assert state(bench.root) == before


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_takes_a_folder_in_which_others_have_their_places(
    bench: Bench, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(bench.root)
    for place in ("exports", "reports", "exports/sft/.."):
        assert tracemark(["--root", str(bench.root), *command, "--out", str(bench.root / place)]) == 2, place
        assert f"cannot take the place of {place[:7]}/" in capsys.readouterr().err, place
    assert state(bench.root) == before


OF_OTHERS = {
    "export": ["failures", "failures/x", "reports/x", "reports/gates/b.json"],
    "failures": ["exports/x", "exports/sft", "reports/x"],
    "plan": ["exports/sft/manifest.json", "exports/x", "failures", "failures/x.json"],
}


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_writes_where_another_kind_has_its_place(
    bench: Bench, command: tuple[str, ...], there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("exports/sft", "failures", "reports") if there else ():
        (bench.root / name).mkdir(parents=True, exist_ok=True)
    before = state(bench.root)
    for place in OF_OTHERS.get(command[0], OF_OTHERS["plan"]):
        assert tracemark(["--root", str(bench.root), *command, "--out", str(bench.root / place)]) == 2, place
        said = capsys.readouterr().err
        assert f"lie in {place.partition('/')[0]}/" in said, place
        assert "name a place of its own, such as " in said, place
    assert state(bench.root) == before


@pytest.mark.parametrize("command", [one for one in COMMANDS if one[0] in ("plan", "gate")], ids=" ".join)
@pytest.mark.parametrize("lies", ["folder", "text", "link"])
def test_a_file_is_written_over_none_of_another_kind(
    bench: Bench, command: tuple[str, ...], lies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = bench.root / "mine"
    {"folder": out.mkdir, "text": lambda: out.write_text("mine"), "link": lambda: out.symlink_to("nowhere")}[lies]()
    assert tracemark(["--root", str(bench.root), *command, "--out", str(out)]) == 2
    assert "the file holds no " in capsys.readouterr().err
    assert is_there(out)
