"""`tracemark model accept`."""

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
    name: Annotated[str, typer.Argument(help="The model, as its traces name it.", metavar="NAME[@REVISION]")],
    reason: ReasonOption,
    output: OutputOption = Output.TABLE,
) -> int:
    """Make a model the accepted one.

    Writes the decision to ledger.jsonl, then the name to params.yaml. Accepted with it is what all its evaluation
    traces agree about: chat template, tokenizer, server and sampling.
    """
    with working("model accept"):
        report = accepted_pair.accept_model(corpus(ctx), name, reason, SystemClock())
    return show(report, output)
