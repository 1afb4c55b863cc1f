"""`tracemark gate attribute`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import gating
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.gate_options import OutOption
from tracemark.cli.gate_view import view_gate
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    harness: Annotated[str, typer.Option("--harness", help="The new harness.", metavar="HARNESS")],
    model: Annotated[str, typer.Option("--model", help="The new model.", metavar="NAME[@REVISION]")],
    out: OutOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Tell what a new harness and a new model each bring.

    From the evaluations of all four pairs of the accepted and the new halves: what the harness brings with the old
    model, what the model brings under each harness, and what is left, the interaction; each with its interval. Ends
    with 40 when the four cannot be compared.
    """
    with working("gate attribute"):
        answer = gating.gate_attribute(corpus(ctx), harness, model, out)
    return show(answer, output, view=view_gate)
