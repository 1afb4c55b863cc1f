"""`tracemark gate freeze`."""

from __future__ import annotations

import typer

from tracemark.acts import evaluation_freeze
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(ctx: typer.Context, reason: ReasonOption, output: OutputOption = Output.TABLE) -> int:
    """Freeze the evaluation set.

    Writes the tasks under params.yaml: evaluation, and their digest, to the ledger. Gates judge on no other set, and
    while the tasks are others nothing is exported or planned: whoever changes them, or how often each is attempted,
    freezes the set anew.
    """
    with working("gate freeze"):
        report = evaluation_freeze.freeze(corpus(ctx), reason, SystemClock())
    return show(report, output)
