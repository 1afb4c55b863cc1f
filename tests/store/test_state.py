from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.store.state import Statement, in_force, join, relation

SMALL = st.dictionaries(st.sampled_from(["task", "seed", "split"]), st.sampled_from(["a", "b", 1]), max_size=3)
STATUS = st.sampled_from(["success", "failure", "unknown"])
LETTERS = st.sampled_from([None, "a", "b"])


def statements(make) -> st.SearchStrategy[Statement]:
    return st.builds(
        lambda letter, evidence, run, status: Statement("", make.stamp(letter, evidence), run, {"status": status}),
        LETTERS, st.sampled_from(["recorded", "corroborated", "claimed"]), SMALL, STATUS,
    )  # fmt: skip


@given(data=st.data())
def test_the_order_of_statements_decides_no_conflict_and_nothing_uncontested(make, data) -> None:
    said = data.draw(st.lists(statements(make), min_size=1, max_size=4))
    one, other = join(said), join(said[::-1])
    assert one.conflicts == other.conflicts
    if not one.conflicts:
        assert digest.canonical(one.content()) == digest.canonical(other.content())


@given(data=st.data())
def test_a_statement_made_twice_adds_nothing(make, data) -> None:
    said = data.draw(st.lists(statements(make), min_size=1, max_size=4))
    for statement in said:
        assert relation(said, statement) == "nothing"


def test_knowledge_strengthens_and_disagreement_contests(make) -> None:
    first = Statement("", {}, {"task": "t"}, {"status": "unknown"})
    claimed = Statement("", make.stamp("a", "claimed"))
    recorded = Statement("", make.stamp("a", "recorded"))
    assert relation([first], claimed) == "strengthens"
    assert relation([first, claimed], recorded) == "strengthens"
    assert relation([first, recorded], claimed) == "nothing"
    assert relation([first, recorded], Statement("", make.stamp("b"))) == "contests"
    assert relation([first], Statement("", outcome={"status": "success"})) == "strengthens"
    assert (
        relation([Statement("", outcome={"status": "success"})], Statement("", outcome={"status": "failure"}))
        == "contests"
    )


def test_a_contested_harness_or_status_is_not_known(make) -> None:
    joined = join([
        Statement("", make.stamp("a"), {}, {"status": "success", "reward": 1.0}),
        Statement("", make.stamp("b"), {}, {"status": "failure"}),
    ])  # fmt: skip
    assert "harness.declared.fingerprint" in joined.conflicts
    assert "outcome.status" in joined.conflicts
    assert "fingerprint" not in joined.harness["declared"]
    assert joined.outcome["status"] == "unknown"


def test_a_contradiction_takes_the_fingerprint_away(make) -> None:
    refuted = make.stamp("a")
    del refuted["declared"]["fingerprint"]
    refuted["contradictions"] = [{"component": "runtime", "part": "only", "text": "x"}]
    for said in ([make.stamp("a"), refuted], [refuted, make.stamp("a")]):
        joined = join([Statement("", stamp) for stamp in said])
        assert "fingerprint" not in joined.harness["declared"]
        assert joined.conflicts == ()


def test_labels_and_observed_digests_never_conflict(make) -> None:
    named = make.stamp("a")
    named["declared"]["name"] = "another label"
    observed = [
        {"observed": {"runtime": [{"part": "p", "form": "rendered", "digest": letter * 64}]}} for letter in "ab"
    ]
    joined = join([Statement("", stamp) for stamp in (make.stamp("a"), named, *observed)])
    assert joined.conflicts == ()
    assert len(joined.harness["observed"]["runtime"]) == 2


def test_a_run_of_which_one_copy_alone_knows_that_it_is_mixed_is_mixed(make) -> None:
    mixed = {**make.stamp("a"), "mixed": True}
    for said in ([mixed, make.stamp("a")], [make.stamp("a"), mixed], [mixed, {}]):
        joined = join([Statement("", stamp) for stamp in said])
        assert (joined.conflicts, joined.harness["mixed"]) == ((), True)
    assert "mixed" not in join([Statement("", make.stamp("a"))] * 2).harness


