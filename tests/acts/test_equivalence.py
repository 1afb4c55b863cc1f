"""Two harnesses that count as one: who may say so, what follows from it, and how it is taken back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import audit, equivalence, harnesses, health
from tracemark.acts.corpus import Corpus
from tracemark.acts.equivalence import DeclaredEquivalent, Withdrawn
from tracemark.cli.main import run
from tracemark.errors import ExportRefusedError, NegativeAnswerError, UnknownNameError, UsageError
from tracemark.ledger import chain

from .conftest import CLOCK, OBSERVE, Shop, document, write_version


def edit(shop: Shop, text: str, name: str = "desk_a2", file: str = "observe.py") -> str:
    """Make a version that is desk_a with another text in one file; return its fingerprint."""
    folder = write_version(shop.root, name)
    (folder / file).write_text(text)
    return shop.fingerprint(name)


def comment(shop: Shop, name: str = "desk_a2") -> str:
    """Make a version whose handler differs from desk_a's by a comment that names the version."""
    return edit(shop, f"# {name}: what the model sees\n" + OBSERVE.format(extra=""), name)


def declare(shop: Shop, one: str = "desk_a", other: str = "desk_a2", **options: Any) -> DeclaredEquivalent:
    return equivalence.equivalent(shop.root, one, other, "a comment", CLOCK, **options)


def take_back(shop: Shop, one: str = "desk_a", other: str = "desk_a2") -> Withdrawn:
    return equivalence.withdraw(shop.root, one, other, "it was not", CLOCK)


def codes(report: Any) -> set[str]:
    return {found.code for found in report.findings}


def tasks(shop: Shop) -> list[str]:
    return sorted(row["tracemark_task"] for row in shop.rows())


def manifest(shop: Shop) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((shop.root / "exports/sft/manifest.json").read_text())
    return read


# --- declared, honoured, taken back


def test_after_a_comment_edit_an_export_takes_the_traces_of_both_once_that_is_declared(shop: Shop) -> None:
    second = comment(shop)
    shop.ingest([document("n-1"), document("n-2")], "desk_a2", "new")
    shop.accept("desk_a2")
    with pytest.raises(ExportRefusedError, match="evidence 2") as refused:
        shop.export()
    assert "tracemark harness equivalent" in str(refused.value.hint)

    answer = declare(shop)
    assert answer.exit_code == 0
    assert (answer.rule, answer.alike, answer.differences) == ("equal-trees", ["observe.py"], ())
    assert answer.count_as_one == sorted([shop.fingerprint(), second])

    shop.export()
    assert tasks(shop) == ["n-1", "n-2", "t-0", "t-1", "t-2"]
    assert manifest(shop)["harness"]["equivalents"] == [shop.fingerprint()]
    assert manifest(shop)["harness"]["equivalences"] == [
        {
            "fingerprints": answer.count_as_one,
            "rule": "equal-trees",
            "reason": "a comment",
            "entry": answer.entry,
        }
    ]
    audited = audit.audit(shop.root, "exports/sft")
    assert audited.exit_code == 0

    withdrawn = take_back(shop)
    assert (withdrawn.count_as_one, withdrawn.fingerprints) == (False, answer.count_as_one)
    assert chain.read(shop.root / chain.NAME).heads == tuple(withdrawn.entries)
    audited = audit.audit(shop.root, "exports/sft")
    assert audited.exit_code == 1
    # the content fits both again, and those of desk_a are of another harness now
    assert codes(audited) >= {"export-other-harness", "export-row-excluded", "export-terms-differ"}
    with pytest.raises(ExportRefusedError):
        shop.export()


def test_recorded_traces_of_both_are_taken_only_while_it_holds(shop: Shop) -> None:
    comment(shop)
    shop.record("r-1")
    shop.record("r-2", "desk_a2")
    shop.accept()
    shop.export()
    assert tasks(shop) == ["r-1"]
    declare(shop)
    shop.export()
    assert tasks(shop) == ["r-1", "r-2", "t-0", "t-1", "t-2"]
    take_back(shop)
    shop.export()
    assert tasks(shop) == ["r-1"]
    assert "equivalences" not in manifest(shop)["harness"]


