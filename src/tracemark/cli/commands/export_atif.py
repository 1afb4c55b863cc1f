"""`tracemark export atif`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import interchange
from tracemark.acts.traces import TraceFilter
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.cli.selecting import selecting


@selecting
def command(
    ctx: typer.Context,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="A new folder, or that of an earlier export, which is replaced."),
    ],
    wanted: TraceFilter,
    traces: Annotated[
        list[str] | None, typer.Argument(help="Only these: ids, or enough of their beginnings.", metavar="TRACE")
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="A file for each document, not a line.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Write stored traces as ATIF documents.

    Every trace that is selected is written, successes and failures of all harnesses: this is no training set, but a
    copy for other tools and other stores. Ingesting the folder gives the same traces, with what is true of them now.
    Retracted and superseded traces are left out and counted.
    """
    options = interchange.InterchangeOptions(wanted, tuple(traces or ()), "files" if files else "lines")
    with working("export"):
        report = interchange.atif(corpus(ctx), out, options)
    return show(report, output)
