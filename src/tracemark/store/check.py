"""Is the store what it says it is? Everything is derived again from the bytes, and nothing is changed.

`check` reads every stored file through the code that reading and exporting use, recomputes what names and rows claim,
and yields what differs as findings. It says what it proved, so that silence is not mistaken for proof. It opens no
store (which would catch up) and no file for writing; the catalogue is read by a connection that cannot write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tracemark import digest, engine
from tracemark.digest import JSON
from tracemark.durable import read_regular, require_regular
from tracemark.errors import IntegrityError, IrregularFileError, TracemarkError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import INGESTED, project_annotation, project_refused
from tracemark.store.catalogue import SCHEMA, CatalogueError, Reader
from tracemark.store.deciding import refuted_by_content, settling, void_among
from tracemark.store.layout import SUFFIX, Layout, partition_of
from tracemark.store.row import TraceRow, project_line
from tracemark.store.segment import Location, iterate
from tracemark.store.selection import Decisions, Excludes
from tracemark.store.state import of_harness
from tracemark.store.statements import restated, untrue

_SHOWN = 20
_BATCH = 256
_OF_ROWS = ("catalogue-differs", "stored-not-indexed", "file-damaged")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check` found."""

    findings: tuple[Finding, ...]
    """What is wrong, in the order of the files; empty when nothing is."""
    proved: tuple[str, ...]
    """What was derived again, one sentence each; holds except where a finding says otherwise."""
    counts: dict[str, int]
    """How many `files`, `bytes`, `traces`, `copies`, `annotations`, `refused` records and `harnesses` were read."""


@dataclass(frozen=True, slots=True)
class _Job:
    path: Path
    name: str
    """Relative to `traces/`."""


@dataclass(slots=True)
class _Examined:
    """What one file says, as small values that travel between processes."""

    job: _Job
    size: int = 0
    findings: list[Finding] = field(default_factory=list)
    traces: list[tuple[TraceRow, Location]] = field(default_factory=list)
    statements: list[tuple[Any, ...]] = field(default_factory=list)
    """What the catalogue holds of annotations or refused records, and their places."""
    links: set[tuple[Any, ...]] = field(default_factory=set)
    """What the catalogue holds of what lines say of other lines, the name of the table first."""
    about: set[bytes] = field(default_factory=set)
    """Traces that annotations are about, but those that are stored before their traces."""


@dataclass(slots=True)
class _Asked:
    """A catalogue that is only asked, and no more once it could not answer: any of its pages may be damaged."""

    name: str
    reader: Reader | None = None
    """What answers; None where nothing does."""
    findings: list[Finding] = field(default_factory=list)
    """Why nothing does."""

    @classmethod
    def open(cls, layout: Layout, opened: ExitStack) -> _Asked:
        """Open the catalogue of a corpus, for as long as `opened` is."""
        asked = cls(layout.catalogue.name)
        if not layout.catalogue.exists():
            asked._give_up("there is no catalogue; any command that opens the store makes it")
            return asked
        try:
            # a file that is no database is opened all the same, and found out by the first question
            asked.reader = opened.enter_context(closing(Reader.open(layout.catalogue)))
        except CatalogueError as error:
            asked._give_up(f"the catalogue cannot be read: {error}")
        if asked.ask(Reader.version, SCHEMA) != SCHEMA:
            asked._give_up("the catalogue has another version's schema")
        return asked

    def ask(self, question: Callable[[Reader], _Answer], otherwise: _Answer) -> _Answer:
        """Return the answer to a question; `otherwise` where none can be had, with one finding for all of them."""
        if self.reader is None:
            return otherwise
        try:
            return question(self.reader)
        except CatalogueError as error:
            self._give_up(f"the catalogue cannot be read: {error}")
            return otherwise

    def examine(self) -> None:
        """Read every page of the catalogue, also those that no question leads to; ask no more where one is damaged."""
        damage = self.ask(Reader.damage, None)
        if damage is not None:
            self._give_up(f"the catalogue is damaged: {damage}")

    def _give_up(self, why: str) -> None:
        self.reader = None
        self.findings.append(finding("catalogue-differs", self.name, why))


