from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import permutations
from pathlib import Path

import pytest

from tracemark.store.catalogue import Catalogue
from tracemark.store.row import project_line
from tracemark.store.segment import Location


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue(tmp_path / "c.db", tmp_path / "lock")
    yield opened
    opened.close()


def enter(catalogue: Catalogue, path: str, *lines: bytes) -> None:
    places = [Location(0, 10, 100 * n, 50) for n in range(len(lines))]
    catalogue.add_traces(path, [project_line(line) for line in lines], places)


def content(catalogue: Catalogue) -> tuple[object, ...]:
    files = sorted(catalogue.files())
    chosen = [(stored.row, stored.file, stored.location) for stored, _, _ in catalogue.select(None, None)]
    return chosen, [catalogue.traces_in(file) for file in files], catalogue.counts()


def test_the_order_in_which_files_are_entered_decides_nothing(make, tmp_path: Path) -> None:
    files = {
        "segments/a": [make.trace(1), make.trace(2)],
        "segments/b": [make.trace(1, make.stamp("a")), make.trace(3)],
        "segments/c": [make.trace(1, make.stamp("b")), make.trace(1), make.trace(2)],
    }
    seen = []
    for number, order in enumerate(permutations(files)):
        catalogue = Catalogue(tmp_path / f"{number}.db", tmp_path / "lock")
        for path in order:
            enter(catalogue, path, *files[path])
        seen.append(content(catalogue))
        catalogue.close()
    assert all(other == seen[0] for other in seen)
    assert seen[0][2]["traces"] == 3


def test_entering_and_removing_leaves_what_was_there_before(make, catalogue: Catalogue) -> None:
    enter(catalogue, "segments/b", make.trace(1), make.trace(2))
    before = content(catalogue)
    enter(catalogue, "segments/a", make.trace(1, make.stamp("a")), make.trace(3))
    enter(catalogue, "segments/c", make.trace(2))
    assert catalogue.find("order 3", 5) != []
    catalogue.remove("segments/a")
    catalogue.remove("segments/c")
    assert content(catalogue) == before
    assert catalogue.find("order 3", 5) == []
    assert [identity.hex() for identity in catalogue.find("order 1", 5)] == [make.id_of(make.trace(1))]


def test_a_number_that_is_used_again_is_found_by_its_new_text_alone(make, catalogue: Catalogue) -> None:
    enter(catalogue, "segments/a", make.trace(1))
    assert len(catalogue.find("order 1", 5)) == 1
    catalogue.remove("segments/a")
    enter(catalogue, "segments/b", make.trace(2))
    assert catalogue.find("order 1", 5) == []
    assert len(catalogue.find("order 2", 5)) == 1


def test_entering_a_file_twice_changes_nothing(make, catalogue: Catalogue) -> None:
    enter(catalogue, "segments/a", make.trace(1))
    before = content(catalogue)
    enter(catalogue, "segments/a", make.trace(1))
    assert content(catalogue) == before


def test_a_file_that_cannot_be_entered_leaves_nothing_behind(make, catalogue: Catalogue) -> None:
    enter(catalogue, "segments/a", make.trace(1))
    before = content(catalogue)
    good = project_line(make.trace(2))
    bad = good._replace(row=good.row._replace(id=b"x" * 32, status=None))
    with pytest.raises(ValueError):
        catalogue.add_traces("segments/b", [good, bad], [Location(0, 1, 0, 1)])
    with pytest.raises(sqlite3.IntegrityError):
        catalogue.add_traces("segments/b", [good._replace(text=None)], [Location(0, 1, 0, 1)])
    assert content(catalogue) == before


def places(catalogue: Catalogue, make, *numbers: int) -> dict[int, set[str]]:
    """Return in which files a catalogue says that traces lie, by each question that answers with a file."""
    found: dict[int, set[str]] = {}
    for number in numbers:
        line = project_line(make.trace(number)).row
        asked = [
            *(stored.file for stored in catalogue.lookup([line.id])),
            *(stored.file for stored in catalogue.lookup_raw([line.raw])),
            *(stored.file for stored, _, _ in catalogue.select(None, [line.id])),
            *(place[3] for place in catalogue.statement_places([line.id])),
        ]
        if asked:
            found[number] = set(asked)
    return found


def test_a_catalogue_that_stays_open_names_the_file_though_its_number_went_to_another(make, tmp_path: Path) -> None:
    path, guard = tmp_path / "c.db", tmp_path / "lock"
    with closing(Catalogue(path, guard)) as one, closing(Catalogue(path, guard)) as other:
        enter(one, "segments/a", make.trace(1))
        enter(one, "segments/b", make.trace(2))
        assert places(one, make, 1, 2) == {1: {"segments/a"}, 2: {"segments/b"}}
        with one.unchanging():
            other.remove("segments/b")
            enter(other, "segments/c", make.trace(3))
            assert places(one, make, 1, 2, 3) == {1: {"segments/a"}, 2: {"segments/b"}}
            assert places(other, make, 1, 2, 3) == {1: {"segments/a"}, 3: {"segments/c"}}
        assert places(one, make, 1, 2, 3) == {1: {"segments/a"}, 3: {"segments/c"}}
        assert content(one) == content(other)


def test_the_number_of_a_file_that_could_not_be_entered_goes_to_another_one(make, catalogue: Catalogue) -> None:
    enter(catalogue, "segments/a", make.trace(1))
    again, bad = project_line(make.trace(1)), project_line(make.trace(2))._replace(supersedes=("no digest",))
    with pytest.raises(ValueError, match="fromhex"):
        catalogue.add_traces("segments/0", [again, bad], [Location(0, 1, 0, 1), Location(0, 1, 2, 1)])
    enter(catalogue, "segments/b", make.trace(1), make.trace(3))
    assert places(catalogue, make, 1, 3) == {1: {"segments/a", "segments/b"}, 3: {"segments/b"}}
    assert [stored.file for stored in catalogue.lookup([again.row.id])] == ["segments/a"]


def test_a_file_that_goes_between_two_answers_of_one_question_is_still_named(make, tmp_path: Path) -> None:
    path, guard = tmp_path / "c.db", tmp_path / "lock"
    with closing(Catalogue(path, guard)) as one, closing(Catalogue(path, guard)) as other:
        enter(other, "segments/a", make.trace(1))
        found = one.lookup([project_line(make.trace(1)).row.id])
        assert [stored.file for stored in found] == ["segments/a"]
        enter(other, "segments/b", make.trace(2))
        found = one.select(None, None)
        first = next(found)
        other.remove("segments/b")
        assert [stored.file for stored, _, _ in (first, *found)] == ["segments/a", "segments/b"]
