"""The response of a request becomes the last step of its conversation, with what it cost.

Of the first choice the message becomes the step, and what it cost its metrics; everything else of a response stays in
the record, also the other choices: they are answers to the same request, and no part of this conversation.
"""

from __future__ import annotations

from typing import Any

from tracemark.importers.completion import reply_in, without_reply
from tracemark.importers.conversation import Conversation, time_text
from tracemark.importers.usage import metrics_of

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
    message = reply_in(response)
    if message is None or not isinstance(response, dict):
        return
    run["mode"] = ", ".join([REQUEST, *filter(None, [run.get("mode")])])
    written = reply_in(record.get("raw_response"))
    usage, model = response.get("usage"), response.get("model")
    left: dict[str, Any] | None = None
    if written is not None and not written.get("tool_calls"):
        step = conversation.add({"role": "assistant", **written}, "raw_response")
        record["raw_response"] = without_reply(record["raw_response"])
    else:
        step = conversation.add({"role": "assistant", **message}, "response")
        record["response"] = left = without_reply(response)
        if "raw_messages" in record and written is None:
            run["rendered"] = True
    if isinstance(model, str):
        run.setdefault("model", {"name": model})
        if step.setdefault("model_name", model) == model and left is not None:
            del left["model"]
    stamp = time_text(record.get("timestamp"))
    if stamp is not None:
        step.setdefault("timestamp", stamp)
    metrics = metrics_of(usage, record.get("cost"))
    if "cost_usd" in metrics:
        del record["cost"]
    if metrics:
        step["metrics"] = metrics
    if left is not None and isinstance(usage, dict) and usage:
        del left["usage"]
