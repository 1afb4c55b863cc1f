"""`tracemark gate harness`."""

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
    candidate: Annotated[str, typer.Option("--candidate", help="The harness to judge.", metavar="HARNESS")],
    wanted: Wanted,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Whose evaluations; the accepted model if not given.", metavar="NAME[@REVISION]"),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Judge a harness against the accepted one.

    Both must have been evaluated with the same model, on the frozen evaluation set, every task as often as params.yaml
    asks for. Ends with 0 when the policy in force accepts the candidate, with 1 when it rejects it, and with 40 when
    nothing can be compared; each reason is named, with the runs to make.
    """
    with working("gate harness"):
        answer = (
            gating.gate_harness(corpus(ctx), candidate, model, wanted.out)
            if wanted.install is None
            else installs.install_harness(corpus(ctx), candidate, model, wanted.install, SystemClock())
        )
    return show(answer, output, view=view_gate)
