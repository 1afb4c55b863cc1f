"""The stamp that a trace gets: from what it carries, what is claimed, and what its content shows."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.acts.provenance import contradictions
from tracemark.acts.stamping import Stamped, Stamper
from tracemark.harness.match import Content
from tracemark.importers.base import Imported
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import component_stamp, evidence_of, fingerprint_of
from tracemark.store.state import Statement, in_force, join

TRACE = "0123456789ab" + "0" * 52
FOREIGN = "tm1:" + "f" * 64


class Bench:
    """Stamps traces against the harness versions of a corpus."""

    def __init__(self, desk: Any) -> None:
        self.desk = desk
        self.known = {name: desk.harness(name) for name in ("desk_a", "desk_b", "desk_c")}
        self.stamper = Stamper({harness.fingerprint: harness for harness in self.known.values()})

    def stamp(
        self,
        by: str = "desk_a",
        claim: str | None = None,
        carried: dict[str, Any] | None = None,
        **more: Any,
    ) -> Stamped:
        imported = Imported(
            trajectory={},
            trajectory_bytes=b"{}",
            run=more.pop("run", {}),
            outcome={"status": "unknown"},
            source={},
            stamp=carried,
            content=Content(
                messages=[("system", self.prompt(by), 1), ("user", "Please.", 2), *more.pop("messages", [])]
            ),
            observed=more.pop("observed", {}),
            where="runs.jsonl:1",
        )
        return self.stamper.stamp(imported, TRACE, self.known[claim] if claim else None)

    def prompt(self, name: str) -> str:
        text = self.known[name].prompt_text("system")
        assert text is not None
        return text

    def carried(self, name: str, evidence: str = "recorded", **members: Any) -> dict[str, Any]:
        """Return the stamp of a run that was recorded under a harness."""
        identity = self.known[name].identity
        components = {
            component: component_stamp(
                identity.components[component],
                identity.parts[component],
                dict.fromkeys(identity.parts[component], evidence),
            )
            for component in COMPONENTS
        }
        declared = {"name": name, "fingerprint": identity.fingerprint, "components": components}
        return {"declared": declared, **members}


@pytest.fixture
def bench(desk) -> Bench:
    return Bench(desk)


def codes(stamped: Stamped) -> list[str]:
    return [found.code for found in stamped.findings]


def part(stamp: dict[str, Any]) -> str:
    return str(stamp["declared"]["components"]["prompt_templates"]["parts"]["system"]["evidence"])


def test_a_trace_of_which_nobody_says_anything_has_an_empty_stamp(bench: Bench) -> None:
    assert bench.stamp() == Stamped({})


def test_a_claim_that_the_content_could_have_refuted_is_corroborated(bench: Bench) -> None:
    stamped = bench.stamp(claim="desk_a")
    assert fingerprint_of(stamped.stamp) == bench.known["desk_a"].fingerprint
    assert part(stamped.stamp) == "corroborated"
    assert evidence_of(stamped.stamp) == "corroborated", "components without parts lower nothing"
    assert stamped.second is None
    assert codes(stamped) == []


def test_a_claim_that_the_content_refutes_has_no_fingerprint_and_names_the_place(bench: Bench) -> None:
    stamped = bench.stamp(claim="desk_b")
    assert fingerprint_of(stamped.stamp) is None
    assert stamped.stamp["declared"]["name"] == "desk_b"
    place = stamped.stamp["contradictions"][0]
    assert (place["component"], place["part"], place["step"]) == ("prompt_templates", "system", 1)
    assert codes(stamped) == ["stamp-contradicted"]
    (found,) = stamped.findings
    assert found.message.startswith("trace 0123456789ab was not made by desk_b: prompt_templates system, step 1: ")
    assert found.hint == "tracemark audit 0123456789ab"
    assert found.where == "runs.jsonl:1"


def test_a_system_message_of_somebody_else_refutes_a_claim_and_a_recording(bench: Bench) -> None:
    for stated in ({"claim": "desk_a"}, {"carried": bench.carried("desk_a")}):
        stamped = bench.stamp(messages=[("system", "Always offer a discount.", 3)], **stated)
        assert fingerprint_of(stamped.stamp) is None
        (place,) = stamped.stamp["contradictions"]
        assert (place["component"], place["part"]) == ("prompt_templates", "system-2")
        assert codes(stamped) == ["stamp-contradicted"]


def test_what_was_recorded_stays_recorded(bench: Bench) -> None:
    stamped = bench.stamp(carried=bench.carried("desk_a"))
    assert stamped.stamp == bench.carried("desk_a")
    assert codes(stamped) == []


def test_the_content_beats_what_was_recorded(bench: Bench) -> None:
    stamped = bench.stamp("desk_b", carried=bench.carried("desk_a"))
    assert fingerprint_of(stamped.stamp) is None
    assert stamped.stamp["contradictions"]
    assert codes(stamped) == ["stamp-contradicted"]


def test_a_claim_of_the_harness_that_was_recorded_adds_nothing(bench: Bench) -> None:
    assert bench.stamp(carried=bench.carried("desk_a"), claim="desk_a") == bench.stamp(carried=bench.carried("desk_a"))


def test_a_claim_of_another_harness_than_the_recorded_one_is_a_second_statement(bench: Bench) -> None:
    stamped = bench.stamp(carried=bench.carried("desk_a"), claim="desk_b")
    assert stamped.stamp == bench.carried("desk_a")
    assert stamped.second is not None
    assert stamped.second["declared"]["name"] == "desk_b"
    assert codes(stamped) == ["stamp-contradicted"]


def test_a_carried_fingerprint_that_nobody_knows_is_not_stored(bench: Bench) -> None:
    carried = bench.carried("desk_a")
    carried["declared"]["fingerprint"] = FOREIGN
    stamped = bench.stamp(carried=carried)
    assert fingerprint_of(stamped.stamp) is None
    assert part(stamped.stamp) == "claimed"
    assert codes(stamped) == ["harness-unknown"]
    assert stamped.findings[0].message.startswith("trace 0123456789ab is stamped tm1:ffff")
    assert FOREIGN in stamped.findings[0].message


def test_parts_that_the_named_harness_does_not_have_lend_it_no_evidence(bench: Bench) -> None:
    carried = bench.carried("desk_a")
    carried["declared"]["components"]["prompt_templates"]["parts"]["system"]["digest"] = "0" * 64
    stamped = bench.stamp(carried=carried)
    assert part(stamped.stamp) == "corroborated", "by the content, not by what was carried"


@pytest.mark.parametrize("change", ["another digest", "a part more", "a part less", "a component less"])
def test_recorded_parts_that_are_not_all_those_of_the_named_harness_are_claimed(bench: Bench, change: str) -> None:
    carried = bench.carried("desk_a")
    components = carried["declared"]["components"]
    parts = components["prompt_templates"]["parts"]
    if change == "another digest":
        parts["system"]["digest"] = "0" * 64
    elif change == "a part more":
        components["runtime"]["parts"]["more"] = {"digest": "0" * 64, "evidence": "recorded"}
    elif change == "a part less":
        del parts["system"]
    else:
        del components["tool_bindings"]
    declared = bench.stamp(run={"role": "subagent"}, carried=carried).stamp["declared"]
    evidence = {p["evidence"] for component in declared["components"].values() for p in component["parts"].values()}
    assert evidence <= {"claimed", "unrecorded"}, "the content cannot lend any here"


def test_a_carried_stamp_without_a_fingerprint_and_a_claim_that_agrees_are_one_statement(bench: Bench) -> None:
    carried = bench.carried("desk_a")
    del carried["declared"]["fingerprint"]
    stamped = bench.stamp(carried=carried, claim="desk_a")
    assert stamped.second is None
    assert fingerprint_of(stamped.stamp) == bench.known["desk_a"].fingerprint
    assert part(stamped.stamp) == "corroborated", "no --harness makes a hand-written stamp a recorded one"


def test_a_carried_stamp_without_a_fingerprint_and_a_claim_that_differs_are_two(bench: Bench) -> None:
    carried = bench.carried("desk_b")
    del carried["declared"]["fingerprint"]
    stamped = bench.stamp(carried=carried, claim="desk_a")
    assert part(stamped.stamp) == "claimed"
    assert fingerprint_of(stamped.second or {}) == bench.known["desk_a"].fingerprint


def test_a_contradiction_that_the_recorder_saw_takes_the_fingerprint_from_every_claim_of_it(bench: Bench) -> None:
    seen = [{"component": "prompt_templates", "part": "system", "text": "first request: something else"}]
    carried = bench.carried("desk_a", contradictions=seen)
    del carried["declared"]["fingerprint"]
    for claim in (None, "desk_a"):
        stamped = bench.stamp(carried=carried, claim=claim)
        assert fingerprint_of(stamped.stamp) is None
        assert stamped.stamp["contradictions"] == seen
        assert stamped.second is None
        assert codes(stamped) == ["stamp-contradicted"]


def test_what_a_recorder_saw_contradicted_stays_its_word_beside_a_claim_of_another_harness(bench: Bench) -> None:
    seen = [{"component": "prompt_templates", "part": "system", "text": "first request: something else"}]
    carried = bench.carried("desk_b", contradictions=seen)
    del carried["declared"]["fingerprint"]
    assert bench.stamp(carried=carried).stamp == carried
    stamped = bench.stamp(carried=carried, claim="desk_a")
    assert stamped.second is not None
    said = in_force(Statement("1", stamped.stamp), [Statement("2", stamped.second)], {})
    assert join(said).conflicts, "a claim would have given way"


class Uncompared(dict[str, Any]):
    """A place that is never compared with others one by one: a stamp may carry very many."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared with another")

    __hash__ = None  # type: ignore[assignment]


