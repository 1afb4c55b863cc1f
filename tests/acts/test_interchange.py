"""Exported and ingested again, a store is what it was: here, in another one, and in one that knows nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer

from tracemark import digest
from tracemark.acts import audit, decisions, ingest, interchange, scaffold
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.provenance import standing
from tracemark.acts.traces import TraceFilter
from tracemark.errors import ExportRefusedError, IntegrityError, UnknownNameError, UsageError
from tracemark.exporters import interchange_folder as folders
from tracemark.importers.detect import IMPORTERS
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document

FORMS = ["lines", "files"]


def now(root: Path) -> dict[str, Any]:
    """Return what is true of every trace: its statements joined and decided upon, and what is disputed."""
    corpus = Corpus(root)
    with open_store(root) as store:
        decided = store.applied(corpus.store_decisions)
        states = list(store.select(Selection(retracted=False), decided))
        said = store.statements([state.trace_id for state in states])
        return {
            state.trace_id: (
                standing(said[state.trace_id], state, decided, None).content(),
                state.row.fingerprint,
                state.conflicts,
            )
            for state in states
        }


def export(root: Path, out: Path, form: str = "lines", **options: Any) -> interchange.InterchangeReport:
    return interchange.atif(root, out, interchange.InterchangeOptions(form=form, **options))


def documents(out: Path) -> list[dict[str, Any]]:
    lines = out / folders.LINES
    raws = lines.read_bytes().splitlines() if lines.exists() else map(Path.read_bytes, sorted(out.rglob("??/*.json")))
    return [digest.loads(raw).value for raw in raws]


def read(root: Path, out: Path) -> ingest.IngestReport:
    return ingest.ingest(root, [out], ingest.IngestOptions())


def changes(report: ingest.IngestReport) -> dict[str, int]:
    names = ("ingested", "duplicates", "strengthened", "disputing", "reimported", "refused", "contested")
    return {name: value for name in names if (value := getattr(report, name))}


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A corpus that knows no harness and no trace."""
    root = tmp_path / "empty"
    root.mkdir()
    scaffold.init(root)
    return root


@pytest.mark.parametrize("form", FORMS)
def test_a_store_that_knows_nothing_gets_the_same_traces(shop: Shop, empty: Path, tmp_path: Path, form: str) -> None:
    shop.record("r-1")
    report = export(shop.root, tmp_path / "out", form)
    assert (report.documents, report.traces, report.harnesses) == (6, 6, 2)
    assert changes(read(empty, tmp_path / "out")) == {"ingested": 6}
    assert now(empty) == now(shop.root)


@pytest.mark.parametrize("form", FORMS)
def test_the_store_itself_learns_nothing(shop: Shop, tmp_path: Path, form: str) -> None:
    shop.record("r-1")
    before = now(shop.root)
    export(shop.root, tmp_path / "out", form)
    assert changes(read(shop.root, tmp_path / "out")) == {"duplicates": 6}
    assert now(shop.root) == before


def test_exported_again_the_documents_are_the_same(shop: Shop, empty: Path, tmp_path: Path) -> None:
    shop.record("r-1")
    export(shop.root, tmp_path / "out")
    read(empty, tmp_path / "out")
    export(empty, tmp_path / "again")
    first, second = (sorted((tmp_path / name / folders.LINES).read_bytes().splitlines()) for name in ("out", "again"))
    assert first == second


def test_what_was_stated_since_travels(shop: Shop, empty: Path, tmp_path: Path) -> None:
    shop.ingest([document("t-9", reward=None)], harness=None, name="unknown")
    shop.ingest([document("t-9")], name="known")
    (trace,) = (key for key, (said, *_) in now(shop.root).items() if said["run"]["task"] == "t-9")
    said, fingerprint, _ = now(shop.root)[trace]
    assert (said["outcome"]["status"], fingerprint) == ("success", shop.fingerprint())
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty) == {trace: now(shop.root)[trace]}
    assert changes(read(shop.root, tmp_path / "out")) == {"duplicates": 1}


def test_what_was_stated_since_and_no_list_shows_travels(shop: Shop, empty: Path, tmp_path: Path) -> None:
    assert shop.ingest([document("t-0", environment={"image": "i"})], name="more").strengthened == 1
    trace = shop.ids()["t-0"]
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty)[trace][0]["run"]["environment"] == {"image": "i"}


def test_a_contested_trace_comes_back_contested(shop: Shop, empty: Path, tmp_path: Path) -> None:
    shop.ingest([document("t-0", reward=0.0)], name="other")
    trace = shop.ids()["t-0"]
    report = export(shop.root, tmp_path / "out", traces=[trace])
    assert (report.documents, report.contested) == (1, 1)
    assert read(empty, tmp_path / "out").contested == 1
    assert now(empty) == {trace: now(shop.root)[trace]}
    assert now(empty)[trace][2] == ("outcome.reward", "outcome.status")
    assert changes(read(shop.root, tmp_path / "out")) == {"duplicates": 2}


