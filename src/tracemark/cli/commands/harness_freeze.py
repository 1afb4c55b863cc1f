"""`tracemark harness freeze`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.acts import harness_freeze
from tracemark.cli.arguments import Output, OutputOption, corpus
from tracemark.cli.output import show
from tracemark.cli.progress import working


def command(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="HARNESS", help="A name, a fingerprint or its beginning, or package.module:ATTRIBUTE."),
    ],
    label: Annotated[str, typer.Option("--as", metavar="NAME", help="The new folder in harness_versions/.")],
    output: OutputOption = Output.TABLE,
) -> int:
    """Write a harness out as a version in harness_versions/.

    A snapshot, another version, or one captured in code: package.module:ATTRIBUTE is a harness, what tracemark.capture
    gave, or a function without parameters that gives it. That module, and no other code, is imported and run, because
    you name it. The new folder has the same fingerprint, holds all its files, and needs no roots or packages.
    """
    with working("harness freeze"):
        report = harness_freeze.freeze(corpus(ctx), name, label)
    return show(report, output)