def test_equal_places_are_told_once_in_order_and_compared_by_their_bytes(bench: Bench) -> None:
    places = [{"component": "runtime", "part": part, "text": "other"} for part in ("b", "a", "b", "c", "a")]
    carried = bench.carried("desk_a", contradictions=[Uncompared(place) for place in places])
    stamp = bench.stamp(carried=carried).stamp
    assert [place["part"] for place in stamp["contradictions"]] == ["b", "a", "c"]
    said = [Statement("", harness={**stamp, "contradictions": [Uncompared(place) for place in places]})] * 2
    assert [place["part"] for place in contradictions(said)] == ["b", "a", "c"]


def test_a_run_under_more_than_one_harness_stays_mixed(bench: Bench) -> None:
    stamped = bench.stamp(carried=bench.carried("desk_a", mixed=True), claim="desk_a")
    assert stamped.stamp["mixed"] is True
    assert fingerprint_of(stamped.stamp) == bench.known["desk_a"].fingerprint


def test_what_the_content_shows_stands_beside_what_is_declared(bench: Bench) -> None:
    seen = {"prompt_templates": [{"part": "system", "form": "rendered", "digest": "1" * 64}]}
    for claim in (None, "desk_a", "desk_b"):
        assert bench.stamp(claim=claim, observed=seen).stamp["observed"] == seen


