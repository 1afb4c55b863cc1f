"""Would an SFT export that is made now take a trace, and if not, what is the first reason?

Invariant:
- it is the filter of the export that answers, under the present terms; only the limits of number, which compare traces
  with each other, are left aside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tracemark.acts.corpus import Corpus
from tracemark.acts.evaluation_set import changed
from tracemark.acts.export import terms_of
from tracemark.errors import IntegrityError
from tracemark.exporters import sft
from tracemark.exporters.select import facts, judge, rests_on_fits
from tracemark.findings import Finding
from tracemark.store.selection import State

TAKEN = "yes"
"""The answer for a trace that is taken; every other one begins with `no`."""


def eligible(
    corpus: Corpus, state: State, line: Mapping[str, Any], fitting: Collection[str], uncompared: Sequence[Finding]
) -> str:
    """Return `yes`, or `no` with the first reason and its detail.

    Args:
        corpus: the corpus.
        state: the trace as it stands.
        line: its stored line, parsed.
        fitting: the fingerprints of the known harnesses that its content does not exclude.
        uncompared: what kept other harnesses from being compared.
    """
    if corpus.acceptance_findings():
        return "no: it is open which harness is accepted"
    if corpus.accepted is None:
        return "no: no harness is accepted"
    if changed(corpus):
        return "no: the evaluation set is not the one that was frozen"
    if state.superseded_by:
        return "no: superseded"
    known, terms = facts(state), terms_of(corpus)

    def untrainable() -> str | None:
        return sft.render(line["trajectory"], known, corpus.offered(known.fingerprint or "")).untrainable

    try:
        verdict = judge(known, terms, lambda: fitting, untrainable)
    except IntegrityError as error:
        return f"no: {error.message}"
    if verdict.reason is None and uncompared and rests_on_fits(known, terms):
        return f"no: a harness cannot be compared ({uncompared[0].where})"
    if verdict.reason is None:
        return TAKEN
    return f"no: {verdict.reason}" + (f" ({verdict.detail})" if verdict.detail else "")
