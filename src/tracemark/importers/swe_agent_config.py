"""What a SWE-agent run shows of its harness: its first messages, and the configuration that they confirm.

Version 0.7 writes templates as `{name}`, later ones in Jinja; both are tried. Where one does not give its message, with
the documentation of the tools and the environment variables that stand beside it, the configuration was grafted into
the file, and nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.importers import recorded_config, recovery
from tracemark.importers.content import text_of
from tracemark.importers.recorded_config import Judgement, Prompt
from tracemark.importers.recovery import Entry

_SYNTAXES = ("jinja", "format")
_HANDLERS = (
    "command_cancelled_timeout_template",
    "max_observation_length",
    "next_step_no_output_template",
    "next_step_template",
    "next_step_truncated_observation_template",
    "shell_check_error_template",
)
_TOOLS = ("command_docs", "enable_bash_tool", "env_variables", "multi_line_command_endings", "submit_command")
_OF_PARSING = (
    "execution_timeout",
    "format_error_template",
    "max_consecutive_execution_timeouts",
    "parse_function",
    "total_execution_timeout",
)
_OF_AGENT = ("action_sampler", "history_processor", "history_processors", "max_requeries", "type")
_OF_MODEL = ("per_instance_call_limit", "per_instance_cost_limit", "stop")
_ERROR = "blocklist_error_template"


def judged(config: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> Judgement:
    """Compare a recorded configuration with the messages in front of the first reply.

    Args:
        config: the `replay_config`; empty when there is none.
        history: the messages.
    """
    templates = part_of(config, "agent", "templates")
    instance, strategy = templates.get("instance_template"), templates.get("strategy_template")
    if isinstance(instance, str) and isinstance(strategy, str):
        instance = f"{instance}\n{strategy}"
    sent, demonstrations = _first_messages(history)
    prompts = [
        Prompt("system", templates.get("system_template"), sent.get("system")),
        Prompt("instance", instance, sent.get("user")),
    ]
    if len(demonstrations) == 1 and demonstrations[0][0] == "user":
        prompts.append(Prompt("demonstration", templates.get("demonstration_template"), demonstrations[0][1]))
        demonstrations = []
    found = recorded_config.judge(prompts, _SYNTAXES, _values(config))
    if demonstrations:
        shown = {"part": "demonstration", "form": "rendered", "digest": digest.of(demonstrations)}
        found = found._replace(entries=[*found.entries, shown])
    return found


def components(config: Mapping[str, Any]) -> dict[str, list[Entry]]:
    """Return what a confirmed configuration says of tools, handlers and runtime, by component."""
    agent, tools = part_of(config, "agent"), part_of(config, "agent", "tools")
    templates, blocked = part_of(config, "agent", "templates"), dict(part_of(config, "agent", "tools", "filter"))
    handlers = {name: templates.get(name) for name in _HANDLERS}
    handlers[_ERROR] = blocked.pop(_ERROR, None)
    runtime = {name: tools.get(name) for name in _OF_PARSING}
    runtime |= {name: agent.get(name) for name in _OF_AGENT}
    runtime |= {name: part_of(config, "agent", "model").get(name) for name in _OF_MODEL}
    runtime["filter"] = blocked or None
    bound = {name: tools.get(name) for name in _TOOLS}
    bound["bundles"] = _bundles(tools.get("bundles"))
    return {
        "tool_bindings": recovery.settings(bound),
        "observation_handlers": recovery.settings(handlers),
        "runtime": recovery.settings(runtime),
    }


def observations_kept(config: Mapping[str, Any]) -> int | None:
    """Return how many observations a history processor of the configuration leaves whole; None when it leaves all."""
    agent = part_of(config, "agent")
    processors = agent.get("history_processors")
    listed = processors if isinstance(processors, list) else [agent.get("history_processor")]
    for processor in listed:
        if isinstance(processor, dict) and processor.get("type") == "last_n_observations":
            number = processor.get("n")
            return number if type(number) is int else None
    return None


def part_of(config: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return an object within an object; empty when it is not there, or is none."""
    found: Any = config
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _values(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that all templates may ask for: two harnesses may share a template and bind other tools."""
    tools = part_of(config, "agent", "tools")
    held = {**part_of(config, "agent", "tools", "env_variables"), "command_docs": tools.get("command_docs")}
    return {name: str(value) for name, value in held.items() if type(value) in (int, str)}


def _bundles(value: Any) -> list[dict[str, Any]] | None:
    """Return the bundles of tools by name; where they lie is no matter, and their order is none."""
    if not isinstance(value, list):
        return None
    found = []
    for bundle in value:
        path = bundle.get("path") if isinstance(bundle, dict) else None
        if not isinstance(path, str):
            return None
        hidden = bundle.get("hidden_tools") or []
        found.append({"name": path.replace("\\", "/").rstrip("/").rpartition("/")[2], "hidden_tools": hidden})
    return sorted(found, key=digest.canonical)


def _first_messages(history: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[list[str]]]:
    """Return the first message of each role in front of the first reply, and the demonstrations as role and text."""
    sent: dict[str, str] = {}
    demonstrations = []
    for message in history:
        role, text = str(message.get("role")), text_of(message.get("content"))
        if message.get("is_demo"):
            demonstrations.append([role, text])
        elif role == "assistant":
            break
        else:
            sent.setdefault(role, text)
    return sent, demonstrations
