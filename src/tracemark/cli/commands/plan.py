"""`tracemark plan`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import planning
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.plan_view import about
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the list there, and not to standard output.")
    ] = None,
    runs: Annotated[int | None, typer.Option("--runs", min=1, metavar="N", help="List at most so many runs.")] = None,
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", metavar="FILE", help="More tasks, JSON Lines or one id a line, for those never run."),
    ] = None,
    output: OutputOption = Output.JSONL,
) -> int:
    """List what to run next to fill the training set.

    One task a line, as JSON; words about the rest go to standard error. Tasks that are solved and harvested are left
    out, and so are those given up and every task of the evaluation set; the limits stand in params.yaml.
    """
    with working("plan"):
        report = planning.plan(corpus(ctx), planning.PlanOptions(out, runs, tasks))
    shown = report if out is None or output is Output.JSON else replace(report, tasks=())
    return show(shown, output, rows="tasks", note=about(report))
