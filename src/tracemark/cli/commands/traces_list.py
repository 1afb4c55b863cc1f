"""`tracemark traces list`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from tracemark.acts import traces
from tracemark.cli.arguments import LimitOption, Output, OutputOption, corpus
from tracemark.cli.output import show, write_lines
from tracemark.cli.progress import working
from tracemark.cli.trace_table import write_traces


def command(
    ctx: typer.Context,
    harness: Annotated[
        str | None, typer.Option("--harness", metavar="HARNESS", help="Only traces of this one; none: without any.")
    ] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="success, failure, error or unknown.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only runs of this task.")] = None,
    limit: LimitOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """List stored traces.

    The table fits the terminal, elsewhere 120 columns: long texts are cut, and columns that find no room are left out.
    With --output jsonl one line per trace, each whole.
    """
    wanted = traces.TraceFilter(harness=harness, status=status, task=task, limit=limit)
    if output is Output.JSONL:
        with ExitStack() as opened:
            with working("list"):
                found = opened.enter_context(traces.listing(corpus(ctx), wanted))
            write_lines(found.rows)
            findings = found.findings()
        return show(traces.TraceList(findings, ()), output, rows="traces")
    with working("list"):
        report = traces.list_(corpus(ctx), wanted)
    return show(report, output, rows="traces", table=write_traces)