def check(layout: Layout, fingerprint_of: Callable[[JSON], str] | None = None) -> Checked:
    """Derive again whatever can be derived in a store.

    Args:
        layout: the corpus.
        fingerprint_of: computes a harness' fingerprint from the value of its snapshot, raising `TracemarkError` when it
            is no snapshot; None leaves snapshots unproved.

    Raises:
        NoStoreError: when there is no store.
        NewerFormatError: when a newer tracemark wrote it.
    """
    layout.require()
    names = layout.data_files()
    known = set(layout.snapshots())
    with ExitStack() as opened:
        catalogue = _Asked.open(layout, opened)
        catalogue.examine()
        entered: dict[str, int] = catalogue.ask(Reader.files, {})
        findings: list[Finding] = []
        counts = dict.fromkeys(("files", "bytes", "traces", "annotations", "refused", "harnesses"), 0)
        ids: set[bytes] = set()
        about: dict[bytes, str] = {}
        missing: dict[str, str] = {}
        for examined in engine.run(_examine, [_Job(layout.path(name), name) for name in names]):
            name = examined.job.name
            findings += examined.findings
            counts["files"] += 1
            counts["bytes"] += examined.size
            counts["traces"] += len(examined.traces)
            counts["refused" if name.startswith("refused/") else "annotations"] += len(examined.statements)
            ids.update(row.id for row, _ in examined.traces)
            about.update(dict.fromkeys(examined.about, name))
            missing.update({f: name for row, _ in examined.traces if (f := row.fingerprint) and f not in known})
            findings += catalogue.ask(partial(_compare, entered=entered, examined=examined), [])
        findings += [
            finding("snapshot-missing", name, f"traces name the harness {f}, of which no snapshot is stored")
            for f, name in sorted(missing.items())
        ]
        dangling = sorted(trace for trace in about if trace not in ids)
        findings += [
            finding("annotation-dangling", about[t], f"it is about trace {t.hex()}, not stored") for t in dangling
        ]
        findings += _snapshots(layout, fingerprint_of)
        counts["harnesses"] = len(known)
        counts["copies"], counts["traces"] = counts["traces"] - len(ids), len(ids)
        if catalogue.reader is not None:
            findings += _files(entered.keys(), names)
            # states are compared by the catalogue's own rows, and mean something only where these are right
            if not any(found.code in _OF_ROWS for found in findings):
                findings += catalogue.ask(partial(_compare_states, layout=layout), [])
        findings += [finding("stranger-file", name, "it is no part of a store") for name in layout.strangers()[:_SHOWN]]
        proved = _proved(counts, fingerprint_of is not None, catalogue.reader is not None)
        return Checked((*catalogue.findings, *findings), proved, counts)


def check_decisions(layout: Layout, stamps: Mapping[str, str | None], excludes: Excludes | None) -> list[Finding]:
    """Return a finding for each decision that puts a trace under a harness which its content excludes.

    Where the catalogue cannot be asked, that is the finding.

    Args:
        layout: the corpus.
        stamps: trace id to the fingerprint under which the ledger settles it; None settles that it counts under none.
        excludes: what compares content with a harness; None asks the statements alone.
    """
    with ExitStack() as opened:
        catalogue = _Asked.open(layout, opened)
        try:
            void: dict[str, str] = catalogue.ask(lambda reader: _void(reader, layout, stamps, excludes), {})
        except IntegrityError:
            # the file that is damaged is a finding already
            return catalogue.findings
    return [*catalogue.findings, *(decision_refuted(trace, excluded) for trace, excluded in sorted(void.items()))]


def stored_tasks(layout: Layout) -> tuple[set[tuple[str, str | None]], list[Finding]]:
    """Return task and domain of every trace of the catalogue that has a task, and why the catalogue cannot say."""
    with ExitStack() as opened:
        catalogue = _Asked.open(layout, opened)
        tasks: set[tuple[str, str | None]] = catalogue.ask(Reader.tasks, set())
        return tasks, catalogue.findings


