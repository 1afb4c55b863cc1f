"""What is known of the harnesses behind the real trace files: labels written by hand, given to the traces there.

`identity_truth.toml` holds the rules. A label is made of file names, of what the producer wrote into the file and of
the texts themselves; never of a digest of ours.

Invariants:
- a rule without a trace, one whose text is not in its traces, and two rules that give a trace two labels end the
  script: labels that speak of nothing would count as right;
- a trace that stands in several files is one, as it is in the store.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest import IngestOptions, ingest
from tracemark.acts.observed import groups
from tracemark.harness.observed import Confirmed
from tracemark.importers.base import Imported
from tracemark.importers.source import plan, read
from tracemark.model.harness import COMPONENTS
from tracemark.store.selection import Selection

DOCS = Path(__file__).resolve().parent
TRUTH = DOCS / "identity_truth.toml"
TRACES = DOCS.parents[1] / "shared" / "traces"


class Rule(NamedTuple):
    """Labels of some traces, and why they are true."""

    files: tuple[str, ...]
    """Patterns of the files' names, relative to the collection."""
    but: tuple[str, ...]
    """Patterns of files to which it does not apply."""
    traces: frozenset[int] | None
    """Which traces of each file, counted from 0; None for all."""
    holds: tuple[str, ...]
    """Texts that each trajectory has to hold: what the truth was read from."""
    labels: dict[str, str]
    """Component to label."""
    why: str
    """How the truth is known, in a sentence."""

    def applies(self, label: str, number: int) -> bool:
        """Return whether it speaks of the trace `number` of a file."""
        if self.traces is not None and number not in self.traces:
            return False
        return any(fnmatchcase(label, one) for one in self.files) and not any(fnmatchcase(label, o) for o in self.but)


class Trace(NamedTuple):
    """A trace of the collection."""

    places: tuple[tuple[str, int], ...]
    """Each file in which it stands, and which of the file's traces it is."""
    text: bytes
    """Its trajectory as canonical JSON."""
    half: str
    """What it shows of its harness, as canonical JSON."""
    agent: tuple[str, str]
    """Name and version of the agent."""
    system: str | None
    """Digest of the first system message; None where there is none."""
    is_mixed: bool
    """Whether it was made with more than one harness."""


class Collection(NamedTuple):
    """All traces, and what those of more than one task show alike."""

    confirmed: Confirmed
    traces: tuple[Trace, ...]


class Kind(NamedTuple):
    """All that decides what is said of a trace, and what is known of it."""

    half: str
    """What it shows of its harness, as canonical JSON."""
    truth: tuple[str | None, ...]
    """The label of each component; None where nothing is known."""
    agent: tuple[str, str]
    """Name and version of the agent."""
    system: str | None
    """Digest of the first system message; None where there is none."""


@dataclass(slots=True)
class Found:
    """The traces of the collection."""

    confirmed: Confirmed
    """What traces of more than one task show alike."""
    kinds: dict[Kind, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The places of the traces of each kind."""
    mixed: int = 0
    """How many traces were made with more than one harness, and are compared with nothing."""
    applied: Counter[int] = field(default_factory=Counter)
    """How many traces each rule gives its labels to."""


def rules() -> list[Rule]:
    """Return the rules of the truth."""
    found = []
    for stated in tomllib.loads(TRUTH.read_text(encoding="utf-8"))["rule"]:
        traces = stated.pop("traces", None)
        files, but, holds = (_listed(stated.pop(name, ())) for name in ("files", "but", "holds"))
        why = " ".join(stated.pop("why").split())
        unknown = stated.keys() - set(COMPONENTS)
        if unknown:
            raise SystemExit(f"{TRUTH.name}: unknown members {sorted(unknown)}")
        found.append(Rule(files, but, None if traces is None else frozenset(traces), holds, stated, why))
    return found


def _listed(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def collect() -> Collection:
    """Ingest the collection and return its traces."""
    where = places()
    with TemporaryDirectory() as folder:
        ingest(Path(folder), [TRACES], IngestOptions())
        with open_store(Path(folder)) as store:
            confirmed = groups(Corpus(Path(folder)), store).confirmed
            lines = store.lines(store.select(Selection()))
            traces = [_trace(where[state.trace_id], digest.load_canonical(line)) for state, line in lines]
    return Collection(confirmed, tuple(traces))


def places() -> dict[str, list[tuple[str, int]]]:
    """Return where each trace is read: the file, and which of its traces it is."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    numbers: Counter[str] = Counter()
    for item in (item for job in plan([TRACES]).jobs for item in read(job)):
        if isinstance(item, Imported):
            label = item.source["label"]
            found[digest.sha256(item.trajectory_bytes)].append((label, numbers[label]))
            numbers[label] += not item.embedded
    return found


def _trace(places: list[tuple[str, int]], line: dict[str, Any]) -> Trace:
    agent, steps = line["trajectory"]["agent"], line["trajectory"]["steps"]
    system = next((step["message"] for step in steps if step["source"] == "system" and step["message"]), None)
    return Trace(
        tuple(places),
        digest.canonical(line["trajectory"]),
        digest.canonical(line["harness"].get("observed") or {}).decode(),
        (agent["name"], agent["version"]),
        None if system is None else digest.of(system),
        bool(line["harness"].get("mixed")),
    )


def label(collection: Collection, known: list[Rule]) -> Found:
    """Return the traces of a collection by what is said and known of them.

    Raises:
        SystemExit: when a rule speaks of no trace, of a text that is not there, or against another rule.
    """
    found = Found(collection.confirmed)
    for trace in collection.traces:
        labels = _labels_of(trace, known, found.applied)
        if trace.is_mixed:
            found.mixed += 1
            continue
        truth = tuple(labels.get(name) for name in COMPONENTS)
        name, number = trace.places[0]
        found.kinds[Kind(trace.half, truth, trace.agent, trace.system)].append(f"{name}#{number}")
    unused = [rule.files for number, rule in enumerate(known) if number not in found.applied]
    if unused:
        raise SystemExit(f"{TRUTH.name}: no trace for {unused}")
    return found


def _labels_of(trace: Trace, known: list[Rule], applied: Counter[int]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for number, rule in enumerate(known):
        if not any(rule.applies(*place) for place in trace.places):
            continue
        applied[number] += 1
        if any(digest.canonical(words)[1:-1] not in trace.text for words in rule.holds):
            raise SystemExit(f"{TRUTH.name}: {trace.places[0][0]} does not hold a text of the rule for {rule.files}")
        clash = {name for name, label in rule.labels.items() if labels.setdefault(name, label) != label}
        if clash:
            raise SystemExit(f"{TRUTH.name}: two labels for {sorted(clash)} of {trace.places[0][0]}")
    return labels
