"""Costs of model calls and of whole runs, in the names of ATIF; nothing that counts is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.usage import metrics_of, totals_of

PLACES = {"cost": "total_cost_usd", "sent": "total_prompt_tokens"}


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 40, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}},
        {"input_tokens": 40, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 8}},
    ],
)
def test_both_apis_report_the_same(usage: dict[str, Any]) -> None:
    found = metrics_of(usage, 0.5)
    details = {name: value for name, value in usage.items() if name.endswith("details")}
    assert found.pop("extra") == {"usage": details}
    assert found == {"prompt_tokens": 40, "completion_tokens": 9, "cached_tokens": 8, "cost_usd": 0.5}


def test_what_has_no_place_stays_and_null_says_nothing() -> None:
    assert metrics_of({"prompt_tokens": "40", "total_tokens": 49, "audio": None}) == {
        "extra": {"usage": {"prompt_tokens": "40", "total_tokens": 49}}
    }


@pytest.mark.parametrize(("usage", "cost"), [(None, None), ([40], True), ({}, "0.5")])
def test_what_is_no_report_gives_nothing(usage: Any, cost: Any) -> None:
    assert metrics_of(usage, cost) == {}


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
