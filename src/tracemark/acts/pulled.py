"""Is what a verb reads on disk? Half a corpus answers like a whole one, so reading verbs say what is missing.

The rule (`docs/decisions/0017-not-pulled.md`): a pinned file that is not on disk is missing, and files that are not
pinned are no matter. Only where the inbox is complete may the store have been made again with other files; it has been
when DVC's cache holds the pinned names and the segments on disk have others. Then nothing is missing.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracemark.acts.corpus import Corpus
from tracemark.acts.pinned import LOCK, Pinned, pinned, present
from tracemark.errors import NotPulledError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import INGESTED

COMPLETE = "complete"
"""Value of `ingest.inbox` in params.yaml: the store can be made again from the inbox."""

_SEGMENTS = "traces/segments"
_EXPORTED = (*(f"traces/annotations/{kind}" for kind in INGESTED), "traces/harnesses", _SEGMENTS)


def not_pulled(corpus: Corpus) -> list[Finding]:
    """Return a finding for each folder below `traces/` that lacks files which dvc.lock pins."""
    try:
        lacking = _missing(corpus)
    except NotPulledError as error:
        return [finding("not-pulled", LOCK, error.message, error.hint)]
    return [
        finding("not-pulled", f"{LOCK}: {path}", f"pinned files that are not on disk: {count}", _hint(corpus))
        for path, count in lacking.items()
    ]


def require_pulled(corpus: Corpus) -> None:
    """Make sure that all is on disk of what dvc.lock pins and an export reads.

    The records of earlier exports may be missing: they are outputs of the stage that exports.

    Raises:
        NotPulledError: when it is not, or when dvc.lock cannot be read.
    """
    lacking = {path: count for path, count in _missing(corpus).items() if path in _EXPORTED}
    if lacking:
        raise NotPulledError(
            f"files that dvc.lock pins are not on disk: {_words(lacking)}", where=LOCK, hint=_hint(corpus)
        )


def _missing(corpus: Corpus) -> dict[str, int]:
    """Return how many pinned files are missing, by folder; folders that lack none are left out."""
    pins = pinned(corpus.root)
    lacking = {}
    for pin in pins:
        on_disk = present(corpus.root / pin.path)
        count = len(pin.names - on_disk) if pin.names is not None else pin.count - len(on_disk)
        if count > 0:
            lacking[pin.path] = count
    return {} if lacking and _made_again(corpus, pins) else lacking


def _made_again(corpus: Corpus, pins: list[Pinned]) -> bool:
    if corpus.params.ingest.inbox != COMPLETE:
        return False
    known = [pin.names for pin in pins if pin.path == _SEGMENTS and pin.names is not None]
    return any(present(corpus.root / _SEGMENTS) - names for names in known)


def _words(lacking: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {path}" for path, count in lacking.items())


def _hint(corpus: Corpus) -> str:
    return "dvc pull" if corpus.params.ingest.inbox != COMPLETE else "dvc pull, or dvc repro, which makes them again"
