"""The agent of a trajectory as its source names it: a label that the source does not give is "unknown"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "unknown"
"""Name or version of an agent of which the source does not say it."""


def named_agent(name: Any, version: Any, run: Mapping[str, Any], tools: list[Any] | None = None) -> dict[str, Any]:
    """Return the `agent` of a trajectory.

    Args:
        name: as the source has it; anything but a text is no name.
        version: as the source has it; anything but a text is no version.
        run: the run facts, of which the model is the agent's.
        tools: the definitions of the tools that were offered; None where nobody says.
    """
    agent: dict[str, Any] = {
        "name": name if isinstance(name, str) else UNKNOWN,
        "version": version if isinstance(version, str) else UNKNOWN,
    }
    if "model" in run:
        agent["model_name"] = run["model"]["name"]
    if tools is not None:
        agent["tool_definitions"] = tools
    return agent