def test_what_is_seen_now_replaces_what_was_carried_and_leaves_what_cannot_be_seen(bench: Bench) -> None:
    old = [{"part": "system", "form": "rendered", "digest": "0" * 64}]
    empty = [{"part": "tools", "form": "known-empty", "digest": "2" * 64}]
    new = [{"part": "system", "form": "rendered", "digest": "1" * 64}]
    carried = bench.carried("desk_a", observed={"prompt_templates": old, "tool_bindings": empty})
    stamped = bench.stamp(carried=carried, observed={"prompt_templates": new})
    assert stamped.stamp["observed"] == {"prompt_templates": new, "tool_bindings": empty}


@pytest.mark.parametrize("by", ["desk_a", "desk_b"])
def test_a_sub_agents_prompt_is_not_held_against_the_agents_harness(bench: Bench, by: str) -> None:
    stamped = bench.stamp(by, claim="desk_a", run={"role": "subagent"})
    assert fingerprint_of(stamped.stamp) == bench.known["desk_a"].fingerprint
    assert part(stamped.stamp) == "claimed", "nothing of the agent's own could be compared"
    assert codes(stamped) == []


def test_a_continuation_is_compared_like_any_other_run_of_the_agent(bench: Bench) -> None:
    stamped = bench.stamp("desk_b", claim="desk_a", run={"role": "continuation"})
    assert codes(stamped) == ["stamp-contradicted"]


def test_equal_stamps_of_many_traces_are_built_once(bench: Bench) -> None:
    first, second = (bench.stamp(claim="desk_a").stamp["declared"] for _ in range(2))
    assert first is second
    assert bench.stamp("desk_b", claim="desk_a").stamp["declared"] is not first


def test_a_stamp_never_changes_what_it_was_made_from(bench: Bench) -> None:
    carried = bench.carried("desk_a")
    for claim in ("desk_a", "desk_b", None):
        bench.stamp("desk_b", carried=carried, claim=claim, observed={"prompt_templates": []})
    assert carried == bench.carried("desk_a")


def test_a_prompt_of_a_role_that_no_trace_shows_is_named_once(desk) -> None:
    def bare(task: str) -> dict[str, Any]:
        steps = [
            {"step_id": 1, "source": "user", "message": f"Please see to {task}."},
            {"step_id": 2, "source": "agent", "message": "Done."},
        ]
        return desk.document(task, steps=steps)

    desk.write("a/runs.jsonl", *(bare(f"t-{number}") for number in range(3)))
    desk.write("b/runs.jsonl", bare("u-1"))
    report = desk.ingest(harness="desk_a")
    (found,) = report.findings
    assert (found.code, found.where, report.exit_code) == ("prompt-unseen", "harness desk_a", 0)
    assert found.message == "desk_a declares a system prompt (system); none of 4 traces has a system message"
    assert desk.ingest().findings == ()
    desk.write("b/whole.jsonl", desk.document("u-2"))
    assert desk.ingest(harness="desk_a").findings == ()
