"""Is the store what it says it is? Everything is derived again from the bytes, and nothing is changed.

`check` reads every stored file through the code that reading and exporting use, recomputes what names and rows claim,
and yields what differs as findings. It says what it proved, so that silence is not mistaken for proof. It opens no
store (which would catch up) and no file for writing; the catalogue is read by a connection that cannot write.

Other processes may write meanwhile, and nothing that they do is taken for a difference. Invariants:
- all that is asked of the catalogue is as it was at one moment, and the folder is listed after that. A file is written
  once, so one that both hold says the same in both, whatever happens since;
- a file that only one of them holds is named only where that is still so when a catalogue opened anew, and then the
  folder, are asked again at the end: who stores a file enters it next, and who opens the store takes out what is gone;
- a trace is missing where no file holds it that has come since either;
- of a file that has gone since nothing is said, nor counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from tracemark import digest, engine
from tracemark.digest import JSON
from tracemark.durable import is_there, read_regular
from tracemark.errors import IntegrityError, TracemarkError, UsageError
from tracemark.findings import Finding, finding
from tracemark.store.asked import Asked
from tracemark.store.catalogue import Reader
from tracemark.store.examine import Examined, FileJob, Witness, examine, reason_of
from tracemark.store.layout import WHEN_WHOLE, Layout, located
from tracemark.store.statements import left_aside, untrue_apart
from tracemark.words import first_few, numbered

_SHOWN = 20
_OF_ROWS = ("catalogue-differs", "stored-not-indexed", "file-damaged", "folder-unreadable")


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check` found."""

    findings: tuple[Finding, ...]
    """What is wrong, in the order of the files; empty when nothing is."""
    proved: tuple[str, ...]
    """What was derived again, one sentence each: of how many, and for how many it holds."""
    counts: dict[str, int]
    """How many `files`, `bytes`, `traces`, `copies`, `annotations`, `refused` records and `harnesses` were read."""


@dataclass(slots=True)
class _Tally:
    """What the files say together, as far as it takes all of them to see what is missing."""

    known: Collection[str]
    """Fingerprints of which a snapshot is stored."""
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("files", "bytes", "traces", "annotations", "refused", "harnesses"), 0)
    )
    names: list[str] = field(default_factory=list)
    """The files."""
    lacking: Counter[str] = field(default_factory=Counter)
    """How many `files` are not what their names say, `lines` not canonical, `traces` not in their partition, and how
    many files could not be read to their `end`."""
    ids: set[bytes] = field(default_factory=set)
    unread: bool = False
    """Whether there are traces of which nobody can tell, since a segment could not be read to its end."""
    about: dict[bytes, str] = field(default_factory=dict)
    """Traces that annotations are about, and a file that holds one of these."""
    missing: dict[str, str] = field(default_factory=dict)
    """Fingerprints that traces name and of which no snapshot is stored, and a file that holds one of these traces."""

    def add(self, examined: Examined) -> None:
        """Take in what one file says."""
        name = examined.job.name
        codes = Counter(one.code for one in examined.findings)
        self.names.append(name)
        self.lacking["files"] += "file-damaged" in codes
        self.lacking["lines"] += codes["line-not-canonical"]
        self.lacking["traces"] += codes["wrong-partition"] if name.startswith("segments/") else 0
        self.lacking["end"] += not examined.whole
        self.counts["files"] += 1
        self.counts["bytes"] += examined.size
        self.counts["traces"] += len(examined.traces)
        self.counts["refused" if name.startswith("refused/") else "annotations"] += len(examined.statements)
        self.ids.update(row.id for row, _ in examined.traces)
        self.about.update(dict.fromkeys(examined.about, name))
        named = (row.fingerprint for row, _ in examined.traces)
        self.missing.update({f: name for f in named if f and f not in self.known})
        self.unread |= name.startswith("segments/") and not examined.whole

    def absent(self, layout: Layout, names: Collection[str], unlisted: Collection[str]) -> Iterator[Finding]:
        """Yield what files name and none holds.

        Nothing is said of what may lie in a folder that cannot be listed, in the rest of a segment that cannot be read,
        or in segments that came after `names` were listed.
        """
        if not any(folder.startswith(("traces/harnesses/", "traces/segments/")) for folder in unlisted):
            for fingerprint, name in sorted(self.missing.items()):
                message = f"traces name the harness {fingerprint}, of which no snapshot is stored"
                yield finding("snapshot-missing", located(name), message)
        dangling = {trace for trace in self.about if trace not in self.ids}
        if not dangling or self.unread or any(folder.startswith("traces/segments/") for folder in unlisted):
            return
        for name in sorted(set(layout.data_files([])).difference(names)):
            if name.startswith("segments/"):
                dangling -= {row.id for row, _ in examine(FileJob(layout.path(name), name)).traces}
        for trace in sorted(dangling):
            message = f"it is about trace {trace.hex()}, not stored"
            yield finding("annotation-dangling", located(self.about[trace]), message)

    def counted(self) -> dict[str, int]:
        """Return the counts, each trace once and its copies apart."""
        return self.counts | {
            "harnesses": len(self.known),
            "copies": self.counts["traces"] - len(self.ids),
            "traces": len(self.ids),
        }


