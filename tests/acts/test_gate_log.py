"""The decisions about the pair, and their evidence as far as it can be derived again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracemark.acts import accepted_pair, decisions, gate_log, health
from tracemark.acts.corpus import Corpus
from tracemark.cli.main import run as tracemark
from tracemark.ledger import chain
from tracemark.ledger.entry import encode, seal
from tracemark.ledger.state import evaluation_digest
from tracemark.model.decision import Decision
from tracemark.stats.compare import sign_test

from .conftest import CLOCK, Shop
from .evaluated import Bench


def last(bench: Bench) -> dict[str, Any]:
    return gate_log.gate_log(bench.root).decisions[-1]


def findings(bench: Bench, code: str) -> list[str]:
    return [found.message for found in health.check(bench.root).findings if found.code == code]


def forge(bench: Bench, **evidence: Any) -> None:
    """Write the newest entry anew with other evidence and a digest that fits, as somebody might who edits a ledger."""
    path = bench.root / chain.NAME
    *rest, line = path.read_bytes().splitlines(keepends=True)
    members = json.loads(line)
    del members["digest"]
    members["evidence"] |= evidence
    path.write_bytes(b"".join(rest) + encode(seal(Decision.model_validate(members))))


def lose_the_report(bench: Bench) -> None:
    """Take away the report that was kept with the decision."""
    (kept,) = (bench.root / "reports" / "decisions").iterdir()
    kept.unlink()


def test_decisions_are_listed_with_what_of_their_evidence_holds(bench: Bench) -> None:
    bench.install("desk_c", out=bench.root / "reports" / "gates" / "c.json")
    bench.install()
    log = gate_log.gate_log(bench.root)
    assert [row["kind"] for row in log.decisions] == ["accept", "accept", "freeze", "reject", "install"]
    assert [row["in_force"] for row in log.decisions] == [False, True, True, False, True]
    rejected, installed = log.decisions[-2:]
    assert rejected["evidence"]["report"].startswith("at hand")
    assert rejected["evidence"]["traces"] == "32 of 32 stored"
    assert (rejected["measured"]["w"], rejected["measured"]["l"]) == (1, 1)
    assert "desk_c" in rejected["what"]
    assert "desk_a" in rejected["what"]
    assert installed["evidence"] == {
        "report": "at hand, and its digest is the one named",
        "traces": "32 of 32 stored",
        "params": "those of now",
    }
    assert log.heads == (installed["entry"],)
    assert log.exit_code == 0


def test_the_log_is_a_table_for_people(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.install()
    accepted_pair.rollback(bench.root, "previous", "worse in use", CLOCK)
    assert tracemark(["--root", str(bench.root), "gate", "log"]) == 0
    said = capsys.readouterr().out
    assert "roll-back *" in said
    assert "5 up, 0 down of 8" in said


def test_parameters_that_were_changed_since_are_told(bench: Bench) -> None:
    bench.install()
    bench.set(("cost_not_above: false", "cost_not_above: true"))
    assert last(bench)["evidence"]["params"] == "changed since"


def test_a_report_that_was_made_again_otherwise_is_not_taken_for_the_one(bench: Bench) -> None:
    out = bench.root / "reports" / "gates" / "b.json"
    bench.install(out=out)
    assert last(bench)["evidence"]["report"].startswith("at hand")
    lose_the_report(bench)
    out.write_text(out.read_text().replace('"candidates":4', '"candidates":1'))
    assert last(bench)["evidence"]["report"] == "not at hand"
    out.write_text("[]")
    assert last(bench)["evidence"]["report"] == "not at hand"


def test_the_report_of_a_decision_outlives_the_one_that_the_pipeline_writes_anew(bench: Bench) -> None:
    out = bench.root / "reports" / "gates" / "b.json"
    bench.install(out=out)
    written = out.read_bytes()
    out.unlink()
    (kept,) = (bench.root / "reports" / "decisions").iterdir()
    assert (kept.read_bytes(), kept.suffix) == (written, ".json")
    assert last(bench)["evidence"]["report"].startswith("at hand")


def test_a_list_of_traces_that_was_forged_is_broken(bench: Bench) -> None:
    bench.install()
    forge(bench, accepted_traces=["f" * 64])
    unsealed, other = findings(bench, "evidence-broken")
    assert "its list of traces has not the digest that it names" in unsealed
    assert "its list of traces is not that of the candidate in its report" in other
    assert health.check(bench.root).exit_code == 1


def test_numbers_that_were_forged_are_broken_where_the_report_is_at_hand(bench: Bench) -> None:
    bench.install(out=bench.root / "reports" / "b.json")
    measured = json.loads((bench.root / "reports" / "b.json").read_text())["measured"]
    forge(bench, measured={**measured, "p": 0.001})
    assert any("measured something else" in message for message in findings(bench, "evidence-broken"))


def forge_subject(bench: Bench, kind: str, **subject: Any) -> None:
    """Write the newest entry anew about something else, with the same evidence."""
    path = bench.root / chain.NAME
    *rest, line = path.read_bytes().splitlines(keepends=True)
    members = json.loads(line)
    del members["digest"]
    members |= {"kind": kind, "subject": {**({} if kind != members["kind"] else members["subject"]), **subject}}
    path.write_bytes(b"".join(rest) + encode(seal(Decision.model_validate(members))))


def test_a_decision_about_another_candidate_than_its_report_is_broken(bench: Bench) -> None:
    bench.install(out=bench.root / "reports" / "b.json")
    forge_subject(bench, "install", harness=bench.fingerprint("desk_c"))
    (message,) = findings(bench, "evidence-broken")
    differs = f"{bench.fingerprint('desk_b')[:16]} and not {bench.fingerprint('desk_c')[:16]}"
    assert message.endswith(f"its report judges another candidate: {differs}")


def test_a_rejection_of_another_candidate_than_its_report_is_broken(bench: Bench) -> None:
    bench.install("desk_c", out=bench.root / "reports" / "c.json")
    forge_subject(bench, "reject", candidate=bench.fingerprint("desk_b"))
    (message,) = findings(bench, "evidence-broken")
    assert "its report judges another candidate" in message


def test_a_model_that_is_not_the_one_of_the_report_is_broken(bench: Bench) -> None:
    bench.install_model(out=bench.root / "reports" / "m.json")
    model = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])["subject"]["model"]
    forge_subject(bench, "install", model={**model, "revision": "7"})
    (message,) = findings(bench, "evidence-broken")
    assert message.endswith("its report judges another candidate: model revision '2' and not '7'")


def test_an_install_of_what_the_policy_rejected_is_broken_without_its_report(bench: Bench) -> None:
    bench.install("desk_c")
    lose_the_report(bench)
    model = dict.fromkeys(("revision", "chat_template", "tokenizer", "server", "sampling")) | {"name": "m"}
    forge_subject(bench, "install", half="harness", harness=bench.fingerprint("desk_c"), model=model)
    unnamed, message, other = findings(bench, "evidence-broken")
    assert "it does not name the traces that it rests on" in unnamed
    assert "what it measured is a reject by significant" in message
    assert other.endswith(
        "it was judged with another model than the accepted one: model revision unrecorded and not '1'"
    )


def test_a_policy_that_accepts_what_its_own_numbers_reject_is_broken_without_its_report(bench: Bench) -> None:
    bench.install()
    lose_the_report(bench)
    measured = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])["evidence"]["measured"]
    ups, downs = (
        [{**one, "before": one["after"], "after": one["before"]} for one in measured[way]] for way in ("ups", "downs")
    )
    turned = {"w": measured["l"], "l": measured["w"], "ups": downs, "downs": ups}
    forge(bench, measured={**measured, **turned, "p": sign_test(measured["l"], measured["w"])})
    message, *_ = findings(bench, "evidence-broken")
    assert "what a policy says does not follow from w, l and p" in message


@pytest.mark.parametrize("of_it", [0.001, 0.912, 1 - 1e-6, 1 + 1e-6])
def test_a_p_that_does_not_follow_from_the_tasks_is_broken_without_its_report(bench: Bench, of_it: float) -> None:
    bench.install("desk_c")
    lose_the_report(bench)
    measured = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])["evidence"]["measured"]
    forge(bench, measured={**measured, "p": measured["p"] * of_it})
    (message,) = findings(bench, "evidence-broken")
    assert "its p does not follow from w and l" in message


def test_an_install_against_a_condition_that_is_not_met_is_broken_without_its_report(bench: Bench) -> None:
    bench.install()
    lose_the_report(bench)
    measured = json.loads((bench.root / chain.NAME).read_text().splitlines()[-1])["evidence"]["measured"]
    forge(bench, measured={**measured, "conditions": [{"name": "cost", "met": False, "reason": "dearer"}]})
    wrong = [one.partition(": ")[2] for one in findings(bench, "evidence-broken")]
    assert "what it measured is a reject by significant" in wrong
    assert "it tells of a condition for which its parameters do not ask: cost" in wrong


def test_traces_that_are_not_those_of_the_report_are_broken(bench: Bench) -> None:
    bench.install("desk_c", out=bench.root / "reports" / "c.json")
    forge(bench, traces={"incumbent": "1" * 64, "candidate": "2" * 64})
    messages = findings(bench, "evidence-broken")
    assert [one.rpartition(": ")[2] for one in messages] == [
        "its report compares other traces of the incumbent than it names",
        "its report compares other traces of the candidate than it names",
    ]


def test_another_policy_or_set_than_that_of_the_report_is_broken(bench: Bench) -> None:
    bench.install(out=bench.root / "reports" / "b.json")
    held = evaluation_digest(Corpus(bench.root).params.evaluation)[:12]
    forge(bench, policy="cotrace", evaluation="e" * 64, candidates=1, reused=3)
    assert [one.rpartition(": ")[2] for one in findings(bench, "evidence-broken")] == [
        "its report was made by the policy significant, and it names cotrace",
        f"its report is of the evaluation set {held}, and it names eeeeeeeeeeee",
        "its report counts 4 candidates, and it names 1",
        "its report counts 0 reused traces, and it names 3",
        f"it was judged on the evaluation set eeeeeeeeeeee, and {held} was frozen",
        "it names the policy cotrace, and its parameters say significant",
        "it names the evaluation set eeeeeeeeeeee, and its parameters list another",
    ]


def test_evidence_that_no_gate_gives_is_broken(bench: Bench) -> None:
    bench.install()
    forge(bench, policy="by feel")
    (message,) = findings(bench, "evidence-broken")
    assert "names no evidence that a gate gives: policy: must be one of" in message
    assert last(bench)["evidence"] == dict.fromkeys(("report", "traces", "params"), "none")
    assert last(bench)["measured"] is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"measured": []},
        {"measured": "none"},
        {"measured": {"w": {}, "l": None, "n": [], "p": "x"}},
        {"traces": 5, "accepted_traces": 7},
        {"accepted_traces": [{}]},
        {"accepted_traces": None, "measured": None},
    ],
)
def test_evidence_of_any_shape_is_named_and_stops_no_command(
    bench: Bench, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any]
) -> None:
    bench.install()
    forge(bench, **wrong)
    assert "names no evidence that a gate gives" in "".join(findings(bench, "evidence-broken"))
    assert tracemark(["--root", str(bench.root), "gate", "log"]) == 1
    assert "install" in capsys.readouterr().out
    assert tracemark(["--root", str(bench.root), "audit", "desk_b"]) in (0, 1)
    assert bench.gate("desk_a").verdict == "reject"


def test_what_another_version_wrote_beside_is_named_and_the_rest_is_held(bench: Bench) -> None:
    bench.install()
    forge(bench, level=0.05)
    (message,) = findings(bench, "evidence-unknown")
    assert message.endswith("of its evidence this version does not know level")
    assert findings(bench, "evidence-broken") == []
    assert last(bench)["evidence"]["report"].startswith("at hand")
    forge(bench, candidates=9)
    assert len(findings(bench, "evidence-broken")) == 1


def test_evidence_that_lacks_a_member_says_which(bench: Bench) -> None:
    bench.install("desk_c")
    path = bench.root / chain.NAME
    *rest, line = path.read_bytes().splitlines(keepends=True)
    members = json.loads(line)
    del members["digest"], members["evidence"]["reused"]
    path.write_bytes(b"".join(rest) + encode(seal(Decision.model_validate(members))))
    (message,) = findings(bench, "evidence-broken")
    assert message.endswith("names no evidence that a gate gives: reused: missing")
    del members["evidence"]
    path.write_bytes(b"".join(rest) + encode(seal(Decision.model_validate(members))))
    assert len(findings(bench, "evidence-broken")) == 1


def test_traces_that_were_retracted_since_are_told(bench: Bench) -> None:
    bench.install()
    decisions.retract(bench.root, [bench.traces("desk_b")[0]], "a wrong grader", CLOCK)
    (message,) = findings(bench, "evidence-gone")
    assert "were retracted since: 1" in message
    assert health.check(bench.root).exit_code == 0


def test_an_edited_line_is_the_first_broken_link(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.install()
    path = bench.root / chain.NAME
    path.write_text(path.read_text().replace('"reason":"measured"', '"reason":"better"'))
    assert tracemark(["--root", str(bench.root), "gate", "log"]) == 31
    assert "ledger.jsonl:4" in capsys.readouterr().err
    assert len(findings(bench, "ledger-line-edited")) == 1
    assert health.check(bench.root).exit_code == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_that_was_edited_with_a_digest_that_fits_is_missed_by_the_next_one(bench: Bench, place: int) -> None:
    bench.install()
    path = bench.root / chain.NAME
    lines = path.read_bytes().splitlines(keepends=True)
    members = json.loads(lines[place])
    del members["digest"]
    members["reason"] = "as somebody else would have it"
    lines[place] = encode(seal(Decision.model_validate(members)))
    path.write_bytes(b"".join(lines))
    (message,) = findings(bench, "ledger-parent-missing")
    assert f"names the parent {json.loads(lines[place + 1])['parents'][0][:12]}" in message
    assert tracemark(["--root", str(bench.root), "gate", "log"]) == 31


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_that_was_taken_out_is_missed_by_the_next_one(bench: Bench, place: int) -> None:
    bench.install()
    path = bench.root / chain.NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:place] + lines[place + 1 :]))
    assert len(findings(bench, "ledger-parent-missing")) == 1


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("accepted:\n  harness: tm1:", "accepted:\n  harness: null # tm1:", "accepted-differs"),
        ("m@1", "m@2", "accepted-model-differs"),
    ],
)
def test_an_accepted_half_that_was_edited_in_params_is_named(bench: Bench, old: str, new: str, code: str) -> None:
    bench.install()
    bench.set((old, new))
    assert len(findings(bench, code)) == 1


def test_each_decision_is_told_by_its_half_and_in_words(bench: Bench) -> None:
    first = gate_log.gate_log(bench.root).decisions[0]["entry"]
    unknown = dict.fromkeys(("revision", "chat_template", "tokenizer", "server", "sampling"))
    bench.install()
    accepted_pair.rollback(bench.root, first, "start anew", CLOCK)
    bench.enter("accept", {"harness": "tm1:" + "0" * 64, "model": {"name": "n", **unknown}})
    told = [(row["kind"], row["half"], row["what"]) for row in gate_log.gate_log(bench.root).decisions]
    a, b = (f"{name} ({bench.fingerprint(name)[:16]})" for name in ("desk_a", "desk_b"))
    assert told == [
        ("accept", "harness", a),
        ("accept", "model", "m@1"),
        ("freeze", None, "8 tasks, 2 attempts each"),
        ("install", "harness", b),
        ("roll-back", "harness and model", f"{a} with none"),
        ("accept", "harness and model", "tm1:000000000000 with n"),
    ]


def test_what_branches_disagree_about_is_told(bench: Bench) -> None:
    bench.disagree("desk_b", "desk_c")
    log = gate_log.gate_log(bench.root)
    assert [found.code for found in log.findings] == ["ledger-accept-conflict"]
    assert len(log.heads) == 2
    assert [row["half"] for row in log.decisions if row["in_force"]] == ["model", None]


def test_an_empty_ledger_has_no_decisions(shop: Shop) -> None:
    assert gate_log.gate_log(shop.root).decisions == ()
