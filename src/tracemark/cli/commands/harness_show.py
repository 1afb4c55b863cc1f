"""`tracemark harness show`."""

from __future__ import annotations

import typer

from tracemark.acts import harnesses
from tracemark.cli.arguments import HarnessArgument, Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(ctx: typer.Context, name: HarnessArgument, output: OutputOption = Output.TABLE) -> int:
    """Show a harness version's fingerprint, components and parts."""
    with working("harness show"):
        report = harnesses.show(corpus(ctx), name)
    return show(report, output)
