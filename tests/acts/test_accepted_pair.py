"""The pair by hand: a model is accepted, a pair rolled back, a set frozen."""

from __future__ import annotations

import json

import pytest

from tracemark.acts import accepted_pair, decisions, health
from tracemark.acts.corpus import Corpus, open_store
from tracemark.cli.main import run as tracemark
from tracemark.durable import CrashPoint
from tracemark.errors import NegativeAnswerError, UnknownNameError, UsageError
from tracemark.findings import Severity
from tracemark.ledger import chain
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop
from .evaluated import ALL, Bench, run
from .test_installing import in_a_child


def kinds(shop: Shop) -> list[str]:
    return [entry.decision.kind for entry in chain.read(shop.root / chain.NAME).entries]


def pair(shop: Shop) -> tuple[str | None, str | None]:
    corpus = Corpus(shop.root)
    assert [found for found in health.check(shop.root).findings if found.severity is Severity.ERROR] == []
    return corpus.name_of(corpus.accepted), corpus.params.accepted.model


# --- a model


def test_a_model_is_accepted_in_the_ledger_and_in_params(shop: Shop) -> None:
    accepted = accepted_pair.accept_model(shop.root, "m@1", "the first", CLOCK)
    assert (accepted.model, accepted.previous, accepted.new_entry) == ("m@1", None, True)
    assert (accepted.members["name"], accepted.members["revision"], accepted.members["server"]) == ("m", "1", None)
    assert Corpus(shop.root).params.accepted.model == "m@1"
    assert accepted_pair.accept_model(shop.root, "n", "another", CLOCK).previous == "m@1"
    assert kinds(shop) == ["accept", "accept"]


def test_what_its_evaluation_traces_agree_about_is_accepted_with_it(bench: Bench) -> None:
    bench.evaluate("desk_a", "q@1", ALL, called={"server": "vllm"}, sampling={"temperature": 1})
    accepted = accepted_pair.accept_model(bench.root, "q", "new", CLOCK)
    assert (accepted.model, [found.code for found in accepted.findings]) == ("q@1", ["model-revision"])
    assert (accepted.members["server"], accepted.members["sampling"]) == ("vllm", '{"temperature":1}')
    bench.evaluate("desk_b", "q@1", ALL, called={"server": "other"}, sampling={"temperature": 1})
    again = accepted_pair.accept_model(bench.root, "q@1", "new", CLOCK)
    assert (again.members["server"], again.members["sampling"]) == (None, '{"temperature":1}')
    assert pair(bench) == ("desk_a", "q@1")


def test_a_name_without_an_evaluation_or_with_several_revisions_is_accepted_and_told(bench: Bench) -> None:
    slip = accepted_pair.accept_model(bench.root, "m@11", "a slip", CLOCK)
    assert (slip.model, [found.code for found in slip.findings]) == ("m@11", ["model-unevaluated"])
    bench.evaluate("desk_a", "q@1", ALL)
    bench.evaluate("desk_a", "q@2", ALL)
    (told,) = accepted_pair.accept_model(bench.root, "q", "new", CLOCK).findings
    assert (told.code, told.message) == ("model-revisions", "its evaluation traces are of several revisions: q@1, q@2")
    assert accepted_pair.accept_model(bench.root, "q@2", "that one", CLOCK).findings == ()


def test_a_label_that_traces_part_in_two_ways_is_refused_until_one_of_these_is_retracted(bench: Bench) -> None:
    bench.evaluate("desk_a", "tiny@1", ALL)
    bench.evaluate("desk_a", "tiny", ALL, called={"name": "tiny@1"}, said="Done.")
    before = kinds(bench)
    with pytest.raises(UsageError, match=r"name 'tiny', revision '1' .*; name 'tiny@1', no revision ") as refused:
        accepted_pair.accept_model(bench.root, "tiny@1", "new", CLOCK)
    assert "tracemark retract TRACE" in str(refused.value.hint)
    assert (kinds(bench), Corpus(bench.root).params.accepted.model) == (before, "m@1")
    with open_store(bench.root) as store:
        named = [state.trace_id for state in store.select(Selection()) if state.row.model == "tiny@1"]
    for trace in named:
        decisions.retract(bench.root, [trace], "the name holds the revision", CLOCK)
    accepted = accepted_pair.accept_model(bench.root, "tiny@1", "new", CLOCK)
    assert (accepted.model, accepted.members["name"], accepted.members["revision"]) == ("tiny@1", "tiny", "1")


