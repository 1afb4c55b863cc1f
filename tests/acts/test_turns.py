"""Decisions take turns: of two that are made at once the second sees the first.

What gets past the turns, as a program of another version may, stands beside a decision, and replaces nothing by chance.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest

from tracemark.acts import decisions, health, traces
from tracemark.acts.corpus import Corpus
from tracemark.clock import FixedClock
from tracemark.errors import LedgerChainError, NegativeAnswerError, NoStoreError
from tracemark.ledger import chain
from tracemark.model.decision import Kind

from .conftest import Shop, document, write_version

# --- accept: what it reads before its turn


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


# --- all of them: one after the other


def decide(shop: Shop, command: str, reason: str) -> Any:
    """Do what a command says about the trace `c-1`; return what it answers, or the error in words."""
    verb, _, harness = command.partition(" ")
    trace, clock = shop.ids()["c-1"], FixedClock()
    try:
        if verb == "accept":
            return decisions.accept(shop.root, harness, reason, clock)
        if verb == "stamp":
            return decisions.stamp(shop.root, [trace], harness, reason, clock)
        return {"retract": decisions.retract, "reinstate": decisions.reinstate}[verb](shop.root, [trace], reason, clock)
    except NegativeAnswerError as error:
        return error.message


def at_once(monkeypatch: pytest.MonkeyPatch, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """Begin `second` when `first` has read all that it decides on, and go on when `second` has ended or must wait."""
    lock, append_all = decisions.lock, chain.append_all
    own, stuck, begun = get_ident(), Event(), list[Future[Any]]()

    def taken(path: Path, **options: Any) -> Any:
        if get_ident() != own:
            stuck.set()
        return lock(path, **options)

    def gate(*arguments: Any) -> list[chain.Entry]:
        if get_ident() == own:
            begun.append(pool.submit(second))
            begun[0].add_done_callback(lambda _: stuck.set())
            assert stuck.wait(60)
        return append_all(*arguments)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        patch.setattr(decisions, "lock", taken)
        patch.setattr(chain, "append_all", gate)
        answer = first()
        return answer, begun[0].result(60)


@pytest.fixture
def contested(shop: Shop) -> Shop:
    """The corpus with a trace, `c-1`, that is claimed for desk_a and desk_c, and fits both."""
    write_version(shop.root, "desk_c", handler=" + '.'")
    for harness in ("desk_a", "desk_c"):
        shop.ingest([document("c-1")], harness, "contested")
    return shop


def copied(shop: Shop, folder: Path) -> Shop:
    shutil.copytree(shop.root, folder)
    return Shop(folder)


@pytest.mark.parametrize(
    ("before", "first", "second"),
    [
        ([], "retract", "retract"),
        (["retract"], "reinstate", "reinstate"),
        ([], "retract", "reinstate"),
        (["retract"], "reinstate", "retract"),
        ([], "stamp desk_a", "stamp desk_c"),
        ([], "stamp desk_a", "stamp desk_a"),
        (["stamp desk_a"], "stamp none", "stamp desk_c"),
        ([], "stamp desk_a", "retract"),
        ([], "accept desk_a", "accept desk_b"),
        (["accept desk_b"], "accept desk_a", "accept desk_a"),
        ([], "accept desk_a", "stamp desk_c"),
        ([], "retract", "accept desk_a"),
    ],
)
def test_two_at_once_are_what_one_after_the_other_is(
    contested: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[str], first: str, second: str
) -> None:
    for command in before:
        decide(contested, command, "before")
    after = copied(contested, tmp_path / "after")
    expected = decide(after, first, "first"), decide(after, second, "second")
    answers = at_once(
        monkeypatch, lambda: decide(contested, first, "first"), lambda: decide(contested, second, "second")
    )
    assert answers == expected
    for name in (chain.NAME, "params.yaml"):
        assert (contested.root / name).read_bytes() == (after.root / name).read_bytes()
    assert len(chain.read(contested.root / chain.NAME).heads) == 1


def test_a_retraction_that_waits_for_a_reinstatement_bars_the_trace(
    contested: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(contested, "retract", "the order was of another customer")
    at_once(
        monkeypatch,
        lambda: decide(contested, "reinstate", "it was not"),
        lambda: decide(contested, "retract", "it holds a key"),
    )
    assert "retracted" in flags(contested)


def flags(shop: Shop) -> list[str]:
    return next(row["flags"] for row in traces.list_(shop.root, traces.TraceFilter()).traces if row["task"] == "c-1")


# --- what does not wait for its turn


def test_a_retraction_that_nobody_saw_is_not_lifted(contested: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = {"trace": contested.ids()["c-1"]}

    def others() -> None:
        contested.enter(Kind.REINSTATE, subject, "they lift it")
        contested.enter(Kind.RETRACT, subject, "it holds a key")

    decide(contested, "retract", "the order was of another customer")
    at_once(monkeypatch, lambda: decide(contested, "reinstate", "we lift it"), others)
    assert "retracted" in flags(contested)
    decide(contested, "reinstate", "the key is void")
    assert "retracted" not in flags(contested)


@pytest.mark.parametrize(
    ("command", "kind", "code"),
    [("stamp desk_a", Kind.STAMP, "ledger-stamp-conflict"), ("accept desk_a", Kind.ACCEPT, "ledger-accept-conflict")],
)
def test_decisions_that_had_not_seen_each_other_are_a_conflict_until_the_next_one(
    contested: Shop, monkeypatch: pytest.MonkeyPatch, command: str, kind: Kind, code: str
) -> None:
    fingerprint = contested.fingerprint("desk_c")
    subjects: dict[Kind, dict[str, Any]] = {
        Kind.STAMP: {"trace": contested.ids()["c-1"], "fingerprint": fingerprint},
        Kind.ACCEPT: {"harness": fingerprint},
    }
    at_once(
        monkeypatch, lambda: decide(contested, command, "ours"), lambda: contested.enter(kind, subjects[kind], "theirs")
    )
    assert [found.code for found in Corpus(contested.root).decisions.conflicts] == [code]
    assert code in [found.code for found in health.check(contested.root).findings]
    decide(contested, command, "after talking")
    assert Corpus(contested.root).decisions.conflicts == ()


def test_nothing_is_decided_on_a_ledger_that_another_took_the_place_of(
    contested: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(contested, "stamp desk_a", "before")
    ledger = contested.root / chain.NAME
    with pytest.raises(LedgerChainError, match="is no longer there"):
        at_once(monkeypatch, lambda: decide(contested, "retract", "wrong"), lambda: ledger.write_bytes(b""))
    assert ledger.read_bytes() == b""


# --- where there is nothing to decide on


@pytest.mark.parametrize(
    "decide",
    [
        lambda root: decisions.retract(root, ["abcdef"], "why", FixedClock()),
        lambda root: decisions.reinstate(root, ["abcdef"], "why", FixedClock()),
        lambda root: decisions.stamp(root, ["abcdef"], "none", "why", FixedClock()),
    ],
)
def test_a_folder_that_is_no_corpus_is_left_as_it_is(tmp_path: Path, decide: Callable[[Path], Any]) -> None:
    place = tmp_path / "none"
    place.mkdir()
    with pytest.raises(NoStoreError):
        decide(place)
    assert list(place.iterdir()) == []
