"""`tracemark failures list`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import failure_log
from tracemark.cli.arguments import LimitOption, Output, OutputOption, corpus
from tracemark.cli.failures_view import about_clusters, write_clusters
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    near: Annotated[
        str | None, typer.Option("--near", metavar="ID", help="Only clusters with lines like that of this one.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option("--harness", metavar="NAME|FINGERPRINT", help="Only of this harness; none: of no known one."),
    ] = None,
    limit: LimitOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """List failures that recur, the most frequent first.

    A cluster is all runs of one harness whose earliest unrecovered failure has the same tool and the same line, numbers
    and names masked. Successes, faults of the environment or the grader, and tasks of the evaluation set are in none.
    """
    with working("failures"):
        report = failure_log.list_(corpus(ctx), failure_log.FailureFilter(near, harness, limit))
    return show(report, output, rows="clusters", table=write_clusters, note=about_clusters(report))
