"""Options that the commands of gates share: where the report goes, and whether the verdict is entered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tracemark.acts.installing import InstallOptions
from tracemark.cli.sharing import sharing
from tracemark.errors import UsageError

OutOption = Annotated[
    Path | None, typer.Option("--out", help="Write the report there, as canonical JSON.", metavar="FILE")
]
_OPTIONS: dict[str, Any] = {
    "out": OutOption,
    "install": Annotated[
        bool,
        typer.Option("--install", help="Enter the verdict in the ledger, and make an accepted candidate the accepted."),
    ],
    "dry_run": Annotated[bool, typer.Option("--dry-run", help="With --install: only say what it would do.")],
    "reason": Annotated[
        str | None, typer.Option("--reason", help="Why; goes into the ledger with --install.", metavar="TEXT")
    ],
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to become of a verdict."""

    out: Path | None
    """The file that takes the report; None writes none."""
    install: InstallOptions | None
    """How the verdict becomes a decision; None where it does not."""


def judging(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of a gate; it gets what they say as `wanted`, a `Wanted`."""
    return sharing(command, "wanted", _OPTIONS, _wanted)


def _wanted(out: Path | None, install: bool, dry_run: bool, reason: str | None) -> Wanted:
    if not install:
        if dry_run or reason is not None:
            given = "--dry-run" if dry_run else "--reason"
            raise UsageError(f"{given} says something about --install only", hint="add --install, or leave it out")
        return Wanted(out, None)
    if reason is None and not dry_run:
        raise UsageError("a decision needs a reason", where="--reason", hint="say why, for later readers")
    return Wanted(out, InstallOptions(reason or "", dry_run, out))
