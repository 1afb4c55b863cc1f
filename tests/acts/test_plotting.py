"""The data files of the plots, made from reports on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracemark import digest
from tracemark.acts import plotting
from tracemark.errors import NewerFormatError, UsageError
from tracemark.gates.cell import Attempt, Cell, Model, Pair
from tracemark.gates.compare import compare
from tracemark.gates.report import stored
from tracemark.gates.terms import Half, Terms

MODEL = Model("m", "1", None, None, None, None)
OLD, NEW = ("tm1:" + letter * 64 for letter in "ab")


def cell(harness: str, successes: int) -> Cell:
    made = [
        Attempt(
            trace=digest.of([harness, task, at]),
            task=task,
            attempt=at,
            status="success" if at < successes else "failure",
            grader=("g", "1"),
            cost=1.0,
            evidence="recorded",
            model=MODEL,
            fingerprint=harness,
        )
        for task in "abcdef"
        for at in range(2)
    ]
    return Cell.of(Pair(harness, MODEL), made, {"prompt_templates": harness[4:]})


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The report of a candidate that solves more tasks."""
    path = tmp_path / "harness-new.json"
    made = stored(compare(cell(OLD, 1), cell(NEW, 2), Terms(half=Half.HARNESS, attempts=2)))
    path.write_bytes(digest.canonical(made.model_dump(mode="json")))
    return path


def test_a_candidate_is_called_by_the_name_of_its_report(report: Path, tmp_path: Path) -> None:
    out = tmp_path / "plots"
    answer = plotting.write(tmp_path, [report], out)
    assert answer.reports == ("harness-new",)
    assert sorted(answer.files) == sorted(str(out / f"{name}.json") for name in ("pass-all", "cost", "changes"))
    assert json.loads((out / "pass-all.json").read_text()) == [
        {"k": 1, "accepted": 0.5, "harness-new": 1.0},
        {"k": 2, "accepted": 0.0, "harness-new": 1.0},
    ]
    assert json.loads((out / "changes.json").read_text())[0] == {"gate": "harness-new: up", "tasks": 6}


def test_two_reports_of_one_name_are_refused(report: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / report.name
    other.write_bytes(report.read_bytes())
    with pytest.raises(UsageError, match="two reports are called harness-new"):
        plotting.write(tmp_path, [report, other], tmp_path / "plots")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a JSON value"),
        ("[]", "no report of a gate"),
        ("{}", "no report of a gate: half: missing"),
        ('{"format": "tracemark/attribution/1"}', "no report of a gate: format"),
    ],
)
def test_what_is_no_report_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as refused:
        plotting.write(tmp_path, [path], tmp_path / "plots")
    assert refused.value.where == str(path)
    assert not (tmp_path / "plots").exists()


def test_a_report_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: there is no such file"):
        plotting.write(tmp_path, [tmp_path / "x.json"], tmp_path / "plots")


def test_a_report_of_a_newer_program_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"format": "tracemark/gate/2"}')
    with pytest.raises(NewerFormatError, match="gate/2"):
        plotting.write(tmp_path, [tmp_path / "x.json"], tmp_path / "plots")


def test_plots_replace_nothing_but_earlier_plots(report: Path, tmp_path: Path) -> None:
    out = tmp_path / "plots"
    plotting.write(tmp_path, [report], out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    plotting.write(tmp_path, [report], out)
    # a report that lies where a plot is to go, and is called as one
    (out / "changes.json").write_bytes(report.read_bytes())
    (out / "cost.json").unlink()
    with pytest.raises(UsageError, match="the file holds no plot") as stopped:
        plotting.write(tmp_path, [report], out)
    assert stopped.value.where == str(out / "changes.json")
    assert (out / "changes.json").read_bytes() == report.read_bytes()
    # nothing is written when one of them cannot be
    assert not (out / "cost.json").exists()
    assert (out / "pass-all.json").read_bytes() == before["pass-all.json"]


def test_plots_go_into_no_file(report: Path, tmp_path: Path) -> None:
    (tmp_path / "plots").write_text("mine")
    with pytest.raises(UsageError, match="not a folder"):
        plotting.write(tmp_path, [report], tmp_path / "plots")
