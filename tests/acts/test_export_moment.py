"""An export is of one moment: what is stored while it is made is neither counted nor named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracemark.acts import export
from tracemark.acts.corpus import open_store
from tracemark.store.catalogue import Catalogue

from .conftest import Shop, document

PLACES = {
    "the counting of what is not looked at": (Catalogue, "count_but"),
    "the judging": (export, "judge"),
    "the choosing": (export, "choose"),
    "the naming of git's objects": (export.manifests, "git_objects"),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_stored_before(place: str, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.accept()
    with open_store(shop.root) as store:
        corpus, traces = store.corpus_digest(), store.counts()["traces"]
    owner, name = PLACES[place]
    real, stored = getattr(owner, name), []

    def meanwhile(*given: Any) -> Any:
        if not stored:
            stored.append(shop.ingest([document("late")], name="late"))
            shop.ingest([document("unlike", extra="Be brief.")], "desk_b", name="unlike")
        return real(*given)

    monkeypatch.setattr(owner, name, meanwhile)
    report = shop.export()
    manifest = json.loads((shop.root / "exports" / "sft" / "manifest.json").read_text())
    assert [one.ingested for one in stored] == [1]
    assert (manifest["corpus"], report.traces, report.rows) == (corpus, traces, 3)
    with open_store(shop.root) as store:
        assert store.corpus_digest() != corpus
        assert store.counts()["traces"] == traces + 2
