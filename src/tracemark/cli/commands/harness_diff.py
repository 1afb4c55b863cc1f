"""`tracemark harness diff`."""

from __future__ import annotations

import typer

from tracemark.acts import harnesses
from tracemark.cli.arguments import HarnessArgument, Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(ctx: typer.Context, old: HarnessArgument, new: HarnessArgument, output: OutputOption = Output.TABLE) -> int:
    """Show in which parts two harness versions differ.

    Ends with 1 when they differ, like diff(1).
    """
    with working("harness diff"):
        report = harnesses.diff(corpus(ctx), old, new)
    return show(report, output)
