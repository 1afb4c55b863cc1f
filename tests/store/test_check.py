from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark import digest, engine
from tracemark.errors import IntegrityError, IrregularFileError, NoStoreError
from tracemark.store.annotations import INGESTED, SOURCES, STAMPS, refused
from tracemark.store.catalogue import Reader
from tracemark.store.check import Checked, check
from tracemark.store.disputes import check_decisions, check_disputes, stored_tasks
from tracemark.store.layout import Layout
from tracemark.store.segment import Packer, iterate
from tracemark.store.selection import Decisions, Selection
from tracemark.store.store import Store


def codes(checked: Checked) -> set[str]:
    return {finding.code for finding in checked.findings}


def interrupt() -> None:
    raise KeyboardInterrupt


def snapshot_of(value) -> str:
    if "fingerprint" not in value:
        raise IntegrityError("no snapshot")
    return value["fingerprint"]


@pytest.fixture
def filled(make, root: Path) -> Layout:
    with Store.open(root, create=True) as store:
        store.commit_harness(make.fingerprint("a"), {"fingerprint": make.fingerprint("a")})
        make.commit(store, *[make.trace(n, make.stamp("a")) for n in range(70)], make.trace(99))
        make.commit(store, make.trace(99, source={"label": "copy"}))
        trace = make.id_of(make.trace(1))
        store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": make.stamp("a")})])
        store.commit_annotations("exports.sft", [make.annotation("exports.sft", None, {"traces": [trace]})])
        wrong = make.annotation("outcomes", trace, {"outcome": {"status": "failure"}})
        right = make.annotation("outcomes", trace, {"outcome": {"status": "success"}}, [digest.of(wrong)])
        store.commit_annotations("outcomes", [wrong, right])
        further = {"source": {"raw": "1" * 64, "importer": "atif"}}
        store.commit_annotations("sources", [make.annotation("sources", trace, further)])
        make.commit(store, make.trace(100, source={"supersedes": [make.id_of(make.trace(2))]}))
        assert store.state(trace).restated
        store.commit_refused([refused("not-json", "a", "b", digest.sha256(b""), b"")])
    return Layout(root)


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(root).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in (".db-shm", ".db-wal") and not path.name.endswith(("-shm", "-wal"))
    }


def test_a_whole_store_has_no_findings_and_the_check_says_what_it_proved(filled: Layout) -> None:
    checked = check(filled, snapshot_of)
    assert checked.findings == ()
    assert checked.counts["traces"] == 72
    assert checked.counts["annotations"] == 5
    assert checked.counts["refused"] == 1
    assert [sentence.partition(": ")[2] for sentence in checked.proved] == [
        f"{checked.counts['files']} of {checked.counts['files']}",
        "79 of 79",
        "73 of 73 (1 of them copies)",
        "1 of 1",
        f"{checked.counts['files']} of {checked.counts['files']}",
        "72 of 72",
        "",
    ]


def test_what_is_not_so_is_not_counted_as_proved(make, filled: Layout) -> None:
    before = check(filled, snapshot_of).proved
    count = len(filled.data_files())
    damaged = min(filled.path(name) for name in filled.data_files() if name.startswith("segments/fingerprint=none"))
    damaged.write_bytes(damaged.read_bytes()[:-5])
    after = check(filled, snapshot_of)
    hints = {one.code: one.hint for one in after.findings}
    assert hints.keys() <= {"file-damaged", "stored-not-indexed"}
    numbers = [sentence.partition(": ")[2] for sentence in after.proved]
    assert numbers[0] == f"{count - 1} of {count}"
    assert numbers[1].endswith(" and what could not be read of 1 file")
    assert numbers[4] == f"{count - 1} of {count}"
    assert len(numbers) == 5 < len(before)


def test_a_damaged_file_that_is_not_indexed_is_to_be_restored_and_not_indexed_again(make, filled: Layout) -> None:
    name = next(name for name in filled.data_files() if name.startswith("segments/"))
    filled.path(name).write_bytes(b"x")
    with Store.open(filled.root) as store:
        store.catalogue.remove(name)
    with Store.open(filled.root) as store:
        met = store.findings
    for found in (met, check(filled).findings):
        [one] = [each for each in found if each.code == "stored-not-indexed"]
        assert one.where == f"traces/{name}"
        assert str(one.hint).startswith("dvc checkout, or fetch the file from a backup")


