"""What accepting another half would do to the training set, said before it is done."""

from __future__ import annotations

from dataclasses import replace

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
        "training set: of 69 successes that an export could take under the old pair it can take none under the new "
        "one, and 81 others; an export would hold 50 rows, 44 before"
    )
    same = Consequences(successes_before=3, successes_after=3, kept=3, rows_before=3, rows_after=3, **numbers)
    assert same.words()[0] == (
        "training set: of 3 successes that an export could take under the old pair it can take all under the new one; "
        "an export would hold 3 rows, 3 before"
    )
    some = replace(other, kept=68, successes_after=68, rows_after=1, planned_tasks=1, planned_runs=2)
    assert "it can take 68 under the new one; an export would hold 1 row, 44 before" in some.words()[0]
    assert some.words()[-1] == "tracemark plan lists 2 runs of 1 task to collect"
    new = replace(other, successes_before=0, rows_before=0)
    assert "an export can take 81 successes under the new pair, and could take none under the old;" in new.words()[0]
    assert "an export can take no success under the new pair" in replace(new, successes_after=0).words()[0]


def test_a_harness_whose_own_traces_fail_the_policy_of_exports_is_told(bench: Bench) -> None:
    corpus = Corpus(bench.root)
    # no content tells it apart from the accepted one
    pair = {"harness": bench.fingerprint("desk_c")}
    told = consequences(corpus, pair)
    assert told.doubtful == 6
    (said,) = [one for one in told.words() if "too weak" in one]
    assert said.startswith("the evidence of 6 successes of the new harness is too weak for an export, and so is that")
    assert "export.evidence unique leaves out runs, which claimed takes, as no content tells desk_c" in said
    # it made traces, so its snapshot stays
    assert "take away" not in said
    assert consequences(corpus, {"harness": bench.fingerprint("desk_b")}).doubtful == 0
    # where the harness stays nothing changes
    assert consequences(corpus, {"model": corpus.decisions.model}).doubtful == 0
    bench.set(("evidence: unique", "evidence: claimed"))
    assert (consequences(Corpus(bench.root), pair).doubtful, consequences(Corpus(bench.root), pair).surer) == (0, None)
