"""`tracemark init`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import scaffold
from tracemark.cli.arguments import Output, OutputOption
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.pipeline import dvcfile


def command(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="A new, an empty or an existing folder; default: that of --root, else the current one."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Lay out a new corpus.

    What is already there is kept. git and dvc are used where they are installed; a plain folder works as well.
    """
    place = folder or ctx.obj or Path()
    with working("init"):
        report = scaffold.init(place, {"dvc.yaml": partial(dvcfile.render, place)})
    return show(report, output)
