"""Options that several commands share, each stated once and handed to a command as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints


def sharing(
    command: Callable[..., int], name: str, options: Mapping[str, Any], make: Callable[..., Any]
) -> Callable[..., int]:
    """Give a command options in place of one of its parameters; what they say is made into its value.

    Args:
        command: the command's function.
        name: the parameter.
        options: the options by name, each an annotated type; False is the default of a switch, None of the others.
        make: takes what the options say, by name, and gives the parameter's value.
    """

    @functools.wraps(command)
    def given(**arguments: Any) -> int:
        chosen = {option: arguments.pop(option) for option in options}
        return command(**arguments, **{name: make(**chosen)})

    hints = get_type_hints(command, include_extras=True)
    parameters = []
    for own, parameter in inspect.signature(command).parameters.items():
        if own == name:
            parameters += [
                inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=_default(kind), annotation=kind)
                for option, kind in options.items()
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[own]))
    given.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    given.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # its annotations would be read in place of these
    del given.__wrapped__
    return given


def _default(kind: Any) -> bool | None:
    return False if kind.__origin__ is bool else None
