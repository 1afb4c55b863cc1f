"""Declare that two harnesses count as one, take that back, and derive again what was declared.

A comment changes a fingerprint. Whoever knows that nothing else was changed says so once, in the ledger, and every
export takes the traces of both from then on.

Invariants:
- without force only harnesses are declared equivalent that differ in nothing but the text of Python files whose syntax
  trees are equal (see `harness.equivalence`); what was forced is recorded as forced, with what differs;
- the texts of both are stored before the entry is written, so that whoever doubts it can compare them for ever;
- equivalence is symmetric and carries through: what counts as one with one of two counts as one with the other;
- entries are only added: a declaration holds until a later one takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tracemark.acts.corpus import Corpus, open_store, place_of
from tracemark.acts.decisions import turn
from tracemark.acts.export import INCOMPLETE
from tracemark.acts.harnesses import placed
from tracemark.clock import Clock
from tracemark.errors import NegativeAnswerError, UnknownNameError
from tracemark.findings import Finding, Report, finding
from tracemark.harness import snapshot
from tracemark.harness.equivalence import Compared, compare
from tracemark.harness.names import begins
from tracemark.harness.version import Harness
from tracemark.ledger import chain
from tracemark.ledger.chain import Draft
from tracemark.ledger.entry import Entry
from tracemark.ledger.state import LedgerState, state
from tracemark.model.decision import Kind
from tracemark.store.layout import Layout

EQUAL_TREES = "equal-trees"
"""The rule of a declaration that the texts bear out."""

FORCED = "forced"
"""The rule of one that rests on somebody's word."""


@dataclass(frozen=True)
class DeclaredEquivalent(Report):
    """Whether two harnesses were declared equivalent; the exit code is 1 when that was refused."""

    harnesses: tuple[dict[str, str], ...]
    """The two: `name`, `fingerprint`, `source` (the folder, relative to the corpus, or `snapshot`)."""
    rule: str | None
    """`equal-trees`: they differ in nothing but the text of Python files whose syntax trees are equal; `forced`: in
    more, and it was declared all the same. None when it was refused."""
    entry: str | None
    """Digest of the ledger entry; None when it was refused."""
    count_as_one: list[str]
    """Every fingerprint that counts as one with the two now, sorted; empty when it was refused."""
    alike: list[str]
    """Python files whose texts differ and whose syntax trees are equal."""
    differences: tuple[dict[str, str], ...]
    """What else differs: `component`, `part`, `kind` (`added`, `removed`, `changed`, `reordered`) and `diff`."""


@dataclass(frozen=True)
class Withdrawn(Report):
    """A declaration of equivalence was taken back."""

    fingerprints: list[str]
    """The two fingerprints, sorted."""
    entries: list[str]
    """Digests of the ledger entries, one for each set of fingerprints that was declared."""
    count_as_one: bool
    """Whether the two count as one all the same, through others."""


@dataclass(frozen=True)
class DerivedAgain:
    """What comparing declared equivalents again gave."""

    findings: list[Finding] = field(default_factory=list)
    """What does not hold, what was forced, and what nobody can compare."""
    proved: list[str] = field(default_factory=list)
    """What was found to be so, a sentence; none where nothing is declared."""


def equivalent(
    root: Path, first: str, second: str, reason: str, clock: Clock, *, force: bool = False
) -> DeclaredEquivalent:
    """Let exports treat two harnesses as one, if nothing but comments and layout of Python files differs.

    Args:
        root: the corpus.
        first: label, fingerprint or the beginning of one.
        second: likewise.
        reason: why; not empty.
        clock: gives the entry its time.
        force: declare it whatever differs.

    Raises:
        UnknownNameError: when nothing answers to one of the names.
        NegativeAnswerError: when they have one fingerprint, or are declared so already.
        NoStoreError: when there is no store, which keeps the texts of both.
        UsageError: when the reason is empty.
        LedgerChainError: when the ledger does not verify.
    """
    chain.require_reason(reason)
    Layout(root).require()
    with turn(root) as corpus, open_store(root) as store:
        pair = corpus.resolve(first), corpus.resolve(second)
        fingerprints = sorted({harness.fingerprint for harness in pair})
        _require_new(corpus.decisions, fingerprints)
        compared = compare(*pair)
        declared = compared.equal or force
        answer = _answer(corpus, (first, second), pair, compared, declared=declared)
        if not declared:
            return answer
        for harness in pair:
            store.commit_harness(harness.fingerprint, snapshot.write(harness))
        draft = Draft(Kind.EQUIVALENT, {"fingerprints": fingerprints}, reason, _evidence(compared))
        entry = chain.append(root / chain.NAME, corpus.chain, draft, clock)
    as_one = _after(corpus, [entry]).equivalent_to(fingerprints[0])
    return replace(answer, entry=entry.digest, count_as_one=sorted(as_one))


