"""What beside the messages a span of a model call says: model, sampling, tokens, times, and where it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracemark import digest
from tracemark.importers.otel_calls import ASKED, REQUEST, Call
from tracemark.importers.otel_spans import Span
from tracemark.importers.otel_values import plain, time_of
from tracemark.importers.usage import is_number

USAGE = {
    "prompt_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "completion_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
}
"""Which attribute gives which count."""

ANSWERED = ("gen_ai.response.model", "llm.response.model", "llm.model_name")
"""Attributes that name the model that answered."""

PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
"""Attributes that name who serves the model."""

_COUNTS = ("gen_ai.usage.", "llm.token_count.", "llm.usage.")
_SAID = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "llm.request.type")
_PLACED = frozenset((*ASKED, *_SAID, "input.mime_type", "output.mime_type"))


def decorate(step: dict[str, Any], call: Call, first: Call, others: list[Any]) -> None:
    """Add to a reply what its span says of it.

    Args:
        step: the reply.
        call: its call.
        first: the first call of the run, whose parameters are those of the run.
        others: the replies of its other choices.
    """
    span = call.span
    start = time_of(span.start)
    if start is not None:
        step.setdefault("timestamp", start)
    model = span.get(*ANSWERED)
    if isinstance(model, str):
        step.setdefault("model_name", model)
    metrics = _metrics(span)
    if metrics:
        step["metrics"] = metrics
    extra: dict[str, Any] = {}
    if call.asked != first.asked:
        asked, before = call.asked, first.asked
        extra["sampling"] = {
            name: asked.get(name) for name in {**asked, **before} if asked.get(name) != before.get(name)
        }
    extra |= {"request": call.request, "response": call.response, "choices": others}
    extra["span"] = rest_of(call, first)
    for name, value in extra.items():
        if value:
            step.setdefault("extra", {}).setdefault(name, value)


def model_of(call: Call) -> str | None:
    """Return the model that was asked for, else the one that answered; None when neither is named."""
    for name in (call.asked_model, call.span.get(*ANSWERED)):
        if isinstance(name, str) and name:
            return name
    return None


def rest_of(call: Call, first: Call) -> dict[str, Any]:
    """Return what of a call's span has no place of its own, and is not said by the first call of the run."""
    raw = call.span.raw
    hidden = {name for name in raw if name in _PLACED or name.startswith(REQUEST)}
    hidden.update(name for name in PROVIDER if name in raw and raw[name] == first.span.raw.get(name))
    answered = next((name for name in ANSWERED if name in raw), None)
    if answered is not None and isinstance(plain(raw[answered]), str):
        hidden.add(answered)
    return call.span.rest(hidden)


def environment(spans: Iterable[Span]) -> tuple[dict[str, Any], list[Any]]:
    """Return labels of where a run was recorded, and the resources of its spans beyond the first.

    Args:
        spans: the spans of the run.
    """
    labels: dict[str, Any] = {}
    resources: dict[bytes, Mapping[str, Any]] = {}
    scopes: dict[bytes, Mapping[str, Any]] = {}
    known: set[tuple[int, int]] = set()
    for span in spans:
        entry = span.entry
        for name in PROVIDER:
            value = plain(span.raw.get(name))
            if isinstance(value, str):
                labels.setdefault(name, value)
        if (id(entry.resource), id(entry.scope)) in known:
            continue
        known.add((id(entry.resource), id(entry.scope)))
        for found, held in ((resources, _resource(entry.resource)), (scopes, _scope(entry.scope))):
            if held:
                found.setdefault(digest.canonical(held), held)
    first, *others = resources.values() or [{}]
    labels = {**first, **labels}
    if scopes:
        labels["scopes"] = list(scopes.values())
    return labels, others


def _metrics(span: Span) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, places in USAGE.items():
        place = next((one for one in places if type(plain(span.raw.get(one))) is int), None)
        if place is not None:
            metrics[name] = plain(span.raw.pop(place))
    cost = plain(span.raw.get("llm.cost.total"))
    if is_number(cost):
        metrics["cost_usd"] = cost
        del span.raw["llm.cost.total"]
    left = {name: span.take(name) for name in list(span.raw) if name.startswith(_COUNTS)}
    left = {name: value for name, value in left.items() if value is not None}
    if left:
        metrics["extra"] = left
    return metrics


def _resource(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a resource, and what stands beside them."""
    held = resource.get("resource")
    found = _attributes(held)
    rest = {name: value for name, value in resource.items() if name != "resource" and value not in (None, "")}
    if isinstance(held, dict):
        rest |= {name: value for name, value in held.items() if name != "attributes" and value not in (None, "", 0)}
    elif held is not None:
        rest["resource"] = held
    return {**found, **{name: value for name, value in rest.items() if name not in found}}


def _scope(scope: Mapping[str, Any]) -> dict[str, Any]:
    held = scope.get("scope", scope.get("instrumentationLibrary"))
    found = dict(held) if isinstance(held, dict) else {} if held is None else {"scope": held}
    if "attributes" in found:
        found["attributes"] = _attributes(held)
    rest = {name: value for name, value in scope.items() if name not in ("scope", "instrumentationLibrary")}
    return {name: value for name, value in {**rest, **found}.items() if value not in (None, "", [], {})}


def _attributes(holder: Any) -> dict[str, Any]:
    listed = holder.get("attributes") if isinstance(holder, dict) else None
    if isinstance(listed, dict):
        return {name: plain(value) for name, value in listed.items()}
    found = {}
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("key"), str):
            found[one["key"]] = plain(one.get("value"))
    return found
