"""The failure log: every failure in its file, no success and no task of the evaluation set in any."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import decisions, failure_export, failure_log, failure_terms, ingest, scaffold
from tracemark.acts.corpus import Corpus, open_store
from tracemark.errors import (
    ExportRefusedError,
    IntegrityError,
    NothingReadableError,
    NotPulledError,
)
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document, write_version
from .failed_runs import (
    FILES,
    LOCKED,
    added_up,
    clusters,
    content,
    ended,
    export,
    failed,
    manifest,
    reject,
    rows,
    tasks,
)
from .test_pinned import pin, segments


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
    beside = [row for file in ("environment.jsonl", "grader.jsonl", "quarantine.jsonl") for row in rows(folder, file)]
    assert {row["cluster"] for row in beside} == {None}
    counted = {name: len(rows(folder, name)) for name in ("environment.jsonl", "grader.jsonl", "quarantine.jsonl")}
    for name, number in counted.items():
        assert (f"{number} failed run{'' if number == 1 else 's'} in `{name}`" in overview) is (number > 0)


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
        lambda: decisions.retract(failures.root, [ids["t-0"]], "doubtful", CLOCK),
        lambda: failures.enter("stamp", {"trace": failures.ids()["m-1"], "fingerprint": failures.fingerprint()}),
        lambda: failures.enter("stamp", {"trace": failures.ids()["m-0"], "fingerprint": failures.fingerprint()}),
        lambda: failures.enter("equivalent", {"fingerprints": [failures.fingerprint(), other]}),
        lambda: failures.set(("evidence: unique", "evidence: claimed")),
        lambda: decisions.reinstate(failures.root, [ids["t-0"]], "it was fine", CLOCK),
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


def test_a_leak_stops_the_export_and_an_earlier_log_stays(failures: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    export(failures)
    before = content(failures.root / "failures")
    failures.set(("tasks: []", "tasks: [f-3]"))
    monkeypatch.setattr(failure_terms, "for_evaluation", lambda *_: False)
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
    decisions.retract(failures.root, [ids["f-0"]], "wrong", CLOCK)
    failures.ingest([document("f-1", reward=0.0)], name="another-run")
    failures.read_anew(ids["f-2"])
    failures.read_anew(ids["b-0"])
    report = export(failures)
    stated = manifest(failures.root / "failures")
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
    monkeypatch.setattr(failure_export, "_OPEN", 2)
    export(failures)
    assert rows(failures.root / "failures") == whole
    assert [row["trace"] for row in whole] == sorted(row["trace"] for row in whole)
    assert len(whole) == 10
    assert not [path for path in (failures.root / "failures").iterdir() if path.name.startswith(".")]


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
    before, trace = content(failures.root / "failures"), failures.ids()["later"]
    with open_store(failures.root) as store:
        path = store.layout.catalogue
    with closing(sqlite3.connect(path)) as database, database:
        query = f"UPDATE restated SET fields = json_set(fields, '$.{member}', 'unknown')"
        assert database.execute(query).rowcount == 1
    with pytest.raises(IntegrityError, match="statements"):
        export(failures)
    assert content(failures.root / "failures") == before
    with pytest.raises(IntegrityError, match="statements"):
        failure_log.list_(failures.root, failure_log.FailureFilter())
    with pytest.raises(IntegrityError, match="statements"):
        failure_log.show(failures.root, trace)


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
