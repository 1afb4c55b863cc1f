"""A search ends, whatever expression somebody wrote."""

from __future__ import annotations

import re
import signal
import threading

import pytest

from tests.failures.runs import bash, line, says
from tracemark.errors import ParamsError
from tracemark.failures.conditions import conditions
from tracemark.failures.patience import ImpatienceError, search
from tracemark.failures.route import route

ENDLESS = re.compile("(a+)+$")
TEXT = "a" * 60 + "!"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a|a)*$", "(?:a*)*b"])
def test_an_expression_without_an_end_is_given_up(pattern: str) -> None:
    with pytest.raises(ImpatienceError):
        search(re.compile(pattern), TEXT, 0.05)


def test_one_that_ends_says_what_it_found() -> None:
    assert search(re.compile("a!$"), TEXT)
    assert not search(re.compile("b"), TEXT)


def test_nothing_is_left_behind() -> None:
    def mine(*_: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGVTALRM, mine)
    try:
        search(re.compile("a"), TEXT)
        with pytest.raises(ImpatienceError):
            search(ENDLESS, TEXT, 0.05)
        assert signal.getsignal(signal.SIGVTALRM) is mine
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_another_thread_searches_without_a_limit() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(search(re.compile("a!"), TEXT)))
    thread.start()
    thread.join()
    assert found == [True]


OWN = """version = 1

[[condition]]
name = "mine"
order = 0
says = "mine"
side = "tool"
confidence = 0.9
destination = "harness"
test = "failure-matches"
statuses = ["failure", "error"]
patterns = ['guard', '(a+)+$']
"""


@pytest.mark.parametrize(
    ("test", "steps", "outcome"),
    [
        ("failure-matches", [bash("make", f"Error: {TEXT}", 1)], {}),
        ("failure-matches", [says("hm")], {"status": "error", "termination": TEXT}),
        ("stopped", [says("hm")], {"termination": TEXT}),
    ],
)
def test_a_condition_without_an_end_is_named_and_no_run_is_judged_by_it(
    test: str, steps: list[dict[str, object]], outcome: dict[str, str]
) -> None:
    own = conditions(OWN.replace("failure-matches", test), "rules/own.toml")
    with pytest.raises(ParamsError, match=r"condition 'mine': '\(a\+\)\+\$' was given up after 1 s") as refused:
        route(line(*steps, **outcome), own)
    assert refused.value.where == "rules/own.toml"
    assert refused.value.hint


def test_it_does_no_harm_where_it_ends() -> None:
    own = conditions(OWN, "rules/own.toml")
    assert route(line(bash("make", "Error: guard " + TEXT, 1)), own).condition == "mine"
    assert route(line(bash("make", "Error: no", 1)), own).condition == "not-recovered"
