"""`tracemark reindex`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import health
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    text: Annotated[
        bool, typer.Option("--text", help="Index the whole text of every trace for `traces find`.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Rebuild the catalogue from the stored files.

    The catalogue is never the only copy of anything, so this is always safe.
    """
    with working("reindex"):
        report = health.reindex(corpus(ctx), text)
    return show(report, output)
