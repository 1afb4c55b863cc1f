from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tracemark import digest, durable
from tracemark.errors import IntegrityError, LockedError, NewerFormatError, NoStoreError, UnknownNameError, UsageError
from tracemark.store.annotations import refused
from tracemark.store.layout import Layout
from tracemark.store.selection import Decisions, Selection
from tracemark.store.store import Store

EVERYTHING = Selection(superseded=True)


def names(store: Store) -> list[str]:
    return store.layout.data_files()


def states(store: Store, selection: Selection = EVERYTHING, decisions: Decisions | None = None) -> list[str]:
    return sorted(state.trace_id for state in store.select(selection, decisions or Decisions()))


def test_a_store_is_opened_only_where_there_is_one(root: Path) -> None:
    with pytest.raises(NoStoreError):
        Store.open(root)
    Store.open(root, create=True).close()
    Store.open(root).close()


def test_what_was_committed_is_there_in_the_next_opening_byte_for_byte(make, root: Path) -> None:
    lines = [make.trace(n, make.stamp("ab"[n % 2])) for n in range(5)] + [make.trace(9)]
    with Store.open(root, create=True) as store:
        assert make.commit(store, *lines) == [True, True, True]
    with Store.open(root) as store:
        assert [store.get(make.id_of(line)) for line in lines] == lines
        assert digest.sha256(store.raw(make.id_of(lines[0]))) == make.id_of(lines[0])
        assert store.counts() == {
            "traces": 6, "copies": 0, "annotations": 0, "refused": 0, "segments": 3, "harnesses": 0,
        }  # fmt: skip
        assert [line for _, line in store.lines(store.select(EVERYTHING))] != []
        assert sorted(line for _, line in store.lines(store.select(EVERYTHING))) == sorted(lines)


def test_big_integers_and_lone_surrogates_survive(make, root: Path) -> None:
    line = make.trace(1, run={"task": "t\ud800", "seed": 2**70}, trajectory={"extra": {"n": 2**64, "s": "\udfff"}})
    with Store.open(root, create=True) as store:
        make.commit(store, line)
    with Store.open(root) as store:
        value = digest.load_canonical(store.get(make.id_of(line)))
        assert (value["run"]["seed"], value["run"]["task"]) == (2**70, "t\ud800")
        assert value["trajectory"]["extra"] == {"n": 2**64, "s": "\udfff"}
        assert store.findings == []


