"""`tracemark retract`."""

from __future__ import annotations

import typer

from tracemark.acts import decisions
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, TracesArgument, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(
    ctx: typer.Context, traces: TracesArgument, reason: ReasonOption, output: OutputOption = Output.TABLE
) -> int:
    """Take traces out of every later export.

    Blocks each trace and every other reading of the same raw record, until it is reinstated. Nothing is deleted.
    Where one of several is not known, none is taken out.
    """
    with working("retract"):
        report = decisions.retract(corpus(ctx), traces, reason, SystemClock())
    return show(report, output)
