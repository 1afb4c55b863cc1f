"""Which observations are what the handlers of a run gave."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tracemark.runner.handled import Handled

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
STORED = {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AAAA"}}


@dataclass(slots=True)
class Shown:
    text: str
    cut: bool


class Plain:
    def __init__(self, text: str) -> None:
        self.text = text


def of_one(value: Any) -> Handled:
    handled = Handled(["show"])
    handled.followed("show", lambda: value)()
    return handled


def test_what_a_handler_gave_is_its_own_once() -> None:
    handled = of_one("alp")
    assert handled.take(["alp"]) == []
    assert handled.take(["alp"]) == ["show"]


def test_each_of_several_results_needs_what_was_given_for_it() -> None:
    handled = Handled(["show"])
    show = handled.followed("show", lambda raw: raw)
    for text in ("a", "b", "b"):
        show(text)
    assert handled.take(["b", "a"]) == []
    assert handled.take(["b", "b"]) == ["show"]


@pytest.mark.parametrize(
    "value",
    [("alp", True), ["alp", 3], {"content": "alp", "is_error": False}, Shown("alp", True), Plain("alp")],
)
def test_a_text_beside_other_things_is_found_one_level_deep(value: Any) -> None:
    assert of_one(value).take(["alp"]) == []
    assert of_one(value).take(["al"]) == ["show"]
    assert of_one({"deep": value}).take(["alp"]) == ["show"]


@pytest.mark.parametrize("value", [None, True, 3, b"alp", [], {}, {"type": "text"}, [{"type": "video"}], object()])
def test_what_holds_no_text_gives_no_observation(value: Any) -> None:
    assert of_one(value).take([""]) == ["show"]
    assert of_one(value).take(["alp"]) == ["show"]


def test_parts_are_compared_as_a_trace_holds_them() -> None:
    text = {"type": "text", "text": "alp"}
    assert of_one([text]).take(["alp"]) == []
    assert of_one("alp").take([[text]]) == []
    assert of_one([text, IMAGE]).take([[text, STORED]]) == []
    assert of_one({"content": [text, IMAGE]}).take([[text, STORED]]) == []
    assert of_one([text, IMAGE]).take([[text]]) == ["show"]
    other = {"type": "image", "source": {"media_type": "image/png", "path": "other.png"}}
    assert of_one([text, IMAGE]).take([[text, other]]) == ["show"]


def test_what_changes_after_it_was_given_is_known_as_it_was_given() -> None:
    handled = Handled(["show"])
    parts = handled.followed("show", lambda: [{"type": "text", "text": "alp"}])()
    parts[0]["text"] = "made up"
    assert handled.take(["made up"]) == ["show"]
    assert handled.take(["alp"]) == []


def cut_then_redact() -> tuple[Handled, Callable[..., Any], Callable[..., Any]]:
    handled = Handled(["cut", "redact"])
    cut = handled.followed("cut", lambda raw: raw[:3])
    redact = handled.followed("redact", lambda text, mark="*": text.replace("a", mark))
    return handled, cut, redact


def test_handlers_form_a_chain() -> None:
    handled, cut, redact = cut_then_redact()
    assert handled.take([redact(cut("alpha")), redact(text=cut("alpha"))]) == []
    assert handled.take([redact(cut("bcd"))]) == [], "what neither changes is both's"


def test_a_handler_whose_text_the_next_one_never_saw_has_no_part_in_it() -> None:
    handled, cut, redact = cut_then_redact()
    cut("alpha")
    assert handled.take([redact("alpha")]) == ["cut"]


def test_a_chain_that_stops_early_holds_the_handlers_up_to_there() -> None:
    handled, cut, redact = cut_then_redact()
    text = cut("alpha")
    redact(text)
    assert handled.take([text]) == ["redact"]


def test_another_order_is_another_chain() -> None:
    handled, cut, redact = cut_then_redact()
    assert handled.take([cut(redact("alpha"))]) == ["redact"]


def test_what_is_no_text_is_handed_on_as_the_same_object() -> None:
    handled = Handled(["read", "show"])
    read = handled.followed("read", lambda raw: ({"row": raw}, True))
    show = handled.followed("show", lambda row, whole: row["row"] if whole else "")
    row, whole = read("alp")
    assert handled.take([show(row, whole)]) == []
    read("alp")
    assert handled.take([show({"row": "other"}, whole)]) == ["read"], "True is everybody's"


def test_one_call_stands_for_one_result_of_two_that_were_made_of_it() -> None:
    handled, cut, redact = cut_then_redact()
    text = cut("alpha")
    assert handled.take([redact(text), redact(text)]) == ["cut"]
    once = cut("alpha")
    redact(once)
    assert handled.take([redact(once)]) == [], "made twice, and shown once"


def test_nothing_that_was_given_before_is_left_when_it_is_forgotten() -> None:
    handled = of_one("alp")
    handled.forget()
    assert handled.take(["alp"]) == ["show"]


def test_a_coroutine_has_given_what_its_end_gives() -> None:
    async def show(raw: str) -> str:
        await asyncio.sleep(0)
        return raw[:3]

    handled = Handled(["show"])
    followed = handled.followed("show", show)

    async def run() -> list[str]:
        return list(await asyncio.gather(followed("alpha"), followed("betas")))

    assert handled.take(asyncio.run(run())) == []


def test_a_call_that_raised_gave_nothing() -> None:
    handled = Handled(["show"])
    with pytest.raises(ZeroDivisionError):
        handled.followed("show", lambda: 1 / 0)()
    assert handled.take(["division by zero"]) == ["show"]


def test_calls_side_by_side_are_all_known() -> None:
    handled = Handled(["show"])
    show = handled.followed("show", lambda number: f"row {number}")
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(show, range(200)))
    assert handled.take(texts) == []
