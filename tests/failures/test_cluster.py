"""Clusters: ids that depend on nothing but the failure, counts that merge, memory that is bounded."""

from __future__ import annotations

import random
import time
import tracemalloc
from functools import reduce
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.failures.runs import bash, line, says
from tracemark import digest
from tracemark.failures import cluster as module
from tracemark.failures.cluster import Cluster, Clusters, Incident, cluster_id, incident
from tracemark.failures.conditions import shipped
from tracemark.failures.route import route

STARTS = st.sampled_from(
    [None, "", "soon", "2026-08-01T10:00:00Z", "2026-08-01T12:00:00+02:00", "2026-08-02", "9999-99-99"]
)
SIGHTINGS = st.lists(
    st.builds(
        Incident,
        st.text("abcdef0123456789", min_size=1, max_size=3),
        st.sampled_from([None, "tm1:a", "tm1:b"]),
        st.sampled_from([None, "bash"]),
        st.sampled_from(["Error: <n>", "fatal", ""]),
        st.sampled_from([None, "d/a", "d/b", "d/c", "e/a"]),
        STARTS,
    ),
    max_size=24,
    unique_by=lambda seen: seen.trace,
)


VARIED = st.lists(
    st.builds(
        Incident,
        st.text("abcdef0123456789", min_size=4, max_size=4),
        st.just("tm1:a"),
        st.just("bash"),
        st.sampled_from([f"line {number}" for number in range(12)]),
        st.just("d/t"),
        st.none(),
    ),
    max_size=30,
    unique_by=lambda seen: seen.trace,
)
"""Incidents of so many clusters that parts of them leave some out."""


def counted(incidents: list[Incident], limit: int = 1_000, names: int = module.NAMES) -> Clusters:
    found = Clusters(limit, names)
    for seen in incidents:
        found.ran(seen.fingerprint)
        found.add(seen)
    return found


def remembered(incidents: list[Incident], limit: int, names: int) -> dict[str, tuple[list[str], bool]]:
    """Return what is to be remembered of tasks: by cluster their names, and whether there are more."""
    tasks: dict[str, set[str]] = {}
    for one in incidents:
        tasks.setdefault(cluster_id(one.fingerprint, one.tool, one.masked), set()).add(one.task or "")
    found, held = {}, 0
    for name in sorted(tasks)[:limit]:
        held += min(len(tasks[name]), module.TASKS)
        most = module.TASKS if held <= names else module.FEW
        found[name] = sorted(tasks[name], key=digest.of)[:most], len(tasks[name]) > most
    return found


def seen(number: int, *, task: str | None = "d/t", line: str = "Error: <n>", start: str | None = None) -> Incident:
    return Incident(digest.of(number), "tm1:a", "bash", line, task, start)


class TestIds:
    def test_the_digest_of_fingerprint_tool_and_masked_line(self) -> None:
        assert cluster_id("tm1:a", "bash", "Error: <n>") == digest.sha256(b'["tm1:a","bash","Error: <n>"]')

    def test_nothing_known_is_null_and_not_empty(self) -> None:
        assert cluster_id(None, None, "x") == digest.sha256(b'[null,null,"x"]')
        assert cluster_id("", "", "x") != cluster_id(None, None, "x")

    def test_what_is_said_of_a_trace_comes_from_its_failure(self) -> None:
        stored = line(bash("make", "make: *** [Makefile:192: build] Error 2", 2))
        found = incident("id", "tm1:a", stored, route(stored, shipped()))
        assert found == Incident("id", "tm1:a", "bash", "make: *** [Makefile:<n>: build] Error <n>", "d/t", None)

    @pytest.mark.parametrize(
        ("run", "task"),
        [
            ({"task": "t"}, "t"),
            ({"task": "t", "domain": ""}, "t"),
            ({"task": "t", "domain": None}, "t"),
            ({"task": "", "domain": "d"}, None),
            ({"domain": "d"}, None),
        ],
    )
    def test_an_empty_domain_is_none_and_an_empty_task_an_unknown_one(
        self, run: dict[str, Any], task: str | None
    ) -> None:
        stored = line(says("done")) | {"run": run}
        assert incident("id", None, stored, route(stored, shipped())).task == task

    def test_a_run_without_an_error_is_named_by_its_condition(self) -> None:
        stored = line(says("done"))
        found = incident("id", None, stored, route(stored, shipped()))
        assert (found.tool, found.masked) == (None, "(stopped-early)")


