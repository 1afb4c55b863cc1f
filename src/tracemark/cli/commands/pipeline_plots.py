"""`tracemark pipeline plots`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import plotting
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show


def command(
    ctx: typer.Context,
    reports: Annotated[list[Path], typer.Argument(metavar="REPORT…", help="Reports that gates wrote with --out.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the data files.")],
    output: OutputOption = Output.TABLE,
) -> int:
    """Write the data that `dvc plots` draws, from the reports of gates.

    Three files: pass^k against k, cost against reliability, and the tasks that went up and down at each gate. A
    candidate is called by the name of its report's file.
    """
    return show(plotting.write(corpus(ctx), reports, out), output)
