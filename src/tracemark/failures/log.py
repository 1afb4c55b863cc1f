r"""The failure log that a harness-search agent reads, as values and texts; nothing here writes a file.

Three views of the same failures: `overview.md` for a first look, one JSON value per cluster with the evidence and full
examples, and one row per trace (`failures.jsonl`). Text of a trace is never written raw: in the overview each character
that does not show itself is an escape such as `\x1b`, and stands in code, so that it is no Markdown either; JSON is
written in ASCII.

The order of everything depends on what is counted alone, so the same failures give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tracemark.failures.cluster import Cluster, Clusters
from tracemark.failures.events import read
from tracemark.failures.route import Routing, Span, failures_of
from tracemark.hidden import visible
from tracemark.importers.content import text_of

FORMAT = "tracemark/failures/1"
"""What a cluster's JSON and a row say of their form."""

LONGEST_TEXT = 20_000
"""Characters kept of one text of an example, of a longer one the beginning and the end."""

RECOVERED = 20
"""Most recovered failures that a row tells of, the earliest; it counts them all."""

SHOWN = 200
"""Most clusters in an overview, the most frequent."""

_EACH = (
    "Each cluster is the earliest failure of its runs that was not recovered, and has a file of its own: "
    "`clusters/ID.json`."
)
_LONGEST_CELL = 160
_TASKS_SHOWN = 5


def to_json(value: Any) -> bytes:
    """Return a value as one line of ASCII JSON, members in the order given, with a line end."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def row(
    trace: str, line: Mapping[str, Any], fingerprint: str | None, routing: Routing, cluster: str | None
) -> dict[str, Any]:
    """Return the row of one trace for `failures.jsonl`.

    Args:
        trace: the trace's id.
        line: the stored line.
        fingerprint: the harness under which it counts now.
        routing: where it goes.
        cluster: the id of its cluster; None for one that is no fault of harness or model, and so in none.
    """
    run, outcome = line["run"], line["outcome"]
    return {
        "format": FORMAT,
        "trace": trace,
        "cluster": cluster,
        "harness": fingerprint,
        "domain": run.get("domain"),
        "task": run.get("task"),
        "attempt": run.get("attempt"),
        "start": run.get("start"),
        "status": outcome["status"],
        "termination": outcome.get("termination"),
        "condition": routing.condition,
        "side": routing.side,
        "confidence": routing.confidence,
        "destination": routing.destination,
        "failure": _span(routing.failure),
        "recovered": [_span(span) for span in routing.recovered[:RECOVERED]],
        "recovered_calls": len(routing.recovered),
        "symptoms": routing.symptoms,
    }


def example(trace: str, line: Mapping[str, Any], routing: Routing) -> dict[str, Any]:
    """Return one trace as an example of its cluster: the span, and in full what was said, called and seen of its call.

    Args:
        trace: the trace's id.
        line: the stored line.
        routing: where it goes.
    """
    run, failure = line["run"], routing.failure
    found: dict[str, Any] = {
        "trace": trace,
        "domain": run.get("domain"),
        "task": run.get("task"),
        "condition": routing.condition,
        "destination": routing.destination,
        "evidence": _span(failure),
        "symptoms": routing.symptoms,
    }
    steps = line["trajectory"]["steps"]
    if failure is None:
        return found | {"step": steps[-1]["step_id"], "message": _kept(text_of(steps[-1]["message"]))}
    events = read(line).events
    failed, _ = failures_of(events)
    assert failed is not None, "the routing is of this line"
    event = events[failed]
    number, index = event.seen
    result = _step(steps, number)["observation"]["results"][index]
    found["message"] = _kept(text_of(_step(steps, event.step)["message"]))
    found["command"] = _kept(event.command) if event.command else None
    found["observation"] = _kept(text_of(result.get("content")))
    found["observed_in"] = number
    raw = (result.get("extra") or {}).get("raw_output")
    if raw is not None:
        found["raw_output"] = _kept(
            raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, sort_keys=True)
        )
    return found


def cluster_value(cluster: Cluster, clusters: Clusters, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON value of one cluster.

    Args:
        cluster: the cluster.
        clusters: the collection that it is from, for its share.
        examples: of its representatives, in their order; see `example`.
    """
    return {
        "format": FORMAT,
        "cluster": cluster.id,
        "harness": cluster.fingerprint,
        "tool": cluster.tool,
        "line": cluster.masked,
        "traces": cluster.traces,
        "runs": clusters.runs(cluster.fingerprint),
        "share": clusters.share(cluster),
        "tasks": cluster.task_count,
        "tasks_estimated": cluster.full,
        "task_unknown": cluster.unknown,
        "task_names": sorted(name for _, name in cluster.tasks),
        "first_seen": None if cluster.first is None else cluster.first[1],
        "last_seen": None if cluster.last is None else cluster.last[1],
        "representatives": list(cluster.representatives),
        "examples": [dict(each) for each in examples],
    }