def test_a_check_changes_nothing(filled: Layout) -> None:
    (filled.traces / "stray").touch()
    before = tree(filled.root)
    check(filled, snapshot_of)
    assert tree(filled.root) == before


def test_no_store_is_an_error(layout: Layout) -> None:
    with pytest.raises(NoStoreError):
        check(layout)


@settings(max_examples=15)
@given(data=st.data())
def test_any_flipped_bit_in_any_data_file_is_found(make, tmp_path_factory: pytest.TempPathFactory, data) -> None:
    root = tmp_path_factory.mktemp("corpus")
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1), make.trace(2, make.stamp("a")))
        store.commit_annotations("labels", [make.annotation("labels", None, {})])
        names = store.layout.data_files()
    path = Layout(root).path(data.draw(st.sampled_from(names)))
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    assert "file-damaged" in codes(check(Layout(root)))


def test_a_segment_cut_short_is_found(filled: Layout) -> None:
    path = filled.path(filled.data_files()[-1])
    path.write_bytes(path.read_bytes()[:-5])
    assert "file-damaged" in codes(check(filled))


def test_of_a_segment_that_cannot_be_read_to_its_end_nothing_else_is_said(make, filled: Layout) -> None:
    trace = make.id_of(make.trace(69, make.stamp("a")))
    with Store.open(filled.root) as store:
        store.commit_annotations("labels", [make.annotation("labels", trace, {})])
        path = filled.path(store.state(trace).file)
    path.write_bytes(path.read_bytes()[:-5])
    # neither that the catalogue holds something else, nor that what lies in the rest is not stored
    found = {(one.code, one.where) for one in check(filled).findings}
    assert found == {("file-damaged", path.relative_to(filled.root).as_posix())}


def add(layout: Layout, folder: str, *lines: bytes) -> None:
    packer = Packer(layout.root / "new")
    for line in lines:
        packer.add(line)
    packed = packer.close()
    target = layout.traces / folder / (packed.name + ".jsonl.zst")
    target.parent.mkdir(parents=True, exist_ok=True)
    packed.temporary.rename(target)


def test_a_segment_in_another_partition_is_found(make, filled: Layout) -> None:
    add(filled, "segments/fingerprint=" + "b" * 16, make.trace(500))
    Store.open(filled.root).close()
    assert codes(check(filled)) == {"wrong-partition"}


def test_an_annotation_in_another_folder_is_found(make, filled: Layout) -> None:
    add(filled, "annotations/labels", digest.canonical(make.annotation("other", None, {})))
    Store.open(filled.root).close()
    assert codes(check(filled)) == {"wrong-partition"}


def test_a_line_that_is_not_canonical_is_found(make, filled: Layout) -> None:
    add(filled, "segments/fingerprint=none", make.trace(500).replace(b'"run":{', b'"run": {'))
    Store.open(filled.root).close()
    assert codes(check(filled)) == {"line-not-canonical"}


@pytest.mark.parametrize("folder", ["segments/fingerprint=none", "annotations/stamps", "refused"])
def test_a_line_that_is_no_json_is_found(filled: Layout, folder: str) -> None:
    add(filled, folder, b"{no json")
    (damaged,) = [found for found in check(filled).findings if found.code == "file-damaged"]
    assert "a line is not JSON" in damaged.message


def test_a_line_is_parsed_once_whole(filled: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for name in filled.data_files() for _, line in iterate(filled.path(name))]
    parsed = []
    load = digest.load_canonical
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    monkeypatch.setattr(Reader, "restatable", lambda _: [])
    monkeypatch.setattr(digest, "load_canonical", lambda data: parsed.append(data) or load(data))
    assert codes(check(filled)) == set()
    assert sorted(data for data in parsed if data in lines) == sorted(lines)


def test_a_line_that_is_no_trace_is_found(filled: Layout) -> None:
    add(filled, "segments/fingerprint=none", b'{"format":"other"}')
    assert codes(check(filled)) == {"file-damaged", "stored-not-indexed"}


