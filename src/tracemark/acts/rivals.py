"""Which known harnesses traces of the accepted one may be of as well, as far as their content tells."""

from __future__ import annotations

from collections.abc import Collection

from tracemark.acts.corpus import Corpus
from tracemark.durable import is_there
from tracemark.exporters.choice import Rival
from tracemark.store.layout import Layout


def rivals(corpus: Corpus, fitting: Collection[str]) -> list[Rival]:
    """Return the known harnesses of which traces of the accepted one may be as well, in words.

    Args:
        corpus: the corpus.
        fitting: fingerprints that fit traces of it; those that no content tells apart from it are added.
    """
    accepted = corpus.matchers.get(corpus.accepted or "")
    found = []
    for fingerprint, matcher in corpus.matchers.items():
        alike = accepted is not None and matcher.compared == accepted.compared
        if fingerprint in corpus.equivalents() or not (alike or fingerprint in fitting):
            continue
        words = f"{corpus.name_of(fingerprint)} ({fingerprint[:16]}…)"
        found.append(Rival(words, alike, spare=not is_there(Layout(corpus.root).snapshot(fingerprint))))
    return found
