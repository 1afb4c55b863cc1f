"""`tracemark harness accept`."""

from __future__ import annotations

import typer

from tracemark.acts import decisions
from tracemark.cli.arguments import HarnessArgument, Output, OutputOption, ReasonOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(
    ctx: typer.Context, name: HarnessArgument, reason: ReasonOption, output: OutputOption = Output.TABLE
) -> int:
    """Make a harness version the accepted one.

    Writes the decision to ledger.jsonl, then the fingerprint to params.yaml. Exports take its traces from then on.
    """
    with working("accept"):
        report = decisions.accept(corpus(ctx), name, reason, SystemClock())
    return show(report, output)
