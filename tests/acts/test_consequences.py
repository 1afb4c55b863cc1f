"""What accepting another half would do to the training set, said before it is done."""

from __future__ import annotations

from tracemark.acts.consequences import Consequences, as_if, consequences
from tracemark.acts.corpus import Corpus

from .evaluated import Bench


def test_a_corpus_is_looked_at_as_it_would_be_and_stays_as_it_is(bench: Bench) -> None:
    corpus = Corpus(bench.root)
    other = as_if(corpus, {"harness": bench.fingerprint("desk_b")})
    assert (other.accepted, other.params.accepted.model) == (bench.fingerprint("desk_b"), "m@1")
    assert other.equivalents() == {bench.fingerprint("desk_b")}
    assert other.acceptance_findings() == other.model_findings() == []
    assert corpus.accepted == Corpus(bench.root).accepted == bench.fingerprint()


def test_another_model_takes_nothing_from_the_training_set(bench: Bench) -> None:
    bench.set(("evidence: unique", "evidence: claimed"))
    corpus = Corpus(bench.root)
    model = {**(corpus.decisions.model or {}), "revision": "2"}
    told = consequences(corpus, {"model": model})
    assert (told.successes_before, told.successes_after, told.kept) == (3, 3, 3)


def test_what_cannot_be_planned_is_told_and_stops_nothing(bench: Bench) -> None:
    bench.set(("total: 100", "total: null"), ("quotas: {}", "quotas: {shop/e: 0.5}"))
    told = consequences(Corpus(bench.root), {"harness": bench.fingerprint("desk_b")})
    assert told.planned_runs is None
    assert told.words()[-1].startswith("what to collect is not known: quotas are shares")


def test_too_few_rows_for_an_export_are_told(bench: Bench) -> None:
    bench.set(("minimum: 1", "minimum: 50"))
    said = consequences(Corpus(bench.root), {"harness": bench.fingerprint("desk_b")}).words()
    assert "export sft is refused until it has 50 rows" in said


def test_what_the_rows_after_are_made_of_is_told() -> None:
    numbers = {"planned_tasks": 0, "planned_runs": 0, "unplanned": None, "minimum": 1}
    other = Consequences(successes_before=69, successes_after=81, kept=0, rows_before=44, rows_after=50, **numbers)
    assert other.words()[0] == (
        "training set: 0 of 69 successes still count, and 81 of the pair after that did not before; "
        "an export would hold 50 rows, 44 before"
    )
    same = Consequences(successes_before=3, successes_after=3, kept=3, rows_before=3, rows_after=3, **numbers)
    assert same.words()[0] == "training set: 3 of 3 successes still count; an export would hold 3 rows, 3 before"
