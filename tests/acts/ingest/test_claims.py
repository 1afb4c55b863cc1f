"""What a batch or the caller names leads to one harness, and a fingerprint to that of its digits alone."""

from __future__ import annotations

import pytest

from tracemark.acts.claims import Claim, Claims
from tracemark.acts.corpus import Corpus
from tracemark.harness import snapshot


def claim(desk, name: str) -> Claim:
    # what the caller names counts for every job
    return Claims(Corpus(desk.root), name).of(None)


def test_a_claim_by_name_keeps_the_name_and_one_by_fingerprint_has_none(desk) -> None:
    fingerprint = desk.fingerprint("desk_a")
    assert claim(desk, "desk_a") == Claim(fingerprint, "desk_a")
    for name in (fingerprint, fingerprint[:12], fingerprint.removeprefix("tm1:")[:6]):
        assert claim(desk, name) == Claim(fingerprint, None)


def test_a_label_that_happens_to_begin_the_fingerprint_is_a_name_all_the_same(desk) -> None:
    label = desk.fingerprint("desk_a").removeprefix("tm1:")[0]
    manifest = desk.root / "harness_versions" / "desk_a" / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("name: desk_a", f"name: {label!r}"))
    assert claim(desk, label) == Claim(desk.fingerprint("desk_a"), label)


@pytest.mark.parametrize("by", ["caller", "batch"])
def test_no_folder_that_is_called_like_a_fingerprint_takes_its_claims(desk, by: str) -> None:
    fingerprint = desk.fingerprint("desk_a")
    desk.version("desk_x", "Something else altogether.\n")
    (desk.root / "harness_versions" / "desk_x").rename(desk.root / "harness_versions" / fingerprint)
    desk.write("b/runs.jsonl", desk.document("t-1"))
    if by == "batch":
        desk.put("b/batch.yaml", f"harness: {fingerprint}\n".encode())
    report = desk.ingest(harness=fingerprint if by == "caller" else None)
    assert report.harnesses == {"desk_a": 1}
    assert desk.state("t-1").row.fingerprint == fingerprint


def test_a_batch_may_name_a_harness_by_its_fingerprint_that_only_a_snapshot_beside_it_holds(desk, tmp_path) -> None:
    other = desk.other(tmp_path / "other")
    harness = other.version("desk_o", "You answer the readers of a newspaper, all of whom have paid for it already.\n")
    desk.write("b/runs.jsonl", desk.document("t-1"))
    desk.put("b/batch.yaml", f"harness: {harness.fingerprint}\n".encode())
    desk.put("b/run.harness.json", snapshot.to_bytes(harness))
    report = desk.ingest()
    assert "batch-harness-unknown" not in [found.code for found in report.findings]
    assert report.finding_counts == {"stamp-contradicted": 1}, "known, and refuted by what the run shows"
