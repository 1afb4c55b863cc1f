"""Observed harnesses: what foreign traces show, grouped by what they share, beside the harnesses that are declared.

A group is a partial identity. Its traces agree in every part that it names, and nobody knows the rest: it is no
harness, it has no fingerprint, and no export takes a trace for being in it. What it is good for: to see how many
harnesses a pile of foreign traces holds at least, and which parts a declared version has to have before it fits them.

Invariants:
- a group names what `harness.observed.shared` keeps: parts that prove a difference, and texts that a second task
  confirmed; so another trace may confirm a text and move traces from one group to another;
- traces that show nothing are a group for themselves, one for each format;
- memory grows with the number of groups and of texts that several tasks show, not with that of traces.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import Corpus
from tracemark.errors import IntegrityError, UnknownNameError
from tracemark.findings import Finding, finding
from tracemark.harness.observed import PREFIX, Confirmed, Half, name_of, shared
from tracemark.importers.detect import IMPORTERS, importer
from tracemark.model.harness import COMPONENTS
from tracemark.store.catalogue import Foreign
from tracemark.store.selection import Selection
from tracemark.store.store import Store

SOURCE = "observed"
"""What stands for the place of a group in lists of harnesses, where those that are declared have a folder."""

_MOST = 1000
"""So many texts of a component are counted, and no more."""

_ABSENT = "these traces hold none of it"
_UNCONFIRMED = " confirmed by a second task"
_NEVER = "the format never holds it"


@dataclass(slots=True)
class Group:
    """Traces without a harness that share what is known of theirs."""

    known: dict[str, list[dict[str, str]]]
    """Component to the observed entries that all of them show; empty when nothing is known."""
    texts: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Digests of texts that its traces show of each component that is not known, at most `_MOST` of one."""
    formats: Counter[str] = field(default_factory=Counter)
    """Traces by format."""
    tasks: int = 0
    """How many tasks they are of, at most; a task of two halves counts twice."""
    first: str = ""
    """Id of one of the traces."""

    @property
    def name(self) -> str:
        """What it is called: `observed:` and digits of the digest of what is known, or the format when nothing is."""
        return _key(self.known, next(iter(self.formats)))

    @property
    def traces(self) -> int:
        """How many traces there are."""
        return self.formats.total()

    def add(self, foreign: Foreign, half: Half) -> None:
        """Count traces that show `half`."""
        self.formats[foreign.format or "unknown"] += foreign.traces
        self.tasks += foreign.tasks
        for component in half.keys() - self.known.keys():
            texts = self.texts[component]
            for entry in half[component]:
                if len(texts) < _MOST:
                    texts.add(entry["digest"])

    def as_row(self) -> dict[str, Any]:
        """Return the group as `harness list` shows it."""
        return {
            "name": self.name,
            "source": SOURCE,
            "formats": dict(sorted(self.formats.items())),
            "traces": self.traces,
            "tasks": self.tasks,
            "known": {component: _parts(entries) for component, entries in self.known.items()},
            "open": {name: _why(name, self) for name in COMPONENTS if name not in self.known},
            "trace": self.first,
        }


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups of a store."""

    groups: tuple[Group, ...]
    """Those with most traces first."""
    confirmed: Confirmed
    """What more than one task shows."""

    def named(self, name: str) -> Group:
        """Return the group of a name, or of its beginning.

        Raises:
            UnknownNameError: when there is none, or more than one.
        """
        found = [group for group in self.groups if group.name == name] or [
            group for group in self.groups if group.name.startswith(name)
        ]
        if len(found) == 1:
            return found[0]
        said = "several groups of traces are" if found else "no group of traces is"
        raise UnknownNameError(f"{said} called {name!r}", hint="tracemark harness list names them")


def undecided(corpus: Corpus) -> set[bytes]:
    """Return the ids of the traces that the ledger gives a harness, or none, or retracts; they are in no group."""
    decided = corpus.store_decisions
    return {bytes.fromhex(trace) for trace in (*decided.stamps, *decided.divided, *decided.retracted)}


def groups(corpus: Corpus, store: Store) -> Groups:
    """Return the groups of the foreign traces in a store.

    Args:
        corpus: whose ledger says which traces were given a harness.
        store: its store.
    """
    # asking for the state of no trace brings all states up to date, and puts aside what cannot be read
    list(store.select(Selection(traces=frozenset()), corpus.store_decisions, store.findings))
    but = undecided(corpus)
    confirmed = frozenset(store.catalogue.confirmed(but))
    found: dict[str, Group] = {}
    for foreign in store.catalogue.foreign(but):
        half = digest.load_canonical(foreign.half.encode())
        known = shared(half, confirmed)
        group = found.setdefault(_key(known, foreign.format), Group(known, first=foreign.first.hex()))
        group.add(foreign, half)
    return Groups(tuple(sorted(found.values(), key=lambda group: (-group.traces, group.first))), confirmed)


def members(corpus: Corpus, store: Store, found: Groups, group: Group) -> list[bytes]:
    """Return the ids of the traces of one group, sorted.

    Args:
        corpus: whose ledger says which traces were given a harness.
        store: its store.
        found: what `groups` gave of it.
        group: one of them.
    """
    wanted = _key(group.known, next(iter(group.formats)))

    @lru_cache(maxsize=1024)
    def belongs(half: str, form: str | None) -> bool:
        return _key(shared(digest.load_canonical(half.encode()), found.confirmed), form) == wanted

    foreign = store.catalogue.each_foreign(undecided(corpus))
    return sorted(identity for identity, half, form in foreign if belongs(half, form))


def described(store: Store, group: Group) -> dict[str, Any]:
    """Return a group as `harness list` shows it, with labels of one of its traces: words, which are no identity."""
    try:
        line = digest.load_canonical(store.get(group.first))
    except IntegrityError:
        # `check` says what is wrong with it; the list goes without words about this group
        return group.as_row()
    agent = " ".join(line["trajectory"]["agent"][name] for name in ("name", "version"))
    told = {"agent": agent, "domain": line["run"].get("domain"), "label": line["source"].get("label")}
    return {**group.as_row(), **{name: value for name, value in told.items() if value}}


def showing_nothing(formats: Iterable[str]) -> list[Finding]:
    """Return a finding for each format whose files can show nothing of a harness, in order of their names."""
    message = "files of this format hold nothing of the harness that made them: no claim can be compared with them"
    return [finding("no-evidence-in-format", name, message) for name in sorted(set(formats)) if not _shows(name)]


def _key(known: Half, form: str | None) -> str:
    """Return by what traces are grouped: what is known of them, or their format where nothing is."""
    return name_of(known) if known else f"{PREFIX}nothing-{form or 'unknown'}"


def _shows(name: str) -> tuple[str, ...]:
    return importer(name).shows if name in IMPORTERS.names() else COMPONENTS


def _parts(entries: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return each part with its form and digest, as a list of lines; parts of one name are numbered."""
    found: dict[str, str] = {}
    for entry in entries:
        name, number = entry["part"], 1
        while name in found:
            number += 1
            name = f"{entry['part']} ({number})"
        found[name] = f"{entry['form']} {entry['digest']}"
    return found


def _why(component: str, group: Group) -> str:
    """Return why a component of a group is open, in words."""
    if not any(component in _shows(name) for name in group.formats):
        return _NEVER
    count = len(group.texts[component])
    if not count:
        return _ABSENT
    if count == 1:
        return f"1 text, not{_UNCONFIRMED}"
    return f"{count}{' or more' if count == _MOST else ''} texts, none{_UNCONFIRMED}"
