"""Evidence through the commands: what they decide has nothing against it, and what was put beside it is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import gate_log, health, kept_reports
from tracemark.cli.main import run as tracemark
from tracemark.findings import Severity
from tracemark.ledger import chain
from tracemark.ledger.entry import encode, seal
from tracemark.model.decision import Decision

from .conftest import write_version
from .evaluated import ALL, TASKS, Bench


def say(bench: Bench, *words: str, code: int = 0) -> None:
    assert tracemark(["--root", str(bench.root), *words]) == code


def judge(bench: Bench, half: str, candidate: str, code: int = 0) -> None:
    say(bench, "gate", half, "--candidate", candidate, "--install", "--reason", "measured", code=code)


def kinds(bench: Bench) -> list[str]:
    return [row["kind"] for row in gate_log.gate_log(bench.root).decisions[3:]]


def broken(bench: Bench) -> list[str]:
    return [
        one.message.partition(": ")[2] for one in health.check(bench.root).findings if one.code == "evidence-broken"
    ]


def require_clean(bench: Bench) -> None:
    """Make sure that nothing is wrong with the corpus, and that every decision's evidence was looked at whole."""
    report = health.check(bench.root)
    assert [one for one in report.findings if one.severity is Severity.ERROR] == []
    log = gate_log.gate_log(bench.root)
    assert [one.code for one in log.findings if one.code.startswith("evidence")] == []
    judged = [row for row in log.decisions if row["kind"] in ("install", "reject")]
    assert all(row["evidence"]["report"] == "at hand, and its digest is the one named" for row in judged)
    told = f"in force where they were made: {len(judged)} of {len(judged)}"
    assert any(line.endswith(told) for line in report.proved)


@contextmanager
def branch(bench: Bench, *lines: str) -> Iterator[Callable[[], list[str]]]:
    """Let decisions be made on the ledger as it is now, and give the lines that they add; then all is as before."""
    ledger, params = bench.root / chain.NAME, bench.root / "params.yaml"
    before = ledger.read_text(), params.read_text()
    yield lambda: ledger.read_text().removeprefix(before[0]).splitlines(keepends=True)
    ledger.write_text(before[0])
    params.write_text(before[1])


def merge(bench: Bench, *branches: list[str]) -> None:
    path = bench.root / chain.NAME
    path.write_text(path.read_text() + "".join(line for lines in branches for line in lines))


def test_what_the_commands_decide_one_after_another_has_nothing_against_it(bench: Bench) -> None:
    judge(bench, "harness", "desk_c", 1)
    judge(bench, "harness", "desk_b")
    judge(bench, "model", "m@2", 1)
    say(bench, "gate", "rollback", "--to", "previous", "--reason", "worse in use")
    judge(bench, "model", "m@2")
    judge(bench, "harness", "desk_b", 1)
    bench.tasks(*TASKS[:7])
    say(bench, "gate", "freeze", "--reason", "a task is wrong", code=0)
    say(bench, "harness", "accept", "desk_c", "--reason", "by hand")
    say(bench, "model", "accept", "m@1", "--reason", "by hand")
    assert kinds(bench) == [
        *("reject", "install", "reject", "roll-back", "install", "reject", "freeze", "accept", "accept"),
    ]
    require_clean(bench)


def test_what_two_branches_decide_and_whoever_merged_them_has_nothing_against_it(bench: Bench) -> None:
    with branch(bench) as added:
        judge(bench, "harness", "desk_b")
        ours = added()
    with branch(bench) as added:
        judge(bench, "model", "m@2")
        judge(bench, "harness", "desk_b", 1)
        theirs = added()
    merge(bench, ours, theirs)
    bench.set((bench.fingerprint(), bench.fingerprint("desk_b")), ("m@1", "m@2"))
    # both halves hold, and were judged against what each branch knew
    require_clean(bench)
    say(bench, "gate", "rollback", "--to", json.loads(theirs[0])["digest"][:12], "--reason", "the model alone")
    judge(bench, "harness", "desk_b", 1)
    # the same report on the same two: the rejection that stands gets no second entry
    assert kinds(bench)[-1] == "roll-back"
    assert kinds(bench).count("reject") == 1
    require_clean(bench)


