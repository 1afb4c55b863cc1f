"""`tracemark gate log`."""

from __future__ import annotations

import typer

from tracemark.acts import gate_log
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.gate_view import table_log
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """List the decisions about the accepted pair, and what of their evidence holds.

    Who installed, rejected, accepted, rolled back or froze what, and why; of a gate's decision also whether its report
    is at hand below reports/ and its traces are stored. A star marks the decisions in force. The ledger's chain is
    verified first.
    """
    with working("gate log"):
        report = gate_log.gate_log(corpus(ctx))
    return show(report, output, rows="decisions", table=table_log)
