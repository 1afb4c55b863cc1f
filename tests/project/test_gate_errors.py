"""What is told of how often a gate errs was decided by the gate itself, is what the table holds, and would show."""

from __future__ import annotations

import csv
import importlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.gates.evaluations import NEW, cell
from tracemark.gates.compare import compare
from tracemark.gates.terms import Half, Policy, Terms
from tracemark.stats.counts import Counts

ROOT = Path(__file__).resolve().parents[2]
SIMULATION = ROOT / "benchmarks" / "simulate_gates.py"
REFERENCE = ROOT / "docs" / "reference"
FIGURES = ("significant", "cotrace", "ties", "inside_noise")
TABLE, PICTURE = REFERENCE / "gate-errors.csv", REFERENCE / "gate-errors.svg"


@pytest.fixture
def simulation() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SIMULATION.parent)
        yield importlib.import_module("simulate_gates")


@pytest.fixture
def errors() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("gate_errors")


def table(path: Path = TABLE) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ran(*arguments: str, workers: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SIMULATION), *arguments]
    environment = os.environ | {"TRACEMARK_WORKERS": str(workers)}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("number", [1, 4, 20])
def test_a_verdict_is_that_of_the_gate(simulation: ModuleType, number: int) -> None:
    chance = random.Random(number)
    seen = set()
    for _ in range(60):
        lift = chance.choice([0, 0, 1])
        before = {f"desk/{at}": chance.choice([0, number, chance.randint(0, number)]) for at in range(9)}
        after = {
            task: min(number, chance.choice([done, chance.randint(0, number)]) + lift * number)
            for task, done in before.items()
        }
        terms = Terms(Half.HARNESS, attempts=number)
        found = compare(cell(before, number), cell(after, number, NEW), terms).measured
        assert found is not None
        sides = ({task: Counts(number, done) for task, done in side.items()} for side in (before, after))
        verdict = simulation.judge(*sides, number)
        accepted = {policy: decision.accepted for policy, decision in found.decisions.items()}
        assert verdict == (
            len(found.ups),
            len(found.downs),
            accepted[Policy.SIGNIFICANT],
            accepted[Policy.COTRACE],
            found.noise.tasks,
        )
        inside = simulation.tally_of(verdict).inside
        assert bool(inside) == bool(found.inside_noise)
        seen.add((accepted[Policy.SIGNIFICANT], accepted[Policy.COTRACE], found.difference == 0))
    assert seen >= {(True, True, False), (False, True, False), (False, False, False), (False, True, True)}