def test_what_was_decided_after_branches_that_disagreed_were_settled_has_nothing_against_it(bench: Bench) -> None:
    with branch(bench) as added:
        say(bench, "harness", "accept", "desk_b", "--reason", "ours")
        ours = added()
    with branch(bench) as added:
        say(bench, "harness", "accept", "desk_c", "--reason", "theirs")
        theirs = added()
    merge(bench, ours, theirs)
    judge(bench, "model", "m@2", 40)
    say(bench, "harness", "accept", "desk_a", "--reason", "neither")
    judge(bench, "model", "m@2")
    require_clean(bench)


def test_what_was_decided_under_a_declared_equivalent_has_nothing_against_it(bench: Bench) -> None:
    write_version(bench.root, "desk_d", handler="  # the same again")
    say(bench, "harness", "equivalent", "desk_a", "desk_d", "--reason", "a comment")
    say(bench, "harness", "accept", "desk_d", "--reason", "the newer text")
    judge(bench, "harness", "desk_a", 40)
    judge(bench, "harness", "desk_b")
    say(bench, "gate", "rollback", "--to", "previous", "--reason", "worse in use")
    judge(bench, "model", "m@2")
    require_clean(bench)


def test_what_was_decided_with_a_model_of_which_little_is_claimed_has_nothing_against_it(bench: Bench) -> None:
    more = {"called": {"server": "vllm", "tokenizer": "t"}, "sampling": {"temperature": 1}}
    bench.evaluate("desk_a", "q@1", dict.fromkeys(TASKS, 0), **more)
    say(bench, "model", "accept", "q@7", "--reason", "a slip")
    judge(bench, "harness", "desk_b", 40)
    say(bench, "model", "accept", "q", "--reason", "the next")
    bench.evaluate("desk_b", "q@1", ALL, **more)
    judge(bench, "harness", "desk_b")
    bench.evaluate("desk_b", "q@2", dict.fromkeys(TASKS, 0))
    judge(bench, "model", "q@2", 1)
    require_clean(bench)


def reseal(bench: Bench, **changes: Any) -> None:
    """Write the newest entry anew with other members and a digest that fits."""
    path = bench.root / chain.NAME
    *rest, line = path.read_bytes().splitlines(keepends=True)
    members = json.loads(line) | changes
    del members["digest"]
    path.write_bytes(b"".join(rest) + encode(seal(Decision.model_validate(members))))


def moved(bench: Bench, kind: str, subject: dict[str, Any]) -> None:
    """Put a decision before the newest one, as if that had been made on it."""
    path = bench.root / chain.NAME
    *rest, line = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rest))
    parent = bench.enter(kind, subject)
    path.write_bytes(path.read_bytes() + line)
    reseal(bench, parents=[parent])


def test_a_decision_that_was_moved_behind_another_pair_is_named(bench: Bench) -> None:
    judge(bench, "harness", "desk_b")
    moved(bench, "accept", {"harness": bench.fingerprint("desk_c")})
    differs = f"{bench.fingerprint()[:16]} and not {bench.fingerprint('desk_c')[:16]}"
    assert broken(bench) == [f"it was judged against another harness than the accepted one: {differs}"]
    assert health.check(bench.root).exit_code == 1
    proved = health.check(bench.root).proved
    assert any(line.endswith("in force where they were made: 0 of 1") for line in proved)


def test_a_reject_that_was_moved_behind_another_pair_is_named_without_its_report(bench: Bench) -> None:
    judge(bench, "harness", "desk_c", 1)
    moved(bench, "accept", {"harness": bench.fingerprint("desk_b")})
    for path in (bench.root / kept_reports.DECIDED).iterdir():
        path.unlink()
    (message,) = broken(bench)
    assert message.startswith("it was judged against another harness than the accepted one")


def test_a_decision_that_was_moved_behind_another_frozen_set_is_named_without_its_report(bench: Bench) -> None:
    judge(bench, "harness", "desk_b")
    moved(bench, "freeze", {"tasks": "e" * 64, "count": 8, "attempts": 2})
    for path in (bench.root / kept_reports.DECIDED).iterdir():
        path.unlink()
    (message,) = broken(bench)
    assert message.endswith("and eeeeeeeeeeee was frozen")


def test_a_condition_that_the_parameters_ask_for_and_a_policy_that_they_do_not_are_named_without_the_report(
    bench: Bench,
) -> None:
    bench.set(("cost_not_above: false", "cost_not_above: true"))
    judge(bench, "harness", "desk_b")
    require_clean(bench)
    for path in (bench.root / kept_reports.DECIDED).iterdir():
        path.unlink()
    evidence = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])["evidence"]
    assert [one["name"] for one in evidence["measured"]["conditions"]] == ["cost"]
    reseal(bench, evidence={**evidence, "policy": "cotrace", "measured": {**evidence["measured"], "conditions": []}})
    assert broken(bench) == [
        "it names the policy cotrace, and its parameters say significant",
        "its parameters ask for a condition of which it tells nothing: cost",
    ]