def test_one_harness_named_twice_takes_back_nothing(shop: Shop) -> None:
    comment(shop)
    declare(shop)
    with pytest.raises(NegativeAnswerError, match="names both"):
        take_back(shop, "desk_a", "desk_a")
    assert take_back(shop).count_as_one is False


def test_the_row_of_an_equivalent_harness_names_the_one_that_made_it(shop: Shop) -> None:
    second = comment(shop)
    shop.record("r-2", "desk_a2")
    shop.accept()
    declare(shop)
    shop.export()
    made_by = {row["tracemark_task"]: row["tracemark_fingerprint"] for row in shop.rows()}
    assert (made_by["r-2"], made_by["t-0"]) == (second, shop.fingerprint())


def test_it_is_seen_in_list_check_and_audits(shop: Shop) -> None:
    second = comment(shop)
    shop.accept()
    shop.ingest([document("n-1")], "desk_a2", "new")
    assert "siblings-alike" in codes(harnesses.list_(shop.root))
    answer = declare(shop)
    listed = harnesses.list_(shop.root)
    rows = {row["name"]: row["equivalent_to"] for row in listed.harnesses}
    assert rows == {"desk_a": [second], "desk_a2": [shop.fingerprint()], "desk_b": []}
    assert "siblings-alike" not in codes(listed)
    checked = health.check(shop.root)
    assert "siblings-alike" not in codes(checked)
    assert any("harnesses declared equivalent" in said and "1 of 1" in said for said in checked.proved)
    assert checked.exit_code == 0
    of_harness = audit.audit(shop.root, "desk_a2")
    assert isinstance(of_harness, audit.HarnessAudit)
    assert of_harness.accepted
    assert [row["entry"] for row in of_harness.decisions] == [answer.entry]
    of_trace = audit.audit(shop.root, shop.ids()["n-1"])
    assert isinstance(of_trace, audit.TraceAudit)
    assert (of_trace.accepted, of_trace.export) == (True, "yes")


def test_a_third_harness_that_fits_still_takes_the_traces_away(shop: Shop) -> None:
    comment(shop)
    edit(shop, OBSERVE.format(extra=".strip()"), "desk_a3")
    shop.accept()
    declare(shop)
    assert "siblings-alike" in codes(harnesses.list_(shop.root))
    with pytest.raises(ExportRefusedError, match="evidence 3"):
        shop.export()


def test_both_texts_are_stored_before_the_entry(shop: Shop) -> None:
    second = comment(shop)
    declare(shop)
    shutil.rmtree(shop.root / "harness_versions" / "desk_a2")
    assert Corpus(shop.root).resolve(second).folder is None
    assert health.check(shop.root).exit_code == 0


def test_whoever_accepts_the_same_program_again_is_told_what_lets_the_older_traces_count(shop: Shop) -> None:
    second = comment(shop)
    shop.accept()
    (found,) = [one for one in shop.accept("desk_a2").findings if one.code == "accepted-alike"]
    expected = f"tracemark harness equivalent {shop.fingerprint()[:16]} {second[:16]} --reason TEXT"
    assert str(found.hint).startswith(expected)
    (listed,) = [one for one in harnesses.list_(shop.root).findings if one.code == "siblings-alike"]
    assert str(listed.hint).startswith(expected)
    assert "accepted-alike" not in codes(shop.accept("desk_b"))
    declare(shop)
    assert "accepted-alike" not in codes(shop.accept()) | codes(shop.accept("desk_a2"))


# --- refused, forced


def test_other_code_is_refused_with_what_differs_and_the_next_command(shop: Shop) -> None:
    edit(shop, "# shorter\n" + OBSERVE.format(extra="[:9]"))
    answer = declare(shop)
    assert answer.exit_code == 1
    assert (answer.rule, answer.entry, answer.count_as_one) == (None, None, [])
    (row,) = answer.differences
    assert (row["component"], row["part"]) == ("observation_handlers", "observe")
    assert "+    return str(raw)[:9]" in row["diff"]
    (found,) = [one for one in answer.findings if one.code == "equivalence-refused"]
    assert "observation_handlers/observe (observe.py)" in found.message
    assert "--force" in str(found.hint)
    assert chain.read(shop.root / chain.NAME).entries == ()


