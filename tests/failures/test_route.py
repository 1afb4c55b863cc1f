"""The router: each of the twelve conditions with its nearest negative, and what recovered means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.failures.runs import Line, bash, call, line, says
from tracemark.failures import route as module
from tracemark.failures.conditions import conditions, shipped
from tracemark.failures.events import Event
from tracemark.failures.route import Routing, Span, route

NOTHING: tuple[Any, ...] = (
    *("none", "None", " null ", "n/a", "no error", "No errors found.", "false", "0", "ok", "[]", "", "-"),
    *({}, [], False, {"message": "none"}, {"type": None, "message": ""}),
)
DISK = "tar: data.bin: Cannot write: No space left on device"


def routed(*steps: Line, **outcome: Any) -> Routing:
    return route(line(*steps, **outcome), shipped())


def counted(found: Line, tokens: int | None) -> Line:
    found["trajectory"]["final_metrics"] = {"total_prompt_tokens": tokens}
    return found


class TestNoModelInput:
    def test_no_tokens_sent_is_the_environments_fault(self) -> None:
        found = route(counted(line(says("")), 0), shipped())
        assert found[:4] == ("no-model-input", "environment", 0.97, "environment-repair")

    @pytest.mark.parametrize("tokens", [None, 1])
    def test_a_count_that_was_not_recorded_is_not_zero(self, tokens: int | None) -> None:
        assert route(counted(line(says("")), tokens), shipped()).condition == "stopped-early"

    def test_a_model_that_spoke_was_sent_something_whatever_was_counted(self) -> None:
        assert route(counted(line(says("hello")), 0), shipped()).condition == "stopped-early"

    @pytest.mark.parametrize(("step", "total"), [(5, 0), (0, 5)])
    def test_a_total_that_forgets_what_was_sent_is_not_zero(self, step: int, total: int) -> None:
        found = counted(line(says("", metrics={"prompt_tokens": step})), total)
        assert route(found, shipped()).condition == "stopped-early"

    def test_a_count_of_zero_in_the_steps_counts_too(self) -> None:
        assert routed(says("", metrics={"prompt_tokens": 0})).condition == "no-model-input"


class TestGraderException:
    @pytest.mark.parametrize(
        "outcome",
        [
            {"termination": "VerifierTimeoutError"},
            {"termination": "RewardFileNotFoundError: no reward.txt"},
            {"checks": {"error": "Traceback (most recent call last): ..."}},
            {"checks": {"exception_info": {"exception_type": "KeyError"}}},
            {"checks": {"resolved": False, "error_eval": True}},
            {"checks": {"resolved": False, "test_timeout": True}},
            {"checks": {"result": False, "is_system_error": True}},
        ],
    )
    def test_a_grader_that_broke_is_the_benchmarks_fault(self, outcome: dict[str, Any]) -> None:
        found = routed(says("done"), status="error", **outcome)
        assert found[:4] == ("grader-exception", "grader", 0.90, "benchmark-repair")

    @pytest.mark.parametrize(
        "outcome",
        [
            {"termination": "stop"},
            {"checks": {"error": None}},
            {"checks": {"tests": [{"error": "VerifierError"}]}},
            {"checks": {"tests": "1 error"}},
            {"checks": []},
            {"checks": {"error_eval": False}},
        ],
    )
    def test_a_verdict_that_speaks_of_errors_is_a_verdict(self, outcome: dict[str, Any]) -> None:
        assert routed(says("done"), **outcome).condition == "stopped-early"

    @pytest.mark.parametrize("status", ["failure", "error", "unknown"])
    @pytest.mark.parametrize("empty", NOTHING)
    def test_a_word_for_nothing_is_no_error(self, empty: Any, status: str) -> None:
        expected = "stopped-early" if status == "failure" else "unmatched"
        for name in ("error", "exception", "traceback", "exception_info", "grader_error", "error_eval"):
            assert routed(bash("ls", "a", 0), status=status, checks={name: empty}).condition == expected

    VERDICTS = (
        "assertion failed: expected 5, got 4",
        "AssertionError: expected 5, got 4",
        'Traceback (most recent call last):\n  File "t.py", line 1, in f\nAssertionError: 5 != 4',
        "ModuleNotFoundError: No module named 'solution'",
        "none of the tests passed",
        "verification failed: expected 5, got 4",
        "evaluation failed: AssertionError: 5 != 4",
        {"message": "expected 5, got 4", "type": "AssertionError"},
        True,
    )

    @pytest.mark.parametrize("name", ["error", "exception", "traceback", "exception_info"])
    @pytest.mark.parametrize("words", VERDICTS)
    def test_with_a_verdict_of_failure_the_words_of_a_check_are_the_verdicts(self, name: str, words: Any) -> None:
        assert routed(says("done"), checks={name: words}).condition == "stopped-early"

    @pytest.mark.parametrize("words", VERDICTS)
    def test_without_a_verdict_they_are_why_there_is_none(self, words: Any) -> None:
        assert routed(says("done"), status="error", checks={"error": words}).condition == "grader-exception"

    @pytest.mark.parametrize(
        "checks",
        [
            {"error": "VerifierOutputParseError: no JSON"},
            {"error": "verifier_timeout"},
            {"exception": "judge failed: timeout"},
            {"exception_info": {"exception_type": "RewardFileNotFoundError", "exception_message": "no reward.txt"}},
            {"traceback": 'Traceback (most recent call last):\n  File "g.py", line 1, in f\nJudgeError: 503'},
            {"error": "Grader crashed: KeyError"},
            {"grader_error": "KeyError: 'answer'"},
            {"verifier_error": {"message": "no JSON"}},
            {"error_eval": True},
        ],
    )
    def test_a_grader_that_is_named_broke_whatever_verdict_stands(self, checks: dict[str, Any]) -> None:
        assert routed(says("done"), checks=checks).condition == "grader-exception"

    def test_a_verdict_of_success_stands(self) -> None:
        assert routed(says("done"), status="success", checks={"error": "late"}).condition == "clean-success"


class TestNoSession:
    def test_a_trace_without_a_step_of_the_agent_is_quarantined(self) -> None:
        found = routed({"source": "system", "message": "started"})
        assert found[:4] == ("no-session", "ambiguous", 0.0, "quarantine")

    def test_one_step_is_a_session(self) -> None:
        assert routed(says("hm")).condition == "stopped-early"

    def test_steps_copied_from_another_trajectory_are_none_of_its_own(self) -> None:
        assert routed(says("hm", is_copied_context=True)).condition == "no-session"


class TestSuccess:
    def test_without_a_failure_it_is_clean(self) -> None:
        found = routed(bash("ls", "a", 0), says("done"), status="success")
        assert found[:4] == ("clean-success", "model", 0.80, "training")

    def test_after_a_recovered_failure_it_is_a_recovery(self) -> None:
        found = routed(bash("make", "make: *** Error 2", 2), bash("make", "ok", 0), status="success")
        assert found[:4] == ("recovered-success", "model", 0.80, "recovery-training")
        assert found.recovered == (Span(2, "c", "bash", "make: *** Error 2"),)
        assert found.failure is None

    def test_with_a_failure_that_nobody_saw_recovered_it_is_quarantined(self) -> None:
        found = routed(bash("make", "make: *** Error 2", 2), bash("ls", "a", 0), status="success")
        assert found[:4] == ("unmatched", "ambiguous", 0.0, "quarantine")
        assert found.failure == Span(2, "c", "bash", "make: *** Error 2")


class TestFailedWithoutAnError:
    @pytest.mark.parametrize(
        "termination",
        [
            "max_steps",
            "AgentTimeoutError",
            "length",
            "LimitsExceeded",
            "exit_cost",
            "token limit exceeded",
            "RuntimeError: Agent reached maximum iteration in headless mode.",
        ],
    )
    def test_at_the_end_of_its_budget_it_is_ambiguous_and_quarantined(self, termination: str) -> None:
        found = routed(bash("ls", "a", 0), termination=termination)
        assert found[:4] == ("budget-exhausted", "ambiguous", 0.45, "quarantine")

    @pytest.mark.parametrize("termination", ["stop", "user_stop", "submitted", "agent_stop", "unlimited"])
    def test_stopped_by_itself_it_is_the_models_fault(self, termination: str) -> None:
        found = routed(bash("ls", "a", 0), termination=termination)
        assert found[:4] == ("stopped-early", "model", 0.60, "model-training")

    def test_a_recovered_error_is_no_error(self) -> None:
        assert routed(bash("make", "no", 2), bash("make", "ok", 0)).condition == "stopped-early"

    def test_an_error_at_the_end_of_the_budget_is_an_error(self) -> None:
        assert routed(bash("make", "no", 2), termination="max_steps").condition == "not-recovered"


class TestEnvironmentFault:
    @pytest.mark.parametrize(
        "text",
        [
            DISK,
            "curl: (6) Could not resolve host: pypi.org",
            "ERROR: No matching distribution found for numpy==99",
            "E: Unable to locate package libfoo",
            "npm ERR! code ENOTFOUND",
        ],
    )
    def test_disk_network_and_packages_are_the_environments(self, text: str) -> None:
        found = routed(bash("install it", text, 1))
        assert found[:4] == ("environment-fault", "environment", 0.85, "environment-repair")

    def test_a_file_that_is_not_there_is_the_models(self) -> None:
        assert routed(bash("cat a", "cat: a: No such file or directory", 1)).condition == "not-recovered"

    def test_words_of_a_disk_in_a_file_are_not_a_full_disk(self) -> None:
        assert routed(bash("cat notes", f"remember: {DISK}", 0)).condition == "stopped-early"

    def test_a_later_fault_does_not_explain_the_earliest(self) -> None:
        found = routed(bash("make", "make: *** Error 2", 2), bash("tar x", DISK, 1))
        assert found.condition == "not-recovered"
        assert found.symptoms == 1

    @pytest.mark.parametrize(
        "termination", ["EnvironmentStartTimeoutError", "DockerException: no daemon", "SandboxError"]
    )
    def test_an_environment_that_broke_is_no_budget(self, termination: str) -> None:
        assert routed(says("hm"), status="error", termination=termination).condition == "environment-fault"

    def test_a_run_that_was_cancelled_is_nobodys_fault(self) -> None:
        assert routed(says("hm"), status="error", termination="CancelledError").condition == "unmatched"

    def test_a_run_that_ended_in_an_error_may_say_it_there(self) -> None:
        found = routed(says("hm"), status="error", termination="OSError: [Errno 28] No space left on device")
        assert found.condition == "environment-fault"


class TestActionRejected:
    @pytest.mark.parametrize(
        "text",
        [
            "Error: unknown tool 'delete_everything'",
            "Error: missing required argument: order_id",
            "The action was blocked by the guard.",
            "Edit was not approved.",
        ],
    )
    def test_an_action_that_the_wrapper_did_not_let_through_is_the_harnesss(self, text: str) -> None:
        found = routed(call("edit", {"path": "a"}, text, extra={"is_error": True}))
        assert found[:4] == ("action-rejected", "tool", 0.85, "harness")

    def test_a_refusal_of_the_domain_is_the_models(self) -> None:
        text = "Error: payment amount does not add up, total price is 305, but paid 255"
        assert routed(call("book", {"user_id": "u"}, text)).condition == "not-recovered"


class TestErrorHidden:
    def test_an_empty_observation_of_a_failed_call_is_the_harnesss(self) -> None:
        found = routed(bash("make", "", 2))
        assert found[:4] == ("error-hidden", "tool", 0.70, "harness")
        assert found.failure is not None
        assert found.failure.text == "exit code 2"

    def test_a_handler_that_says_nothing_of_the_error_hides_it(self) -> None:
        raw = {"ok": False, "code": "unknown_email", "message": "No customer uses a@b."}
        found = routed(call("find_customer", {"email": "a@b"}, "done", extra={"raw_output": raw}))
        assert found.condition == "error-hidden"
        assert found.failure == Span(2, "c", "find_customer", "unknown_email: No customer uses a@b.")

    @pytest.mark.parametrize("seen", ["unknown_email", "Error: nobody", '{"status":"error"}', "No customer uses a@b."])
    def test_a_handler_that_says_any_of_it_shows_it(self, seen: str) -> None:
        raw = {"ok": False, "code": "unknown_email", "message": "No customer uses a@b."}
        found = routed(call("find_customer", {"email": "a@b"}, seen, extra={"raw_output": raw}))
        assert found.condition == "not-recovered"

    def test_an_empty_observation_of_a_call_that_went_well_is_no_failure(self) -> None:
        assert routed(bash("mkdir a", "", 0)).condition == "stopped-early"


class TestCommandRepeated:
    def test_the_identical_command_failing_the_same_way_again_is_the_models(self) -> None:
        found = routed(
            bash("make", "make: *** [Makefile:3] Error 2", 2), bash("make", "make: *** [Makefile:9] Error 2", 2)
        )
        assert found[:4] == ("command-repeated", "model", 0.80, "model-training")

    def test_the_same_command_with_another_error_is_progress(self) -> None:
        found = routed(bash("make", "a.c:1: error: no type", 2), bash("make", "ld: error: no symbol", 2))
        assert found.condition == "not-recovered"

    def test_what_was_made_good_before_is_no_repetition(self) -> None:
        wrong = call("book", {"id": "r", "seat": 9}, "Error: no seat 9")
        right = call("book", {"id": "r", "seat": 1}, "booked")
        other = call("book", {"id": "r", "seat": 2}, "Error: no money left")
        assert routed(wrong, right, other, other).condition == "command-repeated"
        events = module.read(line(wrong, wrong, right, other))
        assert module.failures_of(events.events) == (3, (0, 1))
        assert routed(wrong, wrong, right, other).condition == "not-recovered"

    def test_nor_is_what_another_family_repeats(self) -> None:
        failed, other = bash("make", "make: *** Error 2", 2), bash("pip install x", "ERROR: no", 1)
        assert routed(failed, other, other).condition == "not-recovered"

    def test_another_command_of_the_family_is_not_identical(self) -> None:
        found = routed(bash("make -j1", "make: *** Error 2", 2), bash("make -j2", "make: *** Error 2", 2))
        assert found.condition == "not-recovered"


class TestNotRecovered:
    def test_a_visible_error_without_recovery_is_the_models(self) -> None:
        found = routed(bash("make", "make: *** Error 2", 2))
        assert found[:4] == ("not-recovered", "model", 0.65, "model-training")

    def test_without_a_verdict_nobody_is_blamed(self) -> None:
        found = routed(bash("make", "make: *** Error 2", 2), status="unknown")
        assert found[:4] == ("unmatched", "ambiguous", 0.0, "quarantine")
        assert found.failure is not None


class TestRecovered:
    """The looser rule counts any later clean observation; each of these it would call recovered."""

    @pytest.mark.parametrize(
        ("failed", "later"),
        [
            (bash("make", "make: *** Error 2", 2), bash("ls", "Makefile", 0)),
            (bash("pip install x", "ERROR: no", 1), bash("pip list", "y 1", 0)),
            (bash("python a.py", "boom", 1), bash("python b.py", "fine", 0)),
            (bash("cd src && make test", "no", 2), bash("make clean", "", 0)),
            (call("edit", {"path": "a"}, "Error: no"), call("edit", {"path": "b"}, "edited")),
            (
                call("str_replace_editor", {"command": "str_replace", "path": "a"}, "ERROR:\nno match"),
                call("str_replace_editor", {"command": "view", "path": "a"}, "text"),
            ),
            (call("get_order", {"order_id": "1"}, "Error: it is gone"), call("get_order", {"order_id": "2"}, "{}")),
        ],
    )
    def test_a_success_of_another_family_recovers_nothing(self, failed: Line, later: Line) -> None:
        assert routed(failed, later).failure is not None

    @pytest.mark.parametrize(
        ("failed", "later"),
        [
            (bash("cd /a && make", "no", 2), bash("make -j4 2>&1 | tail -3", "built", 0)),
            (bash("python a.py", "boom", 1), bash("cat > a.py <<'E'\nx\nE\npython a.py", "fine", 0)),
            (
                call("book", {"user_id": "u", "payments": [1]}, "Error: too little"),
                call("book", {"user_id": "u", "payments": [2]}, "booked"),
            ),
            (
                call("update_reservation", {"reservation_id": "r", "payment_id": "a"}, "Error: no balance"),
                call("update_reservation", {"reservation_id": "r", "payment_id": "b"}, "updated"),
            ),
        ],
    )
    def test_a_success_of_its_family_recovers_a_failure(self, failed: Line, later: Line) -> None:
        found = routed(failed, later)
        assert found.failure is None
        assert len(found.recovered) == 1

    def test_a_name_that_is_not_there_is_recovered_by_another_name(self) -> None:
        looked = call(
            "find_customer", {"email": "a@old"}, '{"status":"error","code":"unknown_email","message":"No a@old."}'
        )
        assert routed(looked, call("find_customer", {"email": "a@new"}, '{"status":"ok"}')).failure is None
        assert routed(looked, call("list_orders", {"email": "a@new"}, '{"status":"ok"}')).failure is not None

    def test_a_refusal_for_another_reason_is_not(self) -> None:
        refused = call("get_order", {"order_id": "o-1"}, "Error: o-1 belongs to somebody else")
        assert routed(refused, call("get_order", {"order_id": "o-2"}, "o-2 is packed")).failure is not None

    def test_nor_is_one_that_does_not_name_it(self) -> None:
        refused = call("get_order", {"order_id": "o-1"}, "Error: unknown reason")
        assert routed(refused, call("get_order", {"order_id": "o-2"}, "o-2 is packed")).failure is not None

    def test_a_success_before_it_recovers_nothing(self) -> None:
        assert routed(bash("make", "built", 0), bash("make", "no", 2)).failure is not None

    def test_a_call_that_nobody_answered_recovers_nothing(self) -> None:
        assert routed(bash("make", "no", 2), call("bash", {"command": "make"})).failure is not None

    def test_a_result_of_an_unknown_command_is_never_recovered(self) -> None:
        event = Event(1, None, None, None, "", "Error: no", empty=False)
        clean = Event(2, None, None, None, "", None, empty=False)
        assert module.failures_of([event, clean]) == (0, ())

    def test_the_earliest_unrecovered_failure_is_the_one(self) -> None:
        found = routed(
            bash("make", "no", 2),
            bash("pip install x", "ERROR: no", 1),
            bash("make", "ok", 0),
            bash("pip install x", "E: no", 1),
        )
        assert found.failure == Span(3, "c", "bash", "ERROR: no")
        assert [span.step for span in found.recovered] == [2]
        assert found.symptoms == 1


class TestQuarantine:
    @pytest.mark.parametrize(
        ("confidence", "destination"), [(0.6, "harness"), (0.5999, "quarantine"), (0.61, "harness")]
    )
    def test_below_six_tenths_everything_is_quarantined(self, confidence: float, destination: str) -> None:
        own = f"""
            version = 1
            [[condition]]
            name = "mine"
            order = 0
            says = "mine"
            side = "tool"
            confidence = {confidence}
            destination = "harness"
            test = "failures"
            failures = "none"
        """
        found = route(line(says("done")), conditions(own))
        assert (found.condition, found.confidence, found.destination) == ("mine", confidence, destination)


def test_a_users_condition_may_take_what_no_shipped_one_does() -> None:
    own = """
        version = 1
        [[condition]]
        name = "success-in-spite-of-it"
        order = 5.5
        says = "success, though a failure was never seen to be recovered"
        side = "model"
        confidence = 0.7
        destination = "recovery-training"
        test = "failures"
        failures = "unrecovered"
        statuses = ["success"]
    """
    refused = line(bash("make", "make: *** Error 2", 2), status="success")
    assert route(refused, shipped()).condition == "unmatched"
    assert route(refused, conditions(own))[:4] == ("success-in-spite-of-it", "model", 0.7, "recovery-training")


class TestHostileTraces:
    def test_steps_without_observations_and_results_without_calls(self) -> None:
        found = routed(
            says("", tool_calls=[], observation={"results": []}),
            says("", tool_calls=None, observation=None),
            {"source": "system", "message": "", "observation": {"results": [{"content": None}, {}]}},
        )
        assert found.condition == "stopped-early"

    def test_a_result_may_stand_before_the_call_that_it_answers(self) -> None:
        early = {"source": "agent", "message": "", "observation": {"results": [{"content": "Error: no"}]}}
        found = routed(early, call("edit", {"path": "a"}, "edited"))
        assert found.failure == Span(2, None, None, "Error: no")

    def test_colours_surrogates_and_nulls_stay_as_they_are_in_the_evidence(self) -> None:
        found = routed(call("edit", {"path": "\ud800"}, "\x1b[31mError: \ud800 \x00\x1b[0m"))
        assert found.failure is not None
        assert found.failure.text == "Error: \ud800 \x00"

    def test_a_huge_text_is_read_in_reasonable_time_and_cut(self) -> None:
        for text in ("Error: " + "x" * 3_000_000, "{" * 3_000_000, "'" * 300_000, "a." * 1_500_000, "\x1b[" * 500_000):
            found = routed(bash(text, text, 1), call("edit", {"path": text}, text))
            assert found.failure is None or len(found.failure.text) <= 1_000

    def test_deep_and_odd_arguments_are_arguments(self) -> None:
        arguments = {"path": [{"a": None}], "id": 2**70, "command": {"x": []}}
        assert routed(call("bash", arguments, "Error: no")).failure is not None


@pytest.mark.parametrize(
    "form",
    [
        "Error: cannot open /{} on the device: it failed",
        "Error: '{}' is not one of the list",
        "Error: [{}] is too long",
    ],
)
@pytest.mark.parametrize("length", [900, 1_000, 1_100, 3_000, 9_000])
def test_a_long_line_is_masked_before_it_is_cut(form: str, length: int) -> None:
    filling = "a" * length if "[" not in form else ", ".join(["12"] * (length // 4))
    seen = route(line(call("go", {}, form.format(filling))), shipped())
    short = route(line(call("go", {}, form.format("a" if "[" not in form else "12, 12"))), shipped())
    assert seen.masked is not None
    assert seen.masked == short.masked
    assert seen.failure is not None
    assert len(seen.failure.text) <= 1_000


def test_of_a_long_line_the_beginning_and_the_end_are_shown() -> None:
    seen = route(line(call("go", {}, "Error: " + "x" * 5_000 + " timed out")), shipped()).failure
    assert seen is not None
    assert len(seen.text) == 1_000
    assert seen.text.startswith("Error: x")
    assert seen.text.endswith(" timed out")
