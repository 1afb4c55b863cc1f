"""What gates say, as text for people: the sentences of a report, and the decisions about the pair as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from tracemark.acts.gating import AttributeAnswer, GateAnswer
from tracemark.acts.installing import InstallAnswer
from tracemark.cli.fitted import Fit, write_fitted
from tracemark.cli.layout import label, write_rows
from tracemark.findings import Report
from tracemark.hidden import visible

_SHORT = 12
_SHOWN = 20
_DECIDED = {
    ("install", False): "installed: ledger entry {entry}",
    ("reject", False): "rejected: ledger entry {entry}",
    ("install", True): "would be installed; nothing was written to the ledger or params.yaml",
    ("reject", True): "would be rejected; nothing was written to the ledger or params.yaml",
}

_HALVES = {"harness and model": "both"}
"""What is said in fewer words of the halves of a pair where a row is a line."""
_FIT = Fit(least={"what": 24, "reason": 16}, left_out=("traces", "report", "half", "measured", "time"))


def view_gate(report: Report, stream: TextIO) -> None:
    """Write what a gate says, a sentence a line: the verdict first, then what was decided and what that does.

    What is to be done follows: each run to make, and the traces of which something is to be done.
    """
    if not isinstance(report, GateAnswer | AttributeAnswer):
        raise TypeError(f"no answer of a gate: {type(report).__name__}")
    lines = list(report.said)
    if isinstance(report, InstallAnswer) and report.decision is not None:
        words = _DECIDED[report.decision, report.dry_run].format(entry=(report.entry or "")[:_SHORT])
        lines.append(words + ("" if report.new_entry or report.dry_run else ", which stood already"))
        lines += report.consequences_said
    elif isinstance(report, InstallAnswer):
        lines.append("nothing was installed")
    for refusal in report.report["refusals"]:
        lines += [_attempt(one) for one in refusal["rerun"]]
    for refusal in report.report["refusals"]:
        lines += _traces(refusal["reason"], refusal["traces"])
    lines.append(f"report {report.digest[:_SHORT]}" + (f" in {report.out}" if report.out else ""))
    stream.writelines(f"{visible(line)}\n" for line in lines)


def table_log(rows: Sequence[Any], stream: TextIO) -> None:
    """Write the decisions about the pair as a table, each with what it is about and how its evidence stands.

    A terminal has every text whole; elsewhere each decision is a line, and texts are cut to it.
    """
    shown = [_logged(row) for row in rows]
    if not shown:
        return
    if stream.isatty():
        write_rows(shown, stream)
        return
    for row in shown:
        row["half"] = _HALVES.get(row["half"], row["half"])
    columns = {name: [label(name), *(visible(row[name]) for row in shown)] for name in shown[0]}
    write_fitted({name: texts for name, texts in columns.items() if any(texts[1:])}, _FIT, stream)


def _logged(row: dict[str, Any]) -> dict[str, Any]:
    measured = row.get("measured")
    numbers = "" if measured is None else f"{measured['w']} up, {measured['l']} down of {measured['n']}"
    return {
        "entry": row["entry"][:_SHORT],
        "time": row["time"],
        "kind": row["kind"] + (" *" if row["in_force"] else ""),
        "half": row["half"] or "",
        "what": row["what"],
        "measured": numbers,
        "report": row.get("evidence", {}).get("report", ""),
        "traces": row.get("evidence", {}).get("traces", ""),
        "reason": row["reason"],
    }


def _attempt(one: dict[str, Any]) -> str:
    number = "" if one["attempt"] is None else f", attempt {one['attempt']}"
    ended = "" if one["trace"] is None else f" (the infrastructure ended {one['trace'][:_SHORT]})"
    return f"run: {one['side']}, {one['task']}{number}{ended}"


def _traces(reason: str, traces: Sequence[str]) -> list[str]:
    """Return the lines of the traces that a refusal names, whole, so that each can be given to a command."""
    lines = [f"trace: {reason}, {trace}" for trace in traces[:_SHOWN]]
    if len(traces) > _SHOWN:
        lines.append(f"trace: {reason}, {len(traces) - _SHOWN} more; --output json has them all")
    return lines
