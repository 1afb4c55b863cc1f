"""Ids of the evaluation set that no stored trace has: a misspelt one would keep nothing out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import took
from tracemark.exporters.evaluation import for_evaluation, outside, qualified, unmatched
from tracemark.findings import Severity

STORED = [("refund-07", "shop"), ("t-1", None), ("a/b", None)]

names = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)


@pytest.mark.parametrize("named", ["refund-07", "shop/refund-07", "t-1", "any/t-1", "b", "a/b"])
def test_an_id_that_keeps_a_stored_trace_out_is_nothing_to_speak_of(named: str) -> None:
    assert unmatched(frozenset({named}), STORED) == []


def test_ids_that_no_trace_has_are_counted_and_the_nearly_right_ones_come_first() -> None:
    (found,) = unmatched(frozenset({"t-1", "a-9", "Refund_07 ", "shop/t-2"}), STORED)
    assert (found.code, found.severity) == ("evaluation-misspelt", Severity.WARNING)
    assert found.message == (
        "3 of 4 ids are the task of no stored trace: 'Refund_07 ' (stored is 'refund-07'), 'a-9', 'shop/t-2'"
    )


@pytest.mark.parametrize(
    "near",
    ["REFUND-07", "refund- 07", "shop/Refund_07", "refnd-07", "refunnd-07", "refumd-07", "erfund-07", "refund-7"],
)
def test_what_is_nearly_a_stored_task_is_a_warning(near: str) -> None:
    (found,) = unmatched(frozenset({near}), STORED)
    assert (found.code, found.severity) == ("evaluation-misspelt", Severity.WARNING)
    assert "refund-07')" in found.message


@pytest.mark.parametrize("apart", ["refund-08", "refund-17", "refund-071", "rfnd-07", "t-2", "c", "a/c"])
def test_what_is_like_no_stored_task_is_no_more_than_a_note(apart: str) -> None:
    (found,) = unmatched(frozenset({apart}), STORED)
    assert (found.code, found.severity) == ("evaluation-unmatched", Severity.INFO)
    assert found.hint == "tracemark traces list --output jsonl"


def test_the_finding_is_where_the_ids_stand() -> None:
    assert unmatched(frozenset({"x"}), STORED)[0].where == "params.yaml: evaluation.tasks"
    assert unmatched(frozenset({"x"}), STORED, "evaluation.txt")[0].where == "evaluation.txt"


def test_no_more_than_a_few_are_named() -> None:
    (found,) = unmatched(frozenset(f"x-{number}" for number in range(100)), STORED)
    assert found.message.startswith("100 of 100 ids")
    assert found.message.endswith(" and 95 more")
    assert found.message.count("'x-") == 5


def test_where_nothing_is_stored_yet_nothing_is_wrong() -> None:
    assert unmatched(frozenset({"t-1"}), []) == []


@given(st.lists(st.tuples(names, st.none() | names), min_size=1, max_size=3), st.sets(names, min_size=1, max_size=3))
def test_an_id_is_named_exactly_when_the_filter_would_keep_nothing_out_for_it(
    tasks: list[tuple[str, str | None]], ids: set[str]
) -> None:
    lost = [one for one in ids if not any(for_evaluation(*task, frozenset({one})) for task in tasks)]
    found = unmatched(frozenset(ids), tasks)
    assert bool(found) == bool(lost)
    assert not lost or found[0].message.startswith(f"{len(lost)} of {len(ids)} ids")


@pytest.mark.parametrize("stored", ["REFUND-07", "refund-07 ", "refund-07\n", "refund_07"])
def test_a_stored_task_that_is_nearly_an_id_that_others_have_is_a_warning(stored: str) -> None:
    tasks = [*STORED, (stored, "shop")]
    (found,) = unmatched(frozenset({"refund-07"}), tasks)
    assert (found.code, found.severity) == ("evaluation-misspelt", Severity.WARNING)
    assert found.message == f"stored tasks are nearly one of the ids and are not kept out: {f'shop/{stored}'!r}"


@pytest.mark.parametrize("domain", [None, ""])
@pytest.mark.parametrize("stored", ["REFUND-07", "refund_07", " refund-07"])
def test_a_task_without_a_domain_that_is_nearly_an_id_with_one_is_a_warning(stored: str, domain: str | None) -> None:
    tasks = [*STORED, (stored, domain)]
    (found,) = unmatched(frozenset({"shop/refund-07"}), tasks)
    assert found.message == f"stored tasks are nearly one of the ids and are not kept out: {stored!r}"


def test_a_task_of_another_domain_than_the_id_names_is_nothing_to_speak_of() -> None:
    assert unmatched(frozenset({"shop/refund-07"}), [*STORED, ("refund-07", "bank")]) == []


@pytest.mark.parametrize("domain", [None, ""])
def test_an_empty_domain_is_an_unknown_one(domain: str | None) -> None:
    assert qualified("t-1", domain) == "t-1"
    assert for_evaluation("t-1", domain, frozenset({"shop/t-1"}))


@pytest.mark.parametrize("task", [None, ""])
def test_an_unknown_task_may_be_any_of_those_kept_out(task: str | None) -> None:
    assert qualified(task, "shop") is None
    assert for_evaluation(task, "shop", frozenset({"t-1"}))
    assert not for_evaluation(task, "shop", frozenset())


def test_a_task_whose_domain_is_known_is_not_that_of_a_longer_id() -> None:
    assert for_evaluation("t-1", None, frozenset({"x/shop/t-1"}))
    assert not for_evaluation("t-1", "shop", frozenset({"x/shop/t-1"}))


@pytest.mark.parametrize(
    ("stored", "named", "near"), [("t-1", "T-1", True), ("book", "boot", True), ("cat", "car", False)]
)
def test_a_short_name_is_like_another_but_for_case_and_one_of_four_characters_but_for_one(
    stored: str, named: str, near: bool
) -> None:
    (found,) = unmatched(frozenset({named}), [(stored, None)])
    assert found.code == ("evaluation-misspelt" if near else "evaluation-unmatched")


def test_where_all_are_named_nothing_says_that_there_are_more() -> None:
    (found,) = unmatched(frozenset(f"x-{number}" for number in range(5)), STORED)
    assert found.message.endswith("'x-4'")


def test_a_very_long_task_is_compared_as_a_whole_alone() -> None:
    long = "x" * 300
    (found,) = unmatched(frozenset({long.upper()}), [(long, None)])
    assert found.code == "evaluation-misspelt"
    (found,) = unmatched(frozenset({f"{long}y"}), [(long, None)])
    assert found.code == "evaluation-unmatched"


def test_an_id_is_outside_unless_the_set_holds_every_task_that_it_means() -> None:
    assert outside(["a", "shop/a", "bank/shop/a"], frozenset({"shop/a"})) == ["a"]
    assert outside(["shop/a", "bank/a", "aa"], frozenset({"a"})) == ["aa"]
    assert outside(["b", "a"], frozenset()) == ["a", "b"]


COMPOSED, DECOMPOSED = "caf\u00e9-1", "cafe\u0301-1"


@pytest.mark.parametrize(("task", "listed"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_names_of_one_normal_form_are_one(task: str, listed: str) -> None:
    for domain, named in [("shop", listed), ("shop", f"shop/{listed}"), (None, f"shop/{listed}"), (task, listed)]:
        assert for_evaluation(task, domain, frozenset({named})), (domain, named)
    assert for_evaluation("t", task, frozenset({f"{listed}/t"}))
    assert qualified(task, "shop") == f"shop/{COMPOSED}"
    assert outside([f"shop/{task}"], frozenset({listed})) == []
    assert unmatched(frozenset({listed}), [(task, "shop")]) == []


@pytest.mark.parametrize(
    ("listed", "stored"),
    [
        ("t-10", "t\u201010"),
        ("t-10", "t\u201110"),
        ("t-10", "t\u201210"),
        ("t-10", "t\u201310"),
        ("t-10", "t\u201410"),
        ("t-10", "t\uff0d10"),
        ("t-10", "t\u221210"),
        ("t-10", "t_10"),
        ("t-10", "t-10\u200b"),
        ("t-10", "\ufefft-10"),
        ("t-10", "t-\u206010"),
        ("t-10", "t-\u200d10"),
        ("t-10", "t\u00ad-10"),
        ("t-10", "t-10\ufe0f"),
        ("t-10", "t-\u034f10"),
        ("t-10", "\uff54-10"),
        ("t-10", "t-\uff11\uff10"),
        ("t-10", "t-1\u2070"),
        ("t-10", "t\u00a0-10"),
        ("stra\u00dfe", "STRASSE"),
        ("caf\u00e9", "CAFE\u0301"),
        ("\u212bngstrom", "a\u030angstrom"),
        ("fix", "\ufb01x"),
    ],
)
def test_what_reads_the_same_is_nearly_the_same_either_way(listed: str, stored: str) -> None:
    for one, other in ((listed, stored), (stored, listed)):
        (found,) = unmatched(frozenset({f"shop/{one}"}), [(other, "shop")])
        assert found.code == "evaluation-misspelt"
        assert "ids are the task of no stored trace" in found.message
        # and where the id keeps another one out
        (found,) = unmatched(frozenset({one}), [(one, "shop"), (other, "shop")])
        assert found.code == "evaluation-misspelt"
        assert (
            found.message
            == f"stored tasks are nearly one of the ids and are not kept out: {qualified(other, 'shop')!r}"
        )


@pytest.mark.parametrize(
    ("listed", "stored"), [("cafe-1", COMPOSED), ("t-10", "t-1\u0661"), ("t10", "t\u00b7\u00b710")]
)
def test_what_reads_otherwise_is_not_folded(listed: str, stored: str) -> None:
    assert unmatched(frozenset({listed}), [(listed, None), (stored, None)]) == []


TASK_TEXTS = st.text(st.sampled_from("ae\u0301\u00e9\u030a\u212b/-"), min_size=1, max_size=6)


@given(TASK_TEXTS, st.none() | TASK_TEXTS, st.sets(TASK_TEXTS, max_size=3))
def test_the_normal_form_of_neither_side_matters(task: str, domain: str | None, ids: set[str]) -> None:
    apart = unicodedata.normalize("NFD", task), domain and unicodedata.normalize("NFD", domain)
    kept = for_evaluation(task, domain, frozenset(ids))
    assert kept == for_evaluation(*apart, frozenset(ids))
    assert kept == for_evaluation(task, domain, frozenset(unicodedata.normalize("NFD", one) for one in ids))


def test_a_task_is_held_against_a_set_at_once_however_large_it_is() -> None:
    tasks = [(f"cafe\u0301-{number}", "shop") for number in range(4_000)]

    def held(size: int) -> float:
        ids = frozenset(f"caf\u00e9-{number}" for number in range(size))
        assert sum(for_evaluation(*one, ids) for one in tasks) == size
        return took(lambda: [for_evaluation(*one, ids) for one in tasks])

    assert held(4_000) < 5 * held(40)
