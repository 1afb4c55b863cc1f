"""Costs of model calls and of whole runs, in the names of ATIF; nothing that counts is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.usage import metrics_of, totals_of

PLACES = {"cost": "total_cost_usd", "sent": "total_prompt_tokens"}


@pytest.mark.parametrize(
    ("usage", "metrics"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, {"prompt_tokens": 5, "completion_tokens": 2}),
        ({"input_tokens": 5, "output_tokens": 0}, {"prompt_tokens": 5, "completion_tokens": 0}),
        (
            {"input_tokens_details": {"cached_tokens": 3}},
            {"cached_tokens": 3, "extra": {"usage": {"input_tokens_details": {"cached_tokens": 3}}}},
        ),
        (
            {"input_tokens_details": {"cached_tokens": "3"}},
            {"extra": {"usage": {"input_tokens_details": {"cached_tokens": "3"}}}},
        ),
        ({"prompt_tokens": "5", "x": None}, {"extra": {"usage": {"prompt_tokens": "5"}}}),
        ({"prompt_tokens": True}, {"extra": {"usage": {"prompt_tokens": True}}}),
        ({}, {}),
        (None, {}),
        ([5], {}),
    ],
)
def test_a_report_of_either_api_is_read(usage: Any, metrics: dict[str, Any]) -> None:
    assert metrics_of(usage) == metrics


@pytest.mark.parametrize(("cost", "known"), [(0, True), (0.5, True), (None, False), ("0.5", False), (True, False)])
def test_a_cost_is_a_number(cost: Any, known: bool) -> None:
    assert metrics_of(None, cost) == ({"cost_usd": cost} if known else {})


def test_totals_go_to_their_places_and_the_rest_stays() -> None:
    assert totals_of({"cost": 0.5, "sent": 40, "api_calls": 3}, PLACES) == {
        "total_cost_usd": 0.5,
        "total_prompt_tokens": 40,
        "extra": {"api_calls": 3},
    }


def test_a_cost_may_be_any_number_and_a_count_is_whole() -> None:
    assert totals_of({"cost": 1, "sent": 40.5}, PLACES) == {"total_cost_usd": 1, "extra": {"sent": 40.5}}
    assert totals_of({"cost": True, "sent": True}, PLACES) == {"extra": {"cost": True, "sent": True}}
    assert totals_of({}, PLACES) == {}
