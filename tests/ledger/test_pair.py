"""The accepted pair: each half by its own decisions, and what branches make of it together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tracemark import digest
from tracemark.ledger import chain
from tracemark.ledger.entry import Entry, seal
from tracemark.ledger.pair import label, pair_after, pair_before
from tracemark.ledger.state import LedgerState, state
from tracemark.model.decision import Decision

A, B, C = ("tm1:" + letter * 64 for letter in "abc")
DIGEST = "f" * 64


def model(name: str, revision: str | None = None, **more: str) -> dict[str, Any]:
    members = dict.fromkeys(("name", "revision", "chat_template", "tokenizer", "server", "sampling"))
    return {**members, "name": name, "revision": revision, **more}


def entry(kind: str, subject: dict[str, Any], *parents: Entry, evidence: dict[str, Any] | None = None) -> Entry:
    names = sorted(parent.digest for parent in parents)
    members = {"kind": kind, "time": "2026-01-01T00:00:00Z", "reason": "why", "parents": names, "subject": subject}
    return seal(Decision.model_validate({**members, "evidence": evidence}))


def install(half: str, harness: str, what: dict[str, Any] | None, *parents: Entry) -> Entry:
    return entry("install", {"half": half, "harness": harness, "model": what}, *parents, evidence={"report": DIGEST})


def after(*entries: Entry) -> LedgerState:
    return state(chain.of(entries))


def codes(held: LedgerState) -> list[str]:
    return [conflict.code for conflict in held.conflicts]


def test_accepting_one_half_leaves_the_other() -> None:
    first = entry("accept", {"harness": A})
    second = entry("accept", {"model": model("qwen", "1")}, first)
    third = entry("accept", {"harness": B}, second)
    held = after(first, second, third)
    assert (held.harness, held.model) == (B, model("qwen", "1"))
    assert (held.accepted_by, held.model_by) == (third, second)
    assert held.history == (first, second, third)


def test_an_install_sets_the_half_that_was_judged_alone() -> None:
    first = entry("accept", {"harness": A})
    judged = install("model", B, model("new"), first)
    held = after(first, judged)
    assert (held.harness, held.model, held.model_by) == (A, model("new"), judged)
    assert held.history[-1].decision.evidence == {"report": DIGEST}


def test_a_rejection_changes_nothing() -> None:
    first = entry("accept", {"harness": A})
    second = entry("reject", {"half": "harness", "candidate": B, "incumbent": A}, first)
    assert after(first, second).harness == A
    assert after(first, second).history == (first,)


def test_a_roll_back_sets_both_halves_also_to_none() -> None:
    first = entry("accept", {"harness": A})
    second = install("model", A, model("new"), first)
    third = entry("roll-back", {"harness": A, "model": None, "to": first.digest}, second)
    held = after(first, second, third)
    assert (held.harness, held.model) == (A, None)
    assert held.accepted_by == held.model_by == third


def test_installs_side_by_side_that_disagree_about_a_half_accept_neither() -> None:
    base = entry("accept", {"harness": A})
    ours, theirs = install("model", A, model("m", "1"), base), install("model", A, model("m", "2"), base)
    held = after(base, ours, theirs)
    assert (held.harness, held.model, held.model_by) == (A, None, None)
    assert codes(held) == ["ledger-model-conflict"]
    assert "revision 1" in held.conflicts[0].message
    assert "revision 2" in held.conflicts[0].message
    settled = entry("accept", {"model": model("m", "2")}, ours, theirs)
    assert after(base, ours, theirs, settled).model == model("m", "2")


def test_models_of_one_label_that_differ_in_another_member_disagree() -> None:
    ours, theirs = entry("accept", {"model": model("m")}), entry("accept", {"model": model("m", server="vllm")})
    held = after(ours, theirs)
    assert held.model is None
    assert "server vllm" in held.conflicts[0].message


def test_an_accept_and_a_roll_back_side_by_side_disagree_about_the_harness() -> None:
    first = entry("accept", {"harness": A})
    second = entry("accept", {"harness": B}, first)
    ours = entry("roll-back", {"harness": A, "model": None, "to": first.digest}, second)
    theirs = entry("accept", {"harness": C}, second)
    assert codes(after(first, second, ours, theirs)) == ["ledger-accept-conflict"]


def test_halves_installed_side_by_side_both_hold_and_were_never_judged_together() -> None:
    base = entry("accept", {"harness": A})
    ours, theirs = install("harness", B, model("old"), base), install("model", A, model("new"), base)
    held = after(base, ours, theirs)
    assert (held.harness, held.model) == (B, model("new"))
    assert codes(held) == ["ledger-pair-unjudged"]
    later = install("model", B, model("new"), ours, theirs)
    assert codes(after(base, ours, theirs, later)) == []


def test_freezes_side_by_side_of_other_tasks_are_told_by_the_names_of_these_where_both_name_them() -> None:
    def frozen(*tasks: str, evidence: dict[str, Any] | None = None) -> Entry:
        named = {"tasks": digest.of(sorted(tasks)), "count": len(tasks), "attempts": 4}
        return entry("freeze", named, evidence={"tasks": sorted(tasks)} if evidence is None else evidence)

    names = [f"e-{number}" for number in range(9)]
    ours, theirs = frozen(*names), frozen("e-0", other := "e\n9")
    (said,) = after(ours, theirs).conflicts
    shown = "'e-1', 'e-2', 'e-3', 'e-4', 'e-5' and 3 more"
    assert f"{ours.digest[:12]} says 9 tasks ({digest.of(names)[:12]}), {shown} among them" in said.message
    assert f"{theirs.digest[:12]} says 2 tasks ({digest.of([other, 'e-0'])[:12]}), {other!r} among them" in said.message
    # a list that has not the digest, or is none, names no task
    for evidence in ({"tasks": ["e-0"]}, {"tasks": 1}, {}):
        unnamed = frozen("e-0", "e-9", evidence=evidence)
        (said,) = after(ours, unnamed).conflicts
        assert f"{unnamed.digest[:12]} says 2 tasks ({digest.of(['e-0', 'e-9'])[:12]})" in said.message
        assert "among them" not in said.message


def test_freezes_side_by_side_that_disagree_hold_neither() -> None:
    ours = entry("freeze", {"tasks": DIGEST, "count": 3, "attempts": 4})
    theirs = entry("freeze", {"tasks": DIGEST, "count": 3, "attempts": 8})
    assert after(ours).frozen == ours
    held = after(ours, theirs)
    assert held.frozen is None
    assert codes(held) == ["ledger-freeze-conflict"]
    assert held.conflicts[0].message.endswith((f"{theirs.digest[:12]} says 8", f"{ours.digest[:12]} says 4"))
    assert sorted(one.digest for one in held.freezes) == sorted([ours.digest, theirs.digest])
    later = entry("freeze", {"tasks": DIGEST, "count": 3, "attempts": 8}, ours, theirs)
    settled = after(ours, theirs, later)
    assert (settled.frozen, settled.freezes, codes(settled)) == (later, (later,), [])


def test_the_pair_before_and_after_an_entry_is_what_its_maker_knew() -> None:
    first = entry("accept", {"harness": A})
    second = entry("accept", {"harness": B}, first)
    beside = entry("accept", {"model": model("m")}, first)
    known = chain.of([first, second, beside])
    assert pair_before(known, second).harness.value == A
    assert pair_after(known, second).harness.value == B
    assert pair_after(known, second).model.value is None
    assert pair_before(known, first).harness.value is None


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        ("accept", {}),
        ("accept", {"harness": None}),
        ("accept", {"model": {"name": "m"}}),
        ("install", {"half": "harness", "harness": A}),
        ("install", {"half": "model", "harness": A, "model": None}),
        ("install", {"half": "both", "harness": A, "model": None}),
        ("reject", {"half": "harness", "candidate": A, "incumbent": model("m")}),
        ("reject", {"half": "model", "candidate": A, "incumbent": B}),
        ("roll-back", {"harness": A, "model": None}),
        ("roll-back", {"harness": A, "model": None, "to": "previous"}),
        ("freeze", {"tasks": DIGEST, "count": 0, "attempts": 4}),
    ],
)
def test_a_subject_that_does_not_fit_its_kind_is_no_decision(kind: str, subject: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        entry(kind, subject)


def test_a_model_is_called_by_name_and_revision() -> None:
    assert [label(None), label(model("m")), label(model("m", "1"))] == [None, "m", "m@1"]
