"""Every real trace is routed, and what was read by hand stays as it was read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.failures.runs import Line
from tracemark import digest
from tracemark.failures.cluster import Clusters, incident
from tracemark.failures.conditions import UNMATCHED, shipped
from tracemark.failures.log import cluster_value, example, overview, row, to_json
from tracemark.failures.route import Routing, route
from tracemark.importers import source
from tracemark.importers.base import Imported, Limits

pytestmark = pytest.mark.shared_data


class Routed(NamedTuple):
    """A real trace, and where it goes."""

    trace: str
    line: Line
    routing: Routing


@pytest.fixture(scope="module")
def routed(shared_traces: Path) -> list[Routed]:
    found = []
    for job in source.plan([shared_traces], limits=Limits()).jobs:
        for item in source.read(job):
            if isinstance(item, Imported) and not item.embedded:
                line = {
                    "outcome": item.outcome,
                    "run": item.run,
                    "source": item.source,
                    "trajectory": item.trajectory,
                }
                found.append(Routed(digest.sha256(item.trajectory_bytes), line, route(line, shipped())))
    return found


def test_every_trace_goes_somewhere_and_a_failure_says_where_it_was_seen(routed: list[Routed]) -> None:
    assert len(routed) > 500
    names = {condition.name for condition in shipped().ordered} | {UNMATCHED}
    for each in routed:
        steps = {step["step_id"] for step in each.line["trajectory"]["steps"]}
        assert each.routing.condition in names
        for span in (each.routing.failure, *each.routing.recovered):
            assert span is None or (span.step in steps and span.text.strip())


def test_no_success_is_a_failure_and_only_a_success_is_trained_on(routed: list[Routed]) -> None:
    for each in routed:
        trains = each.routing.destination in ("training", "recovery-training")
        success = each.line["outcome"]["status"] == "success"
        assert success or not trains
        assert not success or trains or each.routing.destination == "quarantine"


@pytest.mark.parametrize(
    ("label", "task", "condition", "step", "text"),
    [
        ("gpt-4o-airline", "9", "command-repeated", 31, "Error: payment amount does not add up"),
        ("gpt-4o-airline", "8", "command-repeated", 22, "Error: payment amount does not add up"),
        ("gpt-4o-airline", "4", "stopped-early", None, ""),
        ("20260531-222346-104165", "8", "not-recovered", 15, "Error: Payment amount does not add up"),
        ("20260601-023242-818996", "8", "recovered-success", None, ""),
        ("20260531-184109-726391", "update_task_with_user_tools", "budget-exhausted", None, ""),
        ("overflow-4818__iJRnL4X", "overflow-4818", "no-model-input", None, ""),
        ("deepseek_bench1__astropy__astropy-14182", None, UNMATCHED, 16, "ModuleNotFoundError: No module named 'erfa'"),
        ("deepseek_bench1__django__django-11422", None, UNMATCHED, 67, "AttributeError: 'function' object"),
        ("marshmallow-code__marshmallow-1359", None, UNMATCHED, 56, "/opt/miniconda3/bin/python: No module named"),
        ("hello-world-invalid-json.trajectory.json", None, UNMATCHED, 2, "Previous response had parsing errors: ERROR"),
        ("test_data__edge_cases", None, UNMATCHED, 4, "Error: Tool execution failed"),
    ],
)
def test_what_was_read_by_hand(
    routed: list[Routed], label: str, task: str | None, condition: str, step: int | None, text: str
) -> None:
    found = [
        each
        for each in routed
        if label in each.line["source"]["label"] and (task is None or each.line["run"].get("task") == task)
    ]
    assert found
    matching = [
        each
        for each in found
        if each.routing.condition == condition
        and (each.routing.failure is None if step is None else each.routing.failure is not None)
        and (each.routing.failure is None or each.routing.failure.step == step)
    ]
    assert matching, [each.routing for each in found]
    assert all(each.routing.failure is None or each.routing.failure.text.startswith(text) for each in matching)


def test_the_log_of_all_of_them_can_be_written(routed: list[Routed]) -> None:
    clusters, counts, rows, examples = Clusters(), Counter[tuple[str, str]](), [], {}
    for each in routed:
        if each.line["outcome"]["status"] == "success":
            continue
        seen = incident(each.trace, None, each.line, each.routing)
        clusters.ran(None)
        rows.append(row(each.trace, each.line, None, each.routing, clusters.add(seen)))
        counts[each.routing.condition, each.routing.destination] += 1
        examples[each.trace] = example(each.trace, each.line, each.routing)
    for cluster in clusters:
        value = cluster_value(cluster, clusters, [examples[trace] for trace in cluster.representatives])
        assert to_json(value).isascii()
    text = overview("all", clusters, counts, {})
    assert all(letter == "\n" or letter.isprintable() for letter in text)
    assert sum(cluster.traces for cluster in clusters) == len(rows) == sum(counts.values())