def test_a_stored_file_that_is_not_in_the_catalogue_is_found(make, filled: Layout) -> None:
    add(filled, "segments/fingerprint=none", make.trace(500))
    assert codes(check(filled)) == {"stored-not-indexed"}


def test_a_file_that_only_the_catalogue_knows_is_found(filled: Layout) -> None:
    filled.path(next(name for name in filled.data_files() if "exports" in name)).unlink()
    assert codes(check(filled)) == {"catalogue-differs"}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE traces SET status = 'success' WHERE number = 1",
        "UPDATE traces SET \"offset\" = 1 WHERE number = 1",
        "DELETE FROM traces WHERE number = 3",
        "DELETE FROM copies",
        "DELETE FROM annotations",
        "DELETE FROM refused",
        "UPDATE traces SET key = 0 WHERE number = 1",
        "UPDATE traces SET raw_key = 0 WHERE number = 1",
        "UPDATE annotations SET trace = NULL WHERE kind = 'stamps'",
        "UPDATE annotations SET kind = 'outcomes' WHERE kind = 'stamps'",
        "UPDATE refused SET code = 'other'",
        "UPDATE files SET lines = 1",
        "DELETE FROM replaced",
        "UPDATE replaced SET new = old",
        "DELETE FROM superseded",
        "UPDATE superseded SET kind = 'stamps'",
        "DELETE FROM exported",
        "INSERT INTO exported SELECT id, zeroblob(32), file FROM traces WHERE number = 2",
        "DELETE FROM sources",
        "UPDATE sources SET importer_version = '9'",
        "DELETE FROM restated",
        "UPDATE restated SET fields = '{}'",
        "UPDATE restated SET conflicts = '[\"run.task\"]'",
        "INSERT INTO restated SELECT id, '{}', '[]', '{}', NULL FROM traces WHERE number = 9",
    ],
)  # fmt: skip
def test_a_catalogue_that_is_not_what_the_lines_say_is_found(filled: Layout, change: str) -> None:
    with Store.open(filled.root) as store:
        store.catalogue._db.execute(change)
    assert codes(check(filled)) == {"catalogue-differs"}
    with Store.open(filled.root) as store:
        store.reindex()
    assert codes(check(filled)) == set()


def test_of_present_states_nothing_is_said_where_the_rows_are_wrong_that_they_are_compared_by(filled: Layout) -> None:
    with Store.open(filled.root) as store:
        store.catalogue._db.execute("DELETE FROM annotations")
    said = {one.message for one in check(filled).findings}
    assert said == {"the catalogue holds something else of this file than its lines say"}


def test_a_copy_that_is_taken_for_the_trace_though_it_sorts_later_is_found(make, filled: Layout) -> None:
    identity = bytes.fromhex(make.id_of(make.trace(99)))
    place = 'file, frame_offset, frame_length, "offset", length, label'
    with Store.open(filled.root) as store:
        ask = store.catalogue._db.execute
        trace, copy = (
            ask(f"SELECT {place} FROM {table} WHERE id = ?", (identity,)).fetchone() for table in ("traces", "copies")
        )
        for table, values in (("traces", copy), ("copies", trace)):
            ask(f"UPDATE {table} SET ({place}) = (?, ?, ?, ?, ?, ?) WHERE id = ?", (*values, identity))
    assert codes(check(filled)) == {"catalogue-differs"}


def test_a_state_that_is_to_be_made_again_is_no_difference(make, filled: Layout) -> None:
    trace = make.id_of(make.trace(5))
    with Store.open(filled.root) as store:
        store.commit_annotations("outcomes", [make.annotation("outcomes", trace, {"outcome": {"status": "error"}})])
    assert codes(check(filled)) == set()


