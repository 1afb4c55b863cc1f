"""dvc.lock is recognised where DVC wrote it, and left to a YAML library everywhere else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tracemark.acts import audit, lockfile
from tracemark.acts.corpus import Corpus, open_store
from tracemark.errors import NotPulledError

from .conftest import Shop

ROOT = Path(__file__).resolve().parents[2]
HEAD = "schema: '2.0'\nstages:\n"
STAGE = """\
  ingest:
    cmd: tracemark ingest inbox || [ $? -eq 1
      ]
    deps:
    - path: traces/harnesses
      hash: md5
      md5: 99fee49ab06781b8b8976bffcbf91a94.dir
      nfiles: 3
    params:
      params.yaml:
        ingest:
          inbox: complete
    outs:
    - path: traces/segments
      hash: md5
      md5: e400059d364def7915ccb26d1f5d9154.dir
      size: 58668
      nfiles: 2
"""
TEXT = HEAD + STAGE


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the YAML library is given to read."""
    given: list[object] = []
    load = YAML.load

    def noting(self: YAML, stream: object) -> object:
        given.append(stream)
        return load(self, stream)

    monkeypatch.setattr(YAML, "load", noting)
    return given


def outs_of(root: Path, text: str) -> dict[str, dict[str, Any]]:
    (root / lockfile.NAME).write_bytes(text.encode())
    return lockfile.outs(root)


def pins(found: dict[str, dict[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return what pinning asks of outputs."""
    return {path: (out["md5"], out.get("nfiles", 0)) for path, out in found.items() if str(out["md5"]).endswith(".dir")}


@pytest.mark.parametrize(
    "text",
    [
        (ROOT / "dvc.lock").read_text(),
        TEXT,
        TEXT + STAGE.replace("ingest:", "export@a-b_c.d:", 1).replace("segments", "annotations/exports.sft"),
        HEAD + "  one:\n    cmd: x\n" + STAGE,
        TEXT.replace("      nfiles: 2\n", ""),
        TEXT.replace("nfiles: 2", "nfiles: 0"),
    ],
)
def test_what_dvc_writes_is_recognised_as_the_library_reads_it(tmp_path: Path, loaded: list[object], text: str) -> None:
    recognised = outs_of(tmp_path, text)
    assert loaded == []
    # a comment is none of DVC's, so what stands above it is left to the library
    read = outs_of(tmp_path, text + "# the end\n")
    assert len(loaded) == 1
    assert recognised.keys() == read.keys()
    assert pins(recognised) == pins(read) != {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stages: {}\n",
        TEXT.replace("schema: '2.0'\n", ""),
        TEXT + STAGE,
        TEXT[:-1],
        TEXT.replace("nfiles: 2", "nfiles: 0x2"),
        TEXT.replace("nfiles: 2", "nfiles: 02"),
        TEXT.replace("nfiles: 2", "nfiles: many"),
        TEXT.replace("nfiles: 2", "nfiles: 2\n      nfiles: 3"),
        TEXT.replace("nfiles: 2", "nfiles: 2\n      isexec: true"),
        TEXT.replace("traces/segments", "'traces/segments'"),
        TEXT.replace("traces/segments", "traces/segments # or so"),
        TEXT.replace("    outs:\n", "    outs: []\n"),
        TEXT.replace("    outs:\n", "<<<<<<< ours\n    outs:\n=======\n"),
        TEXT.replace("    outs:\n", "    outs: &outs\n"),
        TEXT.replace("  ingest:", "\tingest:"),
        TEXT.replace("\n", "\r\n"),
        TEXT + "more: 1\n",
    ],
)
def test_whatever_else_is_left_to_the_library(tmp_path: Path, loaded: list[object], text: str) -> None:
    assert text != TEXT
    with suppress(NotPulledError):
        outs_of(tmp_path, text)
    assert loaded == [text.encode()]


def test_the_library_reads_what_is_left_to_it(tmp_path: Path) -> None:
    lock = tmp_path / lockfile.NAME
    assert lockfile.outs(tmp_path) == {}
    lock.write_text(TEXT.replace("traces/segments", "'traces/segments'"))
    assert pins(lockfile.outs(tmp_path)) == {"traces/segments": ("e400059d364def7915ccb26d1f5d9154.dir", 2)}
    lock.write_text(TEXT + STAGE)
    with pytest.raises(NotPulledError, match="cannot be read"):
        lockfile.outs(tmp_path)


def test_one_corpus_reads_its_pins_once_and_without_the_library(
    shop: Shop, loaded: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop.root / lockfile.NAME).write_text(TEXT)
    asked = []
    outs = lockfile.outs
    monkeypatch.setattr(lockfile, "outs", lambda root: asked.append(root) or outs(root))
    corpus = Corpus(shop.root)
    with open_store(shop.root) as store:
        for trace in shop.ids().values():
            assert audit.audit_trace(corpus, store, trace).findings == ()
    assert asked == [shop.root]
    assert TEXT.encode() not in loaded
