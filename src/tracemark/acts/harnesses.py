"""What a corpus knows of harnesses: list, show, diff and check them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracemark.acts.corpus import VERSIONS, Corpus, open_store, place_of
from tracemark.acts.observed import described, groups
from tracemark.acts.pulled import not_pulled
from tracemark.errors import LedgerChainError, LockedError, NewerFormatError, UsageError
from tracemark.findings import Finding, Report, finding
from tracemark.harness import check as checks
from tracemark.harness.diff import compare
from tracemark.harness.version import Harness
from tracemark.store.layout import Layout
from tracemark.store.selection import Selection


@dataclass(frozen=True)
class HarnessList(Report):
    """Every harness that the corpus knows."""

    harnesses: tuple[dict[str, Any], ...]
    """One per folder, and per snapshot of what no folder holds: `name`, `fingerprint`, `source` (the folder, relative
    to the corpus, or `snapshot`), `traces`, `successes`, `accepted` (false while it is open which one is),
    `equivalent_to` (the fingerprints that the ledger lets count as one with it, sorted)."""
    observed: tuple[dict[str, Any], ...] = ()
    """Groups of traces that count under no harness and about which nobody decided, by what they share of one, those
    with most traces first: `name`, `source` (`observed`), `formats` (each with its traces), `traces`, `tasks` (at
    most), `known` (component to part to form and digest), `open` (component to why nothing of it is known), `trace`
    (the id of one of them), and of that one `agent` (name and version), `domain` and `label` (its file), which are
    words and no identity. Documents of sub-agents are in no group."""

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The harnesses, and behind them the observed groups."""
        return (*self.harnesses, *self.observed)


@dataclass(frozen=True)
class HarnessShown(Report):
    """One harness."""

    name: str
    """Its label."""
    fingerprint: str
    """Its fingerprint."""
    components: dict[str, str]
    """Component to digest."""
    parts: dict[str, dict[str, str]]
    """Component to part to digest, in the harness's order."""


@dataclass(frozen=True)
class HarnessDiff(Report):
    """How two harnesses differ; the exit code is 1 when they do."""

    old: str
    """Fingerprint of the first."""
    new: str
    """Fingerprint of the second."""
    differences: tuple[dict[str, str], ...]
    """`component`, `part`, `kind` (`added`, `removed`, `changed`, `reordered`) and `diff`, a unified text diff."""

    @property
    def exit_code(self) -> int:
        """Return 1 when the harnesses differ."""
        return int(bool(self.differences) or super().exit_code)


@dataclass(frozen=True)
class HarnessCheck(Report):
    """What is wrong with harness versions."""

    checked: tuple[str, ...]
    """Folders of the versions that were checked, by name, sorted; a snapshot goes by its label."""


def list_(root: Path) -> HarnessList:
    """Return the harness versions and snapshots of the corpus, with what the store holds of each."""
    corpus = Corpus(root)
    counts: dict[str | None, Counter[str]] = {}
    findings = not_pulled(corpus)
    observed: tuple[dict[str, Any], ...] = ()
    if Layout(root).is_begun():
        with open_store(root) as store:
            for state in store.select(Selection(), corpus.store_decisions, store.findings):
                counts.setdefault(state.row.fingerprint, Counter())[state.row.status] += 1
            observed = tuple(described(store, group) for group in groups(corpus, store).groups)
            findings += store.findings
    rows = tuple(_row(corpus, harness, counts) for harness in corpus.places)
    findings += [*corpus.harness_findings, *about_several(corpus), *corpus.acceptance_findings()]
    return HarnessList(tuple(findings), rows, observed)


def about_several(corpus: Corpus) -> list[Finding]:
    """Return every finding that is about several harness versions of a corpus at once."""
    return [*twice(corpus), *checks.together(corpus.harnesses, declared(corpus)), *accepted_apart(corpus)]


def declared(corpus: Corpus) -> tuple[frozenset[str], ...]:
    """Return the sets of fingerprints that count as one; none where the ledger cannot be read.

    Verbs that only look at folders do not end with what is wrong with the ledger; a warning too many is the harm.
    """
    try:
        return corpus.decisions.equivalents
    except (LedgerChainError, LockedError, NewerFormatError, UsageError):
        return ()


