"""What the importers make of the samples: a change of it comes with another version of the importer."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tracemark.importers import detect

from .make_golden import GOLDEN, Readings, readings, unraised


@pytest.fixture(scope="module")
def golden() -> Readings:
    known: Readings = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return known


def test_no_reading_changes_without_another_version(golden: Readings) -> None:
    assert unraised(golden, readings()) == []


def test_the_golden_file_is_current(golden: Readings) -> None:
    assert readings() == golden, "python tests/importers/make_golden.py"


def test_every_importer_has_samples(golden: Readings) -> None:
    assert sorted(golden) == sorted(detect.IMPORTERS.names())


@pytest.mark.parametrize("part", ["trajectory", "run", "outcome", None])
def test_another_reading_is_named_until_the_version_is_raised(golden: Readings, part: str | None) -> None:
    now: dict[str, Any] = copy.deepcopy(dict(golden))
    traces = now["journal"]["traces"]
    where = max(traces)
    if part is None:
        del traces[where]
    else:
        traces[where][part] = "0" * 64
    [said] = unraised(golden, now)
    assert f"the importer journal reads 1 samples differently, first {where} ({part or 'outcome, run, traj'}" in said
    assert "raise it" in said
    now["journal"]["version"] += "+"
    assert unraised(golden, now) == []


def test_a_further_sample_needs_no_other_version(golden: Readings) -> None:
    now: dict[str, Any] = copy.deepcopy(dict(golden))
    now["atif"]["traces"]["more.json"] = {"trajectory": "0" * 64, "run": "0" * 64, "outcome": "0" * 64}
    assert unraised(golden, now) == []
