"""`tracemark audit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tracemark.acts import audit
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.audit_view import by_cause, write_audit
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="TRACE|EXPORT|HARNESS", help="A trace id, an export's folder, or a harness.")
    ],
    output: OutputOption = Output.TABLE,
) -> int:
    """Tell where a trace, an export or a harness comes from.

    A trace: which harness made it and by what evidence, which known harnesses fit, what differs from the accepted one,
    which exports used it. An export: every row recomputed from the store, and what that proved. A harness: its traces,
    exports, decisions.
    """
    with working("audit"):
        report = audit.audit(corpus(ctx), target)
    if output is Output.TABLE:
        report = replace(report, findings=by_cause(report.findings))
    return show(report, output, view=write_audit)