def check(
    layout: Layout, fingerprint_of: Callable[[JSON], str] | None = None, witness: Witness | None = None
) -> Checked:
    """Derive again whatever can be derived in a store.

    Args:
        layout: the corpus.
        fingerprint_of: computes a harness' fingerprint from the value of its snapshot, raising `TracemarkError` when it
            is no snapshot; None leaves snapshots unproved.
        witness: takes in what fresh ones saw of all traces; None when nobody looks.

    Raises:
        NoStoreError: when there is no store.
        NewerFormatError: when a newer tracemark wrote it.
    """
    findings = _of_store_file(layout)
    unlisted: list[Finding] = []
    of_files: list[Finding] = []
    with ExitStack() as opened:
        catalogue = Asked.open(layout, opened)
        entered: dict[str, int] = catalogue.ask(Reader.files, {})
        # a snapshot is stored before the first trace that names it, so it is listed after the traces
        names, snapshots = layout.data_files(unlisted), layout.snapshots(unlisted)
        strangers = layout.strangers(unlisted)
        shut = [problem.where for problem in unlisted]
        catalogue.examine()
        tally = _Tally(set(snapshots))
        # a job travels to another process, so it holds none of what was seen so far
        blank = witness and witness.fresh()
        for examined in engine.run(examine, [FileJob(layout.path(name), name, blank) for name in names]):
            if not is_there(examined.job.path):
                continue
            tally.add(examined)
            if witness is not None:
                witness.merge(examined.witness)
            of_files += examined.findings
            if examined.whole:
                of_files += catalogue.ask(partial(_compare, entered=entered, examined=examined), [])
        of_files += tally.absent(layout, names, shut)
        of_files += _snapshots(layout, snapshots, fingerprint_of)
        findings += [*unlisted, *(one for one in of_files if is_there(layout.root / one.where.partition(" at ")[0]))]
        stale: int | None = None
        if catalogue.reader is not None:
            # what nobody can look for is not said to be gone
            sought = [name for name in entered if not f"traces/{name}".startswith(tuple(shut))]
            findings += _files(layout, opened, set(sought), set(names), findings)
            # states are compared by the catalogue's own rows, and mean something only where these are right
            if not any(found.code in _OF_ROWS for found in findings):
                nothing: tuple[list[Finding], int | None] = ([], None)
                states, stale = catalogue.ask(partial(_compare_states, layout=layout), nothing)
                findings += states
        findings += [finding("stranger-file", located(name), "it is no part of a store") for name in strangers[:_SHOWN]]
        proved = [*_of_files(tally)]
        if fingerprint_of is not None:
            proved.append(_of_snapshots(snapshots, findings))
        if catalogue.reader is not None:
            proved += _of_catalogue(tally, findings, stale)
        return Checked((*catalogue.findings, *findings), tuple(proved), tally.counted())


def _of_store_file(layout: Layout) -> list[Finding]:
    """Return what is wrong with the file `STORE`, where it is there: the data beside it is checked all the same."""
    try:
        layout.require()
    except (UsageError, IntegrityError) as error:
        return [finding("store-unreadable", error.where or "traces/STORE", error.message, error.hint)]
    return []


def _compare(catalogue: Reader, entered: Mapping[str, int], examined: Examined) -> list[Finding]:
    name = examined.job.name
    if name not in entered:
        return []
    if name.startswith("segments/"):
        same = catalogue.traces_in(name) == set(examined.traces)
    else:
        table = "refused" if name.startswith("refused/") else "annotations"
        same = catalogue.statements_in(table, name) == set(examined.statements)
    lines = len(examined.traces) + len(examined.statements)
    if same and catalogue.links_in(name) == examined.links and entered[name] == lines:
        return []
    message = "the catalogue holds something else of this file than its lines say"
    return [finding("catalogue-differs", located(name), message)]