def test_a_trace_of_which_two_harnesses_are_stated_comes_back_under_none(shop: Shop, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(shop.root, other)
    shutil.rmtree(other / "traces")
    scaffold.init(other)
    (shop.root / "harness_versions" / "desk_a" / "observe.py").write_text("def observe(raw):\n    return raw\n")
    shop.ingest([document("t-0")], harness=shop.fingerprint(), name="other")
    trace = shop.ids()["t-0"]
    assert now(shop.root)[trace][1:] == (
        None,
        ("harness.declared.components.observation_handlers", "harness.declared.fingerprint"),
    )
    export(shop.root, tmp_path / "out", traces=[trace])
    read(other, tmp_path / "out")
    assert now(other)[trace] == now(shop.root)[trace]


def test_a_contradicted_trace_comes_back_contradicted(shop: Shop, empty: Path, tmp_path: Path) -> None:
    shop.ingest([document("v-0", extra="Be brief.")], harness="desk_a", name="wrong")
    trace = shop.ids()["v-0"]
    before = now(shop.root)[trace]
    assert before[1] is None
    assert before[0]["harness"]["contradictions"]
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty) == {trace: before}
    assert changes(read(shop.root, tmp_path / "out")) == {"duplicates": 1}


def test_a_mixed_trace_comes_back_mixed(shop: Shop, empty: Path, tmp_path: Path) -> None:
    export(shop.root, tmp_path / "out", traces=[shop.ids()["t-0"]])
    mixed = documents(tmp_path / "out")[0]
    mixed["extra"]["tracemark"]["harness"]["mixed"] = True
    path = tmp_path / "mixed.jsonl"
    path.write_text(json.dumps(mixed))
    read(empty, path)
    export(empty, tmp_path / "mixed")
    assert documents(tmp_path / "mixed")[0]["extra"]["tracemark"]["harness"]["mixed"] is True


def test_what_was_decided_travels_as_what_is_stated(shop: Shop, empty: Path, tmp_path: Path) -> None:
    shop.ingest([document("t-8")], harness=None, name="unknown")
    trace = shop.ids()["t-8"]
    assert now(shop.root)[trace][1] is None
    decisions.stamp(shop.root, [trace], "desk_a", "seen", CLOCK)
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty)[trace][1] == now(shop.root)[trace][1] == shop.fingerprint()


def test_what_was_decided_is_not_contradicted_by_what_refutes_the_harness_that_was_claimed(
    shop: Shop, empty: Path, tmp_path: Path
) -> None:
    shop.ingest([document("v-0", extra="Be brief.")], harness="desk_a", name="wrong")
    trace = shop.ids()["v-0"]
    decisions.stamp(shop.root, [trace], "desk_b", "seen", CLOCK)
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty)[trace][1] == now(shop.root)[trace][1] == shop.fingerprint("desk_b")
    assert "contradictions" not in now(empty)[trace][0]["harness"]


@pytest.mark.parametrize(("task", "harness"), [("t-8", "desk_a"), ("t-0", "none")])
def test_what_was_decided_is_no_statement_where_the_trace_is_known(
    shop: Shop, tmp_path: Path, task: str, harness: str
) -> None:
    shop.ingest([document("t-8")], harness=None, name="unknown")
    trace = shop.ids()[task]
    decisions.stamp(shop.root, [trace], harness, "seen", CLOCK)
    before = now(shop.root)
    export(shop.root, tmp_path / "out")
    assert changes(read(shop.root, tmp_path / "out")) == {"duplicates": 6}
    assert now(shop.root) == before
    decisions.stamp(shop.root, [trace], "none" if harness == "desk_a" else "desk_a", "taken back", CLOCK)
    assert now(shop.root)[trace][2] == ()


def test_what_was_decided_of_a_contested_trace_travels_and_the_rest_stays_contested(
    shop: Shop, empty: Path, tmp_path: Path
) -> None:
    (shop.root / "harness_versions" / "desk_a" / "observe.py").write_text("def observe(raw):\n    return raw\n")
    shop.ingest([document("t-0", reward=0.0)], harness=shop.fingerprint(), name="other")
    trace = shop.ids()["t-0"]
    decisions.stamp(shop.root, [trace], shop.fingerprint(), "seen", CLOCK)
    said, fingerprint, conflicts = now(shop.root)[trace]
    assert (fingerprint, conflicts) == (shop.fingerprint(), ("outcome.reward", "outcome.status"))
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty)[trace][1:] == (fingerprint, conflicts)
    assert now(empty)[trace][0]["outcome"] == said["outcome"]
    assert set(changes(read(shop.root, tmp_path / "out"))) == {"duplicates"}


