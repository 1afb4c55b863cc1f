"""`tracemark gate rollback`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import accepted_pair
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


def command(
    ctx: typer.Context,
    to: Annotated[
        str,
        typer.Option("--to", help="A ledger entry, by the beginning of its digest; or `previous`.", metavar="ENTRY"),
    ],
    reason: ReasonOption,
    output: OutputOption = Output.TABLE,
) -> int:
    """Return to an earlier pair.

    Makes harness and model what they were right after a ledger entry; `previous` is the pair before the present one.
    Writes the decision to ledger.jsonl, then both halves to params.yaml.
    """
    with working("gate rollback"):
        report = accepted_pair.rollback(corpus(ctx), to, reason, SystemClock())
    return show(report, output)
