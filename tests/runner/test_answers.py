"""Which results are covered by calls of the code that was handed out."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.runner.answers import Answers


@given(runs=st.integers(0, 6), calls=st.integers(0, 6))
def test_a_tool_is_bypassed_as_often_as_it_answers_beyond_its_runs(runs: int, calls: int) -> None:
    answers = Answers()
    run = answers.counted("get", lambda: None)
    answers.expect({str(number): "get" for number in range(calls)})
    for _ in range(runs):
        run()
    assert answers.take([str(number) for number in range(calls)]) == ["get"] * max(0, calls - runs)


def test_a_result_without_a_call_answers_all_that_are_open_and_then_none() -> None:
    answers = Answers()
    answers.expect({"1": "get", "2": "put"})
    assert answers.take([None]) == ["get", "put"]
    assert answers.take([None]) == []


def test_a_second_answer_to_one_call_needs_a_second_run() -> None:
    answers = Answers()
    answers.expect({"1": "get"})
    answers.counted("get", lambda: None)()
    assert answers.take(["1", "1"]) == ["get"]


def test_a_call_stands_for_no_answer_to_a_later_reply() -> None:
    answers = Answers()
    run = answers.counted("get", lambda: None)
    run()
    answers.expect({"1": "get"})
    assert answers.take(["1"]) == ["get"], "called in front of the reply"
    answers.expect({"2": "get"})
    run()
    run()
    assert answers.take(["2"]) == []
    answers.expect({"3": "get"})
    assert answers.take(["3"]) == ["get"], "called once more than the reply before asked for"


def test_a_result_of_an_earlier_reply_is_refused_and_nothing_is_taken() -> None:
    answers = Answers()
    answers.expect({"1": "get"})
    answers.expect({"2": "get"})
    answers.counted("get", lambda: None)()
    with pytest.raises(UsageError, match="'1'"):
        answers.take(["2", "1"])
    assert answers.take(["2"]) == []


def test_what_the_code_gives_or_raises_comes_through_and_counts() -> None:
    answers = Answers()
    answers.expect({"1": "add", "2": "add", "3": "add"})
    assert answers.counted("add", lambda one, two: one + two)(1, two=2) == 3
    with pytest.raises(ZeroDivisionError):
        answers.counted("add", lambda: 1 / 0)()
    assert answers.take(["1", "2", "3"]) == ["add"]


def test_runs_side_by_side_are_all_counted() -> None:
    answers = Answers()
    run = answers.counted("get", lambda number: number)
    answers.expect({str(number): "get" for number in range(200)})
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(run, range(200))) == 19900
    assert answers.take([None]) == []
