"""The response of a request becomes the last step of its conversation, with what it cost.

Of the first choice the message becomes the step, and what it cost its metrics; everything else of a response stays in
the record, also the other choices: they are answers to the same request, and no part of this conversation.
"""

from __future__ import annotations

from typing import Any

from tracemark.importers.conversation import Conversation, time_text

REQUEST = "request"
"""`run.mode` of a record that is one request of a conversation, as a log of requests holds it."""


def respond(record: dict[str, Any], conversation: Conversation, run: dict[str, Any]) -> None:
    """Add the response of a request as the last step.

    Args:
        record: what is left of the record; loses what becomes the step.
        conversation: gets the step.
        run: gets mode and model, and `rendered` where the model's own text is known to be missing.
    """
    response = record.get("response")
    message = _first_message(response)
    if message is None or not isinstance(response, dict):
        return
    run["mode"] = ", ".join([REQUEST, *filter(None, [run.get("mode")])])
    written = _first_message(record.get("raw_response"))
    usage, model = response.get("usage"), response.get("model")
    left: dict[str, Any] | None = None
    if written is not None and not written.get("tool_calls"):
        step = conversation.add({"role": "assistant", **written}, "raw_response")
        record["raw_response"] = _without_message(record["raw_response"])
    else:
        step = conversation.add({"role": "assistant", **message}, "response")
        record["response"] = left = _without_message(response)
        if "raw_messages" in record and written is None:
            run["rendered"] = True
    if isinstance(model, str):
        run.setdefault("model", {"name": model})
        if step.setdefault("model_name", model) == model and left is not None:
            del left["model"]
    stamp = time_text(record.get("timestamp"))
    if stamp is not None:
        step.setdefault("timestamp", stamp)
    metrics = _metrics(usage, record)
    if metrics:
        step["metrics"] = metrics
    if left is not None and isinstance(usage, dict) and usage:
        del left["usage"]


def _first_message(response: Any) -> dict[str, Any] | None:
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _without_message(response: dict[str, Any]) -> dict[str, Any]:
    first, *others = response["choices"]
    bare = {name: value for name, value in first.items() if name != "message"}
    return {**response, "choices": [bare, *others]}


def _metrics(usage: Any, record: dict[str, Any]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    if isinstance(usage, dict):
        left = dict(usage)
        for name in ("prompt_tokens", "completion_tokens"):
            if type(left.get(name)) is int:
                metrics[name] = left.pop(name)
        details = left.get("prompt_tokens_details")
        if isinstance(details, dict) and type(details.get("cached_tokens")) is int:
            metrics["cached_tokens"] = details["cached_tokens"]
        if left:
            metrics["extra"] = {"usage": left}
    if type(record.get("cost")) in (int, float):
        metrics["cost_usd"] = record.pop("cost")
    return metrics