def withdraw(root: Path, first: str, second: str, reason: str, clock: Clock) -> Withdrawn:
    """Take back every declaration that names both of two harnesses.

    Args:
        root: the corpus.
        first: label, fingerprint or the beginning of one; a fingerprint that the ledger declares may be of a harness
            whose texts nobody knows.
        second: likewise.
        reason: why; not empty.
        clock: gives the entries their time.

    Raises:
        UnknownNameError: when nothing answers to one of the names.
        NegativeAnswerError: when no declaration in force names both.
        UsageError: when the reason is empty.
        LedgerChainError: when the ledger does not verify.
    """
    chain.require_reason(reason)
    with turn(root) as corpus:
        held = corpus.decisions
        pair = frozenset({_named(corpus, first), _named(corpus, second)})
        stated = [frozenset(entry.decision.subject["fingerprints"]) for entry in held.equivalences]
        named = [one for one in dict.fromkeys([*stated, *held.half_withdrawn]) if pair <= one]
        if not named or len(pair) == 1:
            raise NegativeAnswerError(
                "no declaration in force names both" + _through(held, pair),
                where=" ".join(sorted(pair)),
                hint="tracemark harness list shows what is equivalent; name each by its fingerprint",
            )
        drafts = [Draft(Kind.DISTINCT, {"fingerprints": sorted(one)}, reason) for one in named]
        entries = chain.append_all(root / chain.NAME, corpus.chain, drafts, clock)
    left = _after(corpus, entries)
    one, other = sorted(pair)
    through = other in left.equivalent_to(one)
    findings = [_still_one(left, pair)] if through else []
    return Withdrawn(tuple(findings), sorted(pair), [entry.digest for entry in entries], through)


def _after(corpus: Corpus, entries: Iterable[Entry]) -> LedgerState:
    """Return what the ledger means with entries that were added to it; nothing is read again, which could fail."""
    return state(chain.of([*corpus.chain.entries, *entries]))


def derived_again(corpus: Corpus) -> DerivedAgain:
    """Compare what the ledger declares equivalent again, as far as the texts are known.

    Raises:
        LedgerChainError: when the ledger does not verify.
    """
    derived = DerivedAgain()
    stated = [entry for entry in corpus.decisions.equivalences if _rule(entry) == EQUAL_TREES]
    holding = 0
    for entry in corpus.decisions.equivalences:
        fingerprints = sorted(entry.decision.subject["fingerprints"])
        known = [corpus.by_fingerprint[one] for one in fingerprints if one in corpus.by_fingerprint]
        for one in fingerprints:
            if one not in corpus.by_fingerprint:
                message = f"no harness version and no snapshot has the fingerprint {one}"
                derived.findings.append(finding("equivalent-unknown", entry.place, message))
        where = " ".join(one[:16] for one in fingerprints)
        if _rule(entry) != EQUAL_TREES:
            message = f"entry {entry.digest[:12]} lets them count as one: {entry.decision.reason}"
            derived.findings.append(finding("equivalence-forced", where, message))
        elif len(known) == len(fingerprints):
            differing = [part for other in known[1:] for part in compare(known[0], other).differences]
            holding += not differing
            if differing:
                message = f"entry {entry.digest[:12]} says that their syntax trees are equal, and {_words(differing)}"
                derived.findings.append(finding("equivalence-refuted", where, message))
    if stated:
        derived.proved.append(
            "harnesses declared equivalent that differ in nothing but text of Python files with equal syntax trees:"
            f" {holding} of {len(stated)}"
        )
    return derived


