"""Do the rows of an export agree in what their own files show of the harness that made them?

Everything that was stated of a trace counts: a later reading of its record may show what the first one did not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tracemark.acts.corpus import Corpus
from tracemark.exporters.agreement import Difference, Row, Shown, differences, shown_by
from tracemark.harness.equivalence import components
from tracemark.model.harness import COMPONENTS
from tracemark.store.state import join
from tracemark.store.store import Store

RECORDED = "recorded"
"""The evidence of a trace whose harness was recorded: nothing of its file is asked."""


class Taken(NamedTuple):
    """A trace of which a row was made."""

    trace: str
    """Its id."""
    fingerprint: str | None
    """The harness under which it counts."""
    evidence: str
    """How well that is known."""
    shown: tuple[Shown, ...]
    """What its line shows of handlers and runtime."""


def disagreement(corpus: Corpus, store: Store, rows: Iterable[Taken]) -> list[Difference]:
    """Return the parts by which rows prove to be of more than one harness, where nobody declared these equivalent.

    Args:
        corpus: which knows the harnesses.
        store: its store.
        rows: the rows.

    Raises:
        IntegrityError: when a file that holds a statement about one of them is damaged.
    """
    asked = [row for row in rows if row.evidence != RECORDED]
    again = store.statements(store.annotated([row.trace for row in asked]))
    since = {trace: shown_by(join(said).harness) for trace, said in again.items()}

    @cache
    def declared(fingerprint: str) -> dict[str, str]:
        harness = corpus.by_fingerprint.get(fingerprint)
        # of a harness that nobody knows, nobody can say that another one declares the same
        return dict.fromkeys(COMPONENTS, fingerprint) if harness is None else components(harness)

    return differences(
        Row(row.trace, since.get(row.trace, row.shown), declared(row.fingerprint or "")) for row in asked
    )
