"""`tracemark failures export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import failure_export
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="A new folder, or that of an earlier log, which is replaced."),
    ],
    output: OutputOption = Output.TABLE,
) -> int:
    """Write the failure log of the accepted harness.

    Whoever searches for a better harness reads it: an overview, a file for each cluster of failures with full examples,
    and a row for each run. Faults of environment and grader lie apart, and so does the log of each rejected candidate.
    No task of the evaluation set is in it.
    """
    with working("failures"):
        report = failure_export.export(corpus(ctx), out)
    return show(report, output)
