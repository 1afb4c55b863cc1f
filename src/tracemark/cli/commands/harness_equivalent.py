"""`tracemark harness equivalent`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import equivalence
from tracemark.cli.arguments import Output, OutputOption, ReasonOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.clock import SystemClock
from tracemark.errors import UsageError
from tracemark.findings import Report


def command(
    ctx: typer.Context,
    pair: Annotated[
        tuple[str, str],
        typer.Argument(metavar="A B", help="Two harnesses, each by a name or a fingerprint."),
    ],
    reason: ReasonOption,
    force: Annotated[bool, typer.Option("--force", help="Declare it whatever differs; manifests say so.")] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the declaration back.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Let exports treat two harnesses as one.

    For a comment that was edited, and the like: without --force only when nothing but the text of Python files differs
    whose syntax trees are equal. Docstrings count, as does every prompt, schema, limit and name. Ends with 1, and says
    what differs, when that is refused.

    The declaration is an entry of the ledger; it holds both ways and carries through to what counts as one with either,
    until it is taken back. Every manifest names it. Nothing is executed. A program that reads its own source or line
    numbers, as in a traceback that the model is shown, can still tell the two apart.
    """
    if force and withdraw:
        raise UsageError("--force declares and --withdraw takes back", hint="give one of them")
    answer: Report
    with working("harness equivalent"):
        if withdraw:
            answer = equivalence.withdraw(corpus(ctx), *pair, reason, SystemClock())
        else:
            answer = equivalence.equivalent(corpus(ctx), *pair, reason, SystemClock(), force=force)
    return show(answer, output)
