"""`tracemark retract`."""

from __future__ import annotations

import typer

from tracemark.acts import decisions
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, TraceArgument, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(ctx: typer.Context, trace: TraceArgument, reason: ReasonOption, output: OutputOption = Output.TABLE) -> int:
    """Take a trace out of every later export.

    Blocks the trace and every other reading of the same raw record, until it is reinstated. Nothing is deleted.
    """
    with working("retract"):
        report = decisions.retract(corpus(ctx), trace, reason, SystemClock())
    return show(report, output)
