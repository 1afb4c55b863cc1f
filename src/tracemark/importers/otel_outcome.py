"""How a run ended, as its spans say it: by evaluation events, else by the status of its span.

The conventions know no verdict on a run. An evaluation (`gen_ai.evaluation.result`) has a name, a score whose range
nobody fixes, and a label of the evaluator's own. So a status is read only from labels that say pass or fail, on the
spans that speak for the whole run; a score alone is kept and not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracemark.importers.otel_spans import Span

EVENT = "gen_ai.evaluation.result"
"""Name of the event that holds one evaluation."""

PASSED = ("pass", "passed")
"""Labels of an evaluation that was passed, in any case."""

FAILED = ("fail", "failed")
"""Labels of one that was not."""

SUCCESS = (
    ("the run's span has the status ERROR", "error"),
    ("`gen_ai.evaluation.score.label` of the run's evaluations: all that say pass or fail say pass", "success"),
    ("one of them says fail", "failure"),
    ("evaluations without such a label, which are a finding `verdict-unread`", "unknown"),
    ("none of these", "unknown"),
)
"""Which verdict gives which status, in the order in which they are looked for."""

_PREFIX = "gen_ai.evaluation."


class Ending(NamedTuple):
    """How a run ended."""

    outcome: dict[str, Any]
    unread: str | None
    """What may be a verdict and is not read, in words; None when nothing is."""


def ending(roots: Sequence[Span], own: Span) -> Ending:
    """Return how a run ended; evaluations are taken out of the spans.

    Args:
        roots: the spans that speak for the whole run.
        own: the one whose status is the run's.
    """
    checks = [check for span in roots for check in evaluations(span)]
    labels = {str(check.get("score.label")).lower() for check in checks}
    outcome: dict[str, Any] = {"status": "unknown"}
    unread: str | None = None
    if own.failed:
        outcome["status"] = "error"
        if own.failure:
            outcome["termination"] = own.failure
    elif labels.intersection(PASSED + FAILED):
        outcome["status"] = "failure" if labels.intersection(FAILED) else "success"
        outcome["rule"] = f"{_PREFIX}score.label"
    elif checks:
        names = ", ".join(sorted({str(check.get("name"))[:40] for check in checks}))
        unread = f"evaluations without a label that says pass or fail: {names}"
    if checks:
        outcome["checks"] = checks
    return Ending(outcome, unread)


def evaluations(span: Span) -> list[dict[str, Any]]:
    """Return the evaluations that a span holds, and take them out of it."""
    found = []
    for event in list(span.events):
        if event.name == EVENT:
            span.events.remove(event)
            found.append({name.removeprefix(_PREFIX): value for name, value in event.attributes.items()})
    return found
