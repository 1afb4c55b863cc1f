"""Which spans of a trace belong to which run."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.otel_spans import Span, entries
from tracemark.importers.otel_tree import Group, Tree, spans_of

from .otel_made import ASKED, DONE, agent, chat, export, span, tool

Json = dict[str, Any]


def tree(*spans: Json) -> Tree:
    return Tree([Span(entry, number) for number, entry in enumerate(entries(export(*spans)))])


def shape(group: Group) -> Any:
    """Return agent, calls and tools of a group by number, and what is within it."""

    def numbers(spans: list[Span]) -> list[int]:
        return [int(one.span_id or "0", 16) for one in spans]

    own = numbers([group.agent]) if group.agent is not None else []
    return own, numbers(group.calls), numbers(group.tools), [shape(inner) for inner in group.inner]


def name(number: int) -> str:
    return f"{number:016x}"


def call(number: int, parent: int | None = None) -> Json:
    return chat(number, [ASKED], DONE, parent=None if parent is None else name(parent))


def test_calls_and_tools_belong_to_the_nearest_agent_around_them() -> None:
    made = tree(
        agent(1),
        call(2, 1),
        tool(3, parent=name(1)),
        agent(4, parent=name(3), at=350),
        call(5, 4),
        span(6, {"http.route": "/"}, parent=name(1)),
        call(7, 6),
    )
    [run] = made.runs()
    assert shape(run) == ([1], [2, 7], [3], [([4], [5], [], [])])
    assert run.inner[0].within is run.tools[0]
    assert len(spans_of(run)) == 6


def test_without_agents_all_calls_are_one_group() -> None:
    [run] = tree(span(1, {}), call(2, 1), call(3)).runs()
    assert shape(run) == ([], [2, 3], [], [])


def test_agents_within_a_wrapper_take_its_place() -> None:
    made = tree(agent(1), agent(2, parent=name(1), at=1), call(3, 2), agent(4, parent=name(1), at=2), call(5, 4))
    assert [shape(run)[0] for run in made.runs()] == [[2], [4]]


def test_a_call_of_no_agent_is_loose_where_agents_are() -> None:
    made = tree(agent(1), call(2, 1), call(3))
    assert [one.span_id for one in made.loose] == [name(3)]


def test_spans_around_an_agent_speak_for_its_run_up_to_the_next_agent() -> None:
    made = tree(
        agent(1), span(2, {}, parent=name(1)), span(3, {}, parent=name(2)), agent(4, parent=name(3), at=400), call(5, 4)
    )
    [run] = made.runs()
    assert [one.span_id for one in made.roots(run.agent)] == [name(4), name(3), name(2)]


def test_a_span_around_several_runs_speaks_for_none_of_them() -> None:
    made = tree(span(1, {}), agent(2, parent=name(1)), call(3, 2), agent(4, parent=name(1), at=500), call(5, 4))
    assert [[one.span_id for one in made.roots(run.agent)] for run in made.runs()] == [[name(2)], [name(4)]]
    # an agent that called no model is no run, and takes nothing from the other
    made = tree(span(1, {}), agent(2, parent=name(1)), call(3, 2), agent(4, parent=name(1), at=500))
    [run] = made.runs()
    assert [one.span_id for one in made.roots(run.agent)] == [name(2), name(1)]


@pytest.mark.parametrize("parent", [1, 2, 3])
def test_spans_in_a_circle_are_roots(parent: int) -> None:
    chain = [span(n, {}, parent=name(n - 1)) for n in (2, 3)]
    [run] = tree(span(1, {}, parent=name(parent)), *chain, call(4, 3)).runs()
    assert shape(run) == ([], [4], [], [])


def test_a_chain_of_many_spans_is_no_recursion() -> None:
    chain = [span(n, {}, parent=name(n - 1)) for n in range(2, 20_000)]
    [run] = tree(agent(1), *chain, call(20_000, 19_999)).runs()
    assert shape(run) == ([1], [20_000], [], [])
