"""What the verbs write is what the models say: every stored line and every annotation is one of theirs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tracemark.acts import decisions, ingest
from tracemark.acts.corpus import open_store
from tracemark.model.annotation import Annotation
from tracemark.model.trace import Source, Trace
from tracemark.model.trajectory import problems
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document


def stored(root: Path) -> tuple[list[Trace], list[Annotation]]:
    """Return every line and every annotation of a corpus, read by the models."""
    with open_store(root) as store:
        lines = [json.loads(line) for _, line in store.lines(store.select(Selection(superseded=True)))]
        notes = [note.value for note in store.annotations()]
    assert [problems(line["trajectory"]) for line in lines] == [[]] * len(lines)
    return [Trace.model_validate(line) for line in lines], [Annotation.model_validate(note) for note in notes]


def test_what_the_verbs_store_is_what_the_models_say(shop: Shop) -> None:
    shop.record("r-1")
    shop.ingest([document("x-1")], None, "bare")
    shop.ingest([document("x-1")], "desk_a", "named")
    shop.ingest([document("t-0", reward=0.0)], "desk_a", "judged again")
    shop.ingest([document("w-1", extra="Another prompt.")], "desk_a", "wrong")
    shop.accept()
    decisions.retract(shop.root, [shop.ids()["t-1"]], "a mistake", CLOCK)
    shop.export()
    traces, notes = stored(shop.root)
    assert len(traces) == 8
    assert {trace.source.format for trace in traces} == {"atif", "journal"}
    assert {trace.harness.declared is not None for trace in traces} == {True, False}
    assert any(trace.harness.contradictions for trace in traces)
    assert Counter(note.kind for note in notes) == {"stamps": 1, "outcomes": 1, "sources": 1, "exports.sft": 1}
    (further,) = [note.value["source"] for note in notes if note.kind == "sources"]
    assert Source.model_validate(further).label == "judged again.jsonl"


@pytest.mark.shared_data
@pytest.mark.parametrize("folder", ["atif", "atif_nonconforming", "harbor_trial_dir", "openai_chat"])
def test_what_is_stored_of_real_files_is_what_the_models_say(shop: Shop, shared_traces: Path, folder: str) -> None:
    before = len(stored(shop.root)[0])
    ingest.ingest(shop.root, [shared_traces / folder], ingest.IngestOptions())
    assert len(stored(shop.root)[0]) > before
