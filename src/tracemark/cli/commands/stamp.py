"""`tracemark stamp`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import decisions
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, TracesArgument, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(
    ctx: typer.Context,
    traces: TracesArgument,
    harness: Annotated[
        str, typer.Option("--harness", metavar="HARNESS", help="A name, a fingerprint, or none for no known harness.")
    ],
    reason: ReasonOption,
    output: OutputOption = Output.TABLE,
) -> int:
    """Decide under which harness traces count.

    Settles contested traces, or such that nobody or somebody wrongly named a harness for. Each decision is an entry of
    the ledger; what a trace itself says stays as it is. A harness that the content of a trace excludes is refused, and
    so is a trace of which something else than the harness is contested; then none of the traces is settled.
    """
    with working("stamp"):
        report = decisions.stamp(corpus(ctx), traces, harness, reason, SystemClock())
    return show(report, output)
