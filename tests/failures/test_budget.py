"""Budgets of a run's own, by which a gate decides: the whole of what is said must say so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tracemark.failures.budget import exhausted

OWN = (
    "max_steps", "max_steps (500)", "max_iterations: 512", "MaxTurnsExceeded", "LimitsExceeded", "exit_cost", "token",
    "context_length_exceeded", "length", "message limit", "maximum steps reached", "step limit of 500 reached",
    "cost limit exceeded", "Prompt is too long", "max user turns reached", "Too many tool calls", "max_tokens",
    "The agent has reached its maximum number of steps.", "budget exceeded", "MaxTurnsExceededError",
)  # fmt: skip


@pytest.mark.parametrize("termination", OWN)
def test_a_budget_of_the_runs_own_is_one_in_these_words(termination: str) -> None:
    assert exhausted(termination)
    # and in no others: an error message may speak of budgets in passing
    assert not exhausted(f"BadRequestError: {termination}")
    assert not exhausted(f"{termination} for tenant 7")


@pytest.mark.parametrize(
    "termination",
    [
        None, "", "completed", "error", "RateLimitError: 429", "rate limit exceeded", "time limit exceeded",
        "ReadTimeout", "agent_timeout", "max_time", "working", "Connection error", "quota exceeded",
        "sandbox_error: no space left",
        "BadRequestError: max_tokens is too large: 9000", "ServiceUnavailable: maximum concurrent calls exceeded",
        "maximum concurrent calls exceeded", "server overloaded: token budget exhausted for tenant",
        "TypeError: max_tokens must be an integer", "LimitExceededError: max_connections", "operator", "custom",
        "max_retries", "maximum connections reached", "HTTP 500", "too many requests",
    ],
)  # fmt: skip
def test_time_what_others_use_up_and_errors_are_no_budget_of_the_runs_own(termination: str | None) -> None:
    assert not exhausted(termination)


@given(st.text(st.sampled_from("max steps_reached0 limit:("), max_size=130))
def test_any_words_are_read(termination: str) -> None:
    assert exhausted(termination) in (False, True)


def test_long_words_take_no_time() -> None:
    assert growth(exhausted, "max " * 200_000) < 3
