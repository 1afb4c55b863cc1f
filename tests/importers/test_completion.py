"""Where the reply stands in a response of the Chat Completions API, and what is left without it."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers.completion import first_choice, reply_in, without_reply

MESSAGE = {"role": "assistant", "content": "on its way"}
RESPONSE = {"id": "r1", "choices": [{"message": MESSAGE, "finish_reason": "stop"}, {"message": {"content": "gone"}}]}


def test_the_reply_is_the_message_of_the_first_choice() -> None:
    assert reply_in(RESPONSE) is MESSAGE
    assert first_choice(RESPONSE)["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "response", [None, [], {}, {"choices": None}, {"choices": []}, {"choices": ["m"]}, {"choices": [{"message": "m"}]}]
)
def test_what_holds_no_message_has_no_reply(response: Any) -> None:
    assert reply_in(response) is None


def test_other_choices_and_members_are_left_and_nothing_is_altered() -> None:
    left = without_reply(RESPONSE)
    assert left == {"id": "r1", "choices": [{"finish_reason": "stop"}, {"message": {"content": "gone"}}]}
    assert RESPONSE["choices"][0] == {"message": MESSAGE, "finish_reason": "stop"}


@pytest.mark.parametrize(("kept", "found"), [({"tone": "dry"}, {"message": {"tone": "dry"}}), ({}, {}), (None, {})])
def test_what_the_step_does_not_keep_stands_in_its_place(kept: Any, found: dict[str, Any]) -> None:
    assert without_reply(RESPONSE, kept)["choices"][0] == {"finish_reason": "stop", **found}