def test_a_trace_that_was_decided_to_have_no_harness_comes_back_under_none(
    shop: Shop, empty: Path, tmp_path: Path
) -> None:
    trace = shop.ids()["t-0"]
    decisions.stamp(shop.root, [trace], "none", "wrong log", CLOCK)
    export(shop.root, tmp_path / "out", traces=[trace])
    read(empty, tmp_path / "out")
    assert now(empty)[trace][1] is None
    assert changes(read(shop.root, tmp_path / "out")) == {"duplicates": 1}


def test_what_was_retracted_or_read_anew_stays_and_is_counted(shop: Shop, tmp_path: Path) -> None:
    ids = shop.ids()
    decisions.retract(shop.root, [ids["t-0"]], "private", CLOCK)
    newer = shop.read_anew(ids["t-1"])
    report = export(shop.root, tmp_path / "out")
    assert report.excluded == {"not_selected": 0, "superseded": 1, "retracted": 1}
    assert report.documents + sum(report.excluded.values()) == report.traces == 6
    written = {made["extra"]["tracemark"]["trajectory"] for made in documents(tmp_path / "out")}
    assert newer in written
    assert written.isdisjoint({ids["t-0"], ids["t-1"]})
    with pytest.raises(ExportRefusedError, match="1 retracted"):
        export(shop.root, tmp_path / "none", traces=[ids["t-0"]])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (TraceFilter(), 5),
        (TraceFilter(harness="desk_b"), 2),
        (TraceFilter(harness="none", limit=1), 0),
        (TraceFilter(status="success", task="t-1"), 1),
        (TraceFilter(limit=4), 4),
    ],
)
def test_it_selects_as_a_list_of_traces_does(shop: Shop, tmp_path: Path, wanted: TraceFilter, count: int) -> None:
    if not count:
        with pytest.raises(ExportRefusedError, match="5 not selected"):
            export(shop.root, tmp_path / "out", wanted=wanted)
        return
    report = export(shop.root, tmp_path / "out", wanted=wanted)
    assert (report.documents, report.excluded["not_selected"]) == (count, 5 - count)


def test_links_to_other_documents_are_as_their_producer_wrote_them(shop: Shop, empty: Path, tmp_path: Path) -> None:
    folder = tmp_path / "terminus"
    folder.mkdir()
    first, second = document("c-0"), document("c-0", said="Later.")
    first["continued_trajectory_ref"] = "trajectory.cont-1.json"
    second["agent"]["extra"] = {"continuation_index": 1}
    (folder / "trajectory.json").write_text(json.dumps(first))
    (folder / "trajectory.cont-1.json").write_text(json.dumps(second))
    read(empty, folder)
    before = now(empty)
    assert sorted(said["run"].get("continues", "") for said, *_ in before.values()) == ["", "trajectory.json"]
    export(empty, tmp_path / "out")
    shutil.rmtree(empty / "traces")
    scaffold.init(empty)
    read(empty, tmp_path / "out")
    assert now(empty) == before


