"""What an audit tells of a trace, an export and a harness; for an export, a finding for each kind of tampering."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tracemark import digest
from tracemark.acts import audit, decisions, health
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.provenance import components
from tracemark.errors import (
    ExportRefusedError,
    IntegrityError,
    NegativeAnswerError,
    NewerFormatError,
    UnknownNameError,
    UsageError,
)
from tracemark.model.decision import Kind
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import Form, component_stamp
from tracemark.store.selection import Decisions, Selection, State
from tracemark.store.store import Store

from .conftest import CLOCK, Shop, document, write_version


@pytest.fixture
def exported(shop: Shop) -> Shop:
    shop.accept()
    shop.export()
    return shop


def folder(shop: Shop) -> Path:
    return shop.root / "exports" / "sft"


def codes(shop: Shop) -> set[str]:
    return {found.code for found in audit.audit(shop.root, str(folder(shop))).findings}


# --- a trace


def audited(shop: Shop, trace: str) -> audit.TraceAudit:
    shown = audit.audit(shop.root, trace)
    assert isinstance(shown, audit.TraceAudit)
    return shown


def test_a_recorded_trace_has_evidence_for_each_part(exported: Shop) -> None:
    exported.record("r-1")
    exported.export()
    shown = audit.audit(exported.root, exported.ids()["r-1"][:12])
    assert isinstance(shown, audit.TraceAudit)
    assert (shown.harness, shown.evidence, shown.accepted, shown.status) == ("desk_a", "recorded", True, "success")
    assert list(shown.components) == list(COMPONENTS)
    assert {part["evidence"] for value in shown.components.values() for part in value["parts"].values()} == {"recorded"}
    assert shown.fits == [exported.fingerprint()]
    assert shown.differs_in == []
    assert shown.source["label"].endswith(".journal.jsonl")
    assert [taken["rows"] for taken in shown.exports] == [4]


def test_what_differs_from_the_accepted_harness_is_named(exported: Shop) -> None:
    shown = audit.audit(exported.root, exported.ids()["u-0"])
    assert (shown.accepted, shown.differs_in) == (False, ["prompt_templates/system"])


def test_without_a_declared_harness_the_observed_digests_stand_in_the_components_place(exported: Shop) -> None:
    for number in range(2):
        exported.ingest([document(f"x-{number}", extra="A third prompt.")], None, f"x-{number}")
    first, second = (audit.audit(exported.root, exported.ids()[f"x-{number}"]) for number in range(2))
    assert (first.fingerprint, first.harness, first.evidence) == (None, None, "unrecorded")
    tools, prompts = first.components["tool_bindings"], first.components["prompt_templates"]
    assert tools["evidence"] == "recovered"
    assert tools["parts"]["look"]["form"] == "schema"
    assert tools["digest"] == tools["parts"]["look"]["digest"]
    assert (prompts["evidence"], prompts["parts"]["system"]["form"]) == ("unrecorded", "rendered")
    assert first.components["runtime"] == {"digest": None, "evidence": "unrecorded", "parts": {}, "observed": []}
    assert second.components == first.components
    assert first.differs_in == ["prompt_templates/system"]
    assert first.fits == []


def test_what_a_stamp_leaves_unrecorded_is_no_difference_and_its_content_still_speaks(exported: Shop) -> None:
    identity = Corpus(exported.root).resolve("desk_a").identity
    parts = {name: {"digest": value, "evidence": "claimed"} for name, value in identity.parts["tool_bindings"].items()}
    tools = {"digest": identity.components["tool_bindings"], "evidence": "claimed", "parts": parts}
    documents = [document("x-1"), document("x-2", extra="A third prompt.")]
    for carrying in documents:
        carrying["extra"]["tracemark"]["harness"] = {"declared": {"components": {"tool_bindings": tools}}}
    exported.ingest(documents, None, "partial")
    alike, unlike = (audit.audit(exported.root, exported.ids()[task]) for task in ("x-1", "x-2"))
    assert {name for name, value in alike.components.items() if value["evidence"] == "claimed"} == {"tool_bindings"}
    assert alike.differs_in == []
    assert unlike.differs_in == ["prompt_templates/system"]


def test_content_that_disagrees_with_its_claim_is_shown_with_place_and_text(exported: Shop) -> None:
    exported.ingest([document("x-1", extra="A third prompt.")], "desk_a", "wrong")
    shown = audit.audit(exported.root, exported.ids()["x-1"])
    assert shown.fingerprint is None
    assert [(place["component"], place["part"]) for place in shown.contradictions] == [("prompt_templates", "system")]


def test_what_only_an_importer_saw_differs_too(exported: Shop) -> None:
    exported.record("r-1")
    with open_store(exported.root) as store:
        stamp = json.loads(store.get(exported.ids()["r-1"]))["harness"]
    text = "a separator that the format fixes stands elsewhere"
    place = {"component": "prompt_templates", "part": "system", "text": text}
    exported.ingest([document("x-1")], None, "plain")
    trace_id = exported.ids()["x-1"]
    carrying = document("x-1")
    carrying["extra"]["tracemark"] |= {"harness": {**stamp, "contradictions": [place]}, "trajectory": trace_id}
    exported.ingest([carrying], None, "carrying")
    shown = audit.audit(exported.root, trace_id)
    assert (shown.fingerprint, shown.fits) == (None, [exported.fingerprint()])
    assert shown.differs_in == ["prompt_templates/system"]
    assert shown.labels == {exported.fingerprint(): "desk_a"}


def test_a_damaged_trace_is_never_described(exported: Shop) -> None:
    for path in (exported.root / "traces" / "segments").rglob("*.zst"):
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(IntegrityError):
        audit.audit(exported.root, exported.ids()["t-0"])


def test_without_an_accepted_harness_there_is_nothing_to_differ_from(shop: Shop) -> None:
    shown = audit.audit(shop.root, shop.ids()["t-0"])
    assert (shown.accepted, shown.accepted_harness, shown.differs_in) == (False, None, None)
    shop.accept()
    shown = audit.audit(shop.root, shop.ids()["t-0"])
    assert (shown.accepted, shown.accepted_harness, shown.differs_in) == (True, shop.fingerprint(), [])


def test_the_decisions_about_a_trace_are_shown(exported: Shop) -> None:
    trace, other = (exported.ids()[task] for task in ("t-0", "t-1"))
    made = [
        decisions.retract(exported.root, [trace], "leaked", CLOCK).entries[trace],
        decisions.reinstate(exported.root, [trace], "it was not", CLOCK).entries[trace],
    ]
    shown = audited(exported, trace).decisions
    assert [(one["kind"], one["reason"], one["entry"]) for one in shown] == [
        ("retract", "leaked", made[0]),
        ("reinstate", "it was not", made[1]),
    ]
    assert all(one["time"] for one in shown)
    assert audited(exported, other).decisions == []


def test_a_decision_that_names_a_record_of_the_run_alone_is_about_the_trace(exported: Shop) -> None:
    trace = exported.ids()["t-0"]
    raw = audited(exported, trace).source["raw"]
    entry = exported.enter(Kind.RETRACT, {"trace": "0" * 64, "raw": raw}, "bad record")
    assert [one["entry"] for one in audited(exported, trace).decisions] == [entry]


def test_what_is_disputed_is_shown_with_the_source_of_each_value(shop: Shop) -> None:
    shop.ingest([document("t-0", reward=0.0)], name="again")
    shown = audited(shop, shop.ids()["t-0"])
    assert shown.conflicts == [
        {"member": "outcome.reward", "value": 1.0, "source": "runs.jsonl"},
        {"member": "outcome.reward", "value": 0.0, "source": "again.jsonl"},
        {"member": "outcome.status", "value": "success", "source": "runs.jsonl"},
        {"member": "outcome.status", "value": "failure", "source": "again.jsonl"},
    ]


def test_what_a_stamp_settles_is_told_from_what_nothing_settles(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.ingest([document("t-1")], "desk_c", name="claimed")
    shop.ingest([document("t-0", reward=0.0)], name="again")
    shop.accept()
    ids = shop.ids()
    hints = {found.code: found.hint or "" for found in health.check(shop.root).findings}
    assert "tracemark stamp TRACE" in hints["contested"]
    assert "tracemark retract TRACE" in hints["contested"]
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert "tracemark stamp TRACE" in str(refused.value.hint)
    assert "tracemark retract TRACE" in str(refused.value.hint)
    assert {row["member"] for row in audited(shop, ids["t-1"]).conflicts} == {"harness"}

    decisions.stamp(shop.root, [ids["t-1"]], "desk_a", "as the run says", CLOCK)
    hints = {found.code: found.hint or "" for found in health.check(shop.root).findings}
    assert "tracemark stamp" not in hints["contested"]
    assert f"tracemark retract {ids['t-0'][:12]}" in hints["contested"]
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert "tracemark stamp" not in str(refused.value.hint)
    assert "tracemark retract TRACE" in str(refused.value.hint)
    with pytest.raises(NegativeAnswerError) as no:
        decisions.stamp(shop.root, [ids["t-0"]], "desk_a", "r", CLOCK)
    assert f"tracemark retract {ids['t-0'][:12]}" in str(no.value.hint)

    decisions.retract(shop.root, [ids["t-0"]], "nobody knows", CLOCK)
    assert "contested" not in {found.code for found in health.check(shop.root).findings}


def test_why_an_export_made_now_leaves_a_trace_out_is_said(shop: Shop) -> None:
    shop.ingest([document("short", calls=1), document("failed", reward=0.0), document("held-out")], name="more")
    ids = shop.ids()
    assert audited(shop, ids["t-0"]).export == "no: no harness is accepted"
    shop.accept()
    shop.set(("tasks: []", "tasks: [held-out]"))
    decisions.retract(shop.root, [ids["t-1"]], "leaked", CLOCK)
    answers = {task: audited(shop, trace).export for task, trace in ids.items()}
    assert answers == {
        "t-0": "yes",
        "t-1": "no: retracted",
        "t-2": "yes",
        "u-0": "no: other-harness",
        "u-1": "no: other-harness",
        "short": "no: tool-calls",
        "failed": "no: outcome",
        "held-out": "no: evaluation-task",
    }
    shop.export()
    assert {row["tracemark_trace_id"] for row in shop.rows()} == {ids[task] for task in ("t-0", "t-2")}


def test_a_component_without_parts_is_vacuous_and_not_recorded(exported: Shop) -> None:
    exported.record("r-1")
    for task in ("r-1", "t-0"):
        shown = audit.audit(exported.root, exported.ids()[task])
        runtime = shown.components["runtime"]
        assert (runtime["evidence"], runtime["parts"]) == ("vacuous", {})
        assert runtime["digest"] == Corpus(exported.root).resolve("desk_a").identity.components["runtime"]
    assert exported.export().rows == 4


@pytest.mark.parametrize("form", get_args(Form))
def test_what_a_trace_shows_is_recovered_where_no_second_task_must_confirm_it(form: str) -> None:
    observed = {"prompt_templates": [{"part": "system", "form": form, "digest": "d" * 64}]}
    shown = components({"observed": observed})["prompt_templates"]
    confirmed_by_another = form in ("rendered", "substituted", "transcript")
    assert shown["evidence"] == ("unrecorded" if confirmed_by_another else "recovered")
    assert shown["parts"]["system"]["form"] == form


def test_a_component_that_nobody_declares_and_the_trace_shows_is_undeclared(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_c", extra="In words.")
    manifest = (folder / "harness.yaml").read_text()
    (folder / "harness.yaml").write_text(manifest[: manifest.index("observation_handlers")] + "ignore: [observe.py]\n")
    seen = [{"part": "parallel", "form": "constant", "digest": "a" * 64}]
    found = components({"declared": declared(shop, "desk_c"), "observed": {"observation_handlers": seen}})
    assert found["observation_handlers"]["evidence"] == "undeclared"
    empty = [{"part": "tools", "form": "known-empty", "digest": "a" * 64}]
    found = components({"declared": declared(shop, "desk_c"), "observed": {"observation_handlers": empty}})
    assert found["observation_handlers"]["evidence"] == "vacuous"


def declared(shop: Shop, name: str) -> dict[str, Any]:
    """Return the declared half that a claim of a harness gives."""
    identity = Corpus(shop.root).resolve(name).identity
    parts = {component: dict(identity.parts[component]) for component in identity.parts}
    return {
        "name": name,
        "components": {
            component: component_stamp(identity.components[component], own, dict.fromkeys(own, "claimed"))
            for component, own in parts.items()
        },
    }


def test_of_a_target_with_too_few_digits_it_says_how_many_are_needed(exported: Shop) -> None:
    with pytest.raises(UnknownNameError, match="at least 6 digits are needed"):
        audit.audit(exported.root, exported.ids()["t-0"][:4])


@pytest.mark.parametrize("target", ["nothing", "ffffffffffff", "../elsewhere"])
def test_a_target_that_nothing_answers_to_is_an_error_with_a_next_step(exported: Shop, target: str) -> None:
    with pytest.raises((UnknownNameError, UsageError)) as error:
        audit.audit(exported.root, target or "no such thing")
    assert error.value.hint


# --- an export


def test_an_export_that_nobody_touched_has_no_findings(exported: Shop) -> None:
    report = audit.audit(exported.root, str(folder(exported)))
    assert isinstance(report, audit.ExportAudit)
    assert (report.findings, report.exit_code, report.rows, report.export) == ((), 0, 3, str(folder(exported)))
    assert report.differences == 0
    assert "rows that are, byte for byte, what the store gives now: 3 of 3" in report.proved


def test_an_export_is_audited_from_within_its_folder_too(exported: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(exported))
    report = audit.audit(exported.root, ".")
    assert (report.findings, report.export) == ((), ".")


Tampering = Callable[[Shop], None]
TAMPERINGS: dict[str, tuple[set[str], Tampering]] = {}


def found_as(*expected: str) -> Callable[[Tampering], Tampering]:
    """Register a way to tamper with an export, or with what it rests on, and the findings that it must lead to."""

    def register(function: Tampering) -> Tampering:
        TAMPERINGS[function.__name__] = (set(expected), function)
        return function

    return register


def change_rows(shop: Shop, change: Callable[[list[str]], list[str]]) -> None:
    path = folder(shop) / "sft.jsonl"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


@found_as("export-file-differs", "export-row-differs")
def a_row_was_edited(shop: Shop) -> None:
    change_rows(shop, lambda rows: [rows[0].replace("Done.", "All done."), *rows[1:]])


@found_as("export-file-differs", "export-rows-differ")
def a_row_was_removed(shop: Shop) -> None:
    change_rows(shop, lambda rows: rows[:-1])


@found_as("export-file-differs", "export-rows-differ")
def a_row_was_added(shop: Shop) -> None:
    change_rows(shop, lambda rows: [*rows, rows[0]])


@found_as("export-file-differs", "export-rows-differ", "export-row-differs", "export-other-harness")
def a_row_of_another_harness_was_added(shop: Shop) -> None:
    trace = shop.ids()["u-0"]
    change_rows(shop, lambda rows: [*rows, rows[0].replace(json.loads(rows[0])["tracemark_trace_id"], trace)])


@found_as("export-file-differs", "export-row-unreadable")
def a_row_is_no_json(shop: Shop) -> None:
    change_rows(shop, lambda rows: ["{\n", *rows[1:]])


@found_as("export-file-differs", "export-trace-missing", "export-rows-differ")
def a_row_names_a_trace_that_is_not_stored(shop: Shop) -> None:
    change_rows(shop, lambda rows: [rows[0].replace(json.loads(rows[0])["tracemark_trace_id"], "0" * 64), *rows[1:]])


@found_as("export-file-differs")
def the_rows_are_gone(shop: Shop) -> None:
    (folder(shop) / "sft.jsonl").unlink()


@found_as("export-file-differs")
def a_file_was_added(shop: Shop) -> None:
    (folder(shop) / "more.jsonl").write_text("{}\n")


@found_as("export-manifest-edited", "export-terms-differ")
def the_manifest_was_edited(shop: Shop) -> None:
    path = folder(shop) / "manifest.json"
    path.write_text(path.read_text().replace('"policy": "unique"', '"policy": "recorded"'))


@found_as("export-not-recorded", "export-terms-differ")
def the_manifest_was_edited_and_its_digest_made_anew(shop: Shop) -> None:
    path = folder(shop) / "manifest.json"
    members = json.loads(path.read_text())
    del members["digest"]
    members["policy"] = "recorded"
    path.write_text(json.dumps({**members, "digest": digest.of(members)}, indent=2) + "\n")


@found_as("export-manifest-unreadable")
def the_manifest_is_gone(shop: Shop) -> None:
    (folder(shop) / "manifest.json").unlink()


@found_as("export-manifest-unreadable")
def the_manifest_is_no_manifest(shop: Shop) -> None:
    (folder(shop) / "manifest.json").write_text('{"policy": "unique"}')


@found_as("export-trace-retracted")
def a_trace_was_retracted_since(shop: Shop) -> None:
    decisions.retract(shop.root, [shop.ids()["t-0"]], "wrong", CLOCK)


@found_as("export-trace-contested", "export-row-differs", "export-row-excluded")
def a_trace_was_contested_since(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.ingest([document("t-0")], "desk_c", "again")


@found_as("export-other-harness", "export-row-differs", "export-row-excluded")
def a_trace_was_settled_under_another_harness_since(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")
    decisions.stamp(shop.root, [shop.ids()["t-0"]], "desk_c", "the log names it", CLOCK)


@found_as("export-other-harness")
def another_harness_was_accepted_since(shop: Shop) -> None:
    shop.accept("desk_b")


@found_as("export-row-excluded", "export-terms-differ")
def a_task_became_one_of_the_evaluation_set_since(shop: Shop) -> None:
    shop.set(("tasks: []", "tasks: [t-0]"))


@found_as("export-row-excluded", "export-terms-differ")
def a_stricter_policy_holds_since(shop: Shop) -> None:
    shop.set(("evidence: unique", "evidence: recorded"))


@found_as("export-row-excluded")
def a_sibling_that_nothing_tells_apart_came_since(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler=" + '.'")


@found_as("accepted-differs", "export-other-harness")
def params_were_edited_since(shop: Shop) -> None:
    shop.set((shop.fingerprint("desk_a"), shop.fingerprint("desk_b")))


@found_as("export-trace-missing")
def a_segment_is_missing(shop: Shop) -> None:
    for path in (shop.root / "traces" / "segments").rglob("*.zst"):
        path.unlink()


@pytest.mark.parametrize("name", ["manifest.json", "sft.jsonl"])
def test_an_export_that_names_no_ids_at_all_is_judged_and_not_a_crash(name: str, exported: Shop) -> None:
    path = folder(exported) / name
    path.write_text(path.read_text().replace(exported.rows()[0]["tracemark_trace_id"], "no id"))
    assert codes(exported) > {"export-rows-differ"}


def test_the_traces_of_an_export_are_selected_at_once(exported: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    select = Store.select

    def counting(store: Store, selection: Selection, decisions: Decisions) -> Iterator[State]:
        asked.append(selection.traces)
        return select(store, selection, decisions)

    monkeypatch.setattr(Store, "select", counting)
    assert codes(exported) == set()
    assert asked == [frozenset(row["tracemark_trace_id"] for row in exported.rows())]


def test_an_evaluation_set_of_the_same_size_is_another_one_all_the_same(shop: Shop) -> None:
    shop.accept()
    shop.set(("tasks: []", "tasks: [x-1, x-2]"))
    shop.export()
    assert codes(shop) == set()
    shop.set(("tasks: [x-1, x-2]", "tasks: [x-2, x-1]"))
    assert codes(shop) == set()
    shop.set(("tasks: [x-2, x-1]", "tasks: [x-2, x-3]"))
    (found,) = audit.audit(shop.root, str(folder(shop))).findings
    assert (found.code, found.message.split()[0]) == ("export-terms-differ", "evaluation_digest")


@pytest.mark.parametrize("name", TAMPERINGS)
def test_an_export_is_not_what_the_store_would_give_when(name: str, exported: Shop) -> None:
    expected, tamper = TAMPERINGS[name]
    tamper(exported)
    report = audit.audit(exported.root, str(folder(exported)))
    assert {found.code for found in report.findings} == expected
    assert report.exit_code == 1
    assert report.differences == sum(
        found.code not in ("accepted-differs", "export-terms-differ") for found in report.findings
    )
    assert all(found.hint for found in report.findings)


def test_a_damaged_segment_is_an_integrity_error(exported: Shop) -> None:
    for path in (exported.root / "traces" / "segments").rglob("*.zst"):
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(IntegrityError):
        codes(exported)


def test_a_manifest_of_a_newer_program_is_not_judged(exported: Shop) -> None:
    path = folder(exported) / "manifest.json"
    path.write_text(path.read_text().replace("tracemark/export/1", "tracemark/export/9"))
    with pytest.raises(NewerFormatError):
        codes(exported)


def test_a_schema_file_in_another_order_changes_neither_rows_nor_audit(exported: Shop) -> None:
    before = {path.name: path.read_bytes() for path in folder(exported).iterdir()}
    path = exported.root / "harness_versions" / "desk_a" / "look.json"
    fingerprint = exported.fingerprint()
    path.write_text(json.dumps(reordered(json.loads(path.read_text()))))
    assert exported.fingerprint() == fingerprint
    assert audit.audit(exported.root, str(folder(exported))).findings == ()
    exported.export()
    assert {path.name: path.read_bytes() for path in folder(exported).iterdir()} == before


def reordered(value: Any) -> Any:
    """Return the members of every object the other way round."""
    if isinstance(value, dict):
        return {name: reordered(item) for name, item in reversed(value.items())}
    return value


def test_a_damaged_snapshot_of_the_harness_of_a_row_is_an_integrity_error(exported: Shop) -> None:
    name = f"{exported.fingerprint().removeprefix('tm1:')}.json"
    path = exported.root / "traces" / "harnesses" / name
    path.write_text(path.read_text().replace("Look an order up", "Look a customer up"))
    for use in (lambda: codes(exported), exported.export):
        with pytest.raises(IntegrityError) as error:
            use()
        assert error.value.where == f"traces/harnesses/{name}"
        assert error.value.hint


# --- a harness


def test_of_a_harness_it_tells_traces_exports_and_decisions(exported: Shop) -> None:
    exported.ingest([document("f-1", reward=0.0)], name="failed")
    shown = audit.audit(exported.root, "desk_a")
    assert isinstance(shown, audit.HarnessAudit)
    assert (shown.accepted, shown.traces, shown.successes) == (True, 4, 3)
    assert shown.statuses == {"failure": 1, "success": 3}
    assert [taken["rows"] for taken in shown.exports] == [3]
    assert [entry["kind"] for entry in shown.decisions] == ["accept"]
    other = audit.audit(exported.root, exported.fingerprint("desk_b")[:16])
    assert (other.accepted, other.traces, other.exports, other.decisions) == (False, 2, [], [])


def test_a_folder_that_holds_nothing_of_an_export_is_none(exported: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(exported.root)
    for target in ("inbox", ".", "exports", "harness_versions"):
        with pytest.raises(UnknownNameError) as caught:
            audit.audit(exported.root, target)
        assert caught.value.message.startswith(f"{target!r} is a folder without manifest.json, so no export")
        assert str(caught.value.hint).startswith("name the folder that `tracemark export` wrote")


def test_the_folder_of_a_harness_version_means_the_harness(exported: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(exported.root)
    for target in (
        "harness_versions/desk_a",
        "harness_versions/desk_a/",
        str(exported.root / "harness_versions/desk_a"),
    ):
        shown = audit.audit(exported.root, target)
        assert isinstance(shown, audit.HarnessAudit)
        assert shown.name == "desk_a"


def test_a_folder_that_is_named_like_a_harness_and_no_export_means_the_harness(
    exported: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(exported.root / "harness_versions")
    assert isinstance(audit.audit(exported.root, "desk_a"), audit.HarnessAudit)
