"""How a run stopped, in the words of the formats' own programs: whose fault that is, and where the run goes.

Each word is one that a program writes: the exceptions of Harbor's trials with its `error_policy`, tau2's
`TerminationReason`, the exit statuses of SWE-agent and mini-swe-agent, the stop conditions and errors of verifiers, the
limits and stop reasons of Inspect, the errors of OpenHands, NeMo Gym's `error_kind`, ThinkingBox's `FinishReason`.
"""

from __future__ import annotations

import pytest

from tests.failures.runs import bash, line, says
from tracemark.failures.conditions import shipped
from tracemark.failures.route import Routing, route

ENVIRONMENT = (
    # Harbor: what has no valid reward because environment or provider failed
    "EnvironmentStartTimeoutError",
    "SandboxBuildFailedError",
    "AgentSetupTimeoutError",
    "HealthcheckError",
    "SandboxLikelyOutOfMemoryError",
    "MemoryLimitExceededError",
    "SSHAccessError",
    "GKEExecStreamClosedError",
    "GKEPodNotFoundError",
    "RuntimeRequestError",
    "AddTestsDirError",
    "DownloadVerifierDirError",
    "ApiError",
    "ApiRateLimitError",
    "ApiUsageLimitError",
    "ApiInternalServerError",
    "ApiOverloadedError",
    "ApiResponseStalledError",
    "UnknownApiError",
    "NetworkConnectionError",
    "RateLimitError",
    "InternalServerError",
    "ServiceUnavailableError",
    "APIConnectionError",
    "litellm.exceptions.APIError: the provider closed the connection",
    "ImageRegistryUnavailableError",
    "InfrastructureTimeout",
    # tau2: `user_error` is the user simulator's
    "infrastructure_error",
    "user_error",
    # SWE-agent
    "exit_api",
    "exit_environment_error",
    "submitted (exit_environment_error)",
    # mini-swe-agent: the name of the exception
    "DockerError",
    "DockerException",
    "OpenRouterAPIError",
    "RequestyRateLimitError",
    # verifiers
    "sandbox_error",
    "SandboxError",
    "SandboxNotReadyError",
    "BrowserSandboxError",
    "PythonWorkerDeadError",
    "InfraError",
    "EnvError",
    "TunnelError",
    "InterceptionError",
    "ProviderError",
    # NeMo Gym
    "sandbox",
    # OpenHands
    "container 3f9c is not running",
    "error: container 3f9c is not running",
    "RuntimeError: Error response from daemon: container 3f9c is not running",
    "error: AgentRuntimeDisconnectedError: the runtime went away",
    "AgentRuntimeTimeoutError: Runtime failed to return execute_action before the requested timeout of 600s",
    "STATUS$ERROR_RUNTIME_DISCONNECTED",
    "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE",
    "STATUS$ERROR_MEMORY",
    "BrowserUnavailableException",
    # Claude Code
    "api-error",
    # anybody
    "OSError: [Errno 28] No space left on device",
    "Cannot connect to the Docker daemon",
)
GRADER = (
    "VerifierTimeoutError",
    "VerifierOutputParseError",
    "RewardFileNotFoundError",
    "RewardFileEmptyError",
    "RegradeError",
    "eval_timeout",
    "judge_failed",
    "verifier_timeout",
    "grader timed out",
    "JudgeError",
)
BUDGET = (
    # tau2
    "max_steps",
    "timeout",
    "context_window_exceeded",
    # Harbor, litellm
    "AgentTimeoutError",
    "ContextWindowExceededError",
    "ContextLengthExceededError",
    "OutputTokenExceededError",
    "OutputLengthExceededError",
    "BudgetExceededError",
    # SWE-agent
    "exit_cost",
    "exit_context",
    "submitted (exit_cost)",
    "exit_total_execution_time",
    "exit_command_timeout",
    # mini-swe-agent
    "LimitsExceeded",
    "TimeExceeded",
    # verifiers
    "max_turns",
    "max_turns_reached",
    "max_input_tokens",
    "max_output_tokens",
    "max_total_tokens",
    "max_total_completion_tokens_reached",
    "timeout_reached",
    "prompt_too_long",
    "context_length",
    # Inspect
    "context",
    "time",
    "working",
    "message",
    "token",
    "turn",
    "cost",
    "operator",
    "custom",
    "max_tokens",
    "model_length",
    # OpenHands
    "RuntimeError: Agent reached maximum iteration in headless mode. Current iteration: 100, max iteration: 100",
    "error: LLMContextWindowExceedError: Conversation history longer than LLM context window limit.",
    # ThinkingBox
    "agent_limit",
    "user_limit",
    # Claude Code
    "error_max_turns",
    "error_max_budget_usd",
    # anybody
    "length",
    "token limit exceeded",
    "step limit",
    "agent timed out",
)
STOPPED = (
    "",
    "stop",
    "end_turn",
    "tool_calls",
    "user_stop",
    "agent_stop",
    "agent_error",
    "too_many_errors",
    "submitted",
    "Submitted",
    "exit_format",
    "exit_forfeit",
    "exit_command",
    "RepeatedFormatError",
    "FormatError",
    "no_tools_called",
    "agent_completed",
    "has_final_env_response",
    "done",
    "done: the environment was left as it was found",
    "end_turn_tool",
    "user_done",
    "no_user_llm",
    "complete",
    "finished",
    "AgentStuckInLoopError: Agent got stuck in a loop",
    "error: stuck",
    "LLMMalformedActionError: Malformed response",
    "FunctionCallValidationError: Missing required parameters",
    "AgentSafetyRefusalError",
    "ContentPolicyViolationError",
    "content_filter",
    "unlimited",
)
NOBODY_KNOWS = (
    "error",
    "has_error",
    "exit_error",
    "unexpected_error",
    "RuntimeError: index out of range",
    "NonZeroAgentExitCodeError",
    "KeyError",
    "TaskError",
    "HarnessError",
    "CancelledError",
    "aborted: interrupted",
    "interrupted",
    "UserInterruption",
    "skipped",
    "incomplete",
    "early_exit",
)


