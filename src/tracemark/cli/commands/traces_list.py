"""`tracemark traces list`."""

from __future__ import annotations

from contextlib import ExitStack

import typer

from tracemark.acts import traces
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show, write_lines
from tracemark.cli.progress import working
from tracemark.cli.selecting import selecting
from tracemark.cli.trace_table import write_traces


@selecting
def command(
    ctx: typer.Context,
    wanted: traces.TraceFilter,
    output: OutputOption = Output.TABLE,
) -> int:
    """List stored traces.

    The table fits the terminal, elsewhere 120 columns: long texts are cut, and columns that find no room are left out.
    With --output jsonl one line per trace, each whole.
    """
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