@pytest.mark.parametrize("state", ["whole", "no database", "of another schema", "interrupted"])
def test_the_catalogue_is_closed_again_whatever_is_found(
    filled: Layout, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    opened: list[Reader] = []
    monkeypatch.setattr(Reader, "open", lambda path, take=Reader.open: opened.append(take(path)) or opened[-1])
    expected: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if state == "no database":
        filled.catalogue.write_bytes(b"nothing like a database" * 100)
    elif state == "of another schema":
        with Store.open(filled.root) as store:
            store.catalogue._db.execute("PRAGMA user_version = 1")
    elif state == "interrupted":
        monkeypatch.setattr(engine, "run", lambda *_: interrupt())
        expected = pytest.raises(KeyboardInterrupt)
    with expected:
        check(filled)
    check_disputes(filled, Decisions())
    check_decisions(filled, Decisions(excludes=lambda *_: False))
    assert len(opened) == 3
    for reader in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            reader.version()


def test_a_missing_or_damaged_catalogue_is_a_finding(filled: Layout) -> None:
    filled.catalogue.write_bytes(b"nothing like a database" * 100)
    assert codes(check(filled)) == {"catalogue-differs"}
    filled.catalogue.unlink()
    assert codes(check(filled)) == {"catalogue-differs"}
    assert not filled.catalogue.exists()


def test_a_catalogue_of_another_schema_is_asked_nothing(filled: Layout) -> None:
    with Store.open(filled.root) as store:
        store.catalogue._db.execute("PRAGMA user_version = 1")
    (found,) = check(filled).findings
    assert (found.code, found.message) == ("catalogue-differs", "the catalogue has another version's schema")


def test_a_catalogue_that_is_damaged_beyond_its_first_page_is_a_finding(filled: Layout) -> None:
    before = check(filled)
    size = filled.catalogue.stat().st_size
    assert size > 4096
    with filled.catalogue.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    damaged = check(filled)
    assert [one.code for one in damaged.findings] == ["catalogue-differs"]
    assert damaged.counts == before.counts
    assert damaged.proved == before.proved[: len(damaged.proved)]
    assert any("the catalogue holds" in sentence for sentence in before.proved)
    assert not any("the catalogue holds" in sentence for sentence in damaged.proved)
    assert [one.code for one in check_disputes(filled, Decisions())] == ["catalogue-differs"]
    decided: dict[str, str | None] = {"0" * 64: "tm1:" + "0" * 64}
    assert [one.code for one in check_decisions(filled, Decisions(stamps=decided))] == ["catalogue-differs"]
    assert [one.code for one in stored_tasks(filled)[1]] == ["catalogue-differs"]
    with Store.open(filled.root) as store:
        assert [one.code for one in store.findings] == ["catalogue-rebuilt"]
    assert codes(check(filled)) == set()


def test_a_missing_snapshot_and_one_that_gives_another_fingerprint_are_found(make, filled: Layout) -> None:
    path = filled.snapshot(make.fingerprint("a"))
    path.write_bytes(digest.canonical({"fingerprint": make.fingerprint("b")}) + b"\n")
    assert codes(check(filled, snapshot_of)) == {"snapshot-damaged"}
    path.write_bytes(b"no json")
    assert codes(check(filled, snapshot_of)) == {"snapshot-damaged"}
    path.unlink()
    assert codes(check(filled, snapshot_of)) == {"snapshot-missing"}


def test_a_snapshot_that_is_not_canonical_is_found_also_where_it_gives_its_fingerprint(make, filled: Layout) -> None:
    path = filled.snapshot(make.fingerprint("a"))
    path.write_bytes(path.read_bytes().replace(b":", b": ", 1))
    assert codes(check(filled, snapshot_of)) == {"line-not-canonical"}


def test_an_annotation_about_a_trace_that_is_not_stored_is_found(make, filled: Layout) -> None:
    with Store.open(filled.root) as store:
        store.commit_annotations("labels", [make.annotation("labels", "0" * 64, {})])
    assert codes(check(filled)) == {"annotation-dangling"}


@pytest.mark.parametrize("kind", INGESTED)
def test_a_statement_that_waits_for_its_trace_is_no_fault(make, filled: Layout, kind: str) -> None:
    value = {SOURCES: {"source": {"raw": "1" * 64}}, STAMPS: {"harness": {}}}.get(kind, {})
    with Store.open(filled.root) as store:
        store.commit_annotations(kind, [make.annotation(kind, "0" * 64, value)])
    assert codes(check(filled)) == set()


def test_a_stranger_is_named(filled: Layout) -> None:
    (filled.segments / "notes.txt").touch()
    assert codes(check(filled)) == {"stranger-file"}


def test_of_many_strangers_some_are_named(filled: Layout) -> None:
    for number in range(50):
        (filled.segments / f"notes-{number}.txt").touch()
    assert [one.code for one in check(filled).findings] == ["stranger-file"] * 20


def test_every_finding_names_the_next_step(filled: Layout) -> None:
    for path in [filled.path(name) for name in filled.data_files()]:
        path.write_bytes(b"x")
    (filled.segments / "notes.txt").touch()
    assert all(finding.hint for finding in check(filled).findings)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
@pytest.mark.parametrize("inside", ["refused", "segments/fingerprint=none", "annotations/labels"])
def test_what_is_no_file_is_named_and_not_opened(filled: Layout, kind: str, inside: str) -> None:
    name = f"{inside}/{'0' * 64}.jsonl.zst"
    path = filled.path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    found = check(filled)
    assert {(one.code, one.where) for one in found.findings} == {
        ("file-damaged", f"traces/{name}"),
        ("stored-not-indexed", f"traces/{name}"),
    }
    assert f"it is a {kind}, no file" in found.findings[0].message
    with Store.open(filled.root) as store:
        expected = {"stored-not-indexed"} if inside == "refused" else {"stored-not-indexed", "file-damaged"}
        assert {one.code for one in store.findings} == expected
        assert list(store.select(Selection()))


def test_a_pipe_in_place_of_an_indexed_segment_is_damage(filled: Layout) -> None:
    path = next(filled.path(name) for name in filled.data_files() if name.startswith("segments/"))
    path.unlink()
    os.mkfifo(path)
    with Store.open(filled.root) as store, pytest.raises(IntegrityError, match="a pipe"):
        list(store.lines(store.select(Selection())))


def test_a_pipe_in_place_of_a_snapshot_or_of_the_store_file_is_named(make, filled: Layout) -> None:
    path = filled.snapshot(make.fingerprint("a"))
    path.unlink()
    os.mkfifo(path)
    (found,) = check(filled).findings
    assert (found.code, "a pipe" in found.message) == ("snapshot-damaged", True)
    filled.store_file.unlink()
    os.mkfifo(filled.store_file)
    with pytest.raises(IrregularFileError, match="a pipe"):
        filled.require()


def test_what_is_said_of_a_file_that_cannot_be_read_holds_no_path(filled: Layout) -> None:
    path = filled.path(filled.data_files()[0])
    path.unlink()
    path.symlink_to("nowhere")
    messages = [found.message for found in check(filled).findings if found.code == "file-damaged"]
    assert messages == ["No such file or directory"]


def test_copies_of_a_trace_are_counted_apart(make, layout: Layout) -> None:
    with Store.open(layout.root, create=True) as store:
        make.commit(store, make.trace(1), make.trace(2))
        make.commit(store, make.trace(1), make.trace(3))
    checked = check(layout)
    assert (checked.counts["traces"], checked.counts["copies"]) == (3, 1)
    assert any("first statement: 4 of 4 (1 of them copies)" in sentence for sentence in checked.proved)


class Looking:
    """A witness that remembers the traces it saw, and may not leave this process with any."""

    home = os.getpid()

    def __init__(self) -> None:
        self.seen: list[str] = []

    def fresh(self) -> Looking:
        return Looking()

    def see(self, trace_id: str, line: dict[str, object]) -> None:
        assert digest.of(line["trajectory"]) == trace_id
        self.seen.append(trace_id)

    def merge(self, other: Looking) -> None:
        self.seen += other.seen

    def __getstate__(self) -> dict[str, list[str]]:
        assert os.getpid() != Looking.home or not self.seen
        return self.__dict__


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_witness_sees_every_trace_in_whatever_process_and_jobs_carry_nothing_of_it(
    filled: Layout, make, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEMARK_WORKERS", workers)
    witness = Looking()
    assert check(filled, snapshot_of, witness) == check(filled, snapshot_of)
    counts = check(filled, snapshot_of).counts
    assert len(witness.seen) == counts["traces"] + counts["copies"]
    assert len(set(witness.seen)) == counts["traces"] > 70
