"""What to run next: counted from the store, the records of exports and params.yaml; never an evaluation task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import accepted_pair, decisions, planning
from tracemark.acts.planning import PlanOptions, PlanReport
from tracemark.errors import ExportRefusedError, IntegrityError, NotPulledError, UsageError

from .conftest import CLOCK, Shop, document, write_version


@pytest.fixture
def accepted(shop: Shop) -> Shop:
    """Three successes of the accepted harness, of the tasks t-0 to t-2."""
    shop.accept()
    return shop


def made(shop: Shop, **options: Any) -> PlanReport:
    return planning.plan(shop.root, PlanOptions(**options))


def names(report: PlanReport) -> list[str]:
    return [row["task"] for row in report.tasks]


def codes(report: PlanReport) -> list[str]:
    return [one.code for one in report.findings]


def failures(task: str, count: int, **run: Any) -> list[dict[str, Any]]:
    return [document(task, reward=0.0, attempt=n, said=f"No {run.get('model')} {n}.", **run) for n in range(count)]


def test_solved_tasks_wait_for_an_export_and_retire_with_it(accepted: Shop) -> None:
    before = made(accepted)
    assert (before.waiting, before.retired, before.rows) == (("t-0", "t-1", "t-2"), (), 3)
    accepted.export()
    after = made(accepted)
    assert (after.waiting, after.retired, after.rows) == ((), ("t-0", "t-1", "t-2"), 3)
    assert names(after) == ["u-0", "u-1"]


def test_a_task_retires_only_when_its_very_trace_was_taken(accepted: Shop) -> None:
    accepted.export()
    taken = json.loads((accepted.root / "exports/sft/manifest.json").read_text())["rows"]
    # another success of t-0, made after the one that was taken was retracted
    gone = accepted.ids()["t-0"]
    assert gone in taken
    decisions.retract(accepted.root, [gone], "the wrong order", CLOCK)
    accepted.ingest([document("t-0", said="Done again.", attempt=1)], name="again")
    report = made(accepted)
    assert (report.waiting, report.retired) == (("t-0",), ("t-1", "t-2"))


def test_a_task_stays_retired_when_a_newer_importer_reads_its_record_anew(accepted: Shop) -> None:
    accepted.set(("per_task: 1", "per_task: 3"))
    accepted.export()
    accepted.read_anew(accepted.ids()["t-0"])
    report = made(accepted)
    assert report.retired == ("t-0", "t-1", "t-2")
    assert "t-0" not in names(report)


def test_a_trace_that_was_taken_and_would_not_be_now_is_not_harvested(accepted: Shop) -> None:
    accepted.export()
    accepted.set(("tool_calls: [2, 60]", "tool_calls: [3, 60]"))
    accepted.ingest([document("t-0", calls=3, attempt=1)], name="longer")
    assert (made(accepted).waiting, made(accepted).retired) == (("t-0",), ())


def test_what_the_export_left_out_for_its_total_is_not_harvested(accepted: Shop) -> None:
    accepted.set(("total: 100", "total: 2"))
    accepted.export()
    accepted.set(("total: 2", "total: 100"))
    report = made(accepted)
    assert (len(report.retired), len(report.waiting)) == (2, 1)


def test_successes_of_another_harness_are_none_here(accepted: Shop) -> None:
    assert {"task": "u-0", "attempts": 2, "reason": "never run"} in made(accepted).tasks


def test_a_success_that_no_export_takes_is_an_attempt_without_one(accepted: Shop) -> None:
    accepted.ingest([document("long", calls=61)], name="long")
    rows = [row for row in made(accepted).tasks if row["task"] == "long"]
    assert rows == [{"task": "long", "attempts": 2, "reason": "no success that an export takes"}]


def test_why_no_success_of_a_task_is_taken_is_told_with_what_helps(accepted: Shop) -> None:
    accepted.ingest([*[document(f"long-{n}", calls=61, said=f"{n}") for n in range(2)], *failures("hard", 4)])
    # another success of a task that has a row takes nothing from anybody
    accepted.ingest([document("t-0", calls=61, attempt=1), document("held", calls=61)], name="more")
    accepted.set(("tasks: []", "tasks: [held]"))
    report = made(accepted)
    assert (report.untaken, codes(report)) == ({"tool-calls": 2}, ["plan-untaken", "plan-unfilled"])
    told, unfilled = report.findings
    assert told.message == "no export takes 2 successes of 2 tasks, which have no other: tool-calls 2"
    assert told.hint == "change params.yaml: export.sft.tool_calls [2, 60] leaves out 2"
    assert str(unfilled.hint).startswith("see to plan-untaken first; then name more tasks")
    accepted.set(("tool_calls: [2, 60]", "tool_calls: [2, 61]"))
    after = made(accepted)
    assert (after.untaken, codes(after), after.rows) == ({}, ["plan-unfilled"], report.rows + 2)


def test_successes_that_show_no_single_harness_are_told_where_they_are_given_up(accepted: Shop) -> None:
    write_version(accepted.root, "desk_c", handler="  # the same")
    accepted.ingest([document("t-0", attempt=n, said=f"Done {n}.") for n in range(1, 4)], name="again")
    report = made(accepted)
    assert report.given_up == ("t-0",)
    assert {"task": "t-1", "attempts": 2, "reason": "no success that an export takes"} in report.tasks
    # a list with that reason is a plan as well
    out = accepted.root / "reports" / "plan.jsonl"
    assert made(accepted, out=out).tasks == made(accepted, out=out).tasks == report.tasks
    assert report.untaken == {"evidence": 6}
    assert str(report.findings[0].hint).startswith("change params.yaml: export.evidence unique leaves out 6, which")
    accepted.set(("evidence: unique", "evidence: claimed"))
    assert made(accepted).waiting == ("t-0", "t-1", "t-2")


def test_where_nothing_is_lacking_it_is_not_told_what_no_export_takes(accepted: Shop) -> None:
    accepted.ingest([document("long", calls=61)], name="long")
    accepted.set(("total: 100", "total: 3"))
    assert (codes(made(accepted)), made(accepted).untaken) == ([], {"tool-calls": 1})


def test_of_a_revision_that_is_another_model_no_success_is_missed(accepted: Shop) -> None:
    accepted.ingest([document("long", calls=61, model={"name": "m", "revision": "ft1"})], name="revised")
    accepted_pair.accept_model(accepted.root, "m", "the base", CLOCK)
    assert made(accepted).untaken == {"tool-calls": 1}
    accepted.ingest(failures("other", 1, model={"name": "m"}), name="plain")
    assert made(accepted).untaken == {}


def test_a_task_is_given_up_after_its_attempts(accepted: Shop) -> None:
    accepted.ingest([*failures("hard", 4), *failures("new", 3)], name="failed")
    report = made(accepted)
    assert report.given_up == ("hard",)
    assert {"task": "new", "attempts": 1, "reason": "not solved yet"} in report.tasks
    accepted.set(("  attempts: 4              # attempts that", "  attempts: 5              # attempts that"))
    assert {"task": "hard", "attempts": 1, "reason": "not solved yet"} in made(accepted).tasks


def test_what_the_infrastructure_ended_is_no_attempt(accepted: Shop) -> None:
    ended = failures("hard", 4)
    for one in ended[:2]:
        one["extra"]["tracemark"]["outcome"] = {"status": "error"}
    accepted.ingest(ended, name="failed")
    assert {"task": "hard", "attempts": 2, "reason": "not solved yet"} in made(accepted).tasks


@pytest.mark.parametrize("run", [{"role": "subagent"}, {"role": "continuation"}, {"demonstration": True}])
def test_what_is_no_whole_run_of_the_agent_is_no_attempt(accepted: Shop, run: dict[str, Any]) -> None:
    accepted.ingest(failures("hard", 4, **run), name="failed")
    assert {"task": "hard", "attempts": 2, "reason": "never run"} in made(accepted).tasks


def test_what_was_retracted_is_no_attempt(accepted: Shop) -> None:
    accepted.ingest(failures("hard", 4), name="failed")
    assert made(accepted).given_up == ("hard",)
    decisions.retract(accepted.root, [accepted.ids()["hard"]], "the desk was broken", CLOCK)
    assert {"task": "hard", "attempts": 1, "reason": "not solved yet"} in made(accepted).tasks


def test_what_became_of_a_model_without_a_revision_is_another_one(accepted: Shop) -> None:
    revised = failures("hard", 4, model={"name": "m", "revision": "ft1"})
    accepted.ingest(revised, name="revised")
    accepted_pair.accept_model(accepted.root, "m", "the base", CLOCK)
    # where no run is of the name alone, it means every revision
    assert made(accepted).given_up == ("hard",)
    accepted.ingest(failures("other", 1, model={"name": "m"}), name="plain")
    report = made(accepted)
    assert report.given_up == ()
    assert {"task": "hard", "attempts": 2, "reason": "never run"} in report.tasks


def test_what_one_model_cannot_do_another_may(accepted: Shop) -> None:
    for revision, count in (("1", 4), ("2", 1)):
        accepted.ingest(failures("hard", count, model={"name": "m", "revision": revision}), name=f"failed-{revision}")
    assert made(accepted).given_up == ("hard",)
    accepted_pair.accept_model(accepted.root, "m@2", "better", CLOCK)
    report = made(accepted)
    assert (report.given_up, report.model) == ((), "m@2")
    assert {"task": "hard", "attempts": 2, "reason": "not solved yet"} in report.tasks
    # successes count whoever made them, as they do in an export
    assert report.waiting == ("t-0", "t-1", "t-2")
    accepted_pair.accept_model(accepted.root, "m@1", "better after all", CLOCK)
    assert made(accepted).given_up == ("hard",)


def test_attempts_of_models_whose_traces_no_export_takes_are_none(accepted: Shop) -> None:
    accepted.ingest(failures("hard", 4, model={"name": "m", "revision": "1"}), name="failed")
    accepted.set(("models: []  ", "models: [m@2]"))
    assert made(accepted).given_up == ()


def test_a_success_of_another_model_is_an_attempt_as_well(accepted: Shop) -> None:
    accepted.ingest(failures("hard", 1, model={"name": "m"}), name="failed")
    accepted.set(("per_task: 1", "per_task: 3"))
    accepted_pair.accept_model(accepted.root, "m", "the only one", CLOCK)
    # three tasks at three quarters, two never run at a half and one at a quarter, two attempts each
    assert made(accepted).expected == 3 * 1.5 + 2 * 1.0 + 0.5
    accepted.set(("per_task: 3", "per_task: 1"))
    # the three wait, and of two successes of a task one is taken
    assert made(accepted).expected == round(2 * 0.75 + 7 / 16, 3)


def test_a_domain_without_a_name_is_none(accepted: Shop) -> None:
    accepted.ingest(failures("hard", 4, domain=""), name="failed")
    assert made(accepted).given_up == ("hard",)


def test_evaluation_tasks_that_keep_nothing_out_are_told(accepted: Shop) -> None:
    accepted.set(("tasks: []", "tasks: [T-0]"))
    assert "evaluation-misspelt" in codes(made(accepted))


def test_a_success_of_unknown_task_counts_to_its_domain(accepted: Shop) -> None:
    accepted.ingest([document(None, domain="desk")], name="nameless")
    accepted.set(("quotas: {}", "quotas: {desk: 0.5}"), ("total: 100", "total: 10"))
    assert made(accepted).short == {"desk": 4}


def test_while_it_is_open_which_model_is_accepted_nothing_is_planned(accepted: Shop) -> None:
    accepted.set(("  model: null", '  model: "m@2"'))
    with pytest.raises(ExportRefusedError, match=r"accepted\.model"):
        made(accepted)


def test_an_evaluation_task_is_never_planned(accepted: Shop, tmp_path: Path) -> None:
    (tmp_path / "more").write_text('u-0\nheld\n{"task": "new", "domain": "desk"}\n')
    accepted.set(("tasks: []", "tasks: [u-0, held, desk/new]"))
    report = made(accepted, tasks=tmp_path / "more")
    assert names(report) == ["u-1"]
    assert report.evaluation == 3


def test_an_evaluation_task_of_one_domain_is_planned_in_another(accepted: Shop, tmp_path: Path) -> None:
    (tmp_path / "more").write_text('{"task": "a", "domain": "desk"}\n{"task": "a", "domain": "shop"}\n')
    accepted.set(("tasks: []", "tasks: [desk/a]"))
    planned = [row for row in made(accepted, tasks=tmp_path / "more").tasks if row["task"] == "a"]
    assert planned == [{"task": "a", "domain": "shop", "class": "shop", "attempts": 2, "reason": "never run"}]


def test_tasks_that_were_never_run_come_from_a_list(accepted: Shop, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"task": "new", "domain": "desk", "class": "desk/refund"}\nt-0\n')
    report = made(accepted, tasks=more)
    new = {"task": "new", "domain": "desk", "class": "desk/refund", "attempts": 2, "reason": "never run"}
    assert report.tasks[0] == new or new in report.tasks
    assert report.waiting == ("t-0", "t-1", "t-2")


def test_a_plan_can_be_read_as_a_list_of_tasks(accepted: Shop, tmp_path: Path) -> None:
    (tmp_path / "more").write_text('{"task": "new", "domain": "desk", "class": "desk/refund"}\n')
    first = made(accepted, out=tmp_path / "plan.jsonl", tasks=tmp_path / "more")
    assert made(accepted, tasks=tmp_path / "plan.jsonl").tasks == first.tasks


def test_the_list_is_written_and_is_empty_where_nothing_is_to_be_run(accepted: Shop, tmp_path: Path) -> None:
    out = tmp_path / "reports" / "plan.jsonl"
    report = made(accepted, out=out)
    assert [json.loads(line) for line in out.read_text().splitlines()] == list(report.tasks) != []
    accepted.set(("total: 100", "total: 3"))
    assert made(accepted, out=out).tasks == ()
    assert out.read_bytes() == b""


def test_runs_are_limited_by_the_option_before_the_parameter(accepted: Shop) -> None:
    accepted.set(("  runs: null", "  runs: 1   "))
    assert (made(accepted).runs, made(accepted, runs=3).runs) == (1, 3)
    assert made(accepted).not_needed == ("u-1",)


def test_quotas_decide_which_class_is_run(accepted: Shop, tmp_path: Path) -> None:
    lines = [{"task": f"{kind}-{n}", "domain": "desk", "class": f"desk/{kind}"} for kind in "ab" for n in range(9)]
    (tmp_path / "more").write_text("".join(json.dumps(line) + "\n" for line in lines))
    accepted.set(("quotas: {}", "quotas: {desk/a: 0.5, desk: 0.2}"), ("total: 100", "total: 10"))
    report = made(accepted, tasks=tmp_path / "more")
    planned = [row["class"] for row in report.tasks if "class" in row]
    # five rows and two, three quarters of one a task; a class without a quota counts to the one above it
    assert (planned.count("desk/a"), planned.count("desk")) == (7, 3)
    assert report.short == {}


def test_what_cannot_be_filled_is_said_and_what_was_not_asked_for_is_not(accepted: Shop) -> None:
    # two tasks with two attempts each at a rate of one half, of which one success is taken
    report = made(accepted)
    assert (report.rows, report.wanted, report.expected, report.unfilled) == (3, 100, 1.5, 96)
    assert codes(report) == ["plan-unfilled"]
    assert "96 of the 100 that are wanted" in report.findings[0].message
    accepted.set(("total: 100", "total: 4"))
    assert codes(made(accepted, runs=1)) == []
    accepted.set(("quotas: {}", "quotas: {trains: 0.4}"))
    short = made(accepted)
    assert short.short == {"trains": 2}
    assert "2 of the class 'trains'" in short.findings[0].message


def test_a_quota_is_planned_although_what_is_there_fills_the_total(accepted: Shop, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("".join(f"desk/d{number}\n" for number in range(4)))
    accepted.set(("quotas: {}", "quotas: {desk: 0.5}"), ("total: 100", "total: 3"))
    report = made(accepted, tasks=tmp_path / "more")
    assert (names(report), report.rows, report.lacking, report.unfilled) == (["d0", "d1", "d2"], 3, 2, 0)
    assert {row["domain"] for row in report.tasks} == {"desk"}
    assert codes(report) == []


def test_rows_that_only_a_class_above_its_quota_could_give_are_told_as_such(accepted: Shop, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("".join(f"desk/d{number}\n" for number in range(20)))
    accepted.set(("quotas: {}", "quotas: {desk: 0.2, shop: 0.1}"), ("total: 100", "total: 20"))
    report = made(accepted, tasks=tmp_path / "more")
    # two tasks are left without a quota, and fourteen of the desk
    assert (len(report.not_needed), report.short, report.unfilled) == (14, {"shop": 2}, 12)
    (told,) = report.findings
    assert told.message.endswith(": 2 of the class 'shop', 10 of classes without a quota")


def test_quotas_without_a_total_are_refused(accepted: Shop) -> None:
    accepted.set(("quotas: {}", "quotas: {desk: 0.4}"), ("total: 100", "total: null"))
    with pytest.raises(UsageError, match="no total is set"):
        made(accepted)


def test_without_a_total_every_open_task_is_listed(accepted: Shop) -> None:
    accepted.set(("total: 100", "total: null"))
    report = made(accepted)
    assert (names(report), report.wanted, report.unfilled) == (["u-0", "u-1"], None, 0)


def test_without_an_accepted_harness_there_is_nothing_to_plan_for(shop: Shop) -> None:
    with pytest.raises(ExportRefusedError, match="no harness is accepted"):
        made(shop)


def test_runs_without_a_task_are_counted(accepted: Shop) -> None:
    accepted.ingest([document(None), document(None, reward=0.0, said="No.")], name="nameless")
    report = made(accepted)
    # of a success nobody need know the task to learn from it, unless some tasks are kept apart
    assert (report.unnamed, report.rows, accepted.export().rows) == (2, 4, 4)
    accepted.set(("tasks: []", "tasks: [held]"))
    assert (made(accepted).rows, accepted.export().rows) == (3, 3)


def test_the_declared_equivalent_counts_as_the_accepted_one(accepted: Shop) -> None:
    pair = sorted([accepted.fingerprint("desk_a"), accepted.fingerprint("desk_b")])
    accepted.enter("equivalent", {"fingerprints": pair})
    assert made(accepted).waiting == ("t-0", "t-1", "t-2", "u-0", "u-1")


def test_a_harness_that_cannot_be_compared_stops_the_plan_as_it_stops_the_export(accepted: Shop) -> None:
    write_version(accepted.root, "broken")
    (accepted.root / "harness_versions/broken/harness.yaml").write_text("nonsense: 1\n")
    with pytest.raises(ExportRefusedError, match="cannot be compared"):
        made(accepted)


def test_a_plan_is_not_made_of_a_part_of_the_corpus(accepted: Shop) -> None:
    (accepted.root / "dvc.lock").write_text(
        "schema: '2.0'\nstages:\n  ingest:\n    cmd: x\n    outs:\n    - path: traces/segments\n"
        "      md5: 0123456789abcdef0123456789abcdef.dir\n      size: 1\n      nfiles: 99\n"
    )
    with pytest.raises(NotPulledError):
        made(accepted)


def test_a_damaged_trace_that_must_be_read_stops_it(accepted: Shop) -> None:
    for segment in (accepted.root / "traces/segments").rglob("*.zst"):
        segment.chmod(0o644)
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
    with pytest.raises(IntegrityError):
        made(accepted)


@pytest.mark.parametrize("place", ["inbox/plan.jsonl", "traces/plan.jsonl", "harness_versions/plan.jsonl"])
def test_a_plan_is_not_written_where_it_would_be_read_back(accepted: Shop, place: str) -> None:
    with pytest.raises(UsageError):
        made(accepted, out=accepted.root / place)
    assert not (accepted.root / place).exists()


@pytest.mark.parametrize("place", ["ledger.jsonl", "params.yaml", "dvc.yaml", "dvc.lock", ".gitignore", ".git/plan"])
def test_a_plan_takes_the_place_of_no_file_that_the_corpus_reads(accepted: Shop, place: str) -> None:
    path = accepted.root / place
    before = path.read_bytes() if path.exists() else None
    # whatever is in it: an empty ledger looks like an empty plan
    with pytest.raises(UsageError, match="the corpus keeps what it reads there") as stopped:
        made(accepted, out=path)
    assert "reports/plan.jsonl" in str(stopped.value.hint)
    assert (path.read_bytes() if path.exists() else None) == before


@pytest.mark.parametrize(
    "text",
    [
        "t-0\nt-1\n",
        '{"task":"t-0"}\n',
        '{"attempts":2,"reason":"because","task":"t-0"}\n',
        '{"attempts":2,"note":"mine","reason":"never run","task":"t-0"}\n',
        '{"attempts":2,"reason":"never run","task":"t-0"}\nt-1\n',
        "{",
        "\n",
        "\u00e4",
    ],
)
def test_a_plan_replaces_nothing_but_an_earlier_plan(accepted: Shop, tmp_path: Path, text: str) -> None:
    out = tmp_path / "mine"
    out.write_text(text, encoding="latin-1")
    before = out.read_bytes()
    with pytest.raises(UsageError, match="the file holds no plan"):
        made(accepted, out=out)
    assert out.read_bytes() == before


def test_a_plan_replaces_no_folder_and_nothing_through_a_link(accepted: Shop, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the file holds no plan"):
        made(accepted, out=tmp_path)
    (tmp_path / "link").symlink_to(accepted.root / "ledger.jsonl")
    with pytest.raises(UsageError, match="the corpus keeps what it reads there"):
        made(accepted, out=tmp_path / "link")


def test_a_plan_does_not_replace_the_list_of_which_it_is_made(accepted: Shop, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.write_text("".join(f"n-{number}\n" for number in range(9)))
    # an earlier plan as well: what is not needed now would be gone
    first = made(accepted, out=tmp_path / "plan.jsonl", tasks=more)
    (tmp_path / "link").symlink_to(tmp_path / "plan.jsonl")
    for name in ("plan.jsonl", "link"):
        with pytest.raises(UsageError, match="of which the plan is made"):
            made(accepted, out=tmp_path / name, tasks=tmp_path / "plan.jsonl")
    assert made(accepted, tasks=tmp_path / "plan.jsonl").tasks == first.tasks


def test_a_list_of_tasks_that_is_not_there_is_an_error(accepted: Shop, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: there is no such file") as stopped:
        made(accepted, tasks=tmp_path / "nowhere")
    assert stopped.value.hint == "name a file that is there"
    with pytest.raises(UsageError, match="it is a folder"):
        made(accepted, tasks=tmp_path)


def test_the_order_of_ingest_means_nothing(accepted: Shop, tmp_path: Path) -> None:
    accepted.ingest(failures("hard", 2), name="one")
    accepted.ingest(failures("new", 1), name="two")
    tasks = made(accepted).tasks
    assert [row["task"] for row in tasks] == ["u-0", "u-1", "new", "hard"]
