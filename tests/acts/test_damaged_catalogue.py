"""A catalogue with a damaged page: `check` finds it, other verbs say what makes it again, and that helps."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tracemark.acts import audit, health, traces
from tracemark.cli.main import run
from tracemark.errors import IntegrityError
from tracemark.store.layout import Layout

from .conftest import Shop


def damage(shop: Shop, name: str) -> Path:
    """Overwrite the first page of a table or an index."""
    path = Layout(shop.root).catalogue
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = database.execute("PRAGMA page_size").fetchone()
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    return path


PAGES = ["traces_key", "traces_fingerprint", "sqlite_autoindex_traces_1", "superseded_trace", "meta", "restated"]


@pytest.mark.parametrize("page", PAGES)
def test_check_finds_a_damaged_page_that_no_question_of_it_leads_to(shop: Shop, page: str) -> None:
    damage(shop, page)
    (found,) = health.check(shop.root).findings
    assert (found.code, found.where, found.hint) == ("catalogue-differs", "catalogue.db", "tracemark reindex")


@pytest.mark.parametrize("page", PAGES)
def test_a_catalogue_that_is_damaged_is_made_again(shop: Shop, page: str) -> None:
    health.reindex(shop.root, text=True)
    damage(shop, page)
    assert health.reindex(shop.root).everything, "what it searched is not forgotten"
    assert health.check(shop.root).findings == ()


def test_a_verb_that_meets_a_damaged_page_names_what_makes_the_catalogue_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = shop.ids()["t-1"]
    damage(shop, "traces_key")
    with pytest.raises(IntegrityError, match="the catalogue is damaged") as caught:
        audit.audit(shop.root, trace)
    assert (caught.value.where, caught.value.hint) == ("catalogue.db", "tracemark reindex")
    monkeypatch.chdir(shop.root)
    assert run(["traces", "show", trace]) == 30
    assert "hint: tracemark reindex" in capsys.readouterr().err
    health.reindex(shop.root)
    assert traces.show(shop.root, trace).trace_id == trace
