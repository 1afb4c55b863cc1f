"""`tracemark pipeline dvcfile`."""

from __future__ import annotations

from typing import Annotated

import typer

from tracemark.cli.arguments import corpus
from tracemark.cli.output import write_data
from tracemark.errors import NegativeAnswerError
from tracemark.pipeline import dvcfile


def command(
    ctx: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell whether dvc.yaml is what would be written.")
    ] = False,
) -> int:
    """Write the pipeline's dvc.yaml to standard output.

    What it writes is the file itself, as it is to be stored, and no report: so there is no --output.
    """
    root = corpus(ctx)
    text = dvcfile.render(root).encode()
    if not check:
        write_data(text)
    elif not (root / "dvc.yaml").is_file() or (root / "dvc.yaml").read_bytes() != text:
        raise NegativeAnswerError(
            "dvc.yaml is not what would be written", where="dvc.yaml", hint="tracemark pipeline dvcfile > dvc.yaml"
        )
    return 0
