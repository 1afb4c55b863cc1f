"""`tracemark traces show`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import traces
from tracemark.cli.arguments import Output, OutputOption, TraceArgument, corpus
from tracemark.cli.output import show, write_data
from tracemark.cli.progress import working
from tracemark.cli.trace_view import write_trace


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    raw: Annotated[bool, typer.Option("--raw", help="Write the very bytes whose SHA-256 is the trace's id.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Show one stored trace.

    What is true of it now, as `traces list` and `audit` say, and where its first statement said otherwise.
    `tracemark traces show TRACE --raw | sha256sum` checks an id by hand.
    """
    if raw:
        with working("show"):
            data = traces.raw(corpus(ctx), trace)
        write_data(data)
        return 0
    with working("show"):
        report = traces.show(corpus(ctx), trace)
    return show(report, output, view=write_trace)
