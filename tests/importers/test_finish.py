"""What is the same at the end of every import."""

from __future__ import annotations

import pytest

from tracemark.importers.base import Document, Imported, Record
from tracemark.importers.detect import importer
from tracemark.importers.finish import CHANGES, Draft, finish


def mixed(*changes: str) -> tuple[str, ...]:
    trajectory = {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "Do it."}],
    }
    draft = Draft(trajectory, {}, {"status": "unknown"}, mixed=list(changes))
    made = finish(importer("atif"), Record(b"{}", "a.json", "a.json"), Document({}, b"{}", "a.json", ()), draft)
    assert isinstance(made, Imported)
    return made.mixed


@pytest.mark.parametrize("count", [0, 1, CHANGES])
def test_every_place_where_another_harness_took_over_is_named(count: int) -> None:
    places = [f"step {number}: other tools" for number in range(count)]
    assert mixed(*places) == tuple(places)


def test_of_very_many_the_first_are_named_and_the_others_counted() -> None:
    places = [f"step {number}: other tools" for number in range(CHANGES + 2)]
    assert mixed(*places) == (*places[:CHANGES], "and 2 more changes")
