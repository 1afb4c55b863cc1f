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
        bool | None,
        typer.Option(
            "--text/--no-text",
            help="Whether `traces find` searches the whole text of every trace; default: as it does now.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Rebuild the catalogue from the stored files.

    The catalogue is never the only copy of anything, so this is always safe.
    """
    with working("reindex"):
        report = health.reindex(corpus(ctx), text)
    return show(report, output)
