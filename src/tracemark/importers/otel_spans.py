"""OTLP JSON as spans: typed values become plain ones, ids and times are read in every way in which they are written.

Protobuf's JSON writes 64-bit integers as texts, ids as hexadecimal digits in either case, and every value of an
attribute within an object that names its type. Exporters and tests also write one span alone, its attributes as a plain
object, or members with underscores; all of these are read.

Invariants:
- an attribute is decoded when it is asked for, and one that nobody asked for is kept under its own name;
- what is no span is an error that says where it stands, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from tracemark.importers.finish import UnfitError
from tracemark.importers.otel_values import listed, named, normal, plain

_NAMES = {
    "resourceSpans": ("resourceSpans", "resource_spans"),
    "scopeSpans": ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    "scope": ("scope", "instrumentationLibrary"),
    "traceId": ("traceId", "trace_id"),
    "spanId": ("spanId", "span_id"),
    "parentSpanId": ("parentSpanId", "parent_span_id"),
    "startTimeUnixNano": ("startTimeUnixNano", "start_time_unix_nano"),
    "endTimeUnixNano": ("endTimeUnixNano", "end_time_unix_nano"),
    "timeUnixNano": ("timeUnixNano", "time_unix_nano"),
}
_OTHER_NAMES = {name: names[1:] for name, names in _NAMES.items()}
_SPAN = ("traceId", "trace_id", "spanId", "span_id", "startTimeUnixNano", "start_time_unix_nano", "attributes")
_ERROR = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error")
_NUMBERED = re.compile(r"(.+?)\.[0-9]+\.")
_DEEPEST = 32
_DIGITS = 20


class Entry(NamedTuple):
    """One span as it stands in a document."""

    resource: Mapping[str, Any]
    """What stands beside `scopeSpans`: the resource; one object for all of its spans."""
    scope: Mapping[str, Any]
    """What stands beside `spans`: the scope; one object for all of its spans."""
    span: Mapping[str, Any]
    """The span."""


class Event(NamedTuple):
    """Something that happened at one moment of a span."""

    name: str
    time: Any
    """As it is written; None when it is not."""
    attributes: dict[str, Any]
    """Decoded."""
    raw: Mapping[str, Any]
    """The event as it stands."""

    def described(self) -> dict[str, Any]:
        """Return it with its attributes decoded."""
        found = {name: value for name, value in self.raw.items() if name != "attributes" and value not in (None, "")}
        return {**found, "attributes": self.attributes} if self.attributes else found


class Span:
    """One span, whose attributes are taken out of it one by one.

    Args:
        entry: the span as it stands.
        number: its place among the spans of its trace.
    """

    def __init__(self, entry: Entry, number: int) -> None:
        span = entry.span
        self.entry = entry
        self.number = number
        self.name = span["name"] if isinstance(span.get("name"), str) else ""
        self.span_id = _id(member(span, "spanId"))
        """Lower-case digits; None when it has none."""
        self.parent_id = _id(member(span, "parentSpanId"))
        """That of the span around it; None for a root."""
        self.start = _nanoseconds(member(span, "startTimeUnixNano"))
        """Nanoseconds since 1970; None when unknown."""
        self.end = _nanoseconds(member(span, "endTimeUnixNano"))
        self.raw = named(span.get("attributes", span if is_attributes(span) else None))
        """Attributes that were not taken, as they stand."""
        self.notes: list[str] = []
        """What of its attributes could not be kept as it stands."""
        self._numbered: dict[str, list[str]] | None = None
        self.events = [_event(one) for one in listed(span.get("events")) if isinstance(one, dict)]
        """What happened in it; whoever reads one takes it out."""

    def take(self, *names: str) -> Any:
        """Return the first of the attributes that is there and not null, decoded, and take it out; None for none."""
        for name in names:
            if name in self.raw and (value := plain(self.raw[name])) is not None:
                del self.raw[name]
                return value
        return None

    def get(self, *names: str) -> Any:
        """Return what `take` returns, and leave it there."""
        for name in names:
            if name in self.raw and (value := plain(self.raw[name])) is not None:
                return value
        return None

    def numbered(self, prefix: str) -> list[str]:
        """Return the names of the attributes `prefix.N.…`, as they were when this was asked first."""
        if self._numbered is None:
            self._numbered = {}
            for name in self.raw:
                found = _NUMBERED.match(name)
                if found is not None:
                    self._numbered.setdefault(found[1], []).append(name)
        return [name for name in self._numbered.get(prefix, ()) if name in self.raw]

    def under(self, prefix: str) -> list[str]:
        """Return the names of the attributes that begin with `prefix`."""
        return [name for name in self.raw if name.startswith(prefix)]

    @property
    def failed(self) -> bool:
        """Whether its status is an error."""
        return _status(self).get("code") in _ERROR

    @property
    def failure(self) -> str:
        """How it failed, in its own words; empty when it says nothing."""
        said = self.get("error.type"), _status(self).get("message")
        return ": ".join(word for word in said if isinstance(word, str) and word)

    def rest(self, hidden: AbstractSet[str] = frozenset()) -> dict[str, Any]:
        """Return what was not taken, under the names that it has in the source, without the attributes `hidden`."""
        span = self.entry.span
        if is_attributes(span):
            found: dict[str, Any] = {}
        else:
            found = {name: value for name, value in span.items() if name not in _TAKEN and value not in (None, "")}
            if not isinstance(span.get("attributes"), (list, dict, type(None))):
                found["attributes"] = span["attributes"]
        left = {name: plain(value) for name, value in self.raw.items() if name not in hidden}
        if left:
            found["attributes"] = left
        if self.events:
            found["events"] = [event.described() for event in self.events]
        return found


_TAKEN = ("attributes", "events", "traceId", "trace_id")


def entries(value: Any) -> Iterator[Entry]:
    """Yield every span of a document: of an export, of a list of spans, or the one that it is.

    Raises:
        UnfitError: where something stands that is no span.
    """
    if isinstance(value, list):
        for number, one in enumerate(value):
            if not isinstance(one, dict):
                raise UnfitError(f"element {number} is neither a span nor an export of spans")
            yield from entries(one)
        return
    if not isinstance(value, dict):
        raise UnfitError("it is neither a span nor an export of spans")
    groups = member(value, "resourceSpans")
    if groups is None:
        if not (is_attributes(value) or any(name in value for name in _SPAN)):
            raise UnfitError("it is neither a span nor an export of spans (`resourceSpans`)")
        yield Entry({}, {}, value)
        return
    for place, resource in _objects(groups, "resourceSpans"):
        beside = _without(resource, "scopeSpans")
        for inner, scope in _objects(member(resource, "scopeSpans"), f"{place}/scopeSpans"):
            above = {name: one for name, one in scope.items() if name != "spans"}
            for _, span in _objects(scope.get("spans"), f"{inner}/spans"):
                yield Entry(beside, above, span)


def trace_id(entry: Entry) -> str | None:
    """Return the id of the trace that a span belongs to; None when it names none."""
    return _id(member(entry.span, "traceId"))


def document(found: Sequence[Entry]) -> dict[str, Any]:
    """Return an export that holds these spans alone."""
    groups: list[dict[str, Any]] = []
    last: Entry | None = None
    for entry in found:
        if last is None or entry.resource is not last.resource:
            groups.append({**entry.resource, "scopeSpans": []})
        scopes = groups[-1]["scopeSpans"]
        if not scopes or last is None or entry.scope is not last.scope:
            scopes.append({**entry.scope, "spans": []})
        scopes[-1]["spans"].append(entry.span)
        last = entry
    return {"resourceSpans": groups}


def is_attributes(span: Mapping[str, Any]) -> bool:
    """Return whether an object is not a span but its attributes alone, by name."""
    return "attributes" not in span and any(
        name.startswith(("gen_ai.", "llm.", "openinference.", "traceloop.")) for name in span
    )


def member(holder: Mapping[str, Any], name: str) -> Any:
    """Return a member under one of the names that exporters give it; None when there is none."""
    value = holder.get(name)
    if value is not None:
        return value
    for other in _OTHER_NAMES[name]:
        if other in holder and holder[other] is not None:
            return holder[other]
    return None


def nested(span: Span, prefix: str) -> list[Any]:
    """Return the list whose members are written as attributes `prefix.N.name`, and take them out; empty for none.

    Where one name stands for a value and for something that has members, none is taken.
    """
    tree: dict[str, Any] = {}
    names = span.numbered(prefix)
    for name in names:
        *path, last = name[len(prefix) + 1 :].split(".")
        if len(path) > _DEEPEST:
            return []
        at = tree
        for step in path:
            at = at.setdefault(step, {})
            if not isinstance(at, dict):
                return []
        if last in at:
            return []
        at[last] = _Leaf(plain(span.raw[name]))
    found = _listed_tree(tree)
    if not isinstance(found, list):
        return []
    for name in names:
        del span.raw[name]
    return found


class _Leaf(NamedTuple):
    value: Any


def _listed_tree(tree: Any) -> Any:
    if isinstance(tree, _Leaf):
        return tree.value
    if tree and all(name.isdecimal() for name in tree):
        return [_listed_tree(tree[name]) for name in sorted(tree, key=lambda name: (len(name), name))]
    return {name: _listed_tree(one) for name, one in tree.items()}


def in_order(spans: Iterable[Span]) -> list[Span]:
    """Return spans by the time at which they began; those without a time behind the others, as they stand."""
    return sorted(spans, key=lambda span: (span.start is None, span.start or 0, span.number))


def _event(raw: Mapping[str, Any]) -> Event:
    attributes = {name: plain(value) for name, value in named(raw.get("attributes")).items()}
    name = raw.get("name")
    return Event(name if isinstance(name, str) else "", member(raw, "timeUnixNano"), attributes, raw)


def _objects(value: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if value is None:
        return
    if not isinstance(value, list):
        raise UnfitError(f"{place} is no list")
    for number, one in enumerate(value):
        if not isinstance(one, dict):
            raise UnfitError(f"{place}/{number} is no object")
        yield f"{place}/{number}", one


def _without(holder: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in holder.items() if key not in _NAMES[name]}


def _id(value: Any) -> str | None:
    """Return an id in its one form; None for none, and for zeros, which stand for none."""
    return normal(value) if isinstance(value, str) and value.strip("0") else None


def _nanoseconds(value: Any) -> int | None:
    if value.__class__ is str and len(value) <= _DIGITS and value.isdecimal():
        value = int(value)
    return value if value.__class__ is int and value > 0 else None


def _status(span: Span) -> Mapping[str, Any]:
    status = span.entry.span.get("status")
    return status if isinstance(status, dict) else {}
