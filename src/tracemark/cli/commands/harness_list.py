"""`tracemark harness list`."""

from __future__ import annotations

import typer

from tracemark.acts import harnesses
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.match_view import write_harnesses
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """List the known harness versions.

    Known are the folders of harness_versions/, and the snapshots that the store keeps of harnesses it has traces of. A
    folder that was edited is another harness; the snapshot of what it was stays. Behind them stand observed groups:
    traces that count under no harness and about which nobody decided, by what their content shows of one. A group is no
    harness, and has no fingerprint.
    """
    with working("harness list"):
        report = harnesses.list_(corpus(ctx))
    return show(report, output, rows="rows", table=write_harnesses, note=None if report.rows else "no harnesses")
