"""`tracemark traces find`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import traces
from tracemark.cli.arguments import LimitOption, Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working
from tracemark.cli.trace_table import write_traces

_SEARCHED = "the task, the first user message, the last message and the names of the tools"


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
    return show(report, output, rows="traces", table=write_traces, note=_note(report))


def _note(found: traces.TraceFound) -> str | None:
    """Return what must be known of the answer as a whole: that it is cut short, or in what nothing was found."""
    if found.more:
        return f"{len(found.traces)} shown, and there are more; --limit N shows so many"
    if found.traces:
        return None
    if found.everything:
        return "no traces: the whole text of every trace was searched"
    return f"no traces: searched were {_SEARCHED}; after `tracemark reindex --text` everything is searched"
