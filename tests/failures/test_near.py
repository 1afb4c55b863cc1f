"""Clusters with similar lines, and what is said where they cannot be compared."""

from __future__ import annotations

import sys

import pytest

from tracemark.errors import UsageError
from tracemark.failures.cluster import Clusters, Incident
from tracemark.failures.near import LEAST, near

LINES = ("Error: order <n> is locked", "Error: the order <n> is locked", "ModuleNotFoundError: No module named <text>")


@pytest.fixture
def clusters() -> Clusters:
    found = Clusters()
    for line in LINES:
        found.add(Incident(line.encode().hex()[:64], "tm1:a", "look", line, None, None))
    found.add(Incident("f" * 64, "tm1:b", "order", LINES[0], None, None))
    return found


def test_the_most_alike_come_first_and_the_one_that_is_asked_about_is_no_answer(clusters: Clusters) -> None:
    asked = next(one for one in clusters if (one.fingerprint, one.masked) == ("tm1:a", LINES[0]))
    found = near(clusters, asked.masked, asked.id)
    assert [(one.cluster.fingerprint, one.cluster.masked) for one in found] == [
        ("tm1:b", LINES[0]),
        ("tm1:a", LINES[1]),
    ]
    assert found[0].similarity == 100.0 > found[1].similarity >= LEAST


def test_lines_of_one_likeness_come_by_id(clusters: Clusters) -> None:
    found = near(clusters, LINES[0], "")
    assert [one.cluster.id for one in found[:2]] == sorted(one.cluster.id for one in found[:2])


def test_without_rapidfuzz_the_command_that_installs_it_is_named(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.fuzz", None)
    with pytest.raises(UsageError) as stopped:
        near(clusters, LINES[0], "")
    assert stopped.value.hint == "pip install rapidfuzz"


def test_runs_in_which_no_call_failed_are_not_alike_for_the_name_of_their_condition() -> None:
    found = Clusters()
    for number, harness in enumerate(("tm1:a", "tm1:b")):
        found.add(Incident(f"{number}" * 64, harness, None, "(stopped-early)", None, None))
        found.add(Incident(f"{number + 2}" * 64, harness, "look", "(stopped-early)", None, None))
    assert [one.cluster.tool for one in near(found, "(stopped-early)", "")] == ["look", "look"]
