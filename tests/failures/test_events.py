"""The walk: results find their calls, and what is not this run's own is left out."""

from __future__ import annotations

import pytest

from tests.failures.runs import Line, bash, call, line, says
from tracemark.failures.events import Event, read


def events_of(stored: Line) -> tuple[Event, ...]:
    return read(stored).events


def test_a_result_is_an_event_of_its_call() -> None:
    stored = line(call("edit", {"path": "a", "text": "b"}, "Error: no", name="c7"))
    assert events_of(stored) == (
        Event(
            step=2,
            call="c7",
            tool="edit",
            family="edit path=a",
            command='{"path":"a","text":"b"}',
            error="Error: no",
            empty=False,
            operation="edit",
            seen=(2, 0),
        ),
    )


def test_a_call_without_an_answer_is_none() -> None:
    assert events_of(line(call("edit", {"path": "a"}))) == ()


def test_an_empty_answer_is_empty_and_no_error() -> None:
    (event,) = events_of(line(bash("mkdir a", "", 0)))
    assert (event.error, event.empty) == (None, True)


def several(*names: str | None) -> tuple[Event, ...]:
    calls = [{"tool_call_id": f"c{number}", "function_name": f"t{number}", "arguments": {}} for number in range(3)]
    results = [{"content": "x"} | ({} if name is None else {"source_call_id": name}) for name in names]
    return events_of(line(says("", tool_calls=calls, observation={"results": results})))


def test_results_belong_to_calls_by_name() -> None:
    assert [event.tool for event in several("c2", "c0")] == ["t2", "t0"]


def test_results_without_a_name_belong_to_the_calls_that_have_none_in_order() -> None:
    assert [event.tool for event in several(None, "c0", None, None)] == ["t1", "t0", "t2", None]


def test_calls_of_one_name_are_answered_in_order() -> None:
    calls = [{"tool_call_id": "c", "function_name": name, "arguments": {}} for name in ("a", "b")]
    results = [{"source_call_id": "c", "content": text} for text in ("1", "2", "3")]
    found = events_of(line(says("", tool_calls=calls, observation={"results": results})))
    assert [event.tool for event in found] == ["a", "b", "b"]


def test_a_result_in_a_later_step_belongs_to_the_call_of_its_name() -> None:
    def answered(seen: str, source: str = "system", name: str = "c") -> Line:
        # what a result of another step answers stands beside it: in ATIF it can name none but its own step's calls
        result = {"content": seen, "extra": {"original_call_id": name}}
        return {"source": source, "message": "", "observation": {"results": [result]}}

    asked = call("book", {"train_id": "IC-7"}), call("book", {"train_id": "IC-8"})
    found = events_of(line(asked[0], answered("Error: sold out"), asked[1], answered("booked", "user")))
    # the event is the call's, and says where its answer lies
    assert [(event.step, event.call, event.tool) for event in found] == [(2, "c", "book"), (4, "c", "book")]
    assert [event.seen for event in found] == [(3, 0), (5, 0)]
    assert [event.command for event in found] == ['{"train_id":"IC-7"}', '{"train_id":"IC-8"}']
    # nor is it what a call of its own step was answered
    both = call("book", {"train_id": "IC-9"}, name="d") | {"observation": answered("Error: sold out")["observation"]}
    (other_one,) = events_of(line(asked[0], both))
    assert (other_one.step, other_one.call, other_one.command) == (2, "c", '{"train_id":"IC-7"}')
    # a call that is yet to come is not what it answers, and neither is one of another name
    early, other = events_of(line(answered("Error: sold out"), asked[0], answered("Error: no", name="d")))
    assert (early.tool, other.tool) == (None, None)