def _compare_states(catalogue: Reader, layout: Layout) -> tuple[list[Finding], int | None]:
    """Compare the present states that the catalogue keeps with what the statements give; return how many differ too."""
    differing, unread = untrue_apart(catalogue, layout, catalogue.restatable())
    found = [one for one in left_aside(unread) if is_there(layout.root / one.where)]
    wrong = [*catalogue.misplaced(), *differing]
    if wrong:
        shown = first_few((one.hex() for one in wrong), 1)
        message = f"the present state of {numbered(len(wrong), 'trace')} is not what their statements give: {shown}"
        found.append(finding("catalogue-differs", layout.catalogue.name, message))
    return found, len(wrong) + len(unread)


def _files(
    layout: Layout, opened: ExitStack, entered: set[str], names: set[str], known: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the files that either the catalogue or the folder holds alone, see the invariants; `known` are damaged."""
    damaged = {one.where for one in known if one.code == "file-damaged"}
    missing, gone = names - entered, entered - names
    if not missing and not gone:
        return
    again = Asked.open(layout, opened)
    entered_again: dict[str, int] = again.ask(Reader.files, {})
    names_again = set(layout.data_files([]))
    yield from again.findings
    if again.reader is None:
        return
    for name in sorted(missing & (names_again - entered_again.keys())):
        hint = WHEN_WHOLE if located(name) in damaged else None
        yield finding("stored-not-indexed", located(name), "it is stored and not in the catalogue", hint)
    for name in sorted(gone & (entered_again.keys() - names_again)):
        yield finding("catalogue-differs", located(name), "the catalogue holds it, and it is not stored")


def _snapshots(
    layout: Layout, fingerprints: Iterable[str], fingerprint_of: Callable[[JSON], str] | None
) -> Iterator[Finding]:
    for fingerprint in fingerprints:
        path = layout.snapshot(fingerprint)
        where = located(f"harnesses/{path.name}")
        try:
            data = read_regular(path)
            value = digest.load_canonical(data)
            if digest.canonical(value) + b"\n" != data:
                yield finding("line-not-canonical", where, "the snapshot is not in canonical form")
            if fingerprint_of is not None and (found := fingerprint_of(value)) != fingerprint:
                yield finding("snapshot-damaged", where, f"its texts give the fingerprint {found}")
        except (digest.NotJSONError, TracemarkError, OSError) as error:
            yield finding("snapshot-damaged", where, f"the snapshot cannot be read: {reason_of(error)}")


def _of_files(tally: _Tally) -> Iterator[str]:
    """Yield what was derived again of the files and their lines."""
    counts, lacking = tally.counted(), tally.lacking
    places = counts["traces"] + counts["copies"]
    lines = places + counts["annotations"] + counts["refused"]
    copies = f" ({counts['copies']} of them copies)" if counts["copies"] else ""
    unread = lacking["end"]
    rest = f", and what could not be read of {numbered(unread, 'file')}" if unread else ""
    yield (
        "data files that have the SHA-256 that names them, and in every frame its checksum:"
        f" {counts['files'] - lacking['files']} of {counts['files']}"
    )
    yield (
        "lines that are canonical JSON, name the format of their folder and hold what the catalogue takes:"
        f" {lines - lacking['lines']} of {lines}{rest}"
    )
    yield f"traces that lie in the partition of their first statement: {places - lacking['traces']} of {places}{copies}"


def _of_snapshots(snapshots: Collection[str], findings: Iterable[Finding]) -> str:
    """Return what was derived again of the snapshots."""
    damaged = len({one.where for one in findings if one.code == "snapshot-damaged"})
    sound, count = len(snapshots) - damaged, len(snapshots)
    return f"harness snapshots that give the fingerprint that names them: {sound} of {count}"


def _of_catalogue(tally: _Tally, findings: Iterable[Finding], stale: int | None) -> Iterator[str]:
    """Yield what was derived again of the catalogue.

    Args:
        tally: what the files say.
        findings: what is wrong.
        stale: how many present states differ; None when they were not compared.
    """
    wrong = {one.where for one in findings if one.code in _OF_ROWS}
    held = sum(located(name) not in wrong for name in tally.names)
    yield f"data files that the catalogue holds, of each line what follows from it: {held} of {len(tally.names)}"
    if stale is not None:
        count = tally.counted()["traces"]
        yield (
            "traces of which the catalogue keeps the present state that their statements give:"
            f" {count - stale} of {count}"
        )
        yield "the catalogue holds no file that is not stored"
