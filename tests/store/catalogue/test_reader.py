from __future__ import annotations

import sqlite3
import tracemalloc
from pathlib import Path

import pytest

from tracemark.store.catalogue import Catalogue, Reader, Restated
from tracemark.store.row import project_line
from tracemark.store.segment import Location


def test_a_catalogue_opened_to_be_read_cannot_be_written(make, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "c.db", tmp_path / "lock")
    projection = project_line(make.trace(1))
    catalogue.add_traces("segments/a", [projection], [Location(0, 1, 2, 3)])
    reader = Reader.open(tmp_path / "c.db")
    assert reader.traces_in("segments/a") == {(projection.row, Location(0, 1, 2, 3))}
    with pytest.raises(sqlite3.OperationalError):
        reader._db.execute("DELETE FROM traces")
    reader.close()
    catalogue.close()


def test_a_missing_catalogue_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        Reader.open(tmp_path / "c.db")
    assert not (tmp_path / "c.db").exists()


def test_two_ids_with_the_same_first_eight_bytes_are_told_apart(make, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "c.db", tmp_path / "lock")
    projection = project_line(make.trace(1))
    ids = [b"12345678" + bytes([n]) * 24 for n in range(3)]
    rows = [projection._replace(row=projection.row._replace(id=identity)) for identity in ids[:2]]
    catalogue.add_traces("segments/a", rows, [Location(0, 1, n, 1) for n in range(2)])
    assert {stored.row.id for stored in catalogue.lookup(ids)} == set(ids[:2])
    assert [stored.row.id for stored in catalogue.lookup(ids[1:2])] == ids[1:2]
    catalogue.close()


def test_asking_for_one_trace_costs_the_same_however_many_were_restated_and_replaced(make, tmp_path: Path) -> None:
    costs, answers = [], []
    for count in (50, 2000):
        catalogue = Catalogue(tmp_path / f"{count}.db", tmp_path / "lock")
        rows = [project_line(make.trace(n)) for n in range(count)]
        rows = [row._replace(supersedes=(rows[n - 1].row.trace_id,)) for n, row in enumerate(rows)]
        catalogue.add_traces("segments/a", rows, [Location(0, 1, n, 1) for n in range(count)])
        with catalogue.transaction():
            catalogue.restate([(row.row.id, Restated({"status": "success"}, ("run.task",), {}, None)) for row in rows])
        steps: list[None] = []
        catalogue._db.set_progress_handler(lambda steps=steps: steps.append(None), 10)
        answers.append(list(catalogue.select(None, [rows[7].row.id])))
        catalogue._db.set_progress_handler(None, 0)
        costs.append(len(steps))
        ((_, restated, replaced_by),) = answers[-1]
        assert restated == Restated({"status": "success"}, ("run.task",), {}, None)
        assert replaced_by == (rows[8].row.id,)
        everything = {stored.row.id: rest for stored, *rest in catalogue.select(None, None)}
        assert everything[rows[7].row.id] == [restated, replaced_by]
        catalogue.close()
    assert answers[0] == answers[1]
    assert costs[1] < 2 * costs[0] + 10


def test_selecting_everything_holds_no_present_state_longer_than_its_row(make, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "c.db", tmp_path / "lock")
    rows = [project_line(make.trace(n)) for n in range(1000)]
    catalogue.add_traces("segments/a", rows, [Location(0, 1, n, 1) for n in range(len(rows))])
    choices = {"tm1:x": {"harness": "h" * 4000}}
    with catalogue.transaction():
        catalogue.restate([(row.row.id, Restated({"status": "success"}, (), choices, "{}")) for row in rows])
    tracemalloc.start()
    assert sum(restated is not None for _, restated, _ in catalogue.select(None, None)) == len(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    catalogue.close()
    assert peak < 1_000_000


def test_by_task_come_the_traces_stated_with_it_and_all_that_were_restated(make, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "c.db", tmp_path / "lock")
    lines = [project_line(make.trace(n)) for n in range(6)]
    rows = [one._replace(row=one.row._replace(task=f"t-{n % 3}")) for n, one in enumerate(lines)]
    catalogue.add_traces("segments/a", rows, [Location(0, 1, n, 1) for n in range(len(rows))])
    with catalogue.transaction():
        catalogue.restate([(rows[4].row.id, Restated({"task": "t-2"}, (), {}, None))])

    def chosen(fingerprints: set[str | None] | None, tasks: set[str]) -> list[int]:
        found = {stored.row.id for stored, _, _ in catalogue.select(fingerprints, None, tasks)}
        return [number for number, one in enumerate(rows) if one.row.id in found]

    own = {rows[0].row.fingerprint}
    assert chosen(None, {"t-0"}) == chosen(own, {"t-0"}) == [0, 3, 4]
    assert chosen(None, {"t-0", "t-2"}) == [0, 2, 3, 4, 5]
    assert chosen(None, set()) == chosen({"another"}, {"t-0"}) == [4]
    catalogue.close()


def test_answers_are_of_one_moment_while_another_connection_writes(make, tmp_path: Path) -> None:
    catalogue, other = (Catalogue(tmp_path / "c.db", tmp_path / "lock") for _ in range(2))
    first, second = (project_line(make.trace(n)) for n in range(2))
    catalogue.add_traces("segments/a", [first], [Location(0, 1, 2, 3)])
    with catalogue.unchanging():
        other.add_traces("segments/b", [second], [Location(0, 1, 2, 3)])
        assert [stored.row for stored, _, _ in catalogue.select(None, None)] == [first.row]
        assert (catalogue.counts()["traces"], list(catalogue.files())) == (1, ["segments/a"])
    assert (catalogue.counts()["traces"], list(catalogue.files())) == (2, ["segments/a", "segments/b"])
    catalogue.close()
    other.close()
