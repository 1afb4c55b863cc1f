"""Acceptances take turns: what was decided while one waited for its turn counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import decisions
from tracemark.acts.corpus import Corpus
from tracemark.ledger import chain

from .conftest import Shop, write_version


def while_it_waits(monkeypatch: pytest.MonkeyPatch, shop: Shop, name: str) -> None:
    """Let another acceptance come between the first look of the next one at the corpus and its turn."""
    lock = decisions.lock

    @contextmanager
    def taken(path: Path, **options: Any) -> Iterator[None]:
        monkeypatch.setattr(decisions, "lock", lock)
        shop.accept(name, "quicker")
        with lock(path, **options):
            yield

    monkeypatch.setattr(decisions, "lock", taken)


@pytest.mark.parametrize("shared", [False, True])
def test_one_that_another_overtook_replaces_what_that_accepted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    if shared:
        # then which one is accepted is looked up before the turn comes, to say which is meant
        manifest = write_version(shop.root, "other", extra="Be long.") / "harness.yaml"
        manifest.write_text(manifest.read_text().replace("name: other", "name: desk_a"))
    shop.accept("desk_a")
    while_it_waits(monkeypatch, shop, "desk_b")
    accepted = shop.accept("desk_a", "slower")
    assert [found.code for found in accepted.findings].count("name-shared") == shared
    assert (accepted.previous, accepted.new_entry) == (shop.fingerprint("desk_b"), True)
    reasons = [entry.decision.reason for entry in chain.read(shop.root / chain.NAME).entries]
    assert reasons == ["better", "quicker", "slower"]
    corpus = Corpus(shop.root)
    assert corpus.accepted == corpus.decisions.harness == shop.fingerprint("desk_a")


def test_one_that_another_overtook_with_the_same_harness_adds_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.accept("desk_a")
    while_it_waits(monkeypatch, shop, "desk_b")
    accepted = shop.accept("desk_b", "slower")
    assert (accepted.previous, accepted.new_entry) == (shop.fingerprint("desk_b"), False)
    assert len(chain.read(shop.root / chain.NAME).entries) == 2
