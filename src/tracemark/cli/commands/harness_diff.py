"""`tracemark harness diff`."""

from __future__ import annotations

import typer

from tracemark.acts import harnesses
from tracemark.cli.arguments import HarnessArgument, Output, OutputOption, corpus
from tracemark.cli.output import show


def command(ctx: typer.Context, old: HarnessArgument, new: HarnessArgument, output: OutputOption = Output.TABLE) -> int:
    """Show in which parts two harness versions differ.

    Ends with 1 when they differ, like diff(1).
    """
    return show(harnesses.diff(corpus(ctx), old, new), output)