def test_a_label_in_a_batch_means_what_it_does_in_the_records_beside_it(bench: Bench) -> None:
    made = [run(task, "desk_a", "", 0, "success", called={"name": "tiny@1"}) for task in ALL]
    del made[0]["extra"]["tracemark"]["run"]["model"]
    (bench.root / "inbox" / "batch.yaml").write_text("model: tiny@1\n")
    bench.store("desk_a", made)
    accepted = accepted_pair.accept_model(bench.root, "tiny@1", "new", CLOCK)
    assert (accepted.members["name"], accepted.members["revision"], accepted.findings) == ("tiny@1", None, ())


def test_a_model_that_is_accepted_already_gets_no_second_entry(bench: Bench) -> None:
    before = kinds(bench)
    again = accepted_pair.accept_model(bench.root, "m@1", "again", CLOCK)
    assert not again.new_entry
    assert kinds(bench) == before


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_what_names_no_model_is_refused(shop: Shop, name: str) -> None:
    with pytest.raises(UsageError, match="names no model"):
        accepted_pair.accept_model(shop.root, name, "why", CLOCK)
    assert kinds(shop) == []


# --- back


def test_previous_is_the_pair_before_and_going_back_twice_goes_on(bench: Bench) -> None:
    bench.install()
    bench.evaluate("desk_b", "m@3", ALL)
    bench.set(("policy: significant", "policy: cotrace"))
    bench.install_model("m@3")
    assert pair(bench) == ("desk_b", "m@3")
    back = accepted_pair.rollback(bench.root, "previous", "worse in use", CLOCK)
    assert (back.name, back.model, back.previous["model"]) == ("desk_b", "m@1", "m@3")
    assert pair(bench) == ("desk_b", "m@1")
    accepted_pair.rollback(bench.root, "previous", "worse as well", CLOCK)
    assert pair(bench) == ("desk_a", "m@1")


