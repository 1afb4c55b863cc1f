"""The options by which commands select traces, the same for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from tracemark.acts.traces import TraceFilter
from tracemark.cli.arguments import LimitOption
from tracemark.cli.sharing import sharing

_OPTIONS: dict[str, Any] = {
    "harness": Annotated[
        str | None,
        typer.Option(
            "--harness", metavar="HARNESS", help="Only traces of this one, or of an observed group; none: without any."
        ),
    ],
    "status": Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="success, failure, error or unknown.")
    ],
    "task": Annotated[str | None, typer.Option("--task", metavar="[DOMAIN/]TASK", help="Only runs of this task.")],
    "limit": LimitOption,
}


def selecting(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that select traces; it gets what they say as `wanted`, a `TraceFilter`."""
    return sharing(command, "wanted", _OPTIONS, TraceFilter)
