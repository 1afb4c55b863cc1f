"""Whoever does what a finding of ingest says, to the letter, with what is stored already, has each run once and whole.

A statement that is stored stands: one that disagrees makes its trace contested for good, and a record that reads
otherwise is another trace of the same run. So a hint says what is done before a record is stored, and what after.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.importers.make_golden import SAMPLES
from tracemark.acts import decisions, interchange
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.traces import TraceFilter
from tracemark.clock import FixedClock
from tracemark.findings import CODES
from tracemark.store.selection import Selection, State

NOW = FixedClock("2026-01-01T00:00:00Z")
CHAT = {"messages": [{"role": "user", "content": "Please see to t-1."}, {"role": "assistant", "content": "Done."}]}
ROW = {"prompt": CHAT["messages"][:1], "completion": CHAT["messages"][1:], "reward": 1.0}


def live(desk: Any) -> list[State]:
    """Return the traces that are neither retracted nor superseded."""
    with open_store(desk.root) as store:
        states = store.select(Selection(retracted=False), Corpus(desk.root).store_decisions)
        return list(states)


def retract(desk: Any) -> None:
    decisions.retract(desk.root, [state.trace_id for state in live(desk)], "its record was wrong", NOW)


def state_status(desk: Any, tmp_path: Path) -> None:
    """Do what `verdict-unread` says: export what has no status, state it, and ingest that."""
    options = interchange.InterchangeOptions(TraceFilter(status="unknown"), (), "files")
    interchange.atif(desk.root, tmp_path / "out", options)
    for path in (tmp_path / "out").rglob("*.json"):
        document = json.loads(path.read_text())
        if "steps" in document:
            document["extra"]["tracemark"]["outcome"]["status"] = "success"
            path.write_text(json.dumps(document))
    desk.ingest(tmp_path / "out")


def chat(desk: Any, **verdict: Any) -> None:
    desk.put("a.jsonl", (json.dumps({**CHAT, **verdict}) + "\n").encode())
    desk.ingest()


def harness_unknown(desk: Any, tmp_path: Path) -> None:
    made = desk.recorded("t-1", "desk_a")
    folder = desk.root / "harness_versions" / "desk_a"
    folder.rename(tmp_path / "aside")
    desk.write("a.jsonl", made)
    assert "harness-unknown" in desk.ingest().finding_counts
    (tmp_path / "aside").rename(folder)
    desk.ingest()
    assert live(desk)[0].row.fingerprint == desk.fingerprint("desk_a")


def batch_invalid(desk: Any, _: Path) -> None:
    desk.write("b/a.jsonl", desk.carrying("t-1", outcome={"status": "success"}))
    desk.put("b/batch.yaml", b"harnes: desk_a\n")
    desk.ingest()
    desk.put("b/batch.yaml", b"harness: desk_a\n")
    desk.ingest()
    assert live(desk)[0].row.fingerprint == desk.fingerprint("desk_a")


def batch_overruled(desk: Any, _: Path) -> None:
    made = desk.carrying("t-1", outcome={"status": "success"})
    made["agent"]["model_name"] = "tiny"
    desk.write("b/a.jsonl", made)
    desk.put("b/batch.yaml", b"model: {name: large, revision: '7'}\n")
    desk.ingest()
    desk.put("b/batch.yaml", b"model: {name: tiny, revision: '7'}\n")
    desk.ingest()
    assert live(desk)[0].row.model_label == "tiny@7"


def line_unread(desk: Any, _: Path) -> None:
    whole = (SAMPLES / "codex" / "rollout.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    half = b"".join(lines[:-2]) + lines[-2][:40]
    desk.put("rollout.jsonl", half)
    assert "line-unread" in desk.ingest().finding_counts
    (first,) = live(desk)
    desk.put("rollout.jsonl", whole)
    desk.ingest()
    decisions.retract(desk.root, [first.trace_id], "it was read while it was written", NOW)


def header_missing(desk: Any, _: Path) -> None:
    desk.put("b/results.jsonl", (json.dumps(ROW) + "\n").encode())
    assert "header-missing" in desk.ingest(format="verifiers").finding_counts
    desk.put("b/batch.yaml", b"domain: library\nmodel: {name: tiny}\n")
    desk.ingest(format="verifiers")
    assert (live(desk)[0].row.domain, live(desk)[0].row.model) == ("library", "tiny")


def carried_invalid(desk: Any, _: Path) -> None:
    desk.write("a.jsonl", desk.carrying("t-1", outcome={"status": "succes"}))
    assert "carried-invalid" in desk.ingest().finding_counts
    retract(desk)
    desk.write("a.jsonl", desk.carrying("t-1", outcome={"status": "success"}))
    desk.ingest()


def verdict_unread(desk: Any, tmp_path: Path) -> None:
    chat(desk, success="perhaps")
    state_status(desk, tmp_path)


def trial_unread(desk: Any, tmp_path: Path) -> None:
    trial = desk.inbox / "job" / "solved__1"
    shutil.copytree(SAMPLES / "atif" / "job" / "solved__1", trial)
    (trial / "result.json").write_text("{")
    assert "trial-unread" in desk.ingest().finding_counts
    state_status(desk, tmp_path)


def verdict_conflict(desk: Any, tmp_path: Path) -> None:
    chat(desk, success=True, status="failed")
    state_status(desk, tmp_path)


def config_contradicted(desk: Any, _: Path) -> None:
    # it is told of configurations that give another prompt; the claim is one like any other
    desk.write("a.jsonl", desk.carrying("t-1", outcome={"status": "success"}))
    desk.ingest()
    desk.ingest(harness="desk_a")
    assert live(desk)[0].row.fingerprint == desk.fingerprint("desk_a")


STATED = "tracemark export atif --out DIR --status unknown, state `status`"
RETRACTED = "tracemark retract TRACE --reason TEXT"
DONE: dict[str, tuple[Callable[[Any, Path], None], str]] = {
    "harness-unknown": (harness_unknown, "add the harness version"),
    "batch-invalid": (batch_invalid, "correct it and ingest again"),
    "batch-harness-unknown": (batch_invalid, "correct the name"),
    "batch-overruled": (batch_overruled, "correct the batch.yaml"),
    "line-unread": (line_unread, RETRACTED),
    "header-missing": (header_missing, "of stored runs, state `domain` and `model: {name: …}` in a batch.yaml"),
    "carried-invalid": (carried_invalid, RETRACTED),
    "verdict-unread": (verdict_unread, STATED),
    "trial-unread": (trial_unread, STATED),
    "verdict-conflict": (verdict_conflict, STATED),
    "config-contradicted": (config_contradicted, "name the run's harness at ingest"),
}
"""What is done with stored traces as the hints of findings say, and the words that say it."""

STORES_NOTHING = {"journal-open", "record-unfit", "format-unknown", "format-tie", "record-truncated", "record-not-json"}
STORES_NOTHING |= {"own-export", "expanded-too-large", "record-too-large"}
OF_NO_RECORD = {"snapshot-missing", "model-unevaluated", "not-pinned"}


def test_every_hint_to_ingest_is_followed_here() -> None:
    told = {code for code, entry in CODES.items() if re.search(r"\bingest\b", entry.hint or "")}
    assert told == {*DONE, *STORES_NOTHING, *OF_NO_RECORD}


@pytest.mark.parametrize("code", DONE)
def test_what_a_hint_says_of_stored_traces_leaves_each_run_once_and_nothing_contested(
    desk: Any, tmp_path: Path, code: str
) -> None:
    follow, words = DONE[code]
    assert words in CODES[code].hint
    follow(desk, tmp_path)
    (state,) = live(desk)
    assert not state.contested
    assert state.row.status == "success" or words != STATED


def test_a_verdict_that_counts_and_is_wrong_is_retracted_since_a_corrected_record_only_disputes_it(desk: Any) -> None:
    chat(desk, success=True, reward=0.0)
    (state,) = live(desk)
    assert state.row.status == "success"
    chat(desk, success=False, reward=0.0)
    assert live(desk)[0].contested
    retract(desk)
    assert live(desk) == []
    assert "tracemark retract TRACE" in CODES["verdict-conflict"].hint