def forged(bench: Bench, edit: Callable[[dict[str, Any]], None], **changes: Any) -> list[str]:
    """Edit the kept report of the newest decision, seal that anew so that it names it, and return what is broken."""
    line = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])
    (path,) = (bench.root / kept_reports.DECIDED).iterdir()
    report = json.loads(path.read_text())
    edit(report)
    path.unlink()
    key = digest.of(report)
    path.with_stem(key).write_bytes(digest.canonical(report) + b"\n")
    evidence = line["evidence"] | {"report": key, "measured": report["measured"]}
    if changes.get("kind") == "install":
        half = {name: report["candidate"][name] for name in ("harness", "model")}
        changes["subject"] = {"half": "harness", **half}
        evidence["accepted_traces"] = report["candidate"]["traces"]
        bench.set((bench.fingerprint("desk_a"), report["candidate"]["harness"]))
    reseal(bench, evidence=evidence, **changes)
    return broken(bench)


def test_a_reject_that_was_made_an_install_by_another_level_is_named(bench: Bench) -> None:
    judge(bench, "harness", "desk_c", 1)

    def edit(report: dict[str, Any]) -> None:
        told = report["measured"]
        told |= {"downs": [], "l": 0, "ties": told["n"] - 1, "p": 0.5}
        told["policies"]["significant"] = {"accepts": True, "reason": "1 up, 0 down: p = 0.5 is at most 0.5"}
        told["policies"]["cotrace"] = {"accepts": True, "reason": "1 up is more than 0 down"}
        report["terms"]["level"] = 0.5
        report["verdict"] = "accept"

    wrong = forged(bench, edit, kind="install")
    assert "its report was made at the level 0.5, and gates judge at 0.05" in wrong
    assert "by its tasks the candidate has +1 successes, and by those of the two sides +0" in wrong


def test_numbers_of_a_report_that_its_traces_and_the_parameters_do_not_give_are_named(bench: Bench) -> None:
    judge(bench, "harness", "desk_b")

    def edit(report: dict[str, Any]) -> None:
        report["candidate"]["statuses"] = {"failure": 16}
        report["measured"]["candidate"]["successes"] = 0
        report["measured"]["conditions"] = [{"name": "cost", "met": True, "reason": "cheaper"}]
        report["terms"]["infrastructure_limit"] = 1.0

    wrong = forged(bench, edit)
    for said in (
        "by its tasks the candidate has +10 successes, and by those of the two sides -6",
        "it tells of a condition for which its parameters do not ask: cost",
        "its report lets 1 of the attempts be ended by the infrastructure, and its parameters 0",
    ):
        assert said in wrong
    # as far as the numbers agree with each other, they must be those of the traces
    bench.set(("infrastructure_errors: 0", "infrastructure_errors: 0.5"))
    assert not any("infrastructure" in said or "parameters" in said for said in broken(bench))


def test_a_roll_back_to_a_pair_that_never_was_is_named(bench: Bench) -> None:
    judge(bench, "harness", "desk_b")
    say(bench, "gate", "rollback", "--to", "previous", "--reason", "worse in use")
    require_clean(bench)
    subject = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])["subject"]
    reseal(bench, subject={**subject, "harness": bench.fingerprint("desk_c")})
    bench.set((bench.fingerprint(), bench.fingerprint("desk_c")))
    (message,) = broken(bench)
    assert message.startswith(f"it is not the pair that was accepted after {subject['to'][:12]}: in the harness, ")


# --- reports that are kept


@pytest.fixture
def kept(bench: Bench) -> Path:
    """The report of a decision that was made, in its place."""
    judge(bench, "harness", "desk_b")
    (path,) = (bench.root / kept_reports.DECIDED).iterdir()
    assert broken(bench) == []
    return path


def found(bench: Bench, path: Path) -> str:
    """Return what is said of a file among the kept reports; it is the one thing that is said."""
    (one,) = [one for one in health.check(bench.root).findings if one.code.startswith("evidence")]
    assert (one.code, one.where) == ("evidence-broken", path.relative_to(bench.root).as_posix())
    assert "restore it" in str(one.hint)
    return one.message


