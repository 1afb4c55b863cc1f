"""Arguments that several commands share, and the corpus that a command works on."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tracemark.errors import NoStoreError


class Output(StrEnum):
    """How a report is shown."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


OutputOption = Annotated[
    Output, typer.Option("--output", help="table for people, json for the whole answer, jsonl for a row per line.")
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; goes into the ledger.", metavar="TEXT")]
TraceArgument = Annotated[str, typer.Argument(help="A trace id, or enough of its beginning.", metavar="TRACE")]
TracesArgument = Annotated[
    list[str], typer.Argument(help="Trace ids, or enough of their beginnings.", metavar="TRACES")
]
HarnessArgument = Annotated[
    str, typer.Argument(help="A name in harness_versions/, or a fingerprint or its beginning.", metavar="HARNESS")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, help="Stop after so many.", metavar="N")]

_MARKS = ("traces/STORE", "params.yaml")


def corpus(ctx: typer.Context) -> Path:
    """Return the corpus that a command works on: `--root`, else the nearest parent that is one.

    Raises:
        NoStoreError: when neither the working directory nor a parent of it is a corpus.
    """
    if ctx.obj is not None:
        return Path(ctx.obj)
    here = Path.cwd()
    found = nearest(here)
    if found is None:
        raise NoStoreError(
            f"neither {here} nor a folder above it is a corpus",
            hint="cd into one, name one with `tracemark --root DIR …`, or make one with `tracemark init`",
        )
    return found


def nearest(here: Path) -> Path | None:
    """Return the corpus in which a folder lies, the folder itself if it is one; None when it lies in none."""
    for folder in (here, *here.parents):
        if any(os.path.lexists(folder / mark) for mark in _MARKS):
            return folder
    return None
