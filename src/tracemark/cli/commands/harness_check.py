"""`tracemark harness check`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import harnesses
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="HARNESS", help="Names in harness_versions/; default: all.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Check harness versions for everything that weakens a fingerprint.

    Reads the files only: nothing of a harness is imported or run.
    """
    with working("harness check"):
        report = harnesses.check(corpus(ctx), names or [])
    return show(report, output)
