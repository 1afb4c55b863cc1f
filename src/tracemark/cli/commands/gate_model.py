"""`tracemark gate model`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import gating
from tracemark.acts import installing as installs
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.gate_options import Wanted, judging
from tracemark.cli.gate_view import view_gate
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock


@judging
def command(
    ctx: typer.Context,
    candidate: Annotated[str, typer.Option("--candidate", help="The model to judge.", metavar="NAME[@REVISION]")],
    wanted: Wanted,
    output: OutputOption = Output.TABLE,
) -> int:
    """Judge a model against the accepted one.

    Both must have been evaluated under the accepted harness, on the frozen evaluation set, every task as often as
    params.yaml asks for. Chat template, tokenizer, server and sampling are part of a model: where they differ beside
    the revision, the report says so. Ends with 0 when the policy in force accepts the candidate, with 1 when it rejects
    it, and with 40 when nothing can be compared; each reason is named, with the runs to make.
    """
    with working("gate model"):
        answer = (
            gating.gate_model(corpus(ctx), candidate, wanted.out)
            if wanted.install is None
            else installs.install_model(corpus(ctx), candidate, wanted.install, SystemClock())
        )
    return show(answer, output, view=view_gate)
