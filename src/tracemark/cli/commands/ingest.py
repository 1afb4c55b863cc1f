"""`tracemark ingest`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracemark.acts import ingest
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATHS", help="Files, folders, or a batch of the inbox.")],
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="The format; default: told by content.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option("--harness", metavar="HARNESS", help="The harness that made the runs, by name or fingerprint."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be done; store nothing.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Read traces from PATHS into the store.

    Ingesting the same runs again stores nothing twice. What cannot be read is kept with the reason, and the rest of the
    batch is stored. A claimed harness is compared with the content; a trace that disagrees is stored under none and
    reported, unless it has its harness already.

    A source that was corrected says something else of the same trace, such as another reward. Both statements stay, the
    trace is contested, and no export takes it: `tracemark audit TRACE` shows what each source says, and
    `tracemark retract TRACE --reason TEXT` records that it stays out. So correct a source before it is ingested.
    """
    options = ingest.IngestOptions(format=format_, harness=harness, dry_run=dry_run)
    with working("ingest"):
        report = ingest.ingest(corpus(ctx), paths, options)
    return show(report, output)