def _rule(entry: Entry) -> object:
    return (entry.decision.evidence or {}).get("rule")


def _require_new(held: LedgerState, fingerprints: Sequence[str]) -> None:
    if len(fingerprints) == 1:
        raise NegativeAnswerError("they are one harness already: their fingerprints are equal", where=fingerprints[0])
    for entry in held.equivalences:
        if sorted(entry.decision.subject["fingerprints"]) == fingerprints:
            raise NegativeAnswerError(
                f"they are declared equivalent already, by entry {entry.digest[:12]}: {entry.decision.reason}",
                where=" ".join(fingerprints),
                hint="tracemark harness list",
            )


def _evidence(compared: Compared) -> dict[str, Any]:
    said: dict[str, Any] = {"rule": EQUAL_TREES if compared.equal else FORCED, "alike": list(compared.alike)}
    if not compared.equal:
        said["differences"] = [
            {"component": one.component, "part": one.part, "kind": one.kind.value, "members": list(one.members)}
            for one in compared.differences
        ]
    return said


def _answer(
    corpus: Corpus,
    names: tuple[str, str],
    pair: tuple[Harness, Harness],
    compared: Compared,
    *,
    declared: bool,
) -> DeclaredEquivalent:
    """Return the answer as it is before anything is written."""
    findings = [placed(found, one) for one in pair for found in one.findings if found.code == INCOMPLETE]
    findings += [found for name, one in zip(names, pair, strict=True) for found in corpus.namesakes(name, one)]
    if not declared:
        short = " ".join(one.fingerprint[:16] for one in pair)
        hint = f"tracemark harness diff {short}; tracemark harness equivalent {short} --reason TEXT --force declares it"
        message = f"not declared equivalent: {_words(compared.differences)}"
        findings.append(finding("equivalence-refused", " ".join(names), message, hint))
    return DeclaredEquivalent(
        findings=tuple(dict.fromkeys(findings)),
        harnesses=tuple({"name": h.name, "fingerprint": h.fingerprint, "source": place_of(h)} for h in pair),
        rule=None if not declared else EQUAL_TREES if compared.equal else FORCED,
        entry=None,
        count_as_one=[],
        alike=list(compared.alike),
        differences=tuple(
            {"component": one.component, "part": one.part, "kind": one.kind.value, "diff": one.text}
            for one in compared.differences
        ),
    )


def _words(differences: Sequence[Any]) -> str:
    """Return what differs in one sentence: part, and member or file."""
    told = []
    for one in differences:
        paths = [text.path for text in one.texts if text.path not in ("members", "order")]
        told.append(f"{one.component}/{one.part or 'order'} ({', '.join(paths or one.members) or one.kind})")
    return f"what differs is {'; '.join(told)}"


def _named(corpus: Corpus, name: str) -> str:
    """Return the fingerprint that a name means, be it of a harness that only the ledger knows."""
    try:
        return corpus.resolve(name).fingerprint
    except UnknownNameError:
        held = corpus.decisions
        declared = frozenset().union(*held.equivalents, *held.half_withdrawn)
        found = [one for one in declared if begins(one, name)]
        if len(found) == 1:
            return found[0]
        raise


def _through(held: LedgerState, pair: frozenset[str]) -> str:
    one, other = min(pair), max(pair)
    return "; they count as one through others" if one != other and other in held.equivalent_to(one) else ""


def _still_one(held: LedgerState, pair: frozenset[str]) -> Finding:
    listed = ", ".join(
        f"{' '.join(one[:16] for one in entry.decision.subject['fingerprints'])} (entry {entry.digest[:12]})"
        for entry in held.equivalences_of(min(pair))
    )
    where = " ".join(one[:16] for one in sorted(pair))
    return finding("equivalent-through-others", where, f"they count as one all the same, through {listed}")
