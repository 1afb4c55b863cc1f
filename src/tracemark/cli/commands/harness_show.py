"""`tracemark harness show`."""

from __future__ import annotations

import typer

from tracemark.acts import harnesses
from tracemark.cli.arguments import HarnessArgument, Output, OutputOption, corpus
from tracemark.cli.output import show


def command(ctx: typer.Context, name: HarnessArgument, output: OutputOption = Output.TABLE) -> int:
    """Show a harness version's fingerprint, components and parts."""
    return show(harnesses.show(corpus(ctx), name), output)
