"""What a change of tool schemas leaves of a corpus: which calls stop, what stays usable, what needs fresh runs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tracemark.acts import decisions, equivalence, impact
from tracemark.cli.main import run
from tracemark.errors import IntegrityError, UnknownNameError
from tracemark.harness.impact import Verdict

from .conftest import CLOCK, SCHEMA, Shop, document, write_version

STRICT = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}


def version(shop: Shop, name: str = "desk_n", **parameters: Any) -> None:
    """Make a version that is desk_a with other parameters of its one tool."""
    folder = write_version(shop.root, name)
    (folder / "look.json").write_text(json.dumps({**SCHEMA, "parameters": {**STRICT, **parameters}}))


def run_of(task: str | None, *arguments: dict[str, Any], reward: float = 1.0, tool: str = "look") -> dict[str, Any]:
    """Return a run that calls a tool once for each of `arguments`."""
    made = document(task, reward=reward, calls=len(arguments), said=f"Done with {arguments} by {tool}.")
    # a tool that is not bound contradicts when it is answered without an error
    del made["agent"]["tool_definitions"]
    for step, given in zip(made["steps"][2:], arguments, strict=False):
        step["tool_calls"][0] |= {"arguments": given, "function_name": tool}
        if tool != "look":
            step["observation"]["results"][0] |= {"content": "Error: no such tool", "extra": {"is_error": True}}
    return made


def asked(shop: Shop, old: str = "desk_a", new: str = "desk_n") -> impact.Impact:
    return impact.impact(shop.root, old, new)


def counts(found: impact.Impact, what: str) -> dict[str, int]:
    return some(found.counts[what])


def some(counted: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counted.items() if count}


PREFIXED = {"order": {"type": "string", "pattern": "^o-"}}


def test_nothing_is_lost_where_every_call_is_valid(shop: Shop) -> None:
    version(shop, description="An order.")
    found = asked(shop)
    assert found.exit_code == 0
    assert (counts(found, "calls"), counts(found, "successes")) == ({"valid": 6}, {"valid": 3})
    assert (found.tasks_with_success, found.fresh_runs, found.stopped, found.more) == (3, (), (), 0)


def test_each_call_that_stops_is_named_with_its_argument_and_the_reason(shop: Shop) -> None:
    shop.ingest([run_of("x", {"order": "o-1"}, {"order": "p-1", "by": "name"})], name="more")
    version(shop, properties=PREFIXED, additionalProperties=False)
    found = asked(shop)
    assert found.exit_code == 1
    assert (found.successes, found.usable) == (4, 3)
    assert counts(found, "calls") == {"stopped": 1, "valid": 7}
    assert counts(found, "successes") == {"stopped": 1, "valid": 3}
    first, second = found.stopped
    trace = shop.ids()["x"]
    assert {name: first[name] for name in ("trace_id", "task", "status", "step", "call", "tool")} == {
        "trace_id": trace,
        "task": "x",
        "status": "success",
        "step": 4,
        "call": 1,
        "tool": "look",
    }
    places = [(row["argument"], row["rule"]) for row in (first, second)]
    assert places == [("/by", "additionalProperties"), ("/order", "pattern")]
    assert [row["task"] for row in found.fresh_runs] == ["x"]


def test_a_task_needs_fresh_runs_only_when_no_success_of_it_is_left(shop: Shop) -> None:
    runs = [run_of("x", {"order": "p"}), run_of("x", {"order": "o-"}), run_of("y", {"order": "p"})]
    shop.ingest([*runs, run_of("z", {"order": "p"}, reward=0.0), run_of(None, {"order": "p"})], name="more")
    version(shop, properties=PREFIXED)
    found = asked(shop)
    assert counts(found, "traces") == {"stopped": 4, "valid": 4}
    assert counts(found, "successes") == {"stopped": 3, "valid": 4}
    assert [(row["task"], some({k: v for k, v in row.items() if k in list(Verdict)})) for row in found.fresh_runs] == [
        ("y", {"stopped": 1})
    ]
    assert found.tasks_with_success == 5
    assert counts(found, "successes_without_task") == {"stopped": 1}


def test_a_tool_that_is_gone_stops_every_call_of_it(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_n")
    text = (folder / "harness.yaml").read_text()
    (folder / "harness.yaml").write_text(text.replace("  look: {", "  seek: {"))
    (folder / "look.json").write_text(json.dumps({**SCHEMA, "name": "seek"}))
    found = asked(shop)
    assert {(row["argument"], row["rule"]) for row in found.stopped} == {("", "tool-unbound")}
    assert len(found.fresh_runs) == 3
    means = {change["part"]: change["means"] for change in found.changes}
    assert means == {"look": "every call of it stops validating", "seek": "no trace was offered it"}


def test_calls_that_were_invalid_before_did_not_stop(shop: Shop) -> None:
    shop.ingest([run_of("x", {"order": 7}), run_of("y", {}, tool="seek")], name="more")
    version(shop, properties=PREFIXED)
    found = asked(shop)
    assert found.exit_code == 0
    assert counts(found, "successes") == {"invalid-before": 2, "valid": 3}
    assert [row["task"] for row in found.fresh_runs] == ["x", "y"]


def test_a_schema_that_is_unusable_is_a_finding_and_decides_nothing(shop: Shop) -> None:
    version(shop, properties={"order": {"$ref": "https://example.org/order.json"}})
    found = asked(shop)
    assert found.exit_code == 1
    assert counts(found, "successes") == {"undecided": 3}
    assert found.stopped == ()
    (problem,) = [one for one in found.findings if one.code == "schema-invalid"]
    assert "https://example.org/order.json" in problem.message
    turned = asked(shop, old="desk_n", new="desk_a")
    assert problem in turned.findings


def test_a_call_that_no_validator_takes_is_no_yes(shop: Shop) -> None:
    shop.ingest([run_of("x", {"order": "o-1\ud800"})], name="more")
    version(shop, properties=PREFIXED)
    found = asked(shop)
    assert counts(found, "calls") == {"undecided": 1, "valid": 6}
    assert found.exit_code == 1
    assert not found.findings


def test_what_no_export_takes_is_not_looked_at_and_counted(shop: Shop) -> None:
    version(shop, properties=PREFIXED)
    shop.ingest([document("b", extra="Be brief."), document("n")], None, "nobody")
    decisions.retract(shop.root, [shop.ids()["t-0"]], "wrong", CLOCK)
    shop.read_anew(shop.ids()["t-1"])
    copied = [document("r"), document("f", reward=0.0)]
    for one in copied:
        one["steps"][2]["is_copied_context"] = True
    shop.ingest(copied, name="copied")
    found = asked(shop)
    assert found.left_out == {"not-trainable": 2, "retracted": 1, "superseded": 1}
    assert sum(found.counts["traces"].values()) == 2


def test_what_was_taken_from_the_harness_is_none_of_its_traces(shop: Shop) -> None:
    version(shop, properties=PREFIXED)
    for task in ("t-0", "t-1"):
        decisions.stamp(shop.root, [shop.ids()[task]], "none", "not ours", CLOCK)
    decisions.retract(shop.root, [shop.ids()["t-0"]], "wrong", CLOCK)
    found = asked(shop)
    assert (found.left_out, counts(found, "traces")) == ({}, {"valid": 1})


def test_traces_of_an_equivalent_harness_are_looked_at_by_its_own_schemas(shop: Shop) -> None:
    version(shop, "desk_e", properties={"order": {"type": ["string", "integer"]}})
    version(shop, properties=PREFIXED)
    shop.ingest([run_of("e", {"order": 7})], "desk_e", "equivalent")
    shop.ingest([run_of("a", {"order": 7})], "desk_a", "old")
    assert sum(asked(shop).counts["traces"].values()) == 4
    equivalence.equivalent(shop.root, "desk_a", "desk_e", "wider", CLOCK, force=True)
    found = asked(shop)
    assert counts(found, "traces") == {"stopped": 1, "invalid-before": 1, "valid": 3}


@pytest.mark.parametrize(
    ("change", "restated"),
    [
        ("UPDATE traces SET status = 'failure'", False),
        ("UPDATE traces SET tool_calls = 9", False),
        ("UPDATE restated SET fields = json_set(fields, '$.task', 't-8')", True),
    ],
)
def test_a_catalogue_that_does_not_say_what_is_stored_stops_it(shop: Shop, change: str, restated: bool) -> None:
    version(shop)
    for harness in (None, "desk_a") if restated else ():
        shop.ingest([document("t-9")], harness, "again")
    assert asked(shop).exit_code == 0
    with closing(sqlite3.connect(shop.root / ".tracemark" / "catalogue.db")) as catalogue:
        assert catalogue.execute(change).rowcount
        catalogue.commit()
    with pytest.raises(IntegrityError, match="catalogue"):
        asked(shop)


def test_a_trace_that_was_stamped_since_counts_where_it_stands_now(shop: Shop) -> None:
    version(shop, properties=PREFIXED)
    shop.ingest([run_of("late", {"order": "p"})], None, "late")
    assert counts(asked(shop), "traces") == {"valid": 3}
    decisions.stamp(shop.root, [shop.ids()["late"]], "desk_a", "known", CLOCK)
    assert counts(asked(shop), "traces") == {"stopped": 1, "valid": 3}


def test_what_else_changed_is_said_and_nothing_promised_of_it(shop: Shop) -> None:
    found = asked(shop, "desk_a", "desk_b")
    assert (found.exit_code, counts(found, "successes")) == (0, {"valid": 3})
    (change,) = found.changes
    assert (change["component"], change["part"], change["members"]) == ("prompt_templates", "system", ["text"])
    assert "not those that the new ones would give" in change["means"]


def test_a_harness_has_no_impact_on_its_own_traces(shop: Shop) -> None:
    found = asked(shop, "desk_a", "desk_a")
    assert (found.exit_code, found.changes, counts(found, "calls")) == (0, (), {"valid": 6})


def test_names_that_nobody_has_are_refused(shop: Shop) -> None:
    with pytest.raises(UnknownNameError):
        asked(shop, "desk_a", "nobody")


def test_a_report_holds_so_many_rows_and_counts_the_rest_and_jsonl_has_all(
    shop: Shop, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    version(shop, properties=PREFIXED)
    shop.ingest([run_of(f"x-{n}", {"order": f"\x1b[2J{n}"}) for n in range(5)], name="more")
    found = impact.impact(shop.root, "desk_a", "desk_n", 2)
    assert (len(found.stopped), found.more) == (2, 3)
    assert run(["--root", str(shop.root), "harness", "impact", "desk_a", "desk_n", "--output", "jsonl"]) == 1
    lines = capfdbinary.readouterr().out.splitlines()
    assert sorted(json.loads(line)["task"] for line in lines) == [f"x-{n}" for n in range(5)]
    assert run(["--root", str(shop.root), "harness", "impact", "desk_a", "desk_n", "--limit", "1"]) == 1
    said = capfdbinary.readouterr()
    assert b"\x1b" not in said.out + said.err
    assert b"x-" in said.out


def test_several_segments_give_what_one_gives(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    version(shop, properties=PREFIXED)
    for number in range(4):
        shop.ingest([run_of(f"x-{number}", {"order": "p"})], name=f"more-{number}")
    answers = []
    for workers in ("1", "2"):
        monkeypatch.setenv("TRACEMARK_WORKERS", workers)
        answers.append(asked(shop))
    assert answers[0] == answers[1]
    assert len(answers[0].stopped) == 4