def test_a_result_without_a_call_may_have_its_command_beside_it() -> None:
    results = {"results": [{"content": "make: *** Error 2"}]}
    by_action = says("x", extra={"action": "make\n"}, observation=results)
    by_text = says("let me build\n```bash\nmake\n```", observation=results)
    recorded = {"results": [{"content": "make: *** Error 2", "extra": {"original_content": {"command": "make"}}}]}
    by_record = {"source": "system", "message": "", "observation": recorded}
    for step in (by_action, by_text, by_record):
        (event,) = events_of(line(step))
        assert (event.call, event.tool, event.family, event.error) == (None, None, "shell: make", "make: *** Error 2")


@pytest.mark.parametrize("name", ["lost", 7, ["c"]])
def test_a_result_that_names_an_unknown_call_has_no_command(name: object) -> None:
    results = {"results": [{"content": "make: *** Error 2", "extra": {"original_call_id": name}}]}
    by_action = says("x", extra={"action": "make\n"}, observation=results)
    by_text = says("let me build\n```bash\nmake\n```", observation=results)
    by_call = call("bash", {"command": "make"}) | {"observation": results}
    for step in (by_action, by_text, by_call):
        (event,) = events_of(line(step))
        assert (event.step, event.call, event.tool, event.family, event.command) == (2, None, None, None, "")
        assert event.error == "make: *** Error 2"
    results["results"][0]["extra"] |= {"original_content": {"command": "make"}}
    (event,) = events_of(line(by_call))
    assert (event.call, event.command) == (None, "make")


def test_what_is_left_over_in_a_step_with_calls_has_no_command_of_the_steps_text() -> None:
    answered = call("bash", {"command": "ls"}, "a") | {"message": "```bash\nmake\n```", "extra": {"action": "make"}}
    answered["observation"]["results"].append({"content": "make: *** Error 2"})
    _, event = events_of(line(answered))
    assert (event.call, event.command, event.family, event.seen) == (None, "", None, (2, 1))


def test_events_are_in_the_order_in_which_the_results_came() -> None:
    late = {"content": "Error: lost", "extra": {"original_call_id": "a"}}
    both = call("book", {"n": 2}, "booked", name="b")
    both["observation"]["results"].append(late)
    found = events_of(line(call("book", {"n": 1}, name="a"), both, call("book", {"n": 3}, "booked", name="c")))
    assert [(event.call, event.step, event.seen) for event in found] == [
        ("b", 3, (3, 0)),
        ("a", 2, (3, 1)),
        ("c", 4, (4, 0)),
    ]


def test_steps_copied_from_another_trajectory_tell_of_that_one() -> None:
    assert events_of(line(bash("make", "no", 2) | {"is_copied_context": True})) == ()


def test_parts_are_read_as_one_text() -> None:
    parts = [{"type": "text", "text": "Error: "}, {"type": "image", "source": {}}, {"type": "text", "text": "no"}]
    (event,) = events_of(line(call("edit", {"path": "a"}, parts)))
    assert event.error == "Error: no"


def test_tokens_are_summed_and_nothing_recorded_is_none() -> None:
    assert read(line(says("a"))).prompt_tokens is None
    assert (
        read(line(says("a", metrics={"prompt_tokens": 3}), says("b", metrics={"prompt_tokens": 4}))).prompt_tokens == 7
    )
    assert read(line(says("a", metrics={"prompt_tokens": None}))).prompt_tokens is None


def test_a_text_that_no_model_wrote_is_not_spoken() -> None:
    assert read(line(says("welcome", llm_call_count=0))).spoke is False
    assert read(line(says("welcome"))).spoke is True


def test_a_short_answer_that_what_was_named_is_not_there_is_an_error() -> None:
    for seen, error in (
        ("No customer uses a@b.", "No customer uses a@b."),
        ("There is no one else.", None),
        ("a@b uses the desk since 2020; its card is not found.\n" + "more\n" * 100, None),
    ):
        (event,) = events_of(line(call("find_customer", {"email": "a@b"}, seen)))
        assert event.error == error
    (event,) = events_of(
        line(call("find", {"email": "a@b"}, "No customer uses a@b.", extra={"raw_output": {"ok": True}}))
    )
    assert event.error is None
