"""Which task an id of the evaluation set means: one answer, whoever asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gates.evaluations import NEW, OLD, attempts, of
from tracemark.acts.evaluation_freeze import freeze_notes
from tracemark.exporters.evaluation import for_evaluation, meanings, outside, qualified, unmatched
from tracemark.gates.compare import compare
from tracemark.gates.refusal import Reason
from tracemark.gates.terms import Conditions, Half, Terms

NAMES = st.lists(st.sampled_from(["a", "b", "e\u0301"]), min_size=1, max_size=3).map("/".join)
TASKS = st.tuples(NAMES, st.none() | st.just("") | NAMES)


@pytest.mark.parametrize(
    ("listed", "task", "domain", "means"),
    [
        ("refund-07", "refund-07", None, True),
        ("refund-07", "refund-07", "desk", True),
        ("desk/refund-07", "refund-07", "desk", True),
        ("desk/refund-07", "refund-07", "shop", False),
        ("desk/refund-07", "refund-07", None, True),
        ("refund-07", "late-refund-07", "desk", False),
        ("und-07", "refund-07", "desk", False),
        ("a/b", "a/b", "desk", True),
        ("a/b/a", "b/a", None, True),
        ("a/b/a", "a", "b", False),
        ("desk/refund-07", "refund-070", "desk", False),
        ("caf\u00e9", "cafe\u0301", "desk", True),
        ("desk/cafe\u0301", "caf\u00e9", None, True),
        ("cafe", "caf\u00e9", "desk", False),
    ],
)
def test_a_name_without_a_domain_means_the_task_in_any(listed: str, task: str, domain: str | None, means: bool) -> None:
    assert for_evaluation(task, domain, frozenset({listed})) is means
    name = qualified(task, domain) or ""
    assert meanings([listed], [(name, domain)]) == {listed: (name,) if means else ()}


@given(NAMES, TASKS)
def test_training_gates_freezes_and_notes_give_one_answer(listed: str, placed: tuple[str, str | None]) -> None:
    task, domain = placed
    name, ids = qualified(task, domain) or "", frozenset({listed})
    means = for_evaluation(task, domain, ids)
    assert meanings(ids, [(name, domain)]) == {listed: (name,) if means else ()}
    assert bool(unmatched(ids, [placed])) is not means
    assert ("evaluation-seen" in {one.code for one in freeze_notes(ids, [placed], None)}) is means
    assert means or outside([name], ids) == [name]
    terms = Terms(Half.HARNESS, attempts=1, evaluation=ids, conditions=Conditions(no_regression=(listed,)))
    cells = [of(attempts({name: 1}, 1, harness, domain=domain or None), harness) for harness in (OLD, NEW)]
    judged = compare(*cells, terms)
    assert (Reason.TASKS_DIFFER not in {one.reason for one in judged.refusals}) is means
    watched = compare(*cells, Terms(Half.HARNESS, attempts=1, conditions=terms.conditions)).measured
    assert watched is not None
    assert [one.met for one in watched.conditions] == [means]
