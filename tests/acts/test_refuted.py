"""A decision that the content refutes has no effect, wherever it came from and whatever else is decided."""

from __future__ import annotations

import pytest

from tracemark.acts import audit, decisions, harnesses, health, traces
from tracemark.acts.corpus import Corpus, open_store
from tracemark.errors import IntegrityError, NegativeAnswerError
from tracemark.model.decision import Kind

from .conftest import CLOCK, Shop, document


def decide(shop: Shop, trace: str, harness: str) -> None:
    """Enter a decision as a merge of branches brings it in, by which no verb has looked at the content."""
    shop.enter(Kind.STAMP, {"trace": trace, "fingerprint": shop.fingerprint(harness)})


def refuted(shop: Shop, harness: str | None) -> str:
    """Store a run with another prompt than desk_a's, and settle it under desk_a."""
    shop.ingest([document("z-1", extra="Quite different.")], harness, "different")
    decide(shop, trace := shop.ids()["z-1"], "desk_a")
    return trace


@pytest.mark.parametrize("policy", ["unique", "claimed"])
@pytest.mark.parametrize("claimed", [None, "desk_a"])
def test_an_export_leaves_out_what_a_decision_puts_under_a_harness_that_the_content_excludes(
    shop: Shop, claimed: str | None, policy: str
) -> None:
    trace = refuted(shop, claimed)
    shop.accept()
    shop.set(("evidence: unique", f"evidence: {policy}"))
    report = shop.export()
    assert trace not in {row["tracemark_trace_id"] for row in shop.rows()}
    assert (report.rows, report.excluded["no-fingerprint"], report.traces) == (3, 1, 6)
    assert report.traces == report.rows + sum(report.excluded.values())
    assert not audit.audit(shop.root, "exports/sft").differences


def test_a_dispute_that_such_a_decision_settles_is_open(shop: Shop) -> None:
    shop.accept()
    shop.set(("evidence: unique", "evidence: claimed"))
    unlike = document("z-1", extra="Quite different.")
    shop.ingest([unlike], None, "different")
    trace = shop.ids()["z-1"]
    statements = []
    for name in ("desk_a", "desk_b"):
        # stated by a program that did not compare
        stamp = harness_stamp(shop, name)
        statements.append({"format": "tracemark/annotation/1", "kind": "stamps", "trace": trace, "value": stamp})
    commit(shop, statements)
    decide(shop, trace, "desk_a")
    report = shop.export()
    assert (report.rows, report.excluded["contested"]) == (3, 1)
    assert [found.code for found in health.check(shop.root).findings] == ["decision-refuted", "contested"]


def test_what_a_statement_says_as_well_is_taken_away_too(shop: Shop) -> None:
    shop.accept()
    shop.set(("evidence: unique", "evidence: claimed"))
    shop.ingest([document("z-1", extra="Quite different.")], None, "different")
    trace = shop.ids()["z-1"]
    stamp = harness_stamp(shop, "desk_a")
    commit(shop, [{"format": "tracemark/annotation/1", "kind": "stamps", "trace": trace, "value": stamp}])
    decide(shop, trace, "desk_a")
    assert shop.export().excluded["no-fingerprint"] == 1
    listed = {row["trace_id"]: row for row in traces.list_(shop.root, traces.TraceFilter()).traces}
    assert listed[trace]["fingerprint"] is None
    unstated = traces.list_(shop.root, traces.TraceFilter(harness="none")).traces
    assert [row["trace_id"] for row in unstated] == [trace]


def test_every_verb_says_the_same_of_it(shop: Shop) -> None:
    trace = refuted(shop, None)
    shop.accept()
    shown = audit.audit(shop.root, trace)
    assert ([found.code for found in shown.findings], shown.fingerprint) == (["decision-refuted"], None)
    assert [found.code for found in health.check(shop.root).findings] == ["decision-refuted"]
    assert {row["name"]: row["traces"] for row in harnesses.list_(shop.root).harnesses} == {"desk_a": 3, "desk_b": 2}
    assert audit.audit(shop.root, "desk_a").traces == 3


def test_it_is_not_said_to_stand_when_somebody_makes_it_again_and_another_one_replaces_it(shop: Shop) -> None:
    trace = refuted(shop, None)
    with pytest.raises(NegativeAnswerError, match="the content excludes desk_a"):
        decisions.stamp(shop.root, [trace], "desk_a", "once more", CLOCK)
    assert decisions.stamp(shop.root, [trace], "none", "nobody knows", CLOCK).entries.keys() == {trace}
    assert health.check(shop.root).findings == ()


def test_a_decision_that_holds_is_not_blamed_for_one_about_another_trace(shop: Shop) -> None:
    refuted(shop, "desk_a")
    shop.ingest([document("z-2")], None, "plain")
    sound = shop.ids()["z-2"]
    decide(shop, sound, "desk_a")
    shown = audit.audit(shop.root, sound)
    assert (shown.findings, shown.exit_code, shown.fingerprint) == ((), 0, shop.fingerprint())


@pytest.mark.parametrize("claimed", [None, "desk_a"])
def test_a_decision_whose_line_cannot_be_read_is_left_aside_and_the_rest_is_listed(
    shop: Shop, claimed: str | None
) -> None:
    trace = refuted(shop, claimed)
    shop.accept()
    with open_store(shop.root) as store:
        file = store.state(trace).file
        others = set(shop.ids().values()) - {trace}
    path = shop.root / "traces" / file
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:40])
    report = traces.list_(shop.root, traces.TraceFilter())
    assert {row["trace_id"] for row in report.traces} == {trace, *others}
    (found,) = report.findings
    assert (found.code, found.where, report.exit_code) == ("file-damaged", f"traces/{file}", 1)
    assert trace[:12] in found.message
    (row,) = traces.list_(shop.root, traces.TraceFilter(harness="none")).traces
    assert (row["trace_id"], row["flags"]) == (trace, ["contradicted"] if claimed else [])
    listed = harnesses.list_(shop.root)
    assert [one.code for one in listed.findings] == ["file-damaged"]
    assert {row["name"]: row["traces"] for row in listed.harnesses} == {"desk_a": 3, "desk_b": 2}
    assert traces.list_(shop.root, traces.TraceFilter(harness="desk_b")).findings == ()
    with pytest.raises(IntegrityError):
        shop.export()


def harness_stamp(shop: Shop, name: str) -> dict[str, object]:
    """Return a stamp of claims that nobody compared with the content."""
    identity = Corpus(shop.root).resolve(name).identity
    components = {
        component: {
            "digest": identity.components[component],
            "evidence": "claimed" if parts else "recorded",
            "parts": {part: {"digest": value, "evidence": "claimed"} for part, value in parts.items()},
        }
        for component, parts in identity.parts.items()
    }
    return {"harness": {"declared": {"name": name, "fingerprint": identity.fingerprint, "components": components}}}


def commit(shop: Shop, annotations: list[dict[str, object]]) -> None:
    tool = {"name": "other", "version": "1"}
    with open_store(shop.root) as store:
        store.commit_annotations("stamps", [{**one, "tool": tool} for one in annotations])