def check_disputes(layout: Layout, decisions: Decisions) -> list[Finding]:
    """Return the finding that there are traces about which statements disagree and nobody has decided.

    Where the catalogue cannot be asked, that is the finding.

    Args:
        layout: the corpus.
        decisions: the ledger's; retracted traces are out of every export anyway.
    """
    with ExitStack() as opened:
        catalogue = _Asked.open(layout, opened)
        try:
            found: list[tuple[str, list[str]]] = catalogue.ask(lambda reader: _undecided(reader, layout, decisions), [])
        except IntegrityError:
            # the file that is damaged is a finding already
            return catalogue.findings
    if not found:
        return catalogue.findings
    number, first = len(found), found[0][0]
    disputed_by_any = {path for _, open_ones in found for path in open_ones}
    counted = "statements about 1 trace disagree" if number == 1 else f"statements about {number} traces disagree"
    message = f"{counted} and nobody has decided: no export takes what is contested"
    if number == 1:
        return [finding("contested", f"trace {first[:12]}", message, settling(first[:12], disputed_by_any))]
    hint = f"tracemark traces list flags each; {settling('TRACE', disputed_by_any)}"
    return [finding("contested", f"trace {first[:12]}, …", message, hint)]


def _undecided(catalogue: Reader, layout: Layout, decisions: Decisions) -> list[tuple[str, list[str]]]:
    """Return each trace that is contested, with what statements dispute and nobody has decided."""
    disputes = list(_disputes(catalogue, layout))
    disputed = {trace: decisions.stamps[trace] for trace, _ in disputes if trace in decisions.stamps}
    void = _void(catalogue, layout, disputed, decisions.excludes)
    found = []
    for trace, conflicts in disputes:
        settled = trace in disputed and trace not in void
        open_ones = [path for path in conflicts if not settled or not of_harness(path)]
        if open_ones and trace not in decisions.retracted:
            found.append((trace, open_ones))
    return found


def _disputes(catalogue: Reader, layout: Layout) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each trace about which statements disagree, with what they dispute; the catalogue may lag behind."""
    stale = catalogue.stale(-1)
    lagging = set(stale)
    for identity, conflicts in catalogue.contested():
        if identity not in lagging:
            yield identity.hex(), conflicts
    for start in range(0, len(stale), _BATCH):
        for identity, now in restated(catalogue, layout, stale[start : start + _BATCH]).items():
            if now.conflicts:
                yield identity.hex(), now.conflicts


def _void(
    catalogue: Reader, layout: Layout, stamps: Mapping[str, str | None], excludes: Excludes | None
) -> dict[str, str]:
    """Return those of the decisions `stamps` that cannot hold; the catalogue's states are not asked, they may lag."""
    ids = [bytes.fromhex(trace) for trace, fingerprint in stamps.items() if fingerprint is not None]
    void = void_among(catalogue, layout, stamps, ids)
    if excludes is None:
        return void
    return void | refuted_by_content(catalogue, layout, {k: v for k, v in stamps.items() if k not in void}, excludes)


def decision_refuted(trace_id: str, fingerprint: str) -> Finding:
    """Return the finding that a trace is settled under a harness which its content excludes."""
    short = trace_id[:12]
    hint = f"tracemark audit {short}, then tracemark stamp {short} --harness NAME|FINGERPRINT|none --reason TEXT"
    return finding("decision-refuted", f"trace {short}", f"its content excludes {fingerprint}", hint)


def _examine(job: _Job) -> _Examined:
    """Read one file whole; a function of its bytes and its name alone."""
    examined = _Examined(job)
    try:
        require_regular(job.path)
        examined.size = job.path.stat().st_size
        found = digest.sha256_file(job.path)
        if found != job.path.name.removesuffix(SUFFIX):
            examined.findings.append(finding("file-damaged", job.name, f"its bytes have the SHA-256 {found}"))
        for location, line in iterate(job.path):
            _examine_line(examined, location, line)
    except IrregularFileError as error:
        examined.findings.append(finding("file-damaged", job.name, f"{error.message}: not opened", error.hint))
    except (IntegrityError, OSError) as error:
        examined.findings.append(finding("file-damaged", job.name, _reason(error)))
    return examined


