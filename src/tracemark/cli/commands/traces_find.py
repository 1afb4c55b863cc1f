"""`tracemark traces find`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import traces
from tracemark.cli.arguments import LimitOption, Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.cli.trace_table import about_search, write_traces


def command(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words that must all occur.")],
    limit: LimitOption = 20,
    output: OutputOption = Output.TABLE,
) -> int:
    """Find traces by words of task, messages or tool names.

    Searches the task, the first user message, the last message and the names of the tools, in an index that is brought
    up to date first; after `tracemark reindex --text` the whole text of every trace.
    """
    with working("find"):
        report = traces.find(corpus(ctx), " ".join(words), limit)
    return show(report, output, rows="traces", table=write_traces, note=about_search(report))
