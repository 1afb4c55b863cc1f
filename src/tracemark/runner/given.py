"""What somebody gives the recorder, checked before anything of it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tracemark.errors import UsageError
from tracemark.model.trace import Outcome, Run


def checked(model: type[Run | Outcome], value: Mapping[str, Any], what: str) -> None:
    """Do nothing when `value` is what the model allows.

    Raises:
        UsageError: naming the first member that is not.
    """
    try:
        model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join([what, *map(str, first["loc"])])
        raise UsageError(f"{place}: {first['msg']}", hint="known: " + ", ".join(model.model_fields)) from None


def checked_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a tool call that has what one needs.

    Raises:
        UsageError: when a member is missing or of another kind.
    """
    made = dict(call)
    for member, kind in (("tool_call_id", str), ("function_name", str), ("arguments", dict)):
        if not isinstance(made.get(member), kind):
            raise UsageError(f"a tool call needs {member!r}, {'an object' if kind is dict else 'a text'}")
    return made