def _examine_line(examined: _Examined, location: Location, line: bytes) -> None:
    folder, inside, _ = examined.job.name.split("/") if examined.job.name.count("/") == 2 else ("refused", "", "")
    place = f"{examined.job.name} at {location.frame_offset}+{location.offset}"
    try:
        value = digest.load_canonical(line)
    except digest.NotJSONError as error:
        raise IntegrityError(f"a line is not JSON: {error}", where=place) from None
    if digest.canonical(value) != line:
        examined.findings.append(finding("line-not-canonical", place, "the line is not in canonical form"))
    if folder == "segments":
        projection = project_line(line, value=value)
        row = projection.row
        examined.links.update(("replaced", bytes.fromhex(old), row.id) for old in projection.supersedes)
        examined.traces.append((row, location))
        right = f"fingerprint={partition_of(row.fingerprint)}"
        if right != inside:
            examined.findings.append(
                finding("wrong-partition", examined.job.name, f"trace {row.trace_id} belongs to {right}")
            )
    elif folder == "annotations":
        note = project_annotation(line, value)
        examined.statements.append((note.digest, note.kind, note.trace, location))
        examined.links.update(("superseded", old, note.kind, note.trace) for old in note.supersedes)
        examined.links.update(("exported", trace, note.digest) for trace in note.traces)
        examined.links.update(("sources", *source) for source in (note.source,) if source is not None)
        if note.trace is not None and note.kind not in INGESTED:
            examined.about.add(note.trace)
        if note.kind != inside:
            examined.findings.append(
                finding(
                    "wrong-partition", examined.job.name, f"an annotation of kind {note.kind!r} is not of this folder"
                )
            )
    else:
        examined.statements.append((*project_refused(line, value), location))


def _compare(catalogue: Reader, entered: Mapping[str, int], examined: _Examined) -> list[Finding]:
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
    return [finding("catalogue-differs", name, "the catalogue holds something else of this file than its lines say")]


def _compare_states(catalogue: Reader, layout: Layout) -> list[Finding]:
    """Compare the present states that the catalogue keeps with what the statements give."""
    wrong = [*catalogue.misplaced(), *untrue(catalogue, layout, catalogue.restatable())]
    if not wrong:
        return []
    message = f"the present state of {len(wrong)} traces is not what their statements give: {wrong[0].hex()}"
    return [finding("catalogue-differs", layout.catalogue.name, message + (", …" if len(wrong) > 1 else ""))]


def _files(entered: Collection[str], names: list[str]) -> Iterator[Finding]:
    for name in sorted(set(names).difference(entered)):
        yield finding("stored-not-indexed", name, "it is stored and not in the catalogue")
    for name in sorted(set(entered).difference(names)):
        yield finding("catalogue-differs", name, "the catalogue holds it, and it is not stored")


def _snapshots(layout: Layout, fingerprint_of: Callable[[JSON], str] | None) -> Iterator[Finding]:
    for fingerprint in layout.snapshots():
        path = layout.snapshot(fingerprint)
        where = f"harnesses/{path.name}"
        try:
            data = read_regular(path)
            value = digest.load_canonical(data)
            if digest.canonical(value) + b"\n" != data:
                yield finding("line-not-canonical", where, "the snapshot is not in canonical form")
            if fingerprint_of is not None and (found := fingerprint_of(value)) != fingerprint:
                yield finding("snapshot-damaged", where, f"its texts give the fingerprint {found}")
        except (digest.NotJSONError, TracemarkError, OSError) as error:
            yield finding("snapshot-damaged", where, f"the snapshot cannot be read: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Return what an error says, without the path that the system puts beside it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _proved(counts: dict[str, int], snapshots: bool, catalogue: bool) -> tuple[str, ...]:
    places = counts["traces"] + counts["copies"]
    lines = places + counts["annotations"] + counts["refused"]
    copies = f" ({counts['copies']} of them copies)" if counts["copies"] else ""
    proved = [
        f"data files that have the SHA-256 that names them, and in every frame its checksum: {counts['files']}",
        f"lines that are canonical JSON, name the format of their folder and hold what the catalogue takes: {lines}",
        f"traces that lie in the partition of their first statement: {places}{copies}",
    ]
    if snapshots:
        proved.append(f"harness snapshots that give the fingerprint that names them: {counts['harnesses']}")
    if catalogue:
        proved.append(
            "the catalogue holds these files and no others, of each line what follows from it, and of each trace the"
            " present state that its statements give"
        )
    return tuple(proved)