def ended(termination: str, status: str = "failure") -> Routing:
    """Route a run in which no call failed."""
    return route(line(bash("ls", "a", 0), says("hm"), status=status, termination=termination), shipped())


@pytest.mark.parametrize("status", ["failure", "error"])
@pytest.mark.parametrize("termination", ENVIRONMENT)
def test_an_environment_that_ended_a_run_never_counts_against_harness_or_model(termination: str, status: str) -> None:
    assert ended(termination, status)[:4] == ("environment-fault", "environment", 0.85, "environment-repair")


@pytest.mark.parametrize("status", ["failure", "error", "unknown"])
@pytest.mark.parametrize("termination", GRADER)
def test_neither_does_a_grader(termination: str, status: str) -> None:
    assert ended(termination, status)[:4] == ("grader-exception", "grader", 0.90, "benchmark-repair")


@pytest.mark.parametrize("status", ["failure", "error"])
@pytest.mark.parametrize("termination", BUDGET)
def test_a_limit_is_no_environment_and_no_decision_of_the_model(termination: str, status: str) -> None:
    assert ended(termination, status)[:4] == ("budget-exhausted", "ambiguous", 0.45, "quarantine")


@pytest.mark.parametrize("termination", STOPPED)
def test_what_agent_or_user_ended_is_the_models(termination: str) -> None:
    assert ended(termination)[:4] == ("stopped-early", "model", 0.60, "model-training")


@pytest.mark.parametrize("termination", NOBODY_KNOWS)
def test_an_end_that_says_nothing_of_whose_it_was_is_nobodys(termination: str) -> None:
    assert ended(termination)[:4] == ("unmatched", "ambiguous", 0.0, "quarantine")


@pytest.mark.parametrize("termination", [*ENVIRONMENT, *GRADER])
@pytest.mark.parametrize("command", ["make", ""])
def test_a_run_that_was_cut_off_could_not_make_good_what_failed(termination: str, command: str) -> None:
    failed = bash(command, "make: *** Error 2", 2)
    found = route(line(failed, failed, status="failure", termination=termination), shipped())
    assert found.side in ("environment", "grader")
    assert found.destination in ("environment-repair", "benchmark-repair")
    assert found.failure is not None


@pytest.mark.parametrize("termination", [*BUDGET, *STOPPED, *NOBODY_KNOWS])
def test_any_other_end_leaves_the_failed_call_as_the_reason(termination: str) -> None:
    found = route(line(bash("make", "make: *** Error 2", 2), termination=termination), shipped())
    assert found.condition == "not-recovered"


@pytest.mark.parametrize("termination", ["The action was blocked", "unknown tool 'edit'", "no tool calls found"])
def test_words_of_a_wrapper_in_how_a_run_stopped_are_no_rejected_action(termination: str) -> None:
    assert ended(termination).condition == "stopped-early"


@pytest.mark.parametrize("termination", ["EnvironmentStartTimeoutError", "VerifierTimeoutError"])
def test_a_run_that_never_began_has_its_reason_nevertheless(termination: str) -> None:
    found = route(line({"source": "system", "message": "started"}, status="error", termination=termination), shipped())
    assert found.side in ("environment", "grader")


@pytest.mark.parametrize("status", ["success", "unknown"])
def test_an_environment_that_broke_behind_the_verdict_changes_none(status: str) -> None:
    assert ended("SandboxError", status).side != "environment"