def overview(
    title: str, clusters: Clusters, counts: Mapping[tuple[str, str], int], elsewhere: Mapping[str, int]
) -> str:
    """Return `overview.md`.

    Args:
        title: whose failures these are; printed as text.
        clusters: the clusters of this log.
        counts: condition and destination to the number of traces of this log.
        elsewhere: failed runs that are no part of it, by the file beside it that has them.
    """
    total, ordered = sum(counts.values()), list(clusters)
    shown, others = ordered[:SHOWN], ordered[SHOWN:]
    lines = [
        f"# {_text(title)}",
        "",
        f"{_many(total, 'failed run')} in {_many(len(ordered), 'cluster')}, the most frequent first. {_EACH}",
        *(["", f"{_elsewhere(elsewhere)} no faults of harness or model, as far as is known."] if elsewhere else []),
        "",
        "| condition | destination | runs |",
        "|---|---|---:|",
        *(f"| {_text(name)} | {_text(place)} | {number} |" for (name, place), number in sorted(counts.items())),
        "",
        "| runs | share | tasks | tool | error line, masked | cluster |",
        "|---:|---:|---:|---|---|---|",
        *(_overview_row(cluster, clusters) for cluster in shown),
        "",
    ]
    if others:
        most = _many(others[0].traces, "run")
        lines += [f"{_many(len(others), 'further cluster')}, of at most {most} each, have files in `clusters/`.", ""]
    if clusters.left_out:
        lines += [
            f"{_many(clusters.left_out, 'run')} of further clusters are counted and not shown: too many clusters.",
            "",
        ]
    for cluster in shown:
        names = sorted(name for _, name in cluster.tasks)
        further = f"{'about ' if cluster.full else ''}{cluster.task_count - _TASKS_SHOWN} more"
        more = f" and {further}" if cluster.task_count > _TASKS_SHOWN else ""
        some = ", ".join(_code(name) for name in names[:_TASKS_SHOWN]) or "not known"
        lines += [
            f"## {cluster.id[:12]}",
            "",
            f"- line: {_code(cluster.masked)}",
            f"- tasks: {some}{more}",
            f"- seen: {_seen(cluster)}",
            f"- representatives: {', '.join(_code(each) for each in cluster.representatives)}",
            "",
        ]
    return "\n".join(lines)


def _elsewhere(files: Mapping[str, int]) -> str:
    said = [f"{_many(number, 'failed run')} in `{name}`" for name, number in sorted(files.items())]
    return f"Beside these there {'is' if sum(files.values()) == 1 else 'are'} {' and '.join(said)}:"


def _overview_row(cluster: Cluster, clusters: Clusters) -> str:
    share = clusters.share(cluster)
    cells = (
        str(cluster.traces),
        "–" if share is None else f"{share:.1%}",
        f"about {cluster.task_count}" if cluster.full else str(cluster.task_count),
        "–" if cluster.tool is None else _cell(cluster.tool),
        _cell(cluster.masked),
        f"`{cluster.id[:12]}`",
    )
    return f"| {' | '.join(cells)} |"


def _seen(cluster: Cluster) -> str:
    if cluster.first is None or cluster.last is None:
        return "no run says when it started"
    return f"{_code(cluster.first[1])} to {_code(cluster.last[1])}"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _text(text: str) -> str:
    """Return a text of ours or of a user as Markdown that is nothing else than text."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|!&" else letter for letter in visible(text))


def _code(text: str) -> str:
    """Return a text of a trace as inline code, at most one cell long."""
    return _inline(visible(text))


def _cell(text: str) -> str:
    """Return a text of a trace as inline code for a cell of a table, which a bar would end, escaped or not."""
    return _inline(visible(text).replace("|", r"\x7c"))


def _inline(shown: str) -> str:
    if len(shown) > _LONGEST_CELL:
        shown = shown[: _LONGEST_CELL - 1] + "…"
    fence = "`"
    while fence in shown:
        fence += "`"
    return f"{fence} {shown} {fence}" if len(fence) > 1 or not shown.strip() else f"`{shown}`"


def _span(span: Span | None) -> dict[str, Any] | None:
    return None if span is None else {"step": span.step, "call": span.call, "tool": span.tool, "text": span.text}


def _kept(text: str) -> str:
    """Return a text whole, or its beginning and end with how much was left out between."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _step(steps: Sequence[Mapping[str, Any]], number: int) -> Mapping[str, Any]:
    return next(step for step in steps if step["step_id"] == number)
