"""`tracemark harness impact`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from tracemark.acts import impact
from tracemark.cli.arguments import HarnessArgument, Output, OutputOption, corpus
from tracemark.cli.output import show, write_lines
from tracemark.cli.progress import working

ShownOption = Annotated[
    int, typer.Option("--limit", min=1, metavar="N", help="Show so many of the calls that stopped; jsonl gives all.")
]


def command(
    ctx: typer.Context,
    old: HarnessArgument,
    new: HarnessArgument,
    limit: ShownOption = impact.SHOWN,
    output: OutputOption = Output.TABLE,
) -> int:
    """Tell which stored traces a change of tool schemas makes useless.

    Judges every tool call in the traces of OLD, as far as an export could take them, by the schemas of NEW: which calls
    stop being valid, in which argument and why; how many successes remain usable, that is, have valid calls alone; and
    which tasks have none left and need fresh runs. Calls that were invalid under OLD as well are counted apart.

    Valid is all that is shown: what else changed, such as a prompt or a handler, is listed with what it means for a
    trace of OLD. Ends with 1 when a call stopped being valid, or cannot be judged. With --output jsonl a line for each
    fault of a call that stopped.
    """
    if output is Output.JSONL:
        with ExitStack() as opened:
            with working("harness impact"):
                found = opened.enter_context(impact.judging(corpus(ctx), old, new))
            write_lines(found.rows)
            return show(found.report(), output, rows="stopped")
    with working("harness impact"):
        report = impact.impact(corpus(ctx), old, new, limit)
    return show(report, output)