class TestMerging:
    @given(SIGHTINGS, st.randoms(use_true_random=False), st.integers(1, 5), st.sampled_from([1, 2, 3, 1_000]))
    def test_any_order_and_any_parts_give_the_same(
        self, incidents: list[Incident], chance: random.Random, parts: int, limit: int
    ) -> None:
        whole = counted(incidents, limit)
        shuffled = list(incidents)
        chance.shuffle(shuffled)
        assert counted(shuffled, limit) == whole
        pieces = [counted(shuffled[number::parts], limit) for number in range(parts)]
        chance.shuffle(pieces)
        assert reduce(Clusters.merge, pieces) == whole

    @given(VARIED, st.randoms(use_true_random=False), st.integers(1, 5), st.integers(1, 6))
    def test_parts_that_each_left_clusters_out_give_the_same_in_any_order(
        self, incidents: list[Incident], chance: random.Random, parts: int, limit: int
    ) -> None:
        whole = counted(incidents, limit)
        pieces: list[list[Incident]] = [[] for _ in range(parts)]
        for one in incidents:
            chance.choice(pieces).append(one)
        together = Clusters(limit)
        for piece in chance.sample(pieces, parts):
            together.take(counted(piece, limit))
        assert together == whole
        # what was left out stays so, also where it is counted later
        more = counted([seen(number, line=f"late {number % 9}") for number in range(20)], limit)
        for clusters in (together, whole):
            clusters.take(more)
        assert together == whole

    @pytest.mark.parametrize("seed", range(100))
    def test_what_is_forgotten_follows_from_the_whole(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        chance = random.Random(seed)
        monkeypatch.setattr(module, "TASKS", chance.randint(2, 6))
        monkeypatch.setattr(module, "FEW", chance.randint(1, module.TASKS - 1))
        limit, names, parts = chance.randint(1, 9), chance.randint(1, 20), chance.randint(1, 4)
        incidents = [
            seen(number, line=f"line {chance.randrange(12)}", task=f"d/{chance.randrange(9)}")
            for number in range(chance.randrange(90))
        ]
        whole = counted(incidents, limit, names)
        told = {one.id: ([task for _, task in one.tasks], one.full) for one in whole}
        assert told == remembered(incidents, limit, names)
        pieces = [counted(incidents[at::parts], limit, names) for at in range(parts)]
        assert reduce(Clusters.merge, pieces) == whole
        assert reduce(Clusters.merge, reversed(pieces)) == whole

    @pytest.mark.parametrize("swapped", [False, True])
    def test_of_two_bounds_the_smaller_one_holds(self, swapped: bool) -> None:
        lines = sorted((f"line {number}" for number in range(12)), key=lambda line: cluster_id("tm1:a", "bash", line))
        # one part saw many of small ids, so that it left out what the other, which saw large ones alone, has kept
        small = counted([seen(number, line=line) for number, line in enumerate(lines[:6])], 2)
        large = counted([seen(100 + number, line=line) for number, line in enumerate(lines[1:])], 2)
        together = Clusters(2)
        for part in (small, large) if swapped else (large, small):
            together.take(part)
        assert [cluster.masked for cluster in sorted(together, key=lambda one: one.id)] == lines[:2]
        assert {cluster.masked: cluster.traces for cluster in together} == {lines[0]: 1, lines[1]: 2}
        assert together.left_out == 14

    @given(SIGHTINGS, st.integers(0, 24), st.integers(0, 24), st.sampled_from([1, 2, 1_000]))
    def test_it_is_associative_and_commutative(self, incidents: list[Incident], one: int, two: int, limit: int) -> None:
        begin, end = sorted((one, two))
        a, b, c = (counted(part, limit) for part in (incidents[:begin], incidents[begin:end], incidents[end:]))
        assert a.merge(b) == b.merge(a)
        assert a.merge(b).merge(c) == a.merge(b.merge(c))

    def test_merging_changes_neither_part(self) -> None:
        one, two = counted([seen(1)]), counted([seen(2)])
        one.merge(two)
        assert one == counted([seen(1)])
        assert two == counted([seen(2)])

    @given(SIGHTINGS)
    def test_nothing_is_lost(self, incidents: list[Incident]) -> None:
        found = counted(incidents, 2)
        assert sum(cluster.traces for cluster in found) + found.left_out == len(incidents)


class TestWhatIsCounted:
    def test_traces_tasks_and_representatives(self) -> None:
        incidents = [seen(number, task=f"d/{number % 4}") for number in range(9)]
        (found,) = counted([*incidents, seen(9, task=None)])
        assert (found.traces, found.task_count, found.full, found.unknown) == (10, 4, False, 1)
        assert found.representatives == tuple(sorted(digest.of(number) for number in range(10))[:3])

    def test_first_and_last_seen_are_instants_and_keep_their_words(self) -> None:
        starts = ["2026-08-01T10:30:00Z", "2026-08-01T11:00:00+02:00", "2026-08-01 12:00:00", "soon", None]
        (found,) = counted([seen(number, start=start) for number, start in enumerate(starts)])
        assert found.first is not None
        assert found.last is not None
        assert (found.first[1], found.last[1]) == ("2026-08-01T11:00:00+02:00", "2026-08-01 12:00:00")

    def test_a_start_without_a_zone_is_in_utc_wherever_it_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        try:
            starts = ["2026-01-01T02:00:00", "2026-01-01T03:00:00Z"]
            (cluster,) = counted([seen(number, start=start) for number, start in enumerate(starts)])
        finally:
            monkeypatch.undo()
            time.tzset()
        assert (cluster.first, cluster.last) == ((1767232800.0, starts[0]), (1767236400.0, starts[1]))

    def test_no_readable_start_is_none(self) -> None:
        (found,) = counted([seen(1, start="soon")])
        assert (found.first, found.last) == (None, None)

    def test_the_share_is_of_the_harnesss_runs(self) -> None:
        found = Clusters()
        found.ran("tm1:a", 8)
        found.ran("tm1:b", 100)
        found.add(seen(1))
        found.add(seen(2))
        (only,) = found
        assert found.share(only) == 0.25

    def test_without_runs_there_is_no_share(self) -> None:
        found = Clusters()
        found.add(seen(1))
        assert found.share(next(iter(found))) is None

    def test_the_most_frequent_comes_first(self) -> None:
        found = counted([seen(1, line="rare"), seen(2), seen(3)])
        assert [cluster.traces for cluster in found] == [2, 1]


class TestMemory:
    def test_tasks_are_exact_up_to_the_limit_and_estimated_beyond(self) -> None:
        (exact,) = counted([seen(number, task=f"d/{number}") for number in range(module.TASKS)])
        assert (exact.task_count, exact.full) == (module.TASKS, False)
        (many,) = counted([seen(number, task=f"d/{number}") for number in range(20_000)])
        assert many.full
        assert len(many.tasks) == module.TASKS
        assert many.task_count == pytest.approx(20_000, rel=0.12)

    def test_tasks_beyond_the_limit_merge_as_they_count(self) -> None:
        incidents = [seen(number, task=f"d/{number}") for number in range(3_000)]
        assert counted(incidents[::2]).merge(counted(incidents[1::2])) == counted(list(reversed(incidents)))

    def test_what_is_an_estimate_stays_one_with_nothing_new(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "TASKS", 2)
        (many,) = counted([seen(number, task=f"d/{number}") for number in range(3)])
        (few,) = counted([seen(9, task=None)])
        assert (many.full, many.merge(few).full, few.merge(many).full) == (True, True, True)

    def test_an_estimate_is_more_than_what_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "TASKS", 2)
        estimates = [
            next(iter(counted([seen(number, task=f"d/{begin + number}") for number in range(3)]))).task_count
            for begin in range(50)
        ]
        assert min(estimates) == 3

    @given(st.lists(st.sampled_from(range(40)), max_size=40), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
    def test_values_that_remember_more_and_fewer_tasks_merge_in_any_order(
        self, tasks: list[int], one: int, two: int, three: int
    ) -> None:
        parts = []
        for at, most in enumerate((one, two, three)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "TASKS", most)
                incidents = [seen(number, task=f"d/{task}") for number, task in enumerate(tasks) if number % 3 == at]
                parts += list(counted(incidents))
        merged = {reduce(Cluster.merge, order) for order in permutations(parts)} if parts else set()
        assert len(merged) <= 1
        every = sorted({digest.of(f"d/{task}") for task in tasks})
        for value in merged:
            known = [name for name, _ in value.tasks]
            assert known == every[: len(known)]
            assert value.full == (len(known) < len(every))

    @pytest.mark.parametrize("lines", [1, 40, 100_000])
    def test_no_more_is_held_however_much_is_counted(self, lines: int) -> None:
        def held(number: int) -> int:
            tracemalloc.start()
            try:
                found = Clusters(limit=32, names=128)
                for at in range(number):
                    found.add(seen(at, line=f"line {at % lines}", task=f"d/{at}"))
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        assert held(6_000) < 1.3 * held(3_000)

    def test_clusters_beyond_the_limit_are_counted_as_left_out(self) -> None:
        found = counted([seen(number, line=f"Error {number % 50}") for number in range(100)], 10)
        assert len(found) == 10
        assert all(cluster.traces == 2 for cluster in found)
        assert found.left_out == 80
        assert [cluster.id for cluster in sorted(found, key=lambda each: each.id)] == sorted(
            cluster_id("tm1:a", "bash", f"Error {number}") for number in range(50)
        )[:10]


def test_a_name_of_any_length_is_one_task_and_takes_little_room() -> None:
    long = "d/" + "x" * 100_000
    found = counted([seen(0, task=long + "a"), seen(1, task=long + "b"), seen(2, task=long + "a")])
    (cluster,) = found
    assert (cluster.traces, cluster.task_count) == (3, 2)
    names = [name for _, name in cluster.tasks]
    assert max(map(len, names)) < module.LONGEST_TASK + 100
    assert all(name.startswith("d/xxx") and "cut" in name for name in names)
    assert len(set(names)) == 2


def test_a_cluster_is_a_value() -> None:
    (found,) = counted([seen(1)])
    assert isinstance(found, Cluster)
    assert found.merge(found).traces == 2
    assert found.traces == 1
