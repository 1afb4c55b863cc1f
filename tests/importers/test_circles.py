"""What stands in a circle that nothing leads to is above itself, and so has nothing above it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracemark.importers.circles import ranked


def graph(text: str) -> dict[str, list[str]]:
    """Return a graph that is written as `ab bc`: a is above b, b above c."""
    below: dict[str, list[str]] = {}
    for above, under in text.split():
        below.setdefault(above, []).append(under)
    return below


def circular(text: str) -> str:
    return "".join(sorted(map(str, ranked(graph(text)).circular)))


def test_two_that_are_above_one_another_are_a_circle() -> None:
    assert circular("ab ba") == "ab"


def test_a_longer_way_around_is_a_circle() -> None:
    assert circular("ab bc cd da ac") == "abcd"


def test_a_chain_and_a_tree_are_none() -> None:
    assert circular("ab bc ad dc") == ""


def test_one_that_is_above_itself_is_none() -> None:
    assert circular("aa ab") == ""


def test_a_circle_that_something_outside_leads_to_has_that_above_it() -> None:
    assert circular("ma ab ba bc") == ""


def test_what_a_circle_leads_to_is_below_it_and_not_of_it() -> None:
    assert circular("ab ba bc cd") == "ab"
    assert circular("ab ba bc cd dc") == "ab"


def test_each_circle_is_judged_alone() -> None:
    assert circular("ab ba cd dc mx xy yx") == "abcd"


NODES = "abcdefg"
EDGES = st.dictionaries(st.sampled_from(NODES), st.lists(st.sampled_from(NODES), max_size=4))


@given(EDGES)
def test_the_ranks_are_those_of_going_every_way(below: dict[str, list[str]]) -> None:
    reach = {one: set(below.get(one, ())) for one in NODES}
    for middle in NODES:
        for one in NODES:
            if middle in reach[one]:
                reach[one] |= reach[middle]
    over = {one: {other for other in NODES if one in reach[other] and other != one} for one in NODES}
    found = ranked(below)
    known = set(below) | {one for under in below.values() for one in under}
    assert found.circular == {one for one in known if over[one] and all(other in reach[one] for other in over[one])}
    assert sorted(found.order) == sorted(known)
    for one in known - found.circular:
        owners = {other for other in over[one] if one in below.get(other, ())}
        assert all(found.order[other] < found.order[one] for other in owners if other not in reach[one])
        assert not owners or any(found.order[other] < found.order[one] for other in owners)
