"""`tracemark export sft`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import export
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="A new folder, or that of an earlier export, which is replaced."),
    ],
    output: OutputOption = Output.TABLE,
) -> int:
    """Write a supervised fine-tuning set.

    It holds recorded successes of the accepted harness and nothing else; policy and caps stand in params.yaml. The
    manifest beside the rows counts every trace that was left out under one reason.
    """
    with working("export"):
        report = export.sft(corpus(ctx), out)
    return show(report, output)
