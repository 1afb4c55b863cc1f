"""A call of the recorder that is refused says which call of which recording it was, and where to read what it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from tracemark.errors import UsageError
from tracemark.runner.process import Owner

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Recording(Protocol):
    """What has calls to be refused."""

    path: Path
    """The journal."""
    _owner: Owner


def placed(method: _Method) -> _Method:
    """Return a method of a recorder whose usage errors name the journal and the method, and its help.

    An error that names a place, or what to do, keeps it. In another process than the recording's it is refused.
    """

    @wraps(method)
    def call(self: Recording, *arguments: Any, **named: Any) -> Any:
        where = f"{self.path.name}: {method.__name__}()"
        self._owner.require(where)
        with telling(where, f"recorder.{method.__name__}"):
            return method(self, *arguments, **named)

    return cast("_Method", call)


@contextmanager
def telling(where: str, function: str) -> Iterator[None]:
    """Give usage errors of a `with` block the place `where` and the help of `function` as a hint, if they lack them."""
    try:
        yield
    except UsageError as error:
        if error.where is not None and error.hint is not None:
            raise
        hint = error.hint or f"help({function}) says what it takes"
        raise type(error)(error.message, where=error.where or where, hint=hint) from error.__cause__
