"""The options by which commands select traces, the same for each of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from tracemark.acts.traces import TraceFilter
from tracemark.cli.arguments import LimitOption

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
    "task": Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only runs of this task.")],
    "limit": LimitOption,
}


def selecting(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that select traces; it gets what they say as `wanted`, a `TraceFilter`."""

    @functools.wraps(command)
    def given(**arguments: Any) -> int:
        chosen = {name: arguments.pop(name) for name in _OPTIONS}
        return command(**arguments, wanted=TraceFilter(**chosen))

    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    parameters = []
    for name, parameter in own.items():
        if name == "wanted":
            made = ((option, inspect.Parameter.KEYWORD_ONLY, None, kind) for option, kind in _OPTIONS.items())
            parameters += [inspect.Parameter(n, k, default=d, annotation=a) for n, k, d, a in made]
        else:
            kept = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            parameters.append(kept)
    given.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    given.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # its annotations would be read in place of these
    del given.__wrapped__
    return given
