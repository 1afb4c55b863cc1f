"""`tracemark stamp`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import decisions
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, TraceArgument, corpus
from tracemark.cli.output import show
from tracemark.clock import SystemClock


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    harness: Annotated[
        str, typer.Option("--harness", metavar="HARNESS", help="A name, a fingerprint, or none for no known harness.")
    ],
    reason: ReasonOption,
    output: OutputOption = Output.TABLE,
) -> int:
    """Decide under which harness a trace counts.

    Settles a contested trace, or one that nobody or somebody wrongly named a harness for. The decision goes into the
    ledger; what the trace itself says stays as it is. A harness that the content of the trace excludes is refused, and so
    is a trace of which something else than the harness is contested.
    """
    return show(decisions.stamp(corpus(ctx), trace, harness, reason, SystemClock()), output)
