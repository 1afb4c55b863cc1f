"""`tracemark failures show`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import failure_log
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.failures_view import write_failure
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="CLUSTER|TRACE", help="The id of a cluster or of a trace, or its beginning.")
    ],
    output: OutputOption = Output.TABLE,
) -> int:
    """Show one cluster of failures, or where one trace goes and why.

    Of a trace: the condition that holds, whose fault it is, and the earliest failure that was not recovered. Of a
    cluster: its counts, and three traces with what was called and seen where they failed.
    """
    with working("failures"):
        report = failure_log.show(corpus(ctx), name)
    return show(report, output, view=write_failure)