def test_a_kept_report_that_was_edited_is_named(bench: Bench, kept: Path) -> None:
    kept.write_text(kept.read_text().replace('"candidates":4', '"candidates":1'))
    assert "it was edited, or has another's name" in found(bench, kept)
    assert gate_log.gate_log(bench.root).decisions[-1]["evidence"]["report"] == "not at hand"


def test_a_kept_report_that_was_given_another_name_is_named_and_still_at_hand(bench: Bench, kept: Path) -> None:
    other = kept.rename(kept.with_stem("0" * 64))
    assert "it was edited, or has another's name" in found(bench, other)
    assert gate_log.gate_log(bench.root).decisions[-1]["evidence"]["report"].startswith("at hand")


@pytest.mark.parametrize(
    ("half", "candidate", "code"), [("harness", "desk_b", 0), ("model", "m@2", 0), ("harness", "desk_c", 1)]
)
def test_a_kept_report_that_no_decision_names_is_named(bench: Bench, half: str, candidate: str, code: int) -> None:
    with branch(bench) as added:
        judge(bench, half, candidate, code)
        lost = added()
    (path,) = (bench.root / kept_reports.DECIDED).iterdir()
    for answer in (health.check(bench.root), gate_log.gate_log(bench.root)):
        (one,) = [one for one in answer.findings if one.code.startswith("evidence")]
        assert (one.code, one.where) == ("evidence-unnamed", path.relative_to(bench.root).as_posix())
        assert one.severity is Severity.WARNING
    merge(bench, lost)
    assert [one for one in health.check(bench.root).findings if one.code.startswith("evidence")] == []


def test_a_report_that_an_entry_names_whose_evidence_is_none_is_not_named(bench: Bench, kept: Path) -> None:
    line = json.loads((bench.root / chain.NAME).read_bytes().splitlines()[-1])
    for report, codes in ((kept.stem, {"evidence-broken"}), ([kept.stem], {"evidence-broken", "evidence-unnamed"})):
        reseal(bench, evidence={**line["evidence"], "measured": None, "report": report})
        assert {one.code for one in health.check(bench.root).findings if one.code.startswith("evidence")} == codes


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_loose_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "it is no JSON value"),
        (lambda path: path.write_bytes(b""), "it is no JSON value"),
        (lambda path: path.write_bytes(b"\xff{}"), "it is no JSON value"),
        (lambda path: path.write_text("[]"), "it was edited"),
        (make_folder, "it is a folder"),
        (make_pipe, "it is a pipe"),
        (make_loose_link, "cannot be read"),
    ],
)
def test_what_lies_in_place_of_a_kept_report_is_named(
    bench: Bench, kept: Path, damage: Callable[[Path], None], said: str
) -> None:
    damage(kept)
    assert said in found(bench, kept)


def test_a_kept_report_that_is_too_large_to_be_one_is_named(
    bench: Bench, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_reports, "_LARGEST", 100)
    assert "it is larger than" in found(bench, kept)


def test_what_is_no_report_is_named_under_its_digest_too(bench: Bench, kept: Path) -> None:
    other = kept.with_stem(digest.of({}))
    other.write_text("{}")
    assert "it is no report of a gate" in found(bench, other)


def test_reports_elsewhere_may_be_edited(bench: Bench, kept: Path) -> None:
    elsewhere = bench.root / "reports" / "gates" / kept.name
    elsewhere.parent.mkdir(exist_ok=True)
    elsewhere.write_text("[]")
    assert broken(bench) == []


def test_a_report_of_another_version_is_at_hand_as_far_as_it_is_known(bench: Bench, kept: Path) -> None:
    value = json.loads(kept.read_text())
    for changes, known in (({"more": 1}, True), ({"half": "both"}, False)):
        kept.unlink()
        later = {**value, **changes}
        kept = kept.with_stem(digest.of(later))
        kept.write_bytes(digest.canonical(later))
        line = (bench.root / chain.NAME).read_bytes().splitlines()[-1]
        reseal(bench, evidence={**json.loads(line)["evidence"], "report": kept.stem})
        (one,) = [one for one in health.check(bench.root).findings if one.code.startswith("evidence")]
        assert one.code == "evidence-unknown"
        assert one.message.endswith("its report this version does not know more") is known
        said = gate_log.gate_log(bench.root).decisions[-1]["evidence"]["report"]
        assert said.endswith("cannot be read") is not known