def test_a_docstring_counts(shop: Shop) -> None:
    edit(shop, OBSERVE.format(extra="").replace("Return what", "Give what"))
    assert declare(shop).exit_code == 1


def test_what_is_forced_is_recorded_as_forced_everywhere(shop: Shop) -> None:
    edit(shop, OBSERVE.format(extra=".strip()"))
    answer = declare(shop, force=True)
    assert (answer.exit_code, answer.rule) == (0, "forced")
    (entry,) = chain.read(shop.root / chain.NAME).entries
    assert entry.decision.evidence == {
        "rule": "forced",
        "alike": [],
        "differences": [
            {"component": "observation_handlers", "part": "observe", "kind": "changed", "members": ["entry"]}
        ],
    }
    shop.accept()
    shop.export()
    assert manifest(shop)["harness"]["equivalences"][0]["rule"] == "forced"
    (found,) = [one for one in health.check(shop.root).findings if one.code == "equivalence-forced"]
    assert "a comment" in found.message


def test_force_that_was_not_needed_is_not_recorded(shop: Shop) -> None:
    comment(shop)
    assert declare(shop, force=True).rule == "equal-trees"


def test_a_harness_is_not_equivalent_to_itself_and_nothing_is_declared_twice(shop: Shop) -> None:
    with pytest.raises(NegativeAnswerError, match="one harness already"):
        declare(shop, "desk_a", "desk_a")
    comment(shop)
    declare(shop)
    with pytest.raises(NegativeAnswerError, match="already"):
        declare(shop, "desk_a2", "desk_a")
    assert len(chain.read(shop.root / chain.NAME).entries) == 1


def test_a_reason_and_known_names_are_needed(shop: Shop) -> None:
    comment(shop)
    with pytest.raises(UsageError, match="reason"):
        equivalence.equivalent(shop.root, "desk_a", "desk_a2", " ", CLOCK)
    with pytest.raises(UnknownNameError):
        declare(shop, "desk_a", "nobody")
    with pytest.raises(UsageError, match="reason"):
        equivalence.withdraw(shop.root, "desk_a", "desk_a2", "", CLOCK)


def test_an_entry_that_the_texts_do_not_bear_out_is_found(shop: Shop) -> None:
    subject = {"fingerprints": [shop.fingerprint("desk_a"), shop.fingerprint("desk_b")]}
    path = shop.root / chain.NAME
    draft = chain.Draft("equivalent", subject, "trust me", {"rule": "equal-trees", "alike": []})
    chain.append(path, chain.read(path), draft, CLOCK)
    checked = health.check(shop.root)
    (found,) = [one for one in checked.findings if one.code == "equivalence-refuted"]
    assert "prompt_templates/system (system.txt)" in found.message
    assert any("0 of 1" in said for said in checked.proved)
    assert checked.exit_code == 1


# --- carried through, taken back, merged


def test_it_carries_through_and_taking_one_back_says_what_joins_them_still(shop: Shop) -> None:
    comment(shop, "desk_x")
    comment(shop, "desk_y")
    names = ("desk_a", "desk_x", "desk_y")
    for one, other in (names[:2], names[1:], names[::2]):
        answer = declare(shop, one, other)
    assert answer.count_as_one == sorted(map(shop.fingerprint, names))
    withdrawn = take_back(shop, "desk_a", "desk_y")
    assert withdrawn.count_as_one
    assert codes(withdrawn) == {"equivalent-through-others"}
    with pytest.raises(NegativeAnswerError, match="through others"):
        take_back(shop, "desk_y", "desk_a")
    assert not take_back(shop, "desk_a", "desk_x").count_as_one


def test_what_was_taken_back_can_be_declared_again(shop: Shop) -> None:
    comment(shop)
    for _ in range(2):
        declare(shop)
        take_back(shop)
    with pytest.raises(NegativeAnswerError, match="no declaration in force"):
        take_back(shop)
    kinds = [entry.decision.kind for entry in chain.read(shop.root / chain.NAME).entries]
    assert kinds == ["equivalent", "distinct"] * 2


