"""A corpus as the verbs see it: its parameters, its decisions, its harnesses, its store, each read once.

Invariants:
- nothing is opened before it is asked for, so a verb pays for what it uses;
- a name is resolved to a fingerprint here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from string import hexdigits
from typing import Any

from tracemark import digest
from tracemark.acts.pinned import COMPLETE, SNAPSHOTS, Pins
from tracemark.acts.provenance import content_in
from tracemark.durable import is_there, read_regular, why_unread
from tracemark.errors import (
    IntegrityError,
    IrregularFileError,
    ManifestError,
    ParamsError,
    UnknownNameError,
    UsageError,
)
from tracemark.findings import Finding, finding
from tracemark.harness import snapshot
from tracemark.harness.known import known_with_findings
from tracemark.harness.match import Matcher
from tracemark.harness.names import SHORTEST, begins, reserved
from tracemark.harness.observed import PREFIX
from tracemark.harness.version import Harness
from tracemark.ledger import chain, params
from tracemark.ledger.chain import Chain
from tracemark.ledger.pair import CONFLICTS
from tracemark.ledger.params import Params
from tracemark.ledger.params_file import read_params
from tracemark.ledger.state import LedgerState, state
from tracemark.store.layout import Layout
from tracemark.store.selection import Decisions
from tracemark.store.store import Store

VERSIONS = "harness_versions"
"""The folder of a corpus that holds harness versions, a folder each."""


class Corpus:
    """One corpus repository.

    Args:
        root: its folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._offered: dict[str, list[dict[str, Any]] | None] = {}

    @cached_property
    def params(self) -> Params:
        """What `params.yaml` says, defaults filled in."""
        return read_params(self.root / params.NAME)

    @cached_property
    def pins(self) -> Pins:
        """What dvc.lock pins, and what of it is missing."""
        return Pins(self.root, self.inbox_complete)

    def inbox_complete(self) -> bool:
        """Return whether the store can be made again from the inbox; false where params.yaml does not say so."""
        try:
            return self.params.ingest.inbox == COMPLETE
        except ParamsError:
            # that is an error of its own for whoever needs what is in the file
            return False

    @cached_property
    def chain(self) -> Chain:
        """The verified ledger."""
        return chain.read(self.root / chain.NAME)

    @cached_property
    def store_decisions(self) -> Decisions:
        """What the ledger says of traces, as the store takes it."""
        decided = self.decisions
        barred = frozenset(decided.retracted), frozenset(decided.retracted_raw)
        return Decisions(*barred, decided.spared, decided.stamps, divided=decided.divided, excludes=self.excludes)

    def excludes(self, fingerprint: str, line: bytes) -> bool:
        """Return whether the content of a stored line excludes a harness; false where nobody knows the harness."""
        matcher = self.matchers.get(fingerprint)
        return matcher is not None and matcher.judge(content_in(digest.load_canonical(line))).contradicted

    @cached_property
    def decisions(self) -> LedgerState:
        """What the ledger's entries mean together."""
        return state(self.chain)

    @cached_property
    def _known(self) -> tuple[list[Harness], list[Finding]]:
        return known_with_findings(self.root, self.root / VERSIONS, Layout(self.root).harnesses)

    @property
    def places(self) -> list[Harness]:
        """Every harness version that can be read, a folder each, and the snapshots of what no folder holds."""
        return self._known[0]

    @property
    def harnesses(self) -> list[Harness]:
        """Every harness that can be read, each fingerprint once: of several folders with one, the first by name."""
        return list(self.by_fingerprint.values())

    @property
    def harness_findings(self) -> list[Finding]:
        """What kept other harness versions and snapshots from being read."""
        return self._known[1]

    def left_out(self) -> list[Finding]:
        """Return a finding for each harness version, and each snapshot, that cannot be read and so is not compared."""
        first: dict[str, Finding] = {}
        for problem in self.harness_findings:
            folder, _, rest = problem.where.partition("/")
            version = rest.partition("/")[0] if folder == VERSIONS else ""
            hint = f"tracemark harness check {version}" if version else problem.hint
            where = f"{VERSIONS}/{version}" if version else problem.where
            first.setdefault(where, finding("harness-left-out", where, problem.message, hint))
        return list(first.values())

    @cached_property
    def by_fingerprint(self) -> dict[str, Harness]:
        """The known harnesses by fingerprint."""
        found: dict[str, Harness] = {}
        for harness in self.places:
            found.setdefault(harness.fingerprint, harness)
        return found

    def offered(self, fingerprint: str) -> list[dict[str, Any]] | None:
        """Return the definitions of a harness's tools as a request holds them; None when nobody knows the harness.

        They are read from the snapshot that was stored with the first trace of the harness, and from a folder only
        where there is none: schema files whose members were put in another order keep the fingerprint, and what a row
        shows a model must not change with them.

        Raises:
            IntegrityError: when the snapshot is damaged.
        """
        if fingerprint not in self._offered:
            path = Layout(self.root).snapshot(fingerprint)
            harness = _stored(path, fingerprint) if is_there(path) else self.by_fingerprint.get(fingerprint)
            self._offered[fingerprint] = tools_of(harness) if harness is not None else None
        return self._offered[fingerprint]

    @cached_property
    def matchers(self) -> dict[str, Matcher]:
        """A matcher for each known harness, by fingerprint."""
        return {fingerprint: Matcher(harness) for fingerprint, harness in self.by_fingerprint.items()}

    @property
    def accepted(self) -> str | None:
        """The fingerprint of the accepted harness as params.yaml states it; None when none is accepted."""
        return self.params.accepted.harness

    def acceptance_findings(self) -> list[Finding]:
        """Return what keeps it open which harness is accepted: params.yaml or two branches against the ledger."""
        undecided = [problem for problem in self.decisions.conflicts if problem.code == CONFLICTS["harness"]]
        return [*undecided, *params.accepted_findings(self.params, self.decisions, "harness")]

    def model_findings(self) -> list[Finding]:
        """Return what keeps it open which model is accepted: params.yaml or two branches against the ledger."""
        undecided = [problem for problem in self.decisions.conflicts if problem.code == CONFLICTS["model"]]
        return [*undecided, *params.accepted_findings(self.params, self.decisions, "model")]

    def equivalents(self) -> frozenset[str]:
        """Return the accepted fingerprint and its declared equivalents.

        Empty when none is accepted, and while it is open which one is.
        """
        if self.accepted is None or self.acceptance_findings():
            return frozenset()
        return self.decisions.equivalent_to(self.accepted)

    def name_of(self, fingerprint: str | None) -> str | None:
        """Return the label of a known fingerprint; None when it is unknown."""
        harness = self.by_fingerprint.get(fingerprint or "")
        return harness.name if harness is not None else None

    def resolve(self, name: str) -> Harness:
        """Return the harness that a label, a fingerprint or the beginning of one names.

        A name means a version that is on disk now (its folder before its label), and only where there is none, a
        snapshot; a version that cannot be read is an error and never gives way to an older snapshot of the same name.
        Where a name is the beginning of another harness's fingerprint as well, neither of the two is taken.

        Raises:
            UnknownNameError: when nothing answers to `name`; the hint lists what does.
            UsageError: when several do.
            ManifestError: when the version of that name cannot be read.
            NotPulledError: when nothing does of what is on disk, and snapshots that dvc.lock pins are not.
        """
        found = self._by_prefix(name)
        broken = [] if found and reserved(name) else self.broken(name)
        if broken:
            raise ManifestError(broken[0].message, where=broken[0].where, hint=broken[0].hint)
        if reserved(name) is None:
            found = [*found, *self._by_name(name)]
        if len({harness.fingerprint for harness in found}) == 1:
            return found[0]
        if found:
            listed = ", ".join(dict.fromkeys(harness.fingerprint[:20] for harness in found))
            raise UsageError(f"{name!r} may mean several harnesses: {listed}", hint="name one by its fingerprint")
        if SNAPSHOTS in self.pins.missing:
            raise self.pins.lacks(self.pins.missing, f"; of what is, no harness answers to {name!r}")
        names = ", ".join(sorted({harness.name for harness in self.places})) or "none yet"
        short = f" (of a fingerprint at least {SHORTEST} digits are needed)" if is_short(name) else ""
        hint = f"known: {names} (tracemark harness list)"
        if name.startswith(PREFIX):
            hint = f"it is a group of traces, and no harness: tracemark traces list --harness {name}"
        raise UnknownNameError(f"no harness answers to {name!r}{short}", hint=hint)

    def broken(self, name: str) -> list[Finding]:
        """Return what keeps the version in the folder `name` from being read; empty when nothing does."""
        return [problem for problem in self.harness_findings if problem.where.startswith(f"{VERSIONS}/{name}/")]

    def namesakes(self, name: str, chosen: Harness) -> list[Finding]:
        """Return the finding that other harnesses answer to a name as well, which was taken to mean `chosen`.

        So it is when a folder was edited, or is named like the snapshot of another harness. Empty when none does, or
        when `name` is a fingerprint.
        """
        others = [one for one in self.harnesses if one.name == name and one.fingerprint != chosen.fingerprint]
        if not others or name not in (chosen.name, chosen.folder.name if chosen.folder is not None else None):
            return []
        listed = ", ".join(self._described(one) for one in others)
        message = f"{name!r} was taken to mean {self._described(chosen)}; of that name is also {listed}"
        return [finding("name-shared", place_of(chosen), message, "name the one that is meant by its fingerprint")]

    def _described(self, harness: Harness) -> str:
        accepted = ", the accepted one" if harness.fingerprint == self.accepted else ""
        return f"{harness.fingerprint[:16]} ({place_of(harness)}{accepted})"

    def _by_name(self, name: str) -> list[Harness]:
        by_folder = [harness for harness in self.places if harness.folder and harness.folder.name == name]
        by_label = [harness for harness in self.places if harness.name == name]
        return by_folder or [harness for harness in by_label if harness.folder] or by_label

    def _by_prefix(self, name: str) -> list[Harness]:
        return [harness for fingerprint, harness in self.by_fingerprint.items() if begins(fingerprint, name)]


