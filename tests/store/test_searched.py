"""What `reindex --text` chose holds for every catalogue that is made from then on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracemark.errors import UsageError
from tracemark.store.layout import CATALOGUE, Layout
from tracemark.store.searched import chosen, searches_everything
from tracemark.store.store import Store

DAMAGED = b"nothing like a database" * 100


def told(make, number: int = 1) -> bytes:
    """Return a trace whose middle only a search of whole traces finds."""
    words = ("first", f"middle{number}", "the end")
    steps = [{"step_id": n, "source": "agent", "message": text} for n, text in enumerate(words, 1)]
    return make.trace(number, trajectory={"steps": steps})


@pytest.fixture(params=["in the corpus", "elsewhere"])
def filled(make, root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A store whose catalogue searches whole traces."""
    if request.param == "elsewhere":
        monkeypatch.setenv(CATALOGUE, str(root.parent / "elsewhere" / "c.db"))
    with Store.open(root, create=True) as store:
        make.commit(store, told(make))
        assert store.find("middle1") == []
        store.reindex(everything=True)
    return Layout(root)


def is_found(root: Path, word: str = "middle1") -> bool:
    with Store.open(root) as store:
        found = store.find(word)
        assert bool(found) == searches_everything(store.catalogue)
        return bool(found)


def test_a_catalogue_that_was_deleted_or_damaged_holds_whole_traces_again(make, filled: Layout) -> None:
    assert is_found(filled.root)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{filled.catalogue}{suffix}").unlink(missing_ok=True)
    assert is_found(filled.root)
    filled.catalogue.write_bytes(DAMAGED)
    with Store.open(filled.root) as store:
        assert [found.code for found in store.findings] == ["catalogue-rebuilt"]
        make.commit(store, told(make, 2))
    assert is_found(filled.root)
    assert is_found(filled.root, "middle2")


def test_the_choice_is_taken_back_with_it(filled: Layout) -> None:
    with Store.open(filled.root) as store:
        store.reindex(everything=False)
    assert not is_found(filled.root)
    filled.catalogue.write_bytes(DAMAGED)
    assert not is_found(filled.root)


def test_a_choice_that_was_made_for_an_empty_store_holds_for_what_is_stored_later(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        store.reindex(everything=True)
        make.commit(store, told(make))
    Layout(root).catalogue.unlink()
    assert is_found(root)


@pytest.mark.parametrize("damage", ["no JSON", "another value", "a list", "a pipe", "a folder"])
def test_a_choice_that_cannot_be_read_is_none(filled: Layout, damage: str) -> None:
    [kept] = filled.catalogue.parent.glob("*.settings")
    kept.unlink()
    if damage == "a pipe":
        os.mkfifo(kept)
    elif damage == "a folder":
        kept.mkdir()
    else:
        kept.write_bytes({"no JSON": b"{", "another value": b'{"text":1}', "a list": b"[]"}[damage])
    assert not chosen(filled)
    assert is_found(filled.root), "the catalogue that is there stays as it is"
    filled.catalogue.write_bytes(DAMAGED)
    assert not is_found(filled.root)


def test_a_choice_that_cannot_be_kept_is_said_and_changes_nothing(filled: Layout) -> None:
    [kept] = filled.catalogue.parent.glob("*.settings")
    kept.unlink()
    kept.mkdir()
    (kept / "in the way").touch()
    with Store.open(filled.root) as store, pytest.raises(UsageError, match="cannot be used"):
        store.reindex(everything=True)
    assert is_found(filled.root)