def test_a_declaration_of_a_harness_that_nobody_knows_any_more_is_named_and_can_be_taken_back(shop: Shop) -> None:
    second = comment(shop)
    declare(shop)
    shutil.rmtree(shop.root / "harness_versions" / "desk_a2")
    (shop.root / "traces" / "harnesses" / f"{second[4:]}.json").unlink()
    checked = health.check(shop.root)
    assert "equivalent-unknown" in codes(checked)
    assert take_back(shop, "desk_a", second[:16]).fingerprints == sorted([shop.fingerprint(), second])


def branch(shop: Shop, folder: Path) -> Shop:
    shutil.copytree(shop.root, folder)
    return Shop(folder)


def merge(ours: Shop, theirs: Shop) -> None:
    """Keep the lines of both ledgers, as git does with `merge=union`."""
    mine = (ours.root / chain.NAME).read_bytes()
    (ours.root / chain.NAME).write_bytes(mine + (theirs.root / chain.NAME).read_bytes())


def test_equivalences_of_two_branches_hold_together_after_a_merge(shop: Shop, tmp_path: Path) -> None:
    for name in ("desk_x", "desk_y"):
        comment(shop, name)
    shop.accept()
    other = branch(shop, tmp_path / "other")
    declare(shop, "desk_a", "desk_x")
    declare(other, "desk_a", "desk_y")
    merge(shop, other)
    assert Corpus(shop.root).equivalents() == set(map(shop.fingerprint, ("desk_a", "desk_x", "desk_y")))
    shop.export()
    stated = manifest(shop)["harness"]["equivalences"]
    assert [one["entry"] for one in stated] == sorted(one["entry"] for one in stated)
    assert len(stated) == 2


def test_the_same_declaration_on_two_branches_is_one_and_is_taken_back_once(shop: Shop, tmp_path: Path) -> None:
    comment(shop)
    other = branch(shop, tmp_path / "other")
    declare(shop)
    equivalence.equivalent(other.root, "desk_a", "desk_a2", "seen there too", CLOCK)
    merge(shop, other)
    assert len(Corpus(shop.root).decisions.equivalences) == 2
    assert len(take_back(shop).entries) == 1
    assert Corpus(shop.root).decisions.equivalents == ()


def test_taken_back_on_one_branch_and_declared_anew_on_another_it_does_not_hold(shop: Shop, tmp_path: Path) -> None:
    comment(shop)
    declare(shop)
    shop.accept()
    other = branch(shop, tmp_path / "other")
    take_back(shop)
    take_back(other)
    declare(other)
    merge(shop, other)
    assert Corpus(shop.root).equivalents() == {shop.fingerprint()}
    assert "ledger-equivalent-conflict" in codes(health.check(shop.root))
    undecided = branch(shop, tmp_path / "undecided")
    take_back(undecided)
    assert "ledger-equivalent-conflict" not in codes(health.check(undecided.root))
    declare(shop)
    assert "ledger-equivalent-conflict" not in codes(health.check(shop.root))
    assert len(Corpus(shop.root).equivalents()) == 2


# --- the command


def test_the_command_declares_refuses_and_takes_back_with_the_exit_codes_that_it_lists(
    shop: Shop, capfd: pytest.CaptureFixture[str]
) -> None:
    comment(shop)
    call = ["--root", str(shop.root), "harness", "equivalent", "--reason", "why", "--output", "json"]
    assert run([*call, "desk_a", "desk_b"]) == 1
    refused = json.loads(capfd.readouterr().out)
    assert (refused["entry"], [one["part"] for one in refused["differences"]]) == (None, ["system"])
    assert run([*call, "desk_a", "desk_b", "--force", "--withdraw"]) == 2
    capfd.readouterr()
    assert run([*call, "desk_a", "desk_a2"]) == 0
    assert json.loads(capfd.readouterr().out)["rule"] == "equal-trees"
    assert run([*call, "desk_a2", "desk_a", "--withdraw"]) == 0
    assert json.loads(capfd.readouterr().out)["count_as_one"] is False
    assert run([*call, "desk_a2", "desk_a", "--withdraw"]) == 1
