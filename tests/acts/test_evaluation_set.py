"""A set that is not the frozen one: nothing is written that is learned from or run, and every view says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import failure_export, failure_log, health, planning
from tracemark.acts.audit import audit
from tracemark.acts.audit_export import ExportAudit
from tracemark.acts.audit_trace import TraceAudit
from tracemark.acts.corpus import Corpus
from tracemark.acts.evaluation_freeze import freeze
from tracemark.acts.evaluation_set import changed
from tracemark.acts.planning import PlanOptions
from tracemark.cli.main import run as tracemark
from tracemark.errors import ExportRefusedError, ParamsError
from tracemark.findings import Finding, Report, Severity
from tracemark.ledger import chain

from .conftest import CLOCK, Shop
from .failed_runs import content, shop_of_failures

SET = "tasks: [t-0, f-0]"
HINT = "undo the change, or tracemark gate freeze --reason TEXT"


@pytest.fixture
def kept(shop: Shop) -> Shop:
    """A corpus of successes and failures whose evaluation set, one task of either, is frozen."""
    shop_of_failures(shop)
    shop.set(("tasks: []", SET))
    freeze(shop.root, "to compare on", CLOCK)
    return shop


def log(shop: Shop, out: str = "failures") -> Report:
    return failure_export.export(shop.root, shop.root / out)


def listed(shop: Shop) -> Report:
    return planning.plan(shop.root, PlanOptions(out=shop.root / "reports/plan.jsonl"))


WRITERS: dict[str, Callable[[Shop], Report]] = {"export": Shop.export, "plan": listed, "failures": log}
"""Every verb that writes what is learned from or run."""


def told(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.code == "evaluation-changed"]


def frozen_beside(shop: Shop, *subjects: dict[str, Any]) -> None:
    """Enter freezes that branches made side by side."""
    shop.enter_beside("freeze", *({"count": 2, "attempts": 4, **subject} for subject in subjects))


# --- what writes refuses


@pytest.mark.parametrize("verb", WRITERS)
def test_nothing_is_written_while_a_task_is_out_of_the_frozen_set(kept: Shop, verb: str) -> None:
    write = WRITERS[verb]
    write(kept)
    before = content(kept.root)
    kept.set((SET, "tasks: [f-0, x-1]"))
    with pytest.raises(ExportRefusedError) as refused:
        write(kept)
    message = "the set of 2 tasks is not the one of 2 tasks that was frozen last; 1 taken out: 't-0'; 1 added: 'x-1'"
    assert (refused.value.message, refused.value.hint) == (message, HINT)
    assert refused.value.where == "params.yaml: evaluation.tasks"
    after = content(kept.root)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {"params.yaml"}
    freeze(kept.root, "t-0 was too easy", CLOCK)
    write(kept)


def test_any_other_set_is_another_one(kept: Shop) -> None:
    for tasks in ("[]", "[t-0]", "[t-0, f-0, f-1]", "[shop/t-0, f-0]", SET.removeprefix("tasks: ")):
        kept.set((SET, f"tasks: {tasks}"))
        assert len(changed(Corpus(kept.root))) == (f"tasks: {tasks}" != SET), tasks
        kept.set((f"tasks: {tasks}", SET))


def test_the_same_ids_written_otherwise_are_the_same_set(kept: Shop) -> None:
    (kept.root / "held-out.txt").write_text("# the set\nf-0\nt-0\n\nf-0\n")
    kept.set((SET, "tasks: {file: held-out.txt}"))
    assert told(kept.export()) == []
    (kept.root / "held-out.txt").write_text("f-0\n")
    with pytest.raises(ExportRefusedError, match="1 taken out: 't-0'"):
        kept.export()


def test_a_set_that_was_never_frozen_may_be_changed(shop: Shop) -> None:
    shop_of_failures(shop)
    for before, after in (("tasks: []", SET), (SET, "tasks: [f-0]")):
        shop.set((before, after))
        for write in WRITERS.values():
            assert told(write(shop)) == []
    assert told(health.check(shop.root)) == []


def test_another_number_of_attempts_lets_no_task_out(kept: Shop) -> None:
    kept.set(("attempts: 4 ", "attempts: 5 "))
    for write in WRITERS.values():
        assert told(write(kept)) == []
    (found,) = told(health.check(kept.root))
    assert (found.severity, found.where) == (Severity.ERROR, "params.yaml: evaluation.attempts")
    assert found.message.startswith("5 attempts at each task are asked for, and the set was frozen with 4")


def test_params_that_cannot_be_read_stay_that_error(kept: Shop) -> None:
    kept.set((SET, "tasks: {file: nowhere.txt}"))
    for write in WRITERS.values():
        with pytest.raises(ParamsError, match=r"nowhere\.txt"):
            write(kept)
    assert told(health.check(kept.root)) == []


def test_an_empty_set_cannot_be_frozen_and_the_hint_says_what_can(kept: Shop) -> None:
    kept.set((SET, "tasks: []"))
    with pytest.raises(ExportRefusedError) as refused:
        kept.export()
    assert refused.value.hint == "undo the change, or list another set there and tracemark gate freeze --reason TEXT"


def test_a_freeze_that_names_no_ids_is_enough_to_see_the_change(shop: Shop) -> None:
    shop_of_failures(shop)
    shop.enter("freeze", {"tasks": digest.of(["f-0", "t-0"]), "count": 2, "attempts": 4})
    shop.set(("tasks: []", "tasks: [f-0]"))
    with pytest.raises(ExportRefusedError, match="which tasks were taken out is not known"):
        shop.export()
    shop.set(("tasks: [f-0]", SET))
    shop.export()


def test_many_tasks_are_counted_and_not_all_named(shop: Shop) -> None:
    shop.set(("tasks: []", f"tasks: [{', '.join(f'e-{number}' for number in range(9))}]"))
    freeze(shop.root, "to compare on", CLOCK)
    shop.set(("e-0, e-1, e-2, e-3, e-4, e-5, e-6, ", ""))
    (found,) = changed(Corpus(shop.root))
    assert found.message.endswith("7 taken out: 'e-0', 'e-1', 'e-2', 'e-3', 'e-4' and 2 more")


# --- side by side


def test_sets_that_two_branches_froze_are_settled_before_anything_is_written(kept: Shop) -> None:
    frozen_beside(kept, {"tasks": "f" * 64}, {"tasks": digest.of(["f-0", "t-0"])})
    for write in WRITERS.values():
        with pytest.raises(ExportRefusedError, match="side by side disagree") as refused:
            write(kept)
        assert refused.value.hint == "tracemark gate freeze --reason TEXT"
    found = [one.code for one in health.check(kept.root).findings]
    assert found.count("ledger-freeze-conflict") == 1
    assert "evaluation-changed" not in found
    shown = failure_log.list_(kept.root, failure_log.FailureFilter()).findings
    assert "ledger-freeze-conflict" in {one.code for one in shown}
    freeze(kept.root, "ours", CLOCK)
    for write in WRITERS.values():
        write(kept)


def test_branches_that_froze_one_set_agree_whatever_attempts_they_ask_for(kept: Shop) -> None:
    same = digest.of(["f-0", "t-0"])
    frozen_beside(kept, {"tasks": same}, {"tasks": same, "attempts": 8})
    kept.export()
    kept.set((SET, "tasks: [f-0]"))
    with pytest.raises(ExportRefusedError, match="that was frozen last"):
        kept.export()


# --- what shows says it


def test_what_only_shows_says_it(kept: Shop) -> None:
    kept.export()
    ids = kept.ids()
    clusters = failure_log.list_(kept.root, failure_log.FailureFilter())
    cluster = clusters.clusters[0]["cluster"]
    assert told(clusters) == []
    kept.set((SET, "tasks: [f-0]"))
    (found,) = changed(Corpus(kept.root))
    assert (found.severity, found.hint) == (Severity.ERROR, HINT)
    views: list[Report] = [
        failure_log.list_(kept.root, failure_log.FailureFilter()),
        failure_log.show(kept.root, cluster),
        failure_log.show(kept.root, ids["f-1"]),
        audit(kept.root, "exports/sft"),
        health.check(kept.root),
    ]
    for view in views:
        assert told(view) == [found], type(view)
        assert view.exit_code == 1


def test_no_trace_is_said_to_be_taken_by_an_export_that_would_be_refused(kept: Shop) -> None:
    trace = kept.ids()["t-1"]
    before = audit(kept.root, trace)
    kept.set((SET, "tasks: [f-0]"))
    after = audit(kept.root, trace)
    assert isinstance(before, TraceAudit)
    assert isinstance(after, TraceAudit)
    assert (before.export, after.export) == ("yes", "no: the evaluation set is not the one that was frozen")


def test_check_tells_a_list_of_ids_that_is_not_the_frozen_one(kept: Shop) -> None:
    proved = "freezes whose list of tasks has the digest that they name: "
    assert f"{proved}1 of 1" in health.check(kept.root).proved
    path = kept.root / chain.NAME
    subject = {"tasks": digest.of(["f-0", "t-0"]), "count": 2, "attempts": 4}
    draft = chain.Draft("freeze", subject, "forged", {"tasks": ["f-0", "x-9"]})
    chain.append(path, chain.read(path), draft, CLOCK)
    report = health.check(kept.root)
    (broken,) = [one for one in report.findings if one.code == "evidence-broken"]
    assert broken.message.endswith("its list of tasks has not the digest that it names")
    assert f"{proved}1 of 2" in report.proved
    kept.set((SET, "tasks: [f-0]"))
    with pytest.raises(ExportRefusedError, match="which tasks were taken out is not known"):
        kept.export()


# --- a set that is frozen anew


def test_a_freeze_names_the_tasks_that_are_kept_out_no_more(kept: Shop) -> None:
    kept.set((SET, "tasks: [f-0, x-1]"))
    (found,) = [one for one in freeze(kept.root, "too easy", CLOCK).findings if one.code == "evaluation-released"]
    assert (found.severity, found.where) == (Severity.WARNING, "params.yaml: evaluation.tasks")
    assert found.message == "1 id of the set before keeps no task out of training from now on: 't-0'"
    kept.set(("tasks: [f-0, x-1]", "tasks: [f-0, x-1, shop/t-0]"))
    assert "evaluation-released" not in {one.code for one in freeze(kept.root, "more", CLOCK).findings}
    kept.set(("tasks: [f-0, x-1, shop/t-0]", "tasks: [f-0, x-1, t-0]"))
    assert "evaluation-released" not in {one.code for one in freeze(kept.root, "wider", CLOCK).findings}


# --- exports that hold what was frozen once


def audited(shop: Shop) -> list[Finding]:
    report = audit(shop.root, "exports/sft")
    assert isinstance(report, ExportAudit)
    assert (report.differences, report.exit_code) == (0, 0)
    return [one for one in report.findings if one.code == "export-once-evaluation"]


def test_an_export_with_a_task_that_a_frozen_set_held_is_told(kept: Shop) -> None:
    first = chain.read(kept.root / chain.NAME).entries[-1].digest
    kept.export()
    assert audited(kept) == []
    kept.set((SET, "tasks: [f-0]"))
    freeze(kept.root, "t-0 was too easy", CLOCK)
    kept.export()
    (found,) = audited(kept)
    assert found.severity is Severity.WARNING
    assert found.message == f"1 task of its rows was in a set that was frozen before: 't-0' ({first[:12]})"


def test_of_a_freeze_without_ids_nothing_is_told(shop: Shop) -> None:
    shop_of_failures(shop)
    shop.enter("freeze", {"tasks": digest.of(["f-0", "t-0"]), "count": 2, "attempts": 4})
    shop.set(("tasks: []", "tasks: [f-0]"))
    freeze(shop.root, "t-0 was too easy", CLOCK)
    shop.export()
    assert audited(shop) == []


# --- on the command line


@pytest.mark.parametrize(
    "words",
    [("export", "sft", "--out", "exports/sft"), ("plan",), ("failures", "export", "--out", "failures")],
    ids=lambda words: words[0],
)
def test_the_command_ends_with_40_and_says_what_to_do(
    kept: Shop, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--root", str(kept.root), *words]
    assert tracemark(command) == 0
    capsys.readouterr()
    kept.set((SET, "tasks: [f-0]"))
    assert tracemark(command) == 40
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "1 taken out: 't-0'" in streams.err
    assert HINT in streams.err


def test_a_frozen_set_of_ten_thousand_tasks_is_kept_with_its_ids(shop: Shop, tmp_path: Path) -> None:
    ids = [f"benchmark-of-some-name/task-{number:05d}" for number in range(10_000)]
    (shop.root / "held-out.txt").write_text("\n".join(ids))
    shop.set(("tasks: []", "tasks: {file: held-out.txt}"))
    freeze(shop.root, "to compare on", CLOCK)
    assert (shop.root / chain.NAME).stat().st_size < 500_000
    entry = chain.read(shop.root / chain.NAME).entries[-1]
    assert json.loads(json.dumps(entry.decision.evidence)) == {"tasks": ids}
    (shop.root / "held-out.txt").write_text("\n".join(ids[1:]))
    (found,) = changed(Corpus(shop.root))
    assert found.message.endswith(f"1 taken out: {ids[0]!r}")
