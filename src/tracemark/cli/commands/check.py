"""`tracemark check`."""

from __future__ import annotations

import typer

from tracemark.acts import health
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """Check the corpus, changing nothing.

    Says what it proves, and names each problem with the command that helps.
    """
    with working("check"):
        report = health.check(corpus(ctx))
    return show(report, output)
