"""The page on failures has the conditions as they are."""

from __future__ import annotations

import re
from pathlib import Path

from tracemark.failures.cluster import CLUSTERS, FEW, LONGEST_TASK, NAMES, TASKS
from tracemark.failures.conditions import NOBODYS, QUARANTINE_BELOW, shipped

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "concepts" / "failures.md").read_text(encoding="utf-8")


def test_the_table_of_conditions_is_that_of_the_shipped_file() -> None:
    rows = re.findall(r"^\| (\d+) \| `([\w-]+)` \| [^|]+ \| (\w+) \| ([\d.]+) \| ([\w-]+) \|$", PAGE, re.MULTILINE)
    found = [(int(order), name, side, float(sure), place) for order, name, side, sure, place in rows]
    assert found == sorted(
        (one.order, one.name, one.side.value, one.confidence, one.destination.value) for one in shipped().ordered
    )
    first = [one.order for one in shipped().ordered if one.side in NOBODYS]
    assert f"({first[0]:g}, {first[1]:g} and\n{first[2]:g} of the shipped ones)" in PAGE
    assert [one.order for one in shipped().ordered[:3]] == first


def test_the_limits_are_those_of_the_program() -> None:
    assert f"below {QUARANTINE_BELOW} it goes into quarantine" in PAGE
    assert f"beyond {CLUSTERS:,} the runs" in PAGE
    assert f"more than {TASKS:,} tasks" in PAGE
    assert f"at most {NAMES + FEW * CLUSTERS:,} names of tasks, each\ncut after {LONGEST_TASK} characters" in PAGE
    assert f"Where clusters have more\nthan {NAMES:,} tasks together, the later ones by id remember {FEW} each" in PAGE
