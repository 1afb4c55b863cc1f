"""Where exports and reports may be written: never where they would be read back, and never into the store."""

from __future__ import annotations

import os
from pathlib import Path

from tracemark.acts.corpus import VERSIONS
from tracemark.errors import UsageError


def require_elsewhere(root: Path, out: Path, example: str) -> None:
    """Make sure that an export or a report is not written where it would be read back, or into the store.

    Args:
        root: the corpus.
        out: the folder or file that is to be written.
        example: a place that would do, for the hint.

    Raises:
        UsageError: when it is.
    """
    place = Path(os.path.realpath(out))
    for name in ("inbox", "traces", ".tracemark", VERSIONS):
        if place.is_relative_to(os.path.realpath(root / name)):
            hint = f"name a place of its own, such as {example}"
            raise UsageError(f"exports and reports cannot lie in {name}/", where=str(out), hint=hint)