def delegating(session: str) -> dict[str, Any]:
    """Return a run that names another one as that of a sub-agent."""
    made = document("d-0")
    reference = {"session_id": session}
    made["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = [reference]
    return made


def test_documents_that_name_one_another_are_no_more_of_each_other_than_they_were(
    shop: Shop, empty: Path, tmp_path: Path
) -> None:
    other = document("d-1")
    shop.ingest([delegating(other["session_id"])], name="one")
    shop.ingest([other], name="other")
    before = now(shop.root)
    assert not any("role" in said["run"] for said, *_ in before.values())
    for form in FORMS:
        export(shop.root, tmp_path / "out", form)
        read(empty, tmp_path / "out")
        assert now(empty) == before
        shutil.rmtree(empty / "traces")
        scaffold.init(empty)


def test_a_document_put_into_a_trial_is_still_its_own(shop: Shop, empty: Path, tmp_path: Path) -> None:
    shop.ingest([{**document("h-0", reward=None), "session_id": None}], name="bare")
    trace = shop.ids()["h-0"]
    export(shop.root, tmp_path / "out", "files", traces=[trace])
    (path,) = (tmp_path / "out").rglob("??/*.json")
    agent = tmp_path / "trial" / "agent"
    agent.mkdir(parents=True)
    shutil.copy(path, agent / "trajectory.json")
    result = {"id": "trial-1", "task_name": "other", "verifier_result": {"rewards": {"reward": 1.0}}}
    (agent.parent / "result.json").write_text(json.dumps(result))
    (agent.parent / "config.json").write_text("{}")
    shutil.copy(next((tmp_path / "out").glob("*.harness.json")), agent.parent)
    assert changes(read(empty, agent.parent)) == {"ingested": 1}
    assert now(empty) == {trace: now(shop.root)[trace]}


def test_the_manifest_counts_what_is_there(shop: Shop, tmp_path: Path) -> None:
    export(shop.root, tmp_path / "out", wanted=TraceFilter(status="success"))
    stated = json.loads((tmp_path / "out" / folders.NAME).read_bytes())
    assert stated["complete"] is True
    assert stated["counts"]["documents"] == 5
    assert stated["selected"]["status"] == "success"
    assert stated["digest"] == digest.of({name: value for name, value in stated.items() if name != "digest"})
    for name, said in stated["files"].items():
        data = (tmp_path / "out" / name).read_bytes()
        assert said == {"sha256": digest.sha256(data), "bytes": len(data)}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {folders.NAME, *stated["files"]}


@pytest.mark.parametrize("form", FORMS)
def test_an_earlier_export_is_replaced_whatever_its_form(shop: Shop, tmp_path: Path, form: str) -> None:
    for earlier in FORMS:
        export(shop.root, tmp_path / "out", earlier)
        export(shop.root, tmp_path / "out", form, wanted=TraceFilter(harness="desk_b"))
        assert len(documents(tmp_path / "out")) == 2
        assert len(list((tmp_path / "out").glob("*.harness.json"))) == 1


@pytest.mark.parametrize("name", ["notes.txt", "trajectories/ab/notes.txt", "trajectories/notes", "a.harness.json"])
def test_what_no_export_wrote_is_never_replaced(shop: Shop, tmp_path: Path, name: str) -> None:
    export(shop.root, tmp_path / "out", "files")
    path = tmp_path / "out" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(UsageError, match="no part of an interchange export"):
        export(shop.root, tmp_path / "out")
    assert path.read_text() == "mine"


def test_a_folder_without_a_manifest_is_no_exports(shop: Shop, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / folders.LINES).write_text("mine")
    with pytest.raises(UsageError, match=r"trajectories\.jsonl"):
        export(shop.root, out)
    assert (out / folders.LINES).read_text() == "mine"


@pytest.mark.parametrize("name", ["inbox/out", "traces/out", "harness_versions"])
def test_an_export_lies_where_nothing_reads_it_back(shop: Shop, name: str) -> None:
    with pytest.raises(UsageError, match="cannot lie in"):
        export(shop.root, shop.root / name)


@pytest.mark.parametrize("form", FORMS)
def test_an_export_that_was_cut_short_says_so_and_can_be_made_again(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def failing(*_: Any) -> Any:
        raise IntegrityError("damaged")

    with monkeypatch.context() as patch:
        patch.setenv("TRACEMARK_WORKERS", "1")
        patch.setattr(interchange, "work", failing)
        with pytest.raises(IntegrityError):
            export(shop.root, tmp_path / "out", form)
    assert json.loads((tmp_path / "out" / folders.NAME).read_bytes())["complete"] is False
    assert export(shop.root, tmp_path / "out", form).documents == 5
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_what_an_export_wrote_is_durable_when_it_says_so(shop: Shop, tmp_path: Path, disk: Any) -> None:
    export(shop.root, tmp_path / "out")
    disk.require_durable(tmp_path / "out")
    (last,) = [path for word, *_, path in disk.calls if word == "rename" and path.startswith(str(tmp_path / "out"))][
        -1:
    ]
    assert last.endswith(folders.NAME)


def test_an_audit_says_what_compares_documents_with_the_store(shop: Shop, tmp_path: Path) -> None:
    export(shop.root, tmp_path / "out")
    with pytest.raises(UnknownNameError, match="no training set") as caught:
        audit.audit(shop.root, str(tmp_path / "out"))
    assert (
        caught.value.hint == f"tracemark ingest {tmp_path / 'out'} --dry-run tells what in them the store does not have"
    )


def test_a_damaged_trace_is_no_document(shop: Shop, tmp_path: Path) -> None:
    (segment, *_) = sorted((shop.root / "traces" / "segments").rglob("*.zst"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.chmod(0o644)
    segment.write_bytes(bytes(data))
    with pytest.raises(IntegrityError):
        export(shop.root, tmp_path / "out")


@pytest.mark.shared_data
def test_every_shared_trace_comes_back_and_is_valid_atif(empty: Path, shared_traces: Path, tmp_path: Path) -> None:
    assert len(IMPORTERS.names()) >= 3
    read(empty, shared_traces)
    before = now(empty)
    export(empty, tmp_path / "out")
    for made in documents(tmp_path / "out"):
        Peer.model_validate(made)
    assert set(changes(read(empty, tmp_path / "out"))) == {"duplicates"}
    assert now(empty) == before
    shutil.rmtree(empty / "traces")
    scaffold.init(empty)
    assert changes(read(empty, tmp_path / "out")) == {"ingested": len(before)}
    assert now(empty) == before
