"""`tracemark gate freeze`."""

from __future__ import annotations

import typer

from tracemark.acts import pairs
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(ctx: typer.Context, reason: ReasonOption, output: OutputOption = Output.TABLE) -> int:
    """Freeze the evaluation set.

    Writes the digest of the tasks under params.yaml: evaluation to the ledger. Gates judge on no other set: whoever
    changes the tasks, or how often each is attempted, freezes the set anew.
    """
    with working("gate freeze"):
        report = pairs.freeze(corpus(ctx), reason, SystemClock())
    return show(report, output)
