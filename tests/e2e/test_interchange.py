"""A corpus is handed on as documents: exported by one process, ingested by another one that knows nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Peer

from .conftest import Tracemark

ROOT = Path(__file__).resolve().parents[2]


def rows(corpus: Tracemark) -> dict[str, Any]:
    """Return what is listed of each trace by id, but for whence it came."""
    aside = ("source", "format")
    return {
        row["trace_id"]: {name: value for name, value in row.items() if name not in aside} for row in corpus.traces()
    }


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Tracemark:
    """A corpus with the demo's runs under one harness."""
    corpus = Tracemark(tmp_path_factory.mktemp("played") / "corpus")
    play = [sys.executable, ROOT / "domains" / "support_desk" / "play.py"]
    harness = ["--harness", ROOT / "harness_versions" / "desk-plain", "--inbox", corpus.inbox / "desk"]
    subprocess.run([*play, *harness], cwd=ROOT, check=True, capture_output=True)
    assert corpus.ingest().code == 0
    return corpus


@pytest.mark.parametrize("form", [[], ["--files"]], ids=str)
def test_the_demos_traces_come_back_as_they_were(
    played: Tracemark, tracemark: Tracemark, tmp_path: Path, form: list[str]
) -> None:
    done = played.run("export", "atif", "--out", tmp_path / "out", *form, "--output", "json")
    assert done.code == 0, done.words
    before = rows(played)
    assert done.data["documents"] == len(before) > 50
    assert {row["evidence"] for row in before.values()} == {"recorded"}
    told = tracemark.ingest(tmp_path / "out")
    assert (told.code, told.data["ingested"], told.data["findings"]) == (0, len(before), [])
    assert rows(tracemark) == before
    tracemark.check()
    again = played.ingest(tmp_path / "out")
    assert (again.code, again.data["duplicates"]) == (0, len(before))
    assert rows(played) == before


def test_other_tools_read_the_documents(played: Tracemark, tmp_path: Path) -> None:
    assert played.run("export", "atif", "--out", tmp_path / "out", "--files", "--limit", "5").code == 0
    documents = list((tmp_path / "out" / "trajectories").rglob("*.json"))
    assert len(documents) == 5
    for path in documents:
        assert Peer.model_validate_json(path.read_bytes()).schema_version == "ATIF-v1.8"


def test_what_is_selected_is_exported_and_the_rest_is_counted(played: Tracemark, tmp_path: Path) -> None:
    first = next(iter(rows(played)))
    done = played.run("export", "atif", first[:12], "--out", tmp_path / "out", "--output", "json")
    assert (done.data["documents"], done.data["excluded"]["not_selected"]) == (1, len(rows(played)) - 1)
    done = played.run("export", "atif", "--status", "lost", "--out", tmp_path / "none")
    assert (done.code, (tmp_path / "none").exists()) == (2, False)
    done = played.run("export", "atif", "--task", "nobody's", "--out", tmp_path / "none")
    assert (done.code, (tmp_path / "none").exists()) == (40, False)