def test_a_pair_of_an_entry_is_gone_back_to(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    first = chain.read(bench.root / chain.NAME).entries[0].digest
    bench.install()
    command = ["--root", str(bench.root), "gate", "rollback", "--to", first[:12], "--reason", "start anew"]
    assert tracemark([*command, "--output", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["name"], said["model"], said["to"]) == ("desk_a", None, first)
    assert pair(bench) == ("desk_a", None)


def test_a_model_that_is_brought_back_is_told_of_as_one_that_is_accepted(bench: Bench) -> None:
    accepted_pair.accept_model(bench.root, "m@11", "a slip", CLOCK)
    first = accepted_pair.rollback(bench.root, "previous", "it was a slip", CLOCK)
    assert (first.model, first.findings) == ("m@1", ())
    slip = next(one.digest for one in chain.read(bench.root / chain.NAME).entries if one.decision.reason == "a slip")
    (told,) = accepted_pair.rollback(bench.root, slip, "it was none", CLOCK).findings
    assert (told.code, told.where) == ("model-unevaluated", "m@11")


def test_a_model_whose_evaluation_is_damaged_is_brought_back_all_the_same_and_that_is_told(bench: Bench) -> None:
    for number in (2, 3):
        accepted_pair.accept_model(bench.root, f"m@{number}", "better", CLOCK)
    with open_store(bench.root) as store:
        place = bench.root / "traces" / store.state(bench.traces("desk_a", "m@2")[0]).file
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 0xFF
    place.write_bytes(data)
    back = accepted_pair.rollback(bench.root, "previous", "worse in use", CLOCK)
    assert (back.model, back.new_entry, kinds(bench)[-1]) == ("m@2", True, "roll-back")
    (told,) = back.findings
    assert (told.code, told.where) == ("model-unread", "m@2")
    assert "a stored file is damaged" in told.message
    assert Corpus(bench.root).params.accepted.model == "m@2"


def test_there_is_no_pair_before_the_first(shop: Shop) -> None:
    with pytest.raises(NegativeAnswerError, match="no pair was accepted"):
        accepted_pair.rollback(shop.root, "previous", "why", CLOCK)
    shop.accept()
    with pytest.raises(NegativeAnswerError, match="no pair before"):
        accepted_pair.rollback(shop.root, "previous", "why", CLOCK)


def test_a_half_that_a_roll_back_leaves_empty_is_told_with_the_way_back(bench: Bench) -> None:
    harness, model, *_ = (one.digest for one in chain.read(bench.root / chain.NAME).entries)
    back = accepted_pair.rollback(bench.root, "previous", "no model yet", CLOCK)
    assert (back.to, back.model) == (harness, None)
    (told,) = back.findings
    assert (told.code, told.where) == ("half-unaccepted", "params.yaml: accepted.model")
    assert told.message == "no model is accepted from now on, as none was then; m@1 was"
    assert f"tracemark gate rollback --to {model[:12]} --reason TEXT" in str(told.hint)
    forth = accepted_pair.rollback(bench.root, model[:12], "the model again", CLOCK)
    assert (forth.model, forth.findings) == ("m@1", ())
    assert pair(bench) == ("desk_a", "m@1")


def test_a_roll_back_to_before_any_pair_tells_that_both_halves_are_empty(shop: Shop) -> None:
    first = shop.enter("freeze", {"tasks": "0" * 64, "count": 1, "attempts": 1})
    shop.accept()
    accepted_pair.accept_model(shop.root, "m@1", "the first", CLOCK)
    told = accepted_pair.rollback(shop.root, first, "start anew", CLOCK).findings
    assert [(one.code, one.where) for one in told] == [
        ("half-unaccepted", f"params.yaml: accepted.{half}") for half in ("harness", "model")
    ]
    assert "; desk_a was" in told[0].message


def test_what_names_no_entry_is_refused(bench: Bench) -> None:
    with pytest.raises(UnknownNameError, match="begins with 'ffffffff'"):
        accepted_pair.rollback(bench.root, "ffffffff", "why", CLOCK)
    with pytest.raises(UsageError, match="too short"):
        accepted_pair.rollback(bench.root, "f", "why", CLOCK)


def test_a_beginning_that_several_entries_have_names_none(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted_pair, "SHORTEST", 0)
    before = kinds(bench)
    with pytest.raises(UsageError, match="'' may mean 3 entries"):
        accepted_pair.rollback(bench.root, "", "why", CLOCK)
    assert kinds(bench) == before


def test_the_present_pair_is_not_gone_back_to(bench: Bench) -> None:
    last = chain.read(bench.root / chain.NAME).entries[-1].digest
    with pytest.raises(NegativeAnswerError, match="same as it was then"):
        accepted_pair.rollback(bench.root, last, "why", CLOCK)


def test_a_roll_back_settles_what_branches_disagree_about(bench: Bench) -> None:
    first = chain.read(bench.root / chain.NAME).entries[-1].digest
    bench.disagree("desk_b", "desk_c")
    with pytest.raises(UsageError, match="side by side"):
        accepted_pair.rollback(bench.root, "previous", "why", CLOCK)
    accepted_pair.rollback(bench.root, first[:12], "as before the branches", CLOCK)
    assert pair(bench) == ("desk_a", "m@1")


def test_a_roll_back_to_before_any_harness_settles_what_branches_disagree_about(shop: Shop) -> None:
    first = accepted_pair.accept_model(shop.root, "m@1", "the first", CLOCK).entry
    shop.disagree("desk_a", "desk_b")
    # neither counts, as if none had been accepted, and still it is open which
    back = accepted_pair.rollback(shop.root, first, "none of the two", CLOCK)
    assert (back.harness, back.model, back.new_entry) == (None, "m@1", True)
    assert pair(shop) == (None, "m@1")


def test_a_crash_within_a_roll_back_is_named_and_finished_by_the_same_command(bench: Bench) -> None:
    first = chain.read(bench.root / chain.NAME).entries[0].digest
    bench.install()
    command = ("gate", "rollback", "--to", first[:12], "--reason", "start anew")
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *command) < 0
    found = {one.code: one for one in health.check(bench.root).findings if one.severity is Severity.ERROR}
    assert set(found) == {"accepted-differs", "accepted-model-differs"}
    assert f"gate rollback --to {first[:12]} " in str(found["accepted-model-differs"].hint)
    number = len(kinds(bench))
    finished = accepted_pair.rollback(bench.root, first[:12], "start anew", CLOCK)
    assert [one.message for one in finished.findings] == ["no model is accepted from now on, as none was then; m@1 was"]
    assert pair(bench) == ("desk_a", None)
    assert len(kinds(bench)) == number
    assert in_a_child(bench.root, None, *command) == 1


def twice_installed(bench: Bench) -> None:
    bench.install()
    bench.evaluate("desk_b", "m@3", ALL)
    bench.set(("policy: significant", "policy: cotrace"))
    bench.install_model("m@3")


def test_previous_again_after_a_crash_finishes_what_was_begun_and_goes_no_pair_further(bench: Bench) -> None:
    twice_installed(bench)
    command = ("gate", "rollback", "--to", "previous", "--reason", "worse in use")
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *command) < 0
    before = kinds(bench)
    assert before[-1] == "roll-back"
    assert in_a_child(bench.root, None, *command) == 0
    assert kinds(bench) == before
    assert pair(bench) == ("desk_b", "m@1")
    # what is finished is the present pair, so from now on `previous` is the one before it
    assert in_a_child(bench.root, None, *command) == 0
    assert pair(bench) == ("desk_a", "m@1")