def test_the_same_segment_is_stored_once(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        assert make.commit(store, make.trace(1)) == [True]
        assert make.commit(store, make.trace(1)) == [False]
        assert (store.counts()["segments"], store.counts()["copies"]) == (1, 0)


def test_nothing_is_left_in_the_folder_for_temporaries(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        with store.workspace() as folder:
            make.drafts(folder, [make.trace(2)])
        assert list(store.layout.temporaries.iterdir()) == []
        assert states(store) == [make.id_of(make.trace(1))]


def test_a_checkout_of_an_older_revision_and_back_moves_the_catalogue_both_ways(
    make, root: Path, tmp_path: Path
) -> None:
    old, new = make.trace(1, make.stamp("a")), make.trace(2, make.stamp("a"))
    with Store.open(root, create=True) as store:
        make.commit(store, old)
        digest_before = store.corpus_digest()
        before = names(store)
        make.commit(store, new)
        store.commit_annotations(
            "outcomes", [make.annotation("outcomes", make.id_of(new), {"outcome": {"status": "success"}})]
        )
        added = [name for name in names(store) if name not in before]
        digest_after = store.corpus_digest()
        rows = [state.row for state in store.select(EVERYTHING)]
    for number, name in enumerate(added):
        shutil.move(root / "traces" / name, tmp_path / str(number))
    with Store.open(root) as store:
        assert states(store) == [make.id_of(old)]
        assert store.counts()["annotations"] == 0
        assert store.corpus_digest() == digest_before
        with pytest.raises(UnknownNameError):
            store.get(make.id_of(new))
    for number, name in enumerate(added):
        shutil.move(tmp_path / str(number), root / "traces" / name)
    with Store.open(root) as store:
        assert [state.row for state in store.select(EVERYTHING)] == rows
        assert store.corpus_digest() == digest_after


def test_a_file_that_comes_while_the_folder_is_read_is_not_taken_for_one_that_is_gone(
    make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        (first,) = store.layout.data_files()
        segment, away = store.layout.path(first), root / "away"
    data_files = Layout.data_files
    listed: list[list[str]] = []

    def while_it_is_away(layout: Layout) -> list[str]:
        segment.rename(away)
        listed.append(data_files(layout))
        away.rename(segment)
        return listed[-1]

    monkeypatch.setattr(Layout, "data_files", while_it_is_away)
    with Store.open(root) as store:
        assert listed == [[], []]
        assert store.counts()["traces"] == 1


def test_what_another_process_commits_while_the_catalogue_catches_up_stays(
    make, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
    data_files = Layout.data_files
    to_come = [make.trace(2), make.trace(3)]

    def before_another_commit(layout: Layout) -> list[str]:
        listed = data_files(layout)
        if to_come:
            line = to_come.pop()
            writer = tmp_path / f"writer-{len(to_come)}"
            writer.mkdir()
            (draft,) = make.drafts(writer, [line])
            other.commit_segment(draft)
        return listed

    with Store.open(root) as other:
        (unknown,) = make.drafts(tmp_path, [make.trace(5)], "1")
        target = other.layout.segment(unknown.partition, unknown.name)
        unknown.temporary.rename(target)
        monkeypatch.setattr(Layout, "data_files", before_another_commit)
        with Store.open(root) as store:
            assert to_come == []
            assert store.counts()["traces"] == other.counts()["traces"] == 4
            assert store.findings == []


def test_a_copy_takes_over_when_the_segment_of_a_trace_goes(make, root: Path) -> None:
    one, two = make.trace(1), make.trace(1, source={"label": "elsewhere"})
    with Store.open(root, create=True) as store:
        make.commit(store, one)
        make.commit(store, two)
        assert (store.counts()["traces"], store.counts()["copies"]) == (1, 1)
        gone = store.lookup([make.id_of(one)])[make.id_of(one)].file
    (root / "traces" / gone).unlink()
    with Store.open(root) as store:
        assert (store.counts()["traces"], store.counts()["copies"]) == (1, 0)
        assert store.get(make.id_of(one)) in (one, two)
        assert store.find("order 1") == [make.id_of(one)]


def test_a_file_that_cannot_be_read_is_reported_and_harms_nothing_else(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        name = names(store)[0]
        (store.layout.traces / name).with_name("0" * 64 + ".jsonl.zst").write_bytes(b"no segment")
    with Store.open(root) as store:
        assert [finding.code for finding in store.findings] == ["file-damaged", "stored-not-indexed"]
        assert states(store) == [make.id_of(make.trace(1))]


def test_a_whole_file_whose_bytes_are_not_those_of_its_name_is_not_entered(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        make.commit(store, make.trace(2))
        first, second = (store.layout.path(name) for name in names(store))
    shutil.rmtree(root / ".tracemark")
    first.write_bytes(second.read_bytes())
    with Store.open(root) as store:
        assert [finding.code for finding in store.findings] == ["file-damaged", "stored-not-indexed"]
        assert len(states(store)) == 1


def test_what_comes_again_replaces_a_damaged_file_which_is_set_aside(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        path = store.layout.path(names(store)[0])
    whole, damaged = path.read_bytes(), path.read_bytes()[:-5]
    for kept in ("damaged", "damaged-2"):
        (root / ".tracemark" / "catalogue.db").unlink()
        path.write_bytes(damaged)
        with Store.open(root) as store:
            assert states(store) == []
            make.commit(store, make.trace(1))
            assert store.findings[-1].code == "file-replaced"
            assert states(store) == [make.id_of(make.trace(1))]
        assert path.read_bytes() == whole
        assert (root / ".tracemark" / "set-aside" / f"{path.name}.{kept}").read_bytes() == damaged
    with Store.open(root) as store:
        assert (store.findings, states(store)) == ([], [make.id_of(make.trace(1))])


def test_a_damaged_catalogue_is_made_again(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        path = store.layout.catalogue
    path.write_bytes(b"no database at all" * 1000)
    with Store.open(root) as store:
        assert [finding.code for finding in store.findings] == ["catalogue-rebuilt"]
        assert states(store) == [make.id_of(make.trace(1))]


def test_a_search_index_that_finds_no_room_is_an_error_with_a_way_out(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, *(make.trace(number) for number in range(300)))

    def search() -> None:
        with Store.open(root) as store:
            store.catalogue._db.execute("PRAGMA max_page_count = 1")
            store.find("order", 5)

    with pytest.raises(UsageError, match="full") as stopped:
        search()
    assert "TRACEMARK_CATALOGUE" in (stopped.value.hint or "")
    with Store.open(root) as store:
        assert len(store.find("order", 5)) == 5


def test_a_catalogue_of_a_newer_program_is_not_touched(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        store.catalogue._db.execute("PRAGMA user_version = 999")
    with pytest.raises(NewerFormatError):
        Store.open(root)


def test_the_catalogue_can_be_kept_elsewhere(make, root: Path, tmp_path: Path) -> None:
    with Store.open(root, create=True, catalogue=tmp_path / "elsewhere.db") as store:
        make.commit(store, make.trace(1))
    assert not (root / ".tracemark/catalogue.db").exists()
    assert (tmp_path / "elsewhere.db").exists()


def test_reindexing_gives_the_same_answers(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, *[make.trace(n, make.stamp("a")) for n in range(3)])
        store.commit_annotations(
            "stamps", [make.annotation("stamps", make.id_of(make.trace(1)), {"harness": make.stamp("b")})]
        )
        before = list(store.select(EVERYTHING))
        store.reindex()
        assert list(store.select(EVERYTHING)) == before


def test_find_searches_the_four_texts_and_whole_traces_when_told(make, root: Path) -> None:
    line = make.trace(1, trajectory={"steps": [
        {"step_id": 1, "source": "user", "message": "first words"},
        {"step_id": 2, "source": "agent", "message": "middle"},
        {"step_id": 3, "source": "agent", "message": "the end"},
    ]})  # fmt: skip
    with Store.open(root, create=True) as store:
        make.commit(store, line)
        assert store.find("first words") == [make.id_of(line)]
        assert store.find("middle") == []
        store.reindex(everything=True)
        assert store.find("middle") == [make.id_of(line)]
        make.commit(store, make.trace(2))
        assert store.find('order 2"') == [make.id_of(make.trace(2))]
        assert store.find("") == store.find('"') == []


def test_a_prefix_of_an_id_is_enough_when_only_one_begins_so(make, root: Path) -> None:
    ids = sorted(make.id_of(make.trace(n)) for n in range(3))
    with Store.open(root, create=True) as store:
        make.commit(store, *[make.trace(n) for n in range(3)])
        assert [store.resolve(identity[:7]) for identity in ids] == ids
        assert store.resolve(ids[0]) == ids[0]
        for wrong in ("", "abcde", "ABCDEF", "zzzzzz", ids[0] + "0"):
            with pytest.raises(UsageError):
                store.resolve(wrong)
        with pytest.raises(UnknownNameError):
            store.resolve("0" * 40)


def test_an_ambiguous_prefix_names_the_candidates(make, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracemark.store.reading.SHORTEST_PREFIX", 1)
    with Store.open(root, create=True) as store:
        make.commit(store, *[make.trace(n) for n in range(17)])
        ids = [make.id_of(make.trace(n)) for n in range(17)]
        first = next(letter for letter in "0123456789abcdef" if sum(i.startswith(letter) for i in ids) > 1)
        with pytest.raises(UsageError) as error:
            store.resolve(first)
    assert next(i for i in ids if i.startswith(first)) in str(error.value)


def test_raw_records_lead_to_their_traces(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        raw = digest.sha256(b"1")
        assert [stored.row.trace_id for stored in store.lookup_raw([raw, "0" * 64])[raw]] == [make.id_of(make.trace(1))]


def test_every_record_that_holds_a_trace_leads_to_it_and_says_who_read_it(make, root: Path) -> None:
    trace = make.id_of(make.trace(1))
    first, copy, further = digest.sha256(b"1"), digest.sha256(b"copy"), digest.sha256(b"further")
    source = {"format": "atif", "label": "b.jsonl", "raw": further, "importer": "atif", "importer_version": "7"}
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        make.commit(store, make.trace(1, make.stamp("a"), source={"raw": copy, "label": "c.jsonl"}))
        store.commit_annotations("sources", [make.annotation("sources", trace, {"source": source})])
        store.commit_annotations("sources", [make.annotation("sources", "0" * 64, {"source": source})])

        def answers() -> object:
            found = store.lookup_raw([first, copy, further, "0" * 64])
            assert all(stored.row.trace_id == trace for several in found.values() for stored in several)
            rows = {raw: [stored.row for stored in several] for raw, several in found.items()}
            return {raw: [(row.label, row.importer_version) for row in several] for raw, several in rows.items()}

        expected = {first: [("runs.jsonl", "1")], copy: [("c.jsonl", "1")], further: [("b.jsonl", "7")]}
        assert answers() == expected
        assert store.records([trace, "0" * 64]) == {trace: {first, copy, further}, "0" * 64: {further}}
        store.reindex()
        assert answers() == expected
        for name in store.layout.data_files():
            if name.startswith("annotations/"):
                store.layout.path(name).unlink()
    with Store.open(root) as store:
        assert store.lookup_raw([further]) == {}


def test_look_ups_are_right_over_many_batches(make, root: Path) -> None:
    lines = [make.trace(n) for n in range(1200)]
    with Store.open(root, create=True) as store:
        make.commit(store, *lines)
        wanted = [make.id_of(line) for line in lines] + [f"{n:064x}" for n in range(700)]
        assert sorted(store.lookup(wanted)) == sorted(wanted[:1200])


# --- later statements


def test_a_stamp_that_adds_knowledge_is_the_present_state_and_a_dispute_contests(make, root: Path) -> None:
    trace = make.id_of(make.trace(1))
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        assert store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": make.stamp("a")})]) == 1
        state = store.state(trace)
        assert (state.row.fingerprint, state.contested, state.restated) == (make.fingerprint("a"), False, True)
        assert states(store, Selection(fingerprints=frozenset({make.fingerprint("a")}))) == [trace]
        assert states(store, Selection(fingerprints=frozenset({None}))) == []
        assert state.file.startswith("segments/fingerprint=none/")
        store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": make.stamp("b")})])
        state = store.state(trace)
        assert state.contested
        assert state.row.fingerprint is None
        assert len(store.statements([trace])[trace]) == 3


def test_a_decision_settles_a_contested_stamp_with_the_evidence_of_the_side_it_takes(make, root: Path) -> None:
    trace = make.id_of(make.trace(1))
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, make.stamp("a", "recorded")))
        store.commit_annotations("stamps", [make.annotation("stamps", trace, {"harness": make.stamp("b", "claimed")})])
        a, b, c = (make.fingerprint(letter) for letter in "abc")
        seen = [store.state(trace, Decisions(stamps={trace: choice})) for choice in (a, b, c, None)]
        assert [(s.row.fingerprint, s.row.evidence, s.contested) for s in seen] == [
            (a, "recorded", False), (b, "claimed", False), (c, "claimed", False), (None, "unrecorded", False),
        ]  # fmt: skip
        assert states(store, Selection(fingerprints=frozenset({c})), Decisions(stamps={trace: c})) == [trace]


def test_superseding_an_annotation_settles_what_it_disputed(make, root: Path) -> None:
    trace = make.id_of(make.trace(1))
    wrong = make.annotation("outcomes", trace, {"outcome": {"status": "failure"}})
    right = make.annotation("outcomes", trace, {"outcome": {"status": "success"}}, [digest.of(wrong)])
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, outcome={"status": "success"}))
        store.commit_annotations("outcomes", [wrong])
        assert store.state(trace).contested
        store.commit_annotations("outcomes", [right])
        assert (store.state(trace).contested, store.state(trace).row.status) == (False, "success")
        assert [note.digest for note in store.annotations("outcomes", trace)] == [digest.of(right)]


def test_replacing_a_first_statement_touches_no_other_trace_with_the_same_head(make, root: Path) -> None:
    head = {"outcome": {"status": "failure"}, "run": {"task": "same"}}
    one, two = make.trace(1, **{k: dict(v) for k, v in head.items()}), make.trace(2, **head)
    with Store.open(root, create=True) as store:
        make.commit(store, one, two)
        stored = store.lookup([make.id_of(one), make.id_of(two)])
        (shared,) = {row.row.head_digest for row in stored.values()}
        store.commit_annotations(
            "outcomes", [make.annotation("outcomes", make.id_of(one), {"outcome": {"status": "success"}}, [shared])]
        )
        assert store.state(make.id_of(one)).row.status == "success"
        assert store.state(make.id_of(two)).row.status == "failure"


def test_two_copies_that_disagree_contest_each_other(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, make.stamp("a")))
        make.commit(store, make.trace(1, make.stamp("b")))
        assert store.state(make.id_of(make.trace(1))).contested


def test_a_newer_reading_supersedes_the_older_trace(make, root: Path) -> None:
    old = make.trace(1)
    new = make.trace(1, trajectory={"extra": {"x": 1}}, source={"supersedes": [make.id_of(old)]})
    with Store.open(root, create=True) as store:
        make.commit(store, old)
        make.commit(store, new)
        assert states(store, Selection()) == [make.id_of(new)]
        assert states(store) == sorted([make.id_of(old), make.id_of(new)])
        assert store.state(make.id_of(old)).superseded_by == (make.id_of(new),)


def test_a_retraction_holds_for_the_trace_and_for_its_record(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1), make.trace(2), make.trace(3))
        one, two, three = (make.id_of(make.trace(n)) for n in (1, 2, 3))
        decided = Decisions(frozenset({one}), frozenset({digest.sha256(b"2")}))
        assert states(store, Selection(retracted=False), decided) == [three]
        assert store.state(two, decided).retracted


def test_the_same_annotation_is_stored_once(make, root: Path) -> None:
    note = make.annotation("labels", None, {"x": 1})
    with Store.open(root, create=True) as store:
        assert store.commit_annotations("labels", [note, note]) == 1
        assert store.commit_annotations("labels", [note]) == 0
        assert store.commit_annotations("labels", []) == 0
        assert [read.value for read in store.annotations("labels")] == [note]


def test_an_annotation_of_another_kind_or_form_is_refused_before_anything_is_written(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        with pytest.raises(UsageError):
            store.commit_annotations("stamps", [make.annotation("labels", None, {})])
        with pytest.raises(UsageError):
            store.commit_annotations("../up", [make.annotation("../up", None, {})])
        with pytest.raises(IntegrityError):
            store.commit_annotations("stamps", [{"format": "other"}])
        assert names(store) == []


def test_exports_are_found_from_the_traces_they_took_and_do_not_change_the_corpus(make, root: Path) -> None:
    trace = make.id_of(make.trace(1))
    note = make.annotation("exports.sft", None, {"traces": [trace]})
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        before = store.corpus_digest()
        store.commit_annotations("exports.sft", [note])
        assert [read.value for read in store.exports_of(trace)] == [note]
        assert store.corpus_digest() == before
        store.commit_annotations("labels", [make.annotation("labels", trace, {})])
        assert store.corpus_digest() != before


def test_a_refused_record_is_kept_once_with_its_bytes(root: Path) -> None:
    record = refused("not-json", "a.jsonl:3", "no JSON", digest.sha256(b"{"), b"{")
    with Store.open(root, create=True) as store:
        assert store.commit_refused([record, record]) == 1
        assert store.commit_refused([record]) == 0
        assert store.counts()["refused"] == 1
    with Store.open(root) as store:
        assert store.findings == []


def test_a_snapshot_is_stored_once_and_never_replaced(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        assert store.commit_harness(make.fingerprint("a"), {"x": 1})
        first = Layout(root).snapshot(make.fingerprint("a")).read_bytes()
        assert not store.commit_harness(make.fingerprint("a"), {"x": 1})
        assert not store.commit_harness(make.fingerprint("a"), {"x": 2})
        assert Layout(root).snapshots() == [make.fingerprint("a")]
        assert Layout(root).snapshot(make.fingerprint("a")).read_bytes() == first


def test_a_batch_is_one_segment_and_opens_no_other(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, *[make.trace(n, make.stamp("ab"[n % 2])) for n in range(6)])
        (batch,) = store.batches(Selection(fingerprints=frozenset({make.fingerprint("a")})))
        assert batch.path.parent.name == "fingerprint=" + "a" * 16
        assert [state.location for state in batch.states] == sorted(state.location for state in batch.states)
        (store.layout.segments / ("fingerprint=" + "b" * 16)).rename(root / "away")
        assert len(list(store.lines(batch.states))) == 3


def test_an_id_that_no_longer_fits_its_bytes_is_an_integrity_error(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        trace = make.id_of(make.trace(1))
        store.catalogue._db.execute("UPDATE traces SET id = zeroblob(32), key = 0")
        with pytest.raises(IntegrityError):
            store.get("0" * 64)
        assert trace not in store.lookup([trace])


def test_a_commit_that_cannot_be_indexed_is_durable_and_made_up_for_at_the_next_opening(
    make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEMARK_LOCK_WAIT", "0.05")
    line = make.trace(1)
    with Store.open(root, create=True) as store, Store.open(root) as other:
        with other.catalogue.transaction():
            assert make.commit(store, line) == [True]
        assert [finding.code for finding in store.findings] == ["stored-not-indexed"]
        assert store.lookup([make.id_of(line)]) == {}
    with Store.open(root) as store:
        assert store.get(make.id_of(line)) == line


def test_a_catalogue_that_another_process_holds_is_a_locked_error(
    make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEMARK_LOCK_WAIT", "0.05")
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        note = make.annotation("stamps", make.id_of(make.trace(1)), {"harness": make.stamp("a")})
        store.commit_annotations("stamps", [note])
        with Store.open(root) as other, other.catalogue.transaction(), pytest.raises(LockedError):
            list(store.select(Selection()))


# --- durability


def test_whatever_is_committed_is_durable_under_its_name_when_that_returns(make, root: Path, disk) -> None:
    trace = make.trace(1, make.stamp("a"))
    snapshot = {"format": "tracemark/harness-snapshot/1"}
    with Store.open(root, create=True) as store:
        for commit in (
            lambda: make.commit(store, trace),
            lambda: store.commit_annotations("labels", [make.annotation("labels", make.id_of(trace), {"a": 1})]),
            lambda: store.commit_refused([refused("not-json", "a:1", "no", digest.sha256(b"x"), b"x")]),
            lambda: store.commit_harness(make.fingerprint("a"), snapshot),
        ):
            disk.calls.clear()
            commit()
            named = [paths[-1] for word, *paths in disk.calls if word == "rename"]
            assert sum(root / "traces" in Path(path).parents for path in named) == 1
            disk.require_durable(root)


@pytest.mark.parametrize("failing", ["0.", "fingerprint="])
def test_a_segment_whose_sync_failed_is_not_acknowledged(make, root: Path, disk, failing: str) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
        disk.failing[failing] = 1
        disk.asked.clear()
        with pytest.raises(OSError, match="the sync failed"):
            make.commit(store, make.trace(2))
        assert [count for path, count in disk.asked.items() if Path(path).name.startswith(failing)] == [1]
        assert store.counts()["traces"] == 1


@pytest.mark.parametrize("again", [False, True], ids=["opened", "made again"])
def test_who_finds_files_being_entered_in_the_catalogue_waits_for_as_long_as_that_takes(
    make, root: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.delenv("TRACEMARK_LOCK_WAIT", raising=False)
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1))
    catalogue = root / ".tracemark" / "catalogue.db"
    holder, waited = ExitStack(), [0.0]
    holder.enter_context(durable.lock(root / ".tracemark" / "locks" / "catch-up"))

    def pause(seconds: float) -> None:
        waited[0] += seconds
        if waited[0] > 600:
            holder.close()

    with holder, Store.open(root) as other:
        monkeypatch.setattr(durable, "pause", pause)
        if again:
            other.reindex()
        else:
            catalogue.unlink()
            Store.open(root).close()
    assert waited[0] > 600
    with Store.open(root) as store:
        assert store.get(make.id_of(make.trace(1))) == make.trace(1)
