"""`tracemark harness match`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import matching
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.match_view import write_match
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="OBSERVED|TRACE", help="A group that `harness list` names, or a trace id.")
    ],
    output: OutputOption = Output.TABLE,
) -> int:
    """Show which known harnesses can have made foreign traces.

    Every version and snapshot is compared with the content of a trace, or of all traces of an observed group. Of each
    one that is ruled out, the parts are named that do it, with step and text of the first trace. A harness that fits
    may still not be the one: content shows little of it.
    """
    with working("harness match"):
        report = matching.match(corpus(ctx), target)
    return show(report, output, view=write_match)
