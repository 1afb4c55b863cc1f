"""Which observations come from the observation handlers of a run: from the texts that its calls of them gave.

Handlers form a chain, in the order of the manifest: what one gives is handed to the next, and what the last one gives
is what the model sees. An observation is a handler's when a chain of calls that ends in its content holds a call of
that handler. Each call stands for one observation, and only for one of the reply in front of it.

Invariants:
- what a handler gives is found again as it is, or as a member of what it gave, an item of it or an attribute, one level
  deep: handlers give a text beside other things; a text that was changed on the way is no handler's;
- a call that raised gave nothing, and a coroutine has given what its end gives;
- contents are compared as a trace holds them, and as they were when they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import iscoroutine
from itertools import islice
from threading import Lock
from typing import Any

from tracemark import digest
from tracemark.errors import UsageError
from tracemark.importers.content import text_of
from tracemark.runner import given

_MEMBERS = 1000
"""How many members of what a handler gave are looked at; a long list is no observation beside other things."""

_CONSTANTS = (bool, int, float, complex, type(None))

_Key = str | bytes


@dataclass(eq=False)
class _Call:
    """A call of a handler that has given something."""

    name: str
    sources: list[_Call]
    """Calls of the handler in front of it, any of which can have given what this one was called with."""
    values: list[Any]
    """What it gave, and the members of that; held, so that no other object can be taken for one of them."""
    keys: set[_Key]
    """The contents among them, as a trace holds them."""


class Handled:
    """Follows the calls of the observation handlers of one run, reply by reply.

    Args:
        names: the handlers, in order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._open: list[_Call] = []
        # calls of one reply may run side by side
        self._lock = Lock()

    def followed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function`, the code of the handler `name`, so that what each call of it gives is known."""

        def call(*arguments: Any, **named: Any) -> Any:
            sources = self._sources(name, [*arguments, *named.values()])
            value = function(*arguments, **named)
            if iscoroutine(value):
                return self._awaited(name, sources, value)
            self._gave(name, sources, value)
            return value

        return call

    def forget(self) -> None:
        """Let no call so far stand for an observation."""
        with self._lock:
            self._open.clear()

    def take(self, contents: Sequence[Any]) -> list[str]:
        """Take the contents of results; return the handlers, in order, of which one of them is not.

        Args:
            contents: each a text or a list of content parts, as a trace holds it.
        """
        missed: set[str] = set()
        with self._lock:
            for content in contents:
                missed |= set(self._names) - self._spent(_key(content))
        return [name for name in self._names if name in missed]

    async def _awaited(self, name: str, sources: list[_Call], value: Any) -> Any:
        given_at_last = await value
        self._gave(name, sources, given_at_last)
        return given_at_last

    def _sources(self, name: str, arguments: Sequence[Any]) -> list[_Call]:
        place = self._names.index(name)
        if place == 0:
            return []
        taken = [member for argument in arguments for member in _held(argument)]
        texts = {member for member in taken if isinstance(member, str)}
        same = {id(member) for member in taken}
        with self._lock:
            before = [call for call in self._open if call.name == self._names[place - 1]]
        return [
            call
            for call in before
            if any(value in texts if isinstance(value, str) else id(value) in same for value in call.values)
        ]

    def _gave(self, name: str, sources: list[_Call], value: Any) -> None:
        values = list(_held(value))
        call = _Call(name, sources, values, {key for each in values if (key := _as_content(each)) is not None})
        with self._lock:
            self._open.append(call)

    def _spent(self, key: _Key) -> set[str]:
        """Use up the chain of calls that ends in a content; return its handlers, none where no call gave it."""
        spent: set[str] = set()
        # what a later handler leaves as it is, is given by both
        ending = (call for name in reversed(self._names) for call in self._open if call.name == name)
        call = next((each for each in ending if key in each.keys), None)
        while call is not None:
            spent.add(call.name)
            self._open.remove(call)
            call = next((each for each in call.sources if each in self._open), None)
        return spent


def _key(content: Any) -> _Key:
    """Return what equal contents share: a text is equal to itself as text parts."""
    if isinstance(content, str) or all(part.get("type") == "text" for part in content):
        return text_of(content)
    return digest.canonical(content)


def _as_content(value: Any) -> _Key | None:
    """Return the key of what a trace would hold of a value; None when it is neither a text nor content parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)) or not value or not (isinstance(value[0], dict) and "type" in value[0]):
        return None
    try:
        return _key(given.results([{"content": list(value)}])[0]["content"])
    except UsageError:
        return None


def _held(value: Any) -> Iterator[Any]:
    """Yield a value and what stands in it, one level deep; of true, None or a number nobody knows whose it is."""
    members: Any = ()
    if isinstance(value, Mapping):
        members = value.values()
    elif isinstance(value, (list, tuple)):
        members = value
    elif is_dataclass(value):
        members = (getattr(value, field.name, None) for field in fields(value))
    elif not isinstance(value, (str, bytes, type)):
        members = getattr(value, "__dict__", {}).values()
    yield from (each for each in (value, *islice(members, _MEMBERS)) if not isinstance(each, _CONSTANTS))
