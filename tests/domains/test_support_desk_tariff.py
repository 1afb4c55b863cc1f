"""What a run would cost follows from its texts and the stated tariff alone."""

from __future__ import annotations

import pytest
from support_desk import tariff


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöüß", 1), ("x" * 400, 100)]
)
def test_a_token_is_four_characters_rounded_up(text: str, count: int) -> None:
    assert tariff.tokens(text) == count


def test_a_reply_is_billed_for_what_was_read_and_what_was_written() -> None:
    # 2 + 1 tokens read at 250 nanodollars, 2 written at 1250
    assert tariff.bill(["abcdefgh", "abc"], "abcde") == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "cost_usd": 0.00000325,
    }


def test_nothing_read_and_nothing_written_costs_nothing() -> None:
    assert tariff.bill([], "") == {"prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0}