def test_previous_finishes_a_roll_back_to_an_entry_as_well(bench: Bench) -> None:
    first = chain.read(bench.root / chain.NAME).entries[0].digest
    twice_installed(bench)
    to_first = ("gate", "rollback", "--to", first, "--reason", "start anew")
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *to_first) < 0
    before = kinds(bench)
    back = accepted_pair.rollback(bench.root, "previous", "start anew", CLOCK)
    assert (back.to, back.new_entry) == (first, False)
    assert kinds(bench) == before
    assert pair(bench) == ("desk_a", None)


@pytest.mark.parametrize(
    ("command", "finish"),
    [
        (("gate", "harness", "--candidate", "desk_b", "--install"), "tracemark harness accept"),
        (("gate", "model", "--candidate", "m@2", "--install"), "tracemark model accept m@2"),
        (("harness", "accept", "desk_b"), "tracemark harness accept"),
        (("model", "accept", "m@2"), "tracemark model accept m@2"),
    ],
)
def test_previous_is_open_while_params_do_not_say_what_was_decided_last(
    bench: Bench, command: tuple[str, ...], finish: str
) -> None:
    there = pair(bench)
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *command, "--reason", "better") < 0
    before = kinds(bench)
    with pytest.raises(UsageError, match="the ledger accepted") as caught:
        accepted_pair.rollback(bench.root, "previous", "worse", CLOCK)
    hint = str(caught.value.hint)
    assert hint.startswith(finish)
    assert kinds(bench) == before
    # either way on is free: finish it, after which the pair before is the one that was there
    assert in_a_child(bench.root, None, *hint.split()[1:4], "--reason", "finish it") == 0
    assert kinds(bench) == before
    assert pair(bench) != there
    accepted_pair.rollback(bench.root, "previous", "worse", CLOCK)
    assert pair(bench) == there


@pytest.mark.parametrize(
    ("command", "half"),
    [
        (("gate", "harness", "--candidate", "desk_b", "--install"), "accepted_by"),
        (("gate", "model", "--candidate", "m@2", "--install"), "model_by"),
    ],
)
def test_a_roll_back_that_finishes_an_install_names_the_install(
    bench: Bench, command: tuple[str, ...], half: str
) -> None:
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *command, "--reason", "better") < 0
    before = kinds(bench)
    install = chain.read(bench.root / chain.NAME).entries[-1]
    assert install == getattr(Corpus(bench.root).decisions, half)
    back = accepted_pair.rollback(bench.root, install.digest, "finish it", CLOCK)
    assert (back.entry, back.to, back.new_entry) == (install.digest, install.digest, False)
    assert kinds(bench) == before


def test_a_model_accepted_again_after_a_crash_is_finished_without_a_second_entry(bench: Bench) -> None:
    # a name that stands for what its evaluation traces say
    bench.evaluate("desk_a", "q@1", ALL)
    told = ("model", "accept", "q", "--reason", "better")
    assert in_a_child(bench.root, CrashPoint.LEDGER_WRITTEN, *told) < 0
    before = kinds(bench)
    assert in_a_child(bench.root, None, *told) == 0
    assert kinds(bench) == before
    assert pair(bench) == ("desk_a", "q@1")


def test_a_pair_on_which_branches_disagreed_is_not_gone_back_to(bench: Bench) -> None:
    bench.disagree("desk_b", "desk_c")
    # an entry after both, which settles nothing of it
    joined = bench.enter("freeze", {"tasks": "0" * 64, "count": 1, "attempts": 1})
    bench.accept("desk_b")
    before = kinds(bench)
    with pytest.raises(UsageError, match="no pair was accepted then") as caught:
        accepted_pair.rollback(bench.root, joined[:12], "why", CLOCK)
    assert caught.value.where == joined[:12]
    assert kinds(bench) == before
    assert Corpus(bench.root).accepted == bench.fingerprint("desk_b")