def place_of(harness: Harness) -> str:
    """Return where the texts of a harness were read: its folder, relative to the corpus, or `snapshot`."""
    return f"{VERSIONS}/{harness.folder.name}" if harness.folder is not None else "snapshot"


def tools_of(harness: Harness) -> list[dict[str, Any]]:
    """Return the definitions of a harness's tools as a request holds them."""
    names = sorted(harness.manifest.tool_bindings)
    return [{"type": "function", "function": harness.tool_schema(name)} for name in names]


def is_short(name: str) -> bool:
    """Return whether `name` may be meant as an id or a fingerprint, and has too few digits to name one."""
    digits = name.removeprefix(digest.FINGERPRINT_PREFIX)
    return 0 < len(digits) < SHORTEST and set(digits) <= set(hexdigits)


def _stored(path: Path, fingerprint: str) -> Harness:
    try:
        harness = snapshot.from_bytes(read_regular(path))
        if harness.fingerprint == fingerprint:
            return harness
        problem = IntegrityError(f"the snapshot holds {harness.fingerprint}, which is not its name")
    except IntegrityError as error:
        problem = error
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error)
        problem = IntegrityError(f"the snapshot cannot be read: {reason}", hint=hint)
    raise IntegrityError(problem.message, where="/".join(path.parts[-3:]), hint=problem.hint or "tracemark check")


@contextmanager
def open_store(root: Path, *, create: bool = False) -> Iterator[Store]:
    """Give the store of the corpus at `root` for the time of a `with` block.

    Raises:
        NoStoreError: when there is none and `create` is false.
    """
    with Store.open(root, create=create) as store:
        yield store