def twice(corpus: Corpus) -> Iterator[Finding]:
    """Yield a finding for each fingerprint that several folders have."""
    folders: dict[str, list[Harness]] = {}
    for harness in corpus.places:
        folders.setdefault(harness.fingerprint, []).append(harness)
    for fingerprint, same in folders.items():
        if len(same) > 1:
            listed = ", ".join(map(place_of, same))
            message = f"they are one harness, {fingerprint[:16]}; its traces are listed under {same[0].name!r}"
            yield finding("harness-twice", listed, message)


def accepted_apart(corpus: Corpus) -> list[Finding]:
    """Return the finding that the accepted harness is a snapshot, and its name leads to another one that has a folder.

    Snapshots that are not accepted and have the name of an edited folder are what every history leaves behind.
    """
    accepted = corpus.by_fingerprint.get(corpus.accepted or "")
    if accepted is None or accepted.folder is not None or corpus.broken(accepted.name):
        return []
    named = [one for one in corpus.harnesses if one.folder is not None and accepted.name in (one.folder.name, one.name)]
    return corpus.namesakes(accepted.name, named[0]) if named else []


def _row(corpus: Corpus, harness: Harness, counts: Mapping[str | None, Counter[str]]) -> dict[str, Any]:
    fingerprint = harness.identity.fingerprint
    counted = counts.get(fingerprint, Counter())
    return {
        "name": harness.name,
        "fingerprint": fingerprint,
        "source": place_of(harness),
        "traces": sum(counted.values()),
        "successes": counted["success"],
        "accepted": fingerprint == corpus.accepted and fingerprint in corpus.equivalents(),
        "equivalent_to": sorted(corpus.decisions.equivalent_to(fingerprint) - {fingerprint}),
    }


def show(root: Path, name: str) -> HarnessShown:
    """Return one harness with the digests of its components and parts.

    Raises:
        UnknownNameError: when nothing answers to `name`.
    """
    corpus = Corpus(root)
    harness = corpus.resolve(name)
    identity = harness.identity
    return HarnessShown(
        (*(placed(found, harness) for found in harness.findings), *corpus.namesakes(name, harness)),
        harness.name,
        identity.fingerprint,
        dict(identity.components),
        {component: dict(parts) for component, parts in identity.parts.items()},
    )


def diff(root: Path, old: str, new: str) -> HarnessDiff:
    """Return the parts in which two harnesses differ, with their texts compared.

    Raises:
        UnknownNameError: when nothing answers to one of the names.
    """
    corpus = Corpus(root)
    first, second = corpus.resolve(old), corpus.resolve(new)
    differences = tuple(
        {"component": d.component, "part": d.part, "kind": d.kind, "diff": d.text} for d in compare(first, second)
    )
    shared = (*corpus.namesakes(old, first), *corpus.namesakes(new, second))
    return HarnessDiff(shared, first.identity.fingerprint, second.identity.fingerprint, differences)


def check(root: Path, names: Sequence[str]) -> HarnessCheck:
    """Return what is wrong with the harness versions `names`, or with all of them when none is named.

    Raises:
        UnknownNameError: when nothing answers to one of `names`.
    """
    corpus = Corpus(root)
    findings: list[Finding] = []
    chosen: list[Harness] = []
    unreadable: list[str] = []
    for name in names:
        problems = corpus.broken(name)
        findings += problems
        if problems:
            unreadable.append(name)
        else:
            chosen.append(corpus.resolve(name))
    if not names:
        chosen = [harness for harness in corpus.places if harness.folder is not None]
        unreadable = sorted({found.where.split("/")[1] for found in corpus.harness_findings if _of_version(found)})
        findings += [*corpus.harness_findings, *about_several(corpus)]
    for harness in chosen:
        findings += [placed(found, harness) for found in checks.check(harness)]
    return HarnessCheck(tuple(findings), tuple(sorted([*map(_folder, chosen), *unreadable])))


def _folder(harness: Harness) -> str:
    return harness.folder.name if harness.folder is not None else harness.name


def _of_version(found: Finding) -> bool:
    return found.where.startswith(f"{VERSIONS}/")


def placed(found: Finding, harness: Harness) -> Finding:
    """Return a finding about a file of a harness with the version's folder in front of its place.

    Every report names a file of a harness version so: relative to the corpus, and not to the version's folder.
    """
    if harness.folder is None:
        return replace(found, where=f"{harness.fingerprint[:16]}: {found.where}")
    return replace(found, where=f"{VERSIONS}/{harness.folder.name}/{found.where}")
