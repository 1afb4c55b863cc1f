"""The failure log: every failure in its file, no success and no task of the evaluation set in any."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import decisions, failing, failing_export, failing_terms, ingest, pairs, scaffold
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.failing_export import FailureExport
from tracemark.durable import lock
from tracemark.errors import (
    ExportRefusedError,
    IntegrityError,
    LockedError,
    NothingReadableError,
    NotPulledError,
    UsageError,
)
from tracemark.findings import Severity
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document, write_version
from .failed_runs import clusters, content, ended, failed, manifest, rows, shop_of_failures
from .test_pinned import pin, segments

FILES = ("failures.jsonl", "environment.jsonl", "grader.jsonl", "quarantine.jsonl")
LOCKED = "Error: order o-<n> is locked"


@pytest.fixture
def failures(shop: Shop) -> Shop:
    return shop_of_failures(shop)


def export(shop: Shop, out: str = "failures") -> FailureExport:
    return failing_export.export(shop.root, shop.root / out)


def tasks(folder: Path) -> set[str]:
    return {row["task"] for name in FILES for row in rows(folder, name)}


def reject(shop: Shop, name: str) -> str:
    subject = {"half": "harness", "candidate": shop.fingerprint(name), "incumbent": shop.fingerprint()}
    return shop.enter("reject", subject, "the gate said no")


def codes(report: FailureExport) -> list[str]:
    return [one.code for one in report.findings]


def added_up(stated: dict[str, Any]) -> int:
    counts = stated["counts"]
    routed = sum(one["traces"] for one in counts["routed"])
    return int(counts["superseded"] + sum(counts["left_out"].values()) + routed)


def test_each_failure_of_the_accepted_harness_lies_in_its_file(failures: Shop) -> None:
    report = export(failures)
    folder = failures.root / "failures"
    found = {name: sorted(row["task"] for row in rows(folder, name)) for name in FILES}
    assert found == {
        "failures.jsonl": ["f-0", "f-1", "f-2", "f-3", "stopped"],
        "environment.jsonl": ["disk"],
        "grader.jsonl": ["grader"],
        "quarantine.jsonl": ["budget"],
    }
    assert report.rows == {name: len(found[name]) for name in FILES}
    assert (report.harness, report.successes, report.candidates) == ("desk_a", 4, [])
    assert report.left_out["other-harness"] == 4
    for row in rows(folder):
        assert row["model"] is None
        assert (row["harness"], row["evidence"]) == (failures.fingerprint(), "claimed")
    assert [row["trace"] for row in rows(folder)] == sorted(row["trace"] for row in rows(folder))


def test_each_cluster_has_its_file_with_full_examples(failures: Shop) -> None:
    export(failures)
    folder = failures.root / "failures"
    found = clusters(folder)
    assert sorted((one["line"], one["traces"]) for one in found) == [("(stopped-early)", 1), (LOCKED, 4)]
    locked = next(one for one in found if one["line"] == LOCKED)
    ours = [row for row in rows(folder) if row["cluster"] == locked["cluster"]]
    assert locked["representatives"] == sorted(row["trace"] for row in ours)[:3]
    by_trace = {row["trace"]: row for row in ours}
    for example in locked["examples"]:
        assert example["evidence"] == by_trace[example["trace"]]["failure"]
        assert example["observation"] == example["evidence"]["text"]
    assert {path.stem for path in (folder / "clusters").iterdir()} == {one["cluster"] for one in found}
    overview = (folder / "overview.md").read_text()
    assert "# Failures of desk\\_a" in overview
    assert LOCKED in overview
    assert "no space left" not in overview


def test_demonstrations_and_the_log_have_no_trace_in_common(failures: Shop) -> None:
    """Whatever the ledger decides, and whatever a condition says of a success."""
    (failures.root / "own.toml").write_text(
        'version = 1\n[[condition]]\nname = "all"\norder = 0\nsays = "every run"\nside = "tool"\nconfidence = 1.0\n'
        'destination = "harness"\ntest = "stopped"\n[[condition]]\nname = "rest"\norder = 0.1\nsays = "every other"\n'
        'side = "tool"\nconfidence = 1.0\ndestination = "model-training"\ntest = "failure-visible"\n'
    )
    ids = failures.ids()
    failures.ingest([document("m-0"), failed("m-1")], None, "unstated")
    other = failures.fingerprint("desk_b")
    steps = [
        lambda: None,
        lambda: failures.set(("conditions: null", "conditions: own.toml")),
        lambda: decisions.retract(failures.root, ids["t-0"], "doubtful", CLOCK),
        lambda: failures.enter("stamp", {"trace": failures.ids()["m-1"], "fingerprint": failures.fingerprint()}),
        lambda: failures.enter("stamp", {"trace": failures.ids()["m-0"], "fingerprint": failures.fingerprint()}),
        lambda: failures.enter("equivalent", {"fingerprints": [failures.fingerprint(), other]}),
        lambda: failures.set(("evidence: unique", "evidence: claimed")),
        lambda: decisions.reinstate(failures.root, ids["t-0"], "it was fine", CLOCK),
        lambda: reject(failures, "desk_b"),
        lambda: failures.accept("desk_b"),
    ]
    for step in steps:
        step()
        export(failures)
        failures.export()
        folder = failures.root / "failures"
        logged = {row["trace"] for path in folder.rglob("*.jsonl") for row in rows(path.parent, path.name)}
        shown = {
            one["trace"] for path in folder.rglob("clusters/*") for one in json.loads(path.read_text())["examples"]
        }
        trained = {row["tracemark_trace_id"] for row in failures.rows()}
        assert trained
        assert logged
        assert shown <= logged
        assert logged.isdisjoint(trained)
        with open_store(failures.root) as store:
            states = store.select(Selection(), Corpus(failures.root).store_decisions)
            successes = {state.trace_id for state in states if state.row.status == "success"}
        assert logged.isdisjoint(successes)
        assert added_up(manifest(folder)) == manifest(folder)["counts"]["traces"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_decisions_of_any_kind_in_any_order_keep_the_two_apart_and_the_counts_whole(failures: Shop, seed: int) -> None:
    contested = failed("f-1", "Error: order o-1 is locked", reward=1.0)
    failures.ingest([document("m-0"), failed("m-1"), contested], None, "unstated")
    failures.set(("evidence: unique", "evidence: claimed"))
    chance = random.Random(seed)
    ids, versions = sorted(failures.ids().values()), ["desk_a", "desk_b"]
    prints = [failures.fingerprint(name) for name in versions]
    decisions_of: list[Callable[[], Any]] = [
        lambda: failures.enter("retract", {"trace": chance.choice(ids)}),
        lambda: failures.enter("reinstate", {"trace": chance.choice(ids)}),
        lambda: failures.enter("stamp", {"trace": chance.choice(ids), "fingerprint": chance.choice([*prints, None])}),
        lambda: failures.enter(chance.choice(["equivalent", "distinct"]), {"fingerprints": prints}),
        lambda: failures.enter("reject", dict(zip(("candidate", "incumbent"), prints, strict=True), half="harness")),
        lambda: failures.accept(chance.choice(versions)),
    ]
    folder = failures.root / "failures"
    for _ in range(12):
        chance.choice(decisions_of)()
        export(failures)
        try:
            failures.export()
            trained = {row["tracemark_trace_id"] for row in failures.rows()}
        except ExportRefusedError:
            trained = set()
        logged = {row["trace"] for path in folder.rglob("*.jsonl") for row in rows(path.parent, path.name)}
        assert logged.isdisjoint(trained)
        assert added_up(manifest(folder)) == manifest(folder)["counts"]["traces"] == len(ids)


def test_no_task_of_the_evaluation_set_is_in_any_file(failures: Shop) -> None:
    failures.ingest([failed(None)], name="unknown")
    failures.ingest([failed("f-1", domain="shop"), ended("x", "max_steps", domain="shop")], name="in-a-domain")
    failures.set(("tasks: []", "tasks: [f-0, shop/f-1, disk, grader, x]"))
    report = export(failures)
    folder = failures.root / "failures"
    # f-1 without a domain may be the one of the set
    assert tasks(folder) == {"f-2", "f-3", "stopped", "budget"}
    named = {name for one in clusters(folder) for name in one["task_names"]}
    assert named == {"f-2", "f-3", "stopped"}
    assert report.left_out["evaluation-task"] == 7
    assert b"no space left" not in b"".join(content(folder).values())


def test_an_empty_task_is_an_unknown_one(failures: Shop) -> None:
    for number, domain in enumerate(("", "shop")):
        nameless = failed(None, domain=domain)
        nameless["extra"]["tracemark"]["run"]["task"] = ""
        failures.ingest([nameless], name=f"empty-{number}")
    export(failures)
    folder = failures.root / "failures"
    locked = next(one for one in clusters(folder) if one["line"] == LOCKED)
    assert (locked["traces"], locked["tasks"], locked["task_unknown"]) == (6, 4, 2)
    failures.set(("tasks: []", "tasks: [f-0]"))
    assert export(failures).left_out["evaluation-task"] == 3
    assert tasks(folder) == {"f-1", "f-2", "f-3", "stopped", "budget", "disk", "grader"}


def test_an_evaluation_set_that_is_not_the_frozen_one_is_told(failures: Shop) -> None:
    failures.set(("tasks: []", "tasks: [f-0, f-1]"))
    assert "evaluation-changed" not in codes(export(failures))
    pairs.freeze(failures.root, "to compare on", CLOCK)
    assert "evaluation-changed" not in codes(export(failures))
    failures.set(("tasks: [f-0, f-1]", "tasks: [f-0]"))
    found = export(failures)
    assert "f-1" in tasks(failures.root / "failures")
    told = next(one for one in found.findings if one.code == "evaluation-changed")
    assert (told.severity, told.where) == (Severity.WARNING, "params.yaml: evaluation.tasks")
    assert told in failing.list_(failures.root, failing.FailureFilter()).findings
    assert told.message.startswith("the set of 1 task is not the one of 2 tasks that was frozen last")
    failures.set(("tasks: [f-0]", "tasks: []"))
    assert "evaluation-changed" in codes(export(failures))


def test_a_leak_stops_the_export_and_an_earlier_log_stays(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    before = content(failures.root / "failures")
    failures.set(("tasks: []", "tasks: [f-3]"))
    monkeypatch.setattr(failing_terms, "for_evaluation", lambda *_: False)
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    with pytest.raises(ExportRefusedError, match="f-3") as stopped:
        export(failures)
    assert stopped.value.exit_code == 40
    assert content(failures.root / "failures") == before
    with pytest.raises(ExportRefusedError):
        export(failures, "elsewhere")
    assert not (failures.root / "elsewhere").exists()


def test_the_manifest_adds_up_to_the_store(failures: Shop) -> None:
    ids = failures.ids()
    failures.ingest([failed("n-0")], None, "nameless")
    decisions.retract(failures.root, ids["f-0"], "wrong", CLOCK)
    failures.ingest([document("f-1", reward=0.0)], name="another-run")
    failures.read_anew(ids["f-2"])
    failures.read_anew(ids["b-0"])
    report = export(failures)
    stated = manifest(failures.root / "failures")
    assert stated["complete"] is True
    assert added_up(stated) == stated["counts"]["traces"] == report.traces
    assert stated["counts"]["left_out"] == {
        "retracted": 1,
        "contested": 0,
        "mixed": 0,
        "no-fingerprint": 1,
        "other-harness": 4,
        "evaluation-task": 0,
    }
    assert stated["counts"]["superseded"] == 2
    by_file = Counter[str]()
    for one in stated["counts"]["routed"]:
        by_file[one["file"] or ""] += one["traces"]
    assert {name: by_file[name] for name in FILES} == {
        name: len(rows(failures.root / "failures", name)) for name in FILES
    }
    with open_store(failures.root) as store:
        assert stated["corpus"] == store.corpus_digest()
    files = content(failures.root / "failures")
    assert set(stated["files"]) == {name for name in files if "clusters/" not in name} - {"manifest.json"}
    for name, known in stated["files"].items():
        assert known == {"sha256": digest.sha256(files[name]), "bytes": len(files[name])}
    assert stated["digest"] == digest.of({name: value for name, value in stated.items() if name != "digest"})


def test_a_contested_trace_is_left_out(failures: Shop) -> None:
    again = failed("f-1", "Error: order o-1 is locked", reward=1.0)
    failures.ingest([again], name="disagrees")
    report = export(failures)
    assert report.left_out["contested"] == 1
    assert "f-1" not in tasks(failures.root / "failures")


def test_a_rejected_candidate_has_a_log_of_its_own(failures: Shop) -> None:
    reject(failures, "desk_b")
    report = export(failures)
    folder = failures.root / "failures"
    place = f"candidates/{failures.fingerprint('desk_b')[4:20]}"
    assert [(one["harness"], one["folder"], one["rows"]["failures.jsonl"]) for one in report.candidates] == [
        ("desk_b", place, 2)
    ]
    assert {row["task"] for row in rows(folder / place)} == {"b-0", "b-1"}
    assert {row["harness"] for row in rows(folder / place)} == {failures.fingerprint("desk_b")}
    assert [one["traces"] for one in clusters(folder / place)] == [2]
    assert "a candidate that a gate rejected" in (folder / place / "overview.md").read_text()
    assert not tasks(folder) & {"b-0", "b-1"}
    assert (report.left_out["other-harness"], added_up(manifest(folder))) == (0, report.traces)


def test_a_cluster_of_a_candidates_log_is_the_one_that_list_and_show_tell_of(failures: Shop) -> None:
    write_version(failures.root, "desk_c", extra="Be kind.")
    failures.ingest([failed("c-0", "Error: it burns", extra="Be kind.")], "desk_c", "c")
    for name in ("desk_b", "desk_c"):
        reject(failures, name)
    failures.enter("equivalent", {"fingerprints": [failures.fingerprint("desk_b"), failures.fingerprint("desk_c")]})
    (candidate,) = export(failures).candidates
    written = clusters(failures.root / "failures" / candidate["folder"])
    assert sorted(one["traces"] for one in written) == [1, 2]
    for name in ("desk_b", "desk_c"):
        listed = failing.list_(failures.root, failing.FailureFilter(harness=name)).clusters
        assert {(one["cluster"], one["traces"], one["share"]) for one in listed} == {
            (one["cluster"], one["traces"], one["share"]) for one in written
        }
    for one in written:
        shown = failing.show(failures.root, one["cluster"])
        assert isinstance(shown, failing.ClusterShown)
        assert (shown.traces, shown.representatives) == (one["traces"], one["representatives"])
        by_trace = failing.show(failures.root, one["representatives"][0])
        assert isinstance(by_trace, failing.TraceRouted)
        assert by_trace.cluster == one["cluster"]


def test_a_candidate_that_was_accepted_after_all_is_no_rejected_one(failures: Shop) -> None:
    reject(failures, "desk_b")
    failures.accept("desk_b")
    report = export(failures)
    assert (report.harness, report.candidates) == ("desk_b", [])
    assert tasks(failures.root / "failures") == {"b-0", "b-1"}


def test_a_candidate_that_was_accepted_before_it_was_rejected_is_a_rejected_one(failures: Shop) -> None:
    failures.accept("desk_b")
    failures.accept()
    assert export(failures).candidates == []
    reject(failures, "desk_b")
    assert [one["harness"] for one in export(failures).candidates] == ["desk_b"]


@pytest.mark.parametrize("kind", ["install", "roll-back"])
def test_a_candidate_that_was_installed_or_gone_back_to_is_no_rejected_one(failures: Shop, kind: str) -> None:
    entry = reject(failures, "desk_b")
    decided = {"harness": failures.fingerprint("desk_b"), "model": None}
    failures.enter(kind, decided | ({"half": "harness"} if kind == "install" else {"to": entry}))
    # the accepted harness is another one by now
    failures.enter("accept", {"harness": failures.fingerprint("desk_a"), "label": "desk_a"})
    assert export(failures).candidates == []


def test_a_rejected_model_is_no_rejected_harness(failures: Shop) -> None:
    model = dict.fromkeys(("revision", "chat_template", "tokenizer", "server", "sampling"))
    halves = {"candidate": {"name": "m-2", **model}, "incumbent": {"name": "m-1", **model}}
    failures.enter("reject", {"half": "model", **halves})
    report = export(failures)
    assert (report.candidates, report.rows["failures.jsonl"]) == ([], 5)


def test_failures_of_an_equivalent_harness_count_as_those_of_the_accepted_one(failures: Shop) -> None:
    reject(failures, "desk_b")
    failures.enter("equivalent", {"fingerprints": [failures.fingerprint(), failures.fingerprint("desk_b")]})
    report = export(failures)
    folder = failures.root / "failures"
    assert report.candidates == []
    assert {"b-0", "b-1"} <= tasks(folder)
    locked = next(one for one in clusters(folder) if one["line"] == LOCKED)
    assert (locked["traces"], locked["harness"]) == (6, failures.fingerprint())
    assert {row["harness"] for row in rows(folder)} == {failures.fingerprint(), failures.fingerprint("desk_b")}
    assert manifest(folder)["logs"][0]["equivalents"] == [failures.fingerprint("desk_b")]


def test_an_earlier_log_is_replaced(failures: Shop) -> None:
    reject(failures, "desk_b")
    export(failures)
    failures.enter("accept", {"harness": failures.fingerprint("desk_b"), "label": "desk_b"})
    failures.accept("desk_b")
    export(failures)
    folder = failures.root / "failures"
    assert not (folder / "candidates").exists()
    assert [one["traces"] for one in clusters(folder)] == [2]


def test_the_same_failures_give_the_same_bytes(failures: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    first = content(failures.root / "failures")
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    export(failures)
    assert content(failures.root / "failures") == first
    # the same runs, stored one by one and in another order
    other = Shop(tmp_path / "other")
    scaffold.init(other.root)
    write_version(other.root, "desk_a")
    write_version(other.root, "desk_b", extra="Be brief.")
    for number, line in enumerate(reversed((failures.root / "inbox" / "failures.jsonl").read_text().splitlines())):
        other.ingest([json.loads(line)], name=f"one-{number}")
    other.ingest([document(f"t-{number}") for number in range(3)])
    other.accept()
    export(other)
    second = content(other.root / "failures")
    assert {name for name in first if first[name] != second.get(name)} == {"manifest.json"}


def test_many_files_of_rows_become_one(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        failures.ingest([failed(f"s-{number}", f"Error: {number} of them")], name=f"single-{number}")
    export(failures)
    whole = rows(failures.root / "failures")
    monkeypatch.setattr(failing_export, "_OPEN", 2)
    export(failures)
    assert rows(failures.root / "failures") == whole
    assert [row["trace"] for row in whole] == sorted(row["trace"] for row in whole)
    assert len(whole) == 10
    assert not [path for path in (failures.root / "failures").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", ["notes.txt", "clusters/notes.txt", "clusters/deep/er", "candidates/x/failures.jsonl"])
def test_what_is_somebody_elses_is_never_replaced(failures: Shop, name: str) -> None:
    export(failures)
    strange = failures.root / "failures" / name
    strange.parent.mkdir(parents=True, exist_ok=True)
    strange.write_text("mine")
    before = content(failures.root / "failures")
    with pytest.raises(UsageError, match="no part of a failure log"):
        export(failures)
    assert content(failures.root / "failures") == before


def test_a_folder_that_is_no_log_is_refused(failures: Shop) -> None:
    other = failures.root / "other"
    other.mkdir()
    (other / "manifest.json").write_text('{"format": "something/1"}')
    (other / "failures.jsonl").write_text("mine\n")
    with pytest.raises(UsageError, match=r"failures\.jsonl, manifest\.json"):
        export(failures, "other")
    file = failures.root / "file"
    file.write_text("mine")
    with pytest.raises(UsageError, match="not a folder"):
        export(failures, "file")
    with pytest.raises(UsageError, match="cannot lie in"):
        export(failures, "traces/failures")
    link = failures.root / "log"
    export(failures, "log")
    (link / "clusters").rename(failures.root / "away")
    (link / "clusters").symlink_to(failures.root / "away")
    with pytest.raises(UsageError, match="clusters"):
        export(failures, "log")


def test_a_log_for_which_there_is_no_room_leaves_the_earlier_one_as_it_was(
    failures: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    failures.ingest([failed("f-9", "Error: order o-9 is locked")], name="one-more")
    whole = shutil.copyfile

    def full(source: Path, target: Path, **options: Any) -> Any:
        if target.name == ".quarantine.jsonl.tmp":
            raise OSError(28, "No space left on device")
        return whole(source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", full)
        with pytest.raises(OSError, match="No space"):
            export(failures)
        assert content(folder) == before
        with pytest.raises(OSError, match="No space"):
            export(failures, "another")
    # a folder without a manifest would be somebody else's
    assert manifest(failures.root / "another")["complete"] is False
    export(failures)
    assert len(rows(folder)) == 6
    export(failures, "another")
    assert content(failures.root / "another") == content(folder)


def test_a_log_that_was_cut_short_says_so_and_is_replaced(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    folder = failures.root / "failures"
    before = content(folder)
    whole = Path.rename

    def dies(path: Path, target: Path) -> Path:
        if path.name == ".failures.jsonl.tmp":
            raise KeyboardInterrupt
        return whole(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            export(failures)
    assert manifest(folder)["complete"] is False
    (folder / ".manifest.json.abc.tmp").write_bytes(b"{")
    export(failures)
    assert content(folder) == before


def test_two_logs_are_never_put_in_their_place_at_once(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    before = content(failures.root / "failures")
    failures.ingest([failed("f-9", "Error: order o-9 is locked")], name="one-more")
    monkeypatch.setenv("TRACEMARK_LOCK_WAIT", "0")
    with lock(failures.root / ".tracemark" / "failures.lock"), pytest.raises(LockedError):
        export(failures)
    assert content(failures.root / "failures") == before
    export(failures)
    assert len(rows(failures.root / "failures")) == 6


def test_what_came_into_the_folder_meanwhile_is_never_replaced(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    folder = failures.root / "failures"
    ours = failing_export._require_no_leak

    def meanwhile(*asked: Any) -> None:
        (folder / "clusters" / "notes.md").write_text("mine")
        ours(*asked)

    monkeypatch.setattr(failing_export, "_require_no_leak", meanwhile)
    with pytest.raises(UsageError, match=r"clusters/notes\.md"):
        export(failures)
    assert (folder / "clusters" / "notes.md").read_text() == "mine"
    assert manifest(folder)["complete"] is True


def test_without_an_accepted_harness_there_is_no_log(shop: Shop) -> None:
    shop.ingest([failed("f-0")], name="failures")
    with pytest.raises(ExportRefusedError, match="no harness is accepted"):
        export(shop)
    assert not (shop.root / "failures").exists()


def test_a_harness_without_failures_has_an_empty_log(shop: Shop) -> None:
    shop.accept()
    report = export(shop)
    assert (report.rows, report.clusters) == (dict.fromkeys(FILES, 0), 0)
    assert (shop.root / "failures" / "failures.jsonl").read_bytes() == b""


def test_a_trace_that_is_not_what_its_id_says_stops_it(failures: Shop) -> None:
    with open_store(failures.root) as store:
        stored = store.lookup([failures.ids()["f-0"]])[failures.ids()["f-0"]]
        path = store.layout.path(stored.file)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.chmod(0o600)
    path.write_bytes(bytes(data))
    with pytest.raises(IntegrityError):
        export(failures)
    assert not (failures.root / "failures").exists()


def test_nothing_of_a_trace_is_written_raw(shop: Shop) -> None:
    shop.accept()
    nasty = "Error: \x1b[31mred\u202e<!-- [x](y) `z` | \udc80"
    shop.ingest([failed("nasty\x1b[0m", nasty)], name="nasty")
    export(shop)
    for name, data in content(shop.root / "failures").items():
        text = data.decode()
        assert all(letter == "\n" or letter.isprintable() for letter in text), name


def test_a_row_names_the_model(shop: Shop) -> None:
    shop.accept()
    models = [{"name": "desk-agent", "revision": "tuned"}, {"name": "desk-agent"}]
    shop.ingest([failed(f"m-{number}", model=model) for number, model in enumerate(models)], name="models")
    export(shop)
    assert {row["task"]: row["model"] for row in rows(shop.root / "failures")} == {
        "m-0": "desk-agent@tuned",
        "m-1": "desk-agent",
    }


def test_a_catalogue_that_says_another_task_is_not_believed(failures: Shop) -> None:
    failures.set(("tasks: []", "tasks: [f-0]"))
    with open_store(failures.root) as store:
        path = store.layout.catalogue
    with closing(sqlite3.connect(path)) as database, database:
        # the line is what it was, so its task is still one of the set
        changed = database.execute("UPDATE traces SET task = 'elsewhere' WHERE task = 'f-0'").rowcount
    assert changed == 1
    with pytest.raises(IntegrityError, match="task"):
        export(failures)
    assert not (failures.root / "failures").exists()


@pytest.mark.parametrize("member", ["status", "task"])
def test_a_catalogue_that_says_other_than_later_statements_is_not_believed(failures: Shop, member: str) -> None:
    failures.ingest([document("later", reward=None)], name="open")
    failures.ingest([document("later", reward=0.0)], name="closed")
    export(failures)
    before = content(failures.root / "failures")
    with open_store(failures.root) as store:
        path = store.layout.catalogue
    with closing(sqlite3.connect(path)) as database, database:
        query = f"UPDATE restated SET fields = json_set(fields, '$.{member}', 'unknown')"
        assert database.execute(query).rowcount == 1
    with pytest.raises(IntegrityError, match="statements"):
        export(failures)
    assert content(failures.root / "failures") == before
    with pytest.raises(IntegrityError, match="statements"):
        failing.list_(failures.root, failing.FailureFilter())


def test_a_stored_file_that_is_not_pulled_or_not_read_refuses_the_log(failures: Shop) -> None:
    export(failures)
    before = content(failures.root / "failures")
    bad = failures.root / "traces" / "segments" / "fingerprint=none" / f"{'0' * 64}.jsonl.zst"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"nothing that can be read")
    with pytest.raises(IntegrityError, match="would be left out"):
        export(failures)
    bad.unlink()
    names = segments(failures.root)
    pin(failures.root, names, len(names))
    export(failures)
    (failures.root / "traces" / "segments" / names[0]).unlink()
    with pytest.raises(NotPulledError, match="traces/segments"):
        export(failures)
    assert content(failures.root / "failures") == before


def test_a_log_is_not_read_as_traces(failures: Shop) -> None:
    export(failures)
    before = failures.ids()
    with pytest.raises(NothingReadableError):
        ingest.ingest(failures.root, [failures.root / "failures"], ingest.IngestOptions())
    assert failures.ids() == before


def test_a_version_that_was_never_met_has_no_candidate_log(failures: Shop) -> None:
    write_version(failures.root, "desk_c", extra="Be kind.")
    reject(failures, "desk_c")
    assert export(failures).candidates == []
    assert not (failures.root / "failures" / "candidates").exists()
