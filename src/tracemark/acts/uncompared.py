"""Harnesses with which no trace can be compared, because what they consist of cannot be read.

A trace that was not recorded is taken under policy `unique` because no other known harness fits it. A harness that is
known to be there and cannot be read may fit, so whoever rests on the comparison has to say so, and an export is not
made. What nothing names (a snapshot that was taken away with every trace of its harness) nobody can miss.
"""

from __future__ import annotations

from tracemark.acts.corpus import VERSIONS, Corpus
from tracemark.durable import is_there
from tracemark.errors import ExportRefusedError, IntegrityError
from tracemark.findings import Finding, finding
from tracemark.store.layout import Layout
from tracemark.store.store import Store
from tracemark.words import first_few

_MEANWHILE = "the snapshot was stored while the harnesses were read"
_AGAIN = "put that harness version into {versions}/ again"
_MEND = "mend it ({command}), or move it out of {versions}/"


def left_out(corpus: Corpus, store: Store) -> list[Finding]:
    """Return a warning for each harness that cannot be compared: folders, snapshots, and those that traces name."""
    return [*corpus.left_out(), *_missing(corpus, store)]


def in_doubt(corpus: Corpus, store: Store) -> list[Finding]:
    """Return the same as errors, for an answer that rests on the comparison."""
    return [
        finding("harness-uncompared", problem.where, problem.message, _hint(problem))
        for problem in left_out(corpus, store)
    ]


def require_compared(corpus: Corpus, store: Store) -> None:
    """Make sure that every harness that is known to be there was compared.

    Raises:
        IntegrityError: when a snapshot is damaged or missing.
        ExportRefusedError: when a harness version in a folder cannot be read, or a harness was stored meanwhile.
    """
    found = in_doubt(corpus, store)
    if not found:
        return
    damaged = [one for one in found if one.where.startswith("traces/") and one.message != _MEANWHILE]
    chosen = (damaged or found)[0]
    others = [problem.where for problem in found if problem is not chosen]
    more = f" (so it is with {first_few(others, 3)})" if others else ""
    message = f"a harness cannot be compared, and may fit the same traces: {chosen.message}{more}"
    raise (IntegrityError if damaged else ExportRefusedError)(message, where=chosen.where, hint=chosen.hint)


def _missing(corpus: Corpus, store: Store) -> list[Finding]:
    """Return a finding for each harness that traces name and of which neither folder nor snapshot was read."""
    layout = Layout(corpus.root)
    unread = {problem.where for problem in corpus.left_out()}
    found = []
    for fingerprint in sorted(store.fingerprints().difference(corpus.by_fingerprint)):
        path = layout.snapshot(fingerprint)
        where = path.relative_to(corpus.root).as_posix()
        if where in unread:
            continue
        if is_there(path):
            message, hint = _MEANWHILE, "run the command again"
        else:
            message = f"traces name the harness {fingerprint}, of which no snapshot is stored"
            hint = "restore the file with `git checkout` or `dvc pull`"
        found.append(finding("harness-left-out", where, message, hint))
    return found


def _hint(problem: Finding) -> str | None:
    if problem.message == _MEANWHILE or problem.where == f"{VERSIONS}/":
        return problem.hint
    if problem.where.startswith("traces/"):
        return f"{problem.hint}, or {_AGAIN.format(versions=VERSIONS)}"
    return _MEND.format(command=problem.hint, versions=VERSIONS)
