"""Is what a verb reads on disk? Reading verbs say what is missing, and an export is not made of a part of a corpus.

What counts as missing is the business of `tracemark.acts.pinned`.
"""

from __future__ import annotations

from pathlib import Path

from tracemark.acts import lockfile
from tracemark.acts.corpus import Corpus
from tracemark.acts.pinned import SEGMENTS, SNAPSHOTS
from tracemark.errors import NotPulledError, UnknownNameError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import INGESTED
from tracemark.store.store import Store

_EXPORTED = (*(f"traces/annotations/{kind}" for kind in INGESTED), SNAPSHOTS, SEGMENTS)


def not_pulled(corpus: Corpus) -> list[Finding]:
    """Return a finding for each folder below `traces/` that lacks files which dvc.lock pins."""
    try:
        lacking = corpus.pins.missing
    except NotPulledError as error:
        return [finding("not-pulled", lockfile.NAME, error.message, error.hint)]
    return [
        finding(
            "not-pulled", f"{lockfile.NAME}: {path}", f"pinned files that are not on disk: {count}", corpus.pins.hint()
        )
        for path, count in lacking.items()
    ]


def resolve(corpus: Corpus, store: Store, prefix: str) -> str:
    """Return the one trace id that begins with `prefix`.

    Raises:
        UsageError: when it is no hexadecimal text of 6 to 64 digits, or more than one id begins so.
        UnknownNameError: when none does.
        NotPulledError: when none does of what is on disk, and pinned data is not.
    """
    try:
        return store.resolve(prefix)
    except UnknownNameError:
        if corpus.pins.missing:
            raise corpus.pins.lacks(corpus.pins.missing, f"; of what is, no trace begins with {prefix}") from None
        raise


def require_pulled(corpus: Corpus) -> None:
    """Make sure that all is on disk of what dvc.lock pins and an export reads.

    The records of earlier exports may be missing: they are outputs of the stage that exports.

    Raises:
        NotPulledError: when it is not, or when dvc.lock cannot be read.
    """
    lacking = {path: count for path, count in corpus.pins.missing.items() if path in _EXPORTED}
    if lacking:
        raise corpus.pins.lacks(lacking)


def require_no_output(corpus: Corpus, path: Path) -> None:
    """Make sure that what is not on disk at `path` is no output of a stage, as the folder of an export is.

    Raises:
        NotPulledError: when it is one, or when dvc.lock cannot be read.
    """
    place, root = path.resolve(), corpus.root.resolve()
    if place.is_relative_to(root) and (name := place.relative_to(root).as_posix()) in lockfile.outs(corpus.root):
        message = f"{name}, which {lockfile.NAME} pins, is not on disk"
        raise NotPulledError(message, where=lockfile.NAME, hint=corpus.pins.hint())
