"""Foreign traces are grouped by what they share of a harness, and compared with those that are declared."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.acts import decisions, harnesses, ingest, matching, observed
from tracemark.acts.corpus import Corpus, open_store
from tracemark.errors import UnknownNameError
from tracemark.importers import detect
from tracemark.importers.atif import AtifImporter

from .conftest import CLOCK, Shop, document

TOOL = {"name": "buy", "description": "Buy.", "parameters": {"type": "object", "properties": {}}}


def foreign(shop: Shop, *documents: dict[str, Any], name: str = "foreign") -> None:
    """Store runs that nobody gives a harness."""
    shop.ingest(documents, harness=None, name=name)


def groups(shop: Shop) -> tuple[dict[str, Any], ...]:
    return harnesses.list_(shop.root).observed


def with_tools(made: dict[str, Any], *tools: dict[str, Any]) -> dict[str, Any]:
    made["agent"]["tool_definitions"] = list(tools)
    return made


def without_tools(made: dict[str, Any]) -> dict[str, Any]:
    del made["agent"]["tool_definitions"]
    return made


def test_traces_that_have_a_harness_are_in_no_group(shop: Shop) -> None:
    assert groups(shop) == ()
    assert harnesses.list_(shop.root).rows == harnesses.list_(shop.root).harnesses


def test_foreign_traces_stand_behind_the_declared_harnesses_by_what_they_share(shop: Shop) -> None:
    foreign(shop, document("f-1"), document("f-2"), with_tools(document("f-3", extra="x"), TOOL))
    listed = harnesses.list_(shop.root)
    first, second = listed.observed
    assert listed.rows[-2:] == (first, second)
    assert first["traces"] == first["tasks"] == 2
    assert first["formats"] == {"atif": 2}
    assert first["source"] == "observed"
    assert first["trace"] in shop.ids().values()
    assert (first["agent"], first["label"]) == ("desk 1", "foreign.jsonl")
    assert "domain" not in first
    assert set(first["known"]["prompt_templates"]) == {"system"}
    assert first["known"]["prompt_templates"]["system"].startswith("rendered ")
    assert set(first["known"]["tool_bindings"]) == {"look"}
    assert first["open"] == {
        "observation_handlers": "the format never holds it",
        "runtime": "the format never holds it",
    }
    assert second["open"]["prompt_templates"] == "1 text, not confirmed by a second task"


def test_a_text_of_one_task_alone_makes_no_group(shop: Shop) -> None:
    foreign(shop, document("f-1", attempt=1), document("f-1", attempt=2), document("f-2", extra="Other."))
    [one] = groups(shop)
    assert one["traces"] == 3
    assert "prompt_templates" not in one["known"]
    assert one["open"]["prompt_templates"] == "2 texts, none confirmed by a second task"
    foreign(shop, document("f-3"), name="more")
    assert sorted(group["traces"] for group in groups(shop)) == [1, 3]


def test_no_more_texts_are_counted_than_are_worth_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "_MOST", 2)
    foreign(shop, *(document(f"f-{number}", extra=f"Other {number}.") for number in range(4)))
    [one] = groups(shop)
    assert one["open"]["prompt_templates"] == "2 or more texts, none confirmed by a second task"


def test_traces_that_show_nothing_are_a_group_of_their_format(shop: Shop) -> None:
    bare = without_tools(document("f-1"))
    bare["steps"] = [{**step, "step_id": number} for number, step in enumerate(bare["steps"][1:], 1)]
    foreign(shop, bare)
    [group] = groups(shop)
    assert group["name"] == "observed:nothing-atif"
    assert group["known"] == {}
    assert group["open"]["tool_bindings"] == "these traces hold none of it"


def test_a_trace_that_somebody_stamps_leaves_its_group(shop: Shop) -> None:
    foreign(shop, document("f-1"), document("f-2"))
    decisions.stamp(shop.root, [shop.ids()["f-1"]], "desk_a", "it was", CLOCK)
    [group] = groups(shop)
    assert group["traces"] == 1


def test_a_retracted_trace_is_in_no_group_and_confirms_nothing(shop: Shop) -> None:
    foreign(shop, document("f-1"), document("f-2"))
    decisions.retract(shop.root, [shop.ids()["f-1"]], "broken", CLOCK)
    [group] = groups(shop)
    assert group["traces"] == 1
    assert group["open"]["prompt_templates"] == "1 text, not confirmed by a second task"


def test_a_claim_that_the_content_refutes_strengthens_no_stored_trace(shop: Shop) -> None:
    runs = [document("x-0", extra="Be brief."), document("x-1")]
    shop.ingest(runs, None, "foreign")
    told = [shop.ingest(runs, "desk_a", "foreign") for _ in range(2)]
    assert [(one.strengthened, one.duplicates, one.contradicted) for one in told] == [(1, 1, 1), (0, 2, 1)]
    assert told[0].harnesses == {"desk_a": 1}


def test_a_trace_whose_claim_is_refuted_is_a_foreign_one(shop: Shop) -> None:
    shop.ingest([document("f-1", extra="Other."), document("f-2", extra="Other.")], harness="desk_a", name="wrong")
    [group] = groups(shop)
    assert group["traces"] == 2


def test_the_formats_that_can_show_nothing_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    importer = detect.importer("atif")
    monkeypatch.setattr(type(importer), "shows", ())
    found = observed.showing_nothing(["openai-chat", "atif", "no-such-format", "atif"])
    assert [(one.code, one.where) for one in found] == [("no-evidence-in-format", "atif")]


def test_a_trace_is_compared_with_every_known_harness(shop: Shop) -> None:
    foreign(shop, document("f-1"))
    found = matching.match(shop.root, shop.ids()["f-1"][:12])
    assert found.exit_code == 0
    assert found.target == shop.ids()["f-1"]
    assert found.traces == 1
    fitting, excluded = found.harnesses
    assert (fitting["name"], fitting["fits"], fitting["excluded_by"]) == ("desk_a", 1, [])
    assert fitting["corroborated"] == ["prompt_templates/system", "tool_bindings/look"]
    assert fitting["source"] == "harness_versions/desk_a"
    assert (excluded["name"], excluded["fits"], excluded["corroborated"]) == ("desk_b", 0, [])
    [by] = excluded["excluded_by"]
    assert (by["component"], by["part"], by["traces"], by["step"]) == ("prompt_templates", "system", 1, 1)
    assert by["trace"] == shop.ids()["f-1"]
    assert "Be brief." in by["text"]


@pytest.mark.parametrize("batch", [1, 100])
def test_a_group_is_compared_trace_by_trace(shop: Shop, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_BATCH", batch)
    foreign(shop, without_tools(document("f-1")), without_tools(document("f-2")), document("f-3"))
    foreign(
        shop,
        without_tools(document("f-4", extra="Other.")),
        without_tools(document("f-5", extra="Other.")),
        name="more",
    )
    three, two = sorted((group for group in groups(shop) if group["traces"] == 2), key=lambda group: group["trace"])
    for group in (three, two):
        found = matching.match(shop.root, group["name"])
        fits = {row["name"]: row["fits"] for row in found.harnesses}
        is_ours = fits == {"desk_a": 2, "desk_b": 0}
        assert found.exit_code == int(not is_ours)
        assert found.traces == 2
        assert found.known == group["known"]
        by = {row["name"]: row["excluded_by"] for row in found.harnesses}
        assert by["desk_b"][0]["traces"] == 2
        assert found.groups
        assert {other["comparison"] for other in found.groups} == {"unknown"}


def test_a_harness_that_fits_some_of_a_group_is_no_answer_for_it(shop: Shop) -> None:
    foreign(shop, without_tools(document("f-1")), without_tools(document("f-2", extra="Be brief.")))
    [group] = groups(shop)
    assert (group["name"], group["traces"], group["tasks"]) == ("observed:nothing-atif", 2, 2)
    found = matching.match(shop.root, group["name"])
    assert {row["name"]: row["fits"] for row in found.harnesses} == {"desk_a": 1, "desk_b": 1}
    assert found.exit_code == 1


def test_corroborated_for_a_group_is_what_every_fitting_trace_corroborates(shop: Shop) -> None:
    silent = without_tools(document("f-2"))
    silent["steps"] = [{**step, "step_id": number} for number, step in enumerate(silent["steps"][1:], 1)]
    foreign(shop, without_tools(document("f-1")), silent)
    ours = {row["name"]: row for row in matching.match(shop.root, "observed:nothing-atif").harnesses}["desk_a"]
    assert (ours["fits"], ours["corroborated"]) == (2, [])


def test_a_trace_that_somebody_stamps_is_not_compared_with_its_group(shop: Shop) -> None:
    foreign(shop, *(document(task) for task in ("f-1", "f-2", "f-3")))
    decisions.stamp(shop.root, [shop.ids()["f-3"]], "desk_a", "seen", CLOCK)
    [group] = groups(shop)
    assert group["traces"] == matching.match(shop.root, group["name"]).traces == 2


def test_other_groups_that_prove_to_be_another_harness_are_named_with_the_part(shop: Shop) -> None:
    foreign(shop, document("f-1"), with_tools(document("f-2"), TOOL))
    trace = shop.ids()["f-1"]
    [other] = [group for group in matching.match(shop.root, trace).groups if group["parts"]]
    assert other["comparison"] == "different"
    assert other["parts"] == ["tool_bindings/buy", "tool_bindings/look"]
    assert matching.match(shop.root, shop.ids()["t-0"]).groups == ()


def test_a_group_named_where_a_harness_is_needed_leads_to_its_traces(shop: Shop) -> None:
    with pytest.raises(UnknownNameError) as raised:
        Corpus(shop.root).resolve("observed:123456789abc")
    assert raised.value.hint is not None
    assert raised.value.hint.endswith("tracemark traces list --harness observed:123456789abc")


def test_a_name_that_no_group_has_or_several_begin_with_is_an_error(shop: Shop) -> None:
    foreign(shop, document("f-1"), with_tools(document("f-2"), TOOL))
    with pytest.raises(UnknownNameError, match="no group"):
        matching.match(shop.root, "observed:zzz")
    with pytest.raises(UnknownNameError, match="several"):
        matching.match(shop.root, "observed:")
    name = groups(shop)[0]["name"]
    assert matching.match(shop.root, name[:-2]).target == name


@pytest.mark.parametrize("stamped", [False, True])
def test_a_trace_is_compared_with_groups_as_long_as_nobody_gives_it_a_harness(shop: Shop, stamped: bool) -> None:
    foreign(shop, document("f-1"), with_tools(document("f-2"), TOOL))
    trace = shop.ids()["f-1"]
    assert len(matching.match(shop.root, trace).groups) == 2
    if stamped:
        decisions.stamp(shop.root, [trace], "desk_a", "seen", CLOCK)
    else:
        shop.ingest([document("f-1")], name="claimed")
    assert matching.match(shop.root, trace).groups == ()


def test_a_run_of_several_harnesses_is_in_no_group_and_compared_with_none(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign(shop, document("f-1"))
    read = AtifImporter.read
    with monkeypatch.context() as patch:
        changes = ("step 3: other tools than in the call before",)
        patch.setattr(AtifImporter, "read", lambda *of: (item._replace(mixed=changes) for item in read(*of)))
        foreign(shop, document("f-2"), name="mixed")
    assert [group["traces"] for group in groups(shop)] == [1]
    assert matching.match(shop.root, shop.ids()["f-2"]).groups == ()


def test_a_superseded_trace_is_in_no_group_and_can_be_compared_itself(shop: Shop) -> None:
    foreign(shop, document("f-1"))
    old = shop.ids()["f-1"]
    new = shop.read_anew(old)
    corpus = Corpus(shop.root)
    with open_store(shop.root) as store:
        assert [group.first for group in observed.groups(corpus, store).groups] == [new]
    assert matching.match(shop.root, old).traces == 1


def test_ingest_says_which_formats_hold_no_evidence(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(detect.importer("atif")), "shows", ())
    foreign(shop, document("f-1"), name="first")
    report = ingest.ingest(shop.root, [shop.root / "inbox" / "first.jsonl"], ingest.IngestOptions())
    told = [found for found in report.findings if found.code == "no-evidence-in-format"]
    assert [(found.where, found.severity) for found in told] == [("atif", "info")]
    assert report.exit_code == 0
