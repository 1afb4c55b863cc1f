"""`tracemark reinstate`."""

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
    """Lift the retraction of traces."""
    with working("reinstate"):
        report = decisions.reinstate(corpus(ctx), traces, reason, SystemClock())
    return show(report, output)
