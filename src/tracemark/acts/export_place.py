"""Where exports and reports may be written: never where the corpus keeps what it reads, and over none but their kind.

Invariants:
- which folders and files those are depends on their names alone: an empty ledger, or one that is not there yet, is the
  corpus's own as well;
- what one kind of command writes lies in no folder of another's, where that would be in the way, or be removed;
- a file is replaced only when it holds what the same command wrote earlier. Folders of exports are looked at by the
  exports themselves, which know what is in one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tracemark.acts import lockfile
from tracemark.acts.corpus import VERSIONS
from tracemark.acts.kept_reports import DECIDED, REPORTS
from tracemark.acts.leaks import EXPORTS
from tracemark.durable import PRIVATE, is_there, read_regular
from tracemark.errors import IrregularFileError, UsageError
from tracemark.ledger import chain, params

_FOLDERS = ("inbox", "traces", PRIVATE, ".git", ".dvc", VERSIONS, "domains", DECIDED)
_SHARED = (EXPORTS, REPORTS)
"""Folders in which several commands have places of their own, so that none takes the whole."""
_HOMES = {EXPORTS: "exports", "failures": "failure logs", REPORTS: "reports, plots and plans"}
"""By the folder in which commands have their places: what lies there, and nothing else."""
_FILES = (chain.NAME, params.NAME, "dvc.yaml", lockfile.NAME, ".gitignore", ".dvcignore", ".gitattributes")


def require_elsewhere(root: Path, out: Path, example: str) -> None:
    """Make sure that an export or a report is not written where the corpus keeps what it reads, or into the store.

    Args:
        root: the corpus.
        out: the folder or file that is to be written.
        example: a place that would do, for the hint; it lies in the folder of what is written.

    Raises:
        UsageError: when it is, or would lie in the folder of another kind.
    """
    place = Path(os.path.realpath(out))
    hint = f"name a place of its own, such as {example}"
    for name in _SHARED:
        if place == Path(os.path.realpath(root / name)):
            message = f"exports and reports cannot take the place of {name}/: others lie in it"
            raise UsageError(message, where=str(out), hint=hint)
    for name in (*_FOLDERS, *_FILES):
        if place.is_relative_to(os.path.realpath(root / name)):
            verb = f"lie in {name}/" if name in _FOLDERS else f"take the place of {name}"
            message = f"exports and reports cannot {verb}: the corpus keeps what it reads there"
            raise UsageError(message, where=str(out), hint=hint)
    for name, kind in _HOMES.items():
        if name != Path(example).parts[0] and place.is_relative_to(os.path.realpath(root / name)):
            raise UsageError(f"only {kind} lie in {name}/", where=str(out), hint=hint)


def require_replaceable(out: Path, made: Callable[[bytes], bool], kind: str, example: str) -> None:
    """Make sure that writing a file replaces nothing but one of its kind.

    Args:
        out: the file that is to be written; it need not be there.
        made: whether bytes are of the kind.
        kind: what the kind is called, such as `plan`.
        example: a place that would do, for the hint.

    Raises:
        UsageError: when it would.
    """
    if not is_there(out):
        return
    try:
        same = made(read_regular(out))
    except (OSError, IrregularFileError):
        same = False
    if not same:
        raise UsageError(f"the file holds no {kind}", where=str(out), hint=f"name a new file, such as {example}")