@pytest.mark.parametrize(("a", "b"), [(True, 1), (False, 0)])
def test_true_is_not_one(a: Any, b: Any) -> None:
    assert join([Statement("", run={"x": a}), Statement("", run={"x": b})]).conflicts == ("run.x",)


def test_a_head_is_replaced_by_half(make) -> None:
    head = Statement("h", make.stamp("a"), {"task": "t"}, {"status": "success"})
    kept = in_force(head, [], {"stamps": frozenset({"h"})})
    assert kept == [Statement("h", None, {"task": "t"}, {"status": "success"})]
    kept = in_force(head, [], {"outcomes": frozenset({"h"})})
    assert kept == [Statement("h", make.stamp("a"), {"task": "t"}, None)]


def refuted(make, letter: str, evidence: str = "claimed") -> dict[str, Any]:
    stamp = make.stamp(letter, evidence)
    del stamp["declared"]["fingerprint"]
    return {**stamp, "contradictions": [{"component": "runtime", "part": "only", "text": "x"}]}


def heads_in_every_order(*stamps: dict[str, Any]) -> list[list[Statement]]:
    """Return what is in force of copies that say `stamps`, whichever of them is the first and however digests sort."""
    return [
        in_force(head, others, {})
        for order in itertools.permutations(stamps)
        for head, *others in [[Statement(str(number), stamp) for number, stamp in enumerate(order)]]
    ]


def test_a_refuted_claim_says_nothing_beside_another_harness_in_every_order(make) -> None:
    for said in heads_in_every_order(refuted(make, "a"), make.stamp("b"), {}, refuted(make, "c")):
        joined = join(said)
        assert joined.conflicts == ()
        assert joined.harness == make.stamp("b")


def test_what_is_no_other_harness_or_no_claim_stays_in_force(make) -> None:
    for said in heads_in_every_order(refuted(make, "a"), make.stamp("a", "recorded")):
        joined = join(said)
        assert (joined.conflicts, joined.harness["declared"].get("fingerprint")) == ((), None)
        assert joined.harness["contradictions"]
    for said in heads_in_every_order(refuted(make, "a", "recorded"), make.stamp("b")):
        assert join(said).conflicts
    for said in heads_in_every_order(refuted(make, "a"), make.stamp("b"), make.stamp("c")):
        assert join(said).conflicts


def test_of_refuted_claims_alone_one_stays(make) -> None:
    for said in heads_in_every_order(refuted(make, "a"), refuted(make, "b")):
        joined = join(said)
        assert joined.conflicts == ()
        assert joined.harness == said[0].harness
        assert joined.harness["contradictions"]


def test_an_outcome_that_is_replaced_takes_its_run_along_unless_it_is_the_first_statement() -> None:
    head = Statement("h", {}, {"task": "t"}, {"status": "success"})
    other = Statement("o", None, {"task": "u", "seed": 1}, {"status": "failure"})
    kept = in_force(head, [other], {"outcomes": frozenset({"o"})})
    assert kept == [head, Statement("o")]
    joined = join(kept)
    assert (joined.conflicts, joined.run) == ((), {"task": "t"})


def test_a_part_with_another_digest_is_a_conflict_also_where_the_components_agree(make) -> None:
    other = json.loads(json.dumps(make.stamp("a")))
    other["declared"]["components"]["runtime"]["parts"]["only"]["digest"] = "b" * 64
    for said in ([make.stamp("a"), other], [other, make.stamp("a")]):
        joined = join([Statement("", stamp) for stamp in said])
        assert joined.conflicts == ("harness.declared.components.runtime.parts.only",)
        assert "fingerprint" not in joined.harness["declared"]