def test_a_few_draws_of_the_command_of_the_table_show_its_direction(tmp_path: Path) -> None:
    script, *arguments = table()[0]["command"].split()
    assert ROOT / script == SIMULATION
    done = ran(*arguments, "--draws", "300", "--attempts", "1", "4", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = {(row["attempts"], row["spread"], row["gain"]): row for row in table(tmp_path / "gate-errors.csv")}
    assert len(rows) == 14
    few_draws = 3 * (0.25 / 300) ** 0.5
    for row in table():
        mine = rows.get((row["attempts"], row["spread"], row["gain"]))
        if mine:
            known = [name for name in FIGURES if row[name]]
            assert known == [name for name in FIGURES if mine[name]]
            assert [name for name in known if abs(float(mine[name]) - float(row[name])) > few_draws] == []
    for number in ("1", "4"):
        identical, better = rows[number, "same", "0"], rows[number, "all", "8"]
        assert float(identical["significant"]) < 0.09
        assert float(identical["cotrace"]) > 0.4
        assert float(identical["significant"]) < float(better["significant"]) <= float(better["cotrace"])
    assert done.stdout.splitlines()[-1] == "300 draws a row, seed 4: standard error at most 2.89 points"


def test_the_same_seed_gives_the_same_files_with_any_number_of_workers(tmp_path: Path) -> None:
    small = ("--draws", "600", "--attempts", "2", "--gains", "1", "--tasks", "60")
    for name, seed, workers in (("one", "7", 1), ("two", "7", 2), ("other", "8", 2)):
        done = ran(*small, "--seed", seed, "--out", str(tmp_path / name), workers=workers)
        assert done.returncode == 0, done.stderr
    made = {name: [path.read_bytes() for path in sorted((tmp_path / name).iterdir())] for name in ("one", "two")}
    assert len(made["one"]) == 2
    assert made["one"] == made["two"]
    assert figures(tmp_path / "one") != figures(tmp_path / "other")


def figures(folder: Path) -> list[list[str]]:
    return [[row[name] for name in FIGURES] for row in table(folder / "gate-errors.csv")]


@pytest.mark.parametrize("spread", ["few", "all"])
def test_a_better_candidate_is_better_by_the_gain_and_nowhere_worse(simulation: ModuleType, spread: str) -> None:
    rates = np.random.default_rng(3).beta(0.6, 0.4, (50, 40))
    grown = simulation.better(rates, 4, spread)
    assert np.allclose((grown - rates).sum(axis=1), 4)
    assert (grown >= rates - 1e-12).all()
    assert (grown <= 1).all()
    changed = (grown > rates + 1e-9).sum(axis=1)
    assert (changed <= 6).all() if spread == "few" else (changed > 30).all()
    assert (simulation.better(rates, 0, "same") == rates).all()


def test_a_gain_that_no_candidate_can_have_is_refused(simulation: ModuleType) -> None:
    with pytest.raises(SystemExit, match="a gain of 4 tasks is more than"):
        simulation.better(np.full((2, 30), 0.9), 4, "few")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--mixture", "0.5:1:1"), "do not sum to 1"),
        (("--mixture", "1:0:1"), "is not WEIGHT:A:B"),
        (("--mixture", "half"), "is not WEIGHT:A:B"),
        (("--draws", "0"), "is not a whole number from 1 up"),
        (("--attempts", "two"), "is not a whole number from 1 up"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_words(arguments: tuple[str, str], words: str) -> None:
    done = ran(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_shows_the_table_and_nothing_of_it_is_refuted() -> None:
    command = [sys.executable, ROOT / "docs" / "gate_errors.py", "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    identical = {row["attempts"]: float(row["significant"]) for row in table() if row["spread"] == "same"}
    assert set(identical) == {"1", "4", "20"}
    assert max(identical.values()) <= 0.05


def test_the_picture_is_drawn_from_the_table(tmp_path: Path) -> None:
    done = ran("--from", str(TABLE), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / TABLE.name).read_bytes() == TABLE.read_bytes()
    assert (tmp_path / PICTURE.name).read_bytes() == PICTURE.read_bytes()


@pytest.mark.parametrize(
    ("which", "changes", "words"),
    [
        (("4", "same", "0"), {"significant": "0.05100"}, "promotes 5.1 % of identical candidates"),
        (("20", "same", "0"), {"inside_noise": "0.95000"}, "the noise floor is not too low"),
        (("4", "few", "8"), {"cotrace": "0.10000"}, "cotrace does not miss less"),
        (("20", "all", "4"), {"significant": "0.01000"}, "more attempts do not find it"),
        (("20", "few", "4"), {"significant": "0.90000"}, "more attempts find it"),
        (("1", "few", "2"), {"draws": "10000"}, "standard error of 0.50 points"),
        (("1", "few", "2"), {"seed": "5"}, "another simulation"),
    ],
)
def test_a_table_that_refutes_the_page_is_told(
    errors: ModuleType, which: tuple[str, ...], changes: dict[str, str], words: str
) -> None:
    rows = table()
    assert errors.refuted(rows) == []
    at = next(row for row in rows if (row["attempts"], row["spread"], row["gain"]) == which)
    at.update(changes)
    assert any(words in sentence for sentence in errors.refuted(rows))


@pytest.mark.parametrize("touched", ["gate-errors.md", "gate-errors.csv", "gate-errors.svg"])
def test_the_check_sees_each_of_the_three_files_change(
    errors: ModuleType,
    touched: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("PAGE", "TABLE", "PICTURE"):
        original = getattr(errors, name)
        shutil.copy(original, tmp_path)
        monkeypatch.setattr(errors, name, tmp_path / original.name)
    assert errors.main(["--check"]) == 0
    text = (tmp_path / touched).read_text(encoding="utf-8")
    changed = text.replace("0.9", "0.8", 1) if touched.endswith(".csv") else text.replace("gate-errors.csv ", "", 1)
    changed = text.replace("An identical", "The identical", 1) if touched.endswith(".md") else changed
    assert changed != text
    (tmp_path / touched).write_text(changed, encoding="utf-8")
    assert errors.main(["--check"]) == 1
    assert capsys.readouterr().out
    assert (tmp_path / touched).read_text(encoding="utf-8") == changed
