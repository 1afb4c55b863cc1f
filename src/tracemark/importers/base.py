"""What every importer takes and gives, and the reading that all of them share.

An importer turns one record (the bytes of one document, or of one line) into traces. It sees bytes and the context that
`source` found for them, never a path to follow on its own; it raises for no content: what cannot be read is given as
`Refused`, with its bytes and the next step.

Each importer module's docstring has three lists: *keeps* (what of the source reaches the trace, and where), *drops*,
and *invents* (what the trace says that no byte of the source said). Whatever is altered on the way is named in the
trace's `source.repairs`, one short text each. Its constant `SUCCESS` says which verdict of the source gives which
status.

Invariants:
- the raw digest is the SHA-256 of the record's bytes without the white space around them (and without a byte order
  mark, which belongs to the file), so a document and the same document as a line of a JSONL file are one record;
- labels and places are relative to the path that was given, with `/`, never absolute.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from tracemark import digest
from tracemark.digest import JSON
from tracemark.findings import Finding
from tracemark.importers.beside import occurrences, plain, read
from tracemark.importers.compression import BrokenError, TooMuchError, expanded
from tracemark.importers.head import Head

if TYPE_CHECKING:
    from tracemark.harness.match import Content

EXCERPT = 262_144
"""How many bytes of a refused record are kept, from its beginning."""

T = TypeVar("T")

_NOTHING: Mapping[str, Any] = {}


class Elements(NamedTuple):
    """One record of a file is one element of an array in it; the file is cut while it is read, and never held whole."""

    member: str = ""
    """The member of the root object that is the array; empty when the root itself is."""
    needs: tuple[str, ...] = ()
    """Members of the root object without which no element can be read. They are waited for: where one stands behind the
    array, the file is read twice."""
    folder: str = ""
    """Name of a folder: where a document has no such array and this lies beside it, its records are the files in there,
    and it is read with each of them. Empty when a document without the array is no such one."""


Unit = Literal["line", "lines", "document"] | Elements
"""What one record of a file is: each line, the file as a whole, or each element of an array in it.

`lines` is `line` where a trace may stand in several of them: the file is not cut, and is read by `Importer.read_lines`.
"""


class Limits(NamedTuple):
    """How much of a source is read."""

    max_record: int = 67_108_864
    """Largest record, in bytes; a larger one is refused."""
    max_expanded: int = 1_073_741_824
    """How many bytes one compressed file may expand to; what follows is refused."""
    success_reward: float = 1.0
    """Reward at which a run without a verdict of its own counts as success (`params.yaml: ingest`)."""


class Imported(NamedTuple):
    """One trace that an importer read."""

    trajectory: dict[str, Any]
    """The ATIF v1.8 document, valid by `model.trajectory`."""
    trajectory_bytes: bytes
    """Its canonical bytes; their SHA-256 is the trace's id."""
    run: dict[str, Any]
    """The run facts (`RUN`); empty when the source says nothing."""
    outcome: dict[str, Any]
    """The outcome (`OUTCOME`), at least its `status`."""
    source: dict[str, Any]
    """Format, label, raw digest, importer, version and repairs (`SOURCE`)."""
    stamp: dict[str, Any] | None
    """The stamp that the document carried (an earlier export of ours); None when it carried none."""
    content: Content
    """What harnesses are compared with."""
    observed: dict[str, list[dict[str, str]]]
    """The observed half of the stamp: component to `{"part", "form", "digest"}`; empty when nothing can be taken."""
    where: str
    """Label and line, or label and byte range: for findings, not stored."""
    embedded: bool = False
    """Whether it is embedded in another trace of the source. It is no trace of its own then, and is given only so that
    one that was stored before, when nobody knew, is called a part."""
    findings: tuple[Finding, ...] = ()
    """What of the record was seen and not understood, where the trace says less for it; not stored."""
    mixed: tuple[str, ...] = ()
    """Where another harness was at work than before, each in words with its step; the trace is then stored as mixed,
    and no export takes it. Empty for a run of one harness."""
    further: tuple[dict[str, Any], ...] = ()
    """Statements that disagree with stamp, run and outcome above, in an export of a contested trace: each holds `run`,
    `outcome` and `harness` as far as it says something, and is taken like a copy of the trace that says so."""
    decided: bool = False
    """Whether the stamp is what people decided where it was exported; of a trace that is known here it says nothing."""


@dataclass(frozen=True, slots=True)
class Refused:
    """One record, or one file, that could not be read."""

    code: str
    """A key of `findings.CODES`."""
    where: str
    """Label and line, label and byte range, or the label alone."""
    message: str
    """What is wrong, in one sentence."""
    hint: str | None
    """The next step; None when the table's hint says it."""
    raw_digest: str
    """SHA-256 of the record's bytes; for a file that was not read, of its label."""
    excerpt: bytes
    """The record's bytes up to `EXCERPT`; empty when they were not read."""


class Context(NamedTuple):
    """What lies around a record. Paths in it are for reading and are never stored."""

    name: str = ""
    """The file's own name, as other documents refer to it."""
    folder: str | None = None
    """Absolute folder of the file; None for a member of an archive."""
    trial: str | None = None
    """Absolute folder of the Harbor trial that the file belongs to; None outside a trial."""
    batch: Mapping[str, Any] = _NOTHING
    """What `batch.yaml` beside the file says: harness, model (by its members), domain, split, note; empty when there is
    none."""
    continues: str | None = None
    """Name of the file in the same folder that names this one as its continuation."""
    part_of: tuple[str, ...] = ()
    """Names of the files in the same folder that name this one as a sub-agent's trajectory."""
    is_part: bool = False
    """Whether another document of the source names this file as a sub-agent's trajectory."""
    parts: frozenset[str] = frozenset()
    """Ids that documents of this folder, or of one above it, give to sub-agents' trajectories."""
    after: Mapping[str, str] = _NOTHING
    """Ids that they give to continuations, each with the name of the file that does."""
    root: str | None = None
    """Absolute path of the folder that was given; nothing above it is read. None for a member of an archive."""
    archive: str | None = None
    """Absolute path of the archive that the file is a member of; None when it is a file of its own."""
    circular: frozenset[tuple[str | None, str | None]] = frozenset()
    """Trajectory id and session id of the file's documents that others name only in a circle with them: these are parts
    of nothing."""
    refers: bool = True
    """False when it is known that no document of the file refers to another."""
    limits: Limits = Limits()
    memory: dict[Any, Any] | None = None
    """What an importer wants to remember of a folder for the time of one job; None: nothing is."""

    def sibling(self, name: str) -> bytes | None:
        """Return the bytes of the file `name` in the same folder.

        None when `name` is not a plain file name, does not exist, is no regular file, is a symbolic link, or is larger
        than a record may be: a name that comes out of a trace is never followed anywhere else.
        """
        if self.folder is None or not plain(name):
            return None
        found = read(Path(self.folder) / name, self.limits.max_record)
        return found if isinstance(found, bytes) else None

    def occurrences(self, name: str, pattern: re.Pattern[bytes]) -> Iterator[bytes]:
        """Yield what the first group of `pattern` finds in a file of the same folder, which is never held whole.

        Nothing where `sibling` gives None for another reason than the file's size.
        """
        if self.folder is not None and plain(name):
            yield from occurrences(Path(self.folder) / name, pattern, self.limits.max_expanded)

    def above(self, name: str) -> bytes | None:
        """Return the bytes of the file `name` in the folder that holds the file's own; None as of `sibling`.

        None also where that folder lies outside of what was given.
        """
        if self.folder is None or self.root is None or not plain(name) or self.folder == self.root:
            return None
        found = read(Path(self.folder).parent / name, self.limits.max_record)
        return found if isinstance(found, bytes) else None

    def member(self, name: str) -> bytes | None:
        """Return the bytes of another member of the archive; None when there is none, or it cannot be read."""
        if self.archive is None:
            return None
        try:
            with expanded(self.archive, "zip", name, self.limits.max_expanded) as stream:
                data = stream.read(self.limits.max_record + 1)
        except (TooMuchError, BrokenError, OSError):
            return None
        return data if len(data) <= self.limits.max_record else None

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` gave for `key` before in this job, else what it gives now: for what many records share."""
        if self.memory is None:
            return make()
        if key not in self.memory:
            self.memory[key] = make()
        found: T = self.memory[key]
        return found

    def trial_file(self, name: str) -> bytes | str | None:
        """Return the bytes of `name` in the trial folder; None when there is no trial or no such file.

        A text says why one that is there is not read: what `sibling` refuses is refused here too.
        """
        if self.trial is None or not plain(name):
            return None
        return read(Path(self.trial) / name, self.limits.max_record)

    def beside_trial(self, name: str) -> bool:
        """Return whether another folder, by the name of `name`, lies beside that of the trial; False outside a trial.

        The trial may have been given through a link, so beside means there, and where the folder really lies.
        """
        if self.trial is None or not plain(name):
            return False
        real = Path(os.path.realpath(self.trial))
        beside = (folder.parent / name for folder in (Path(self.trial).absolute(), real))
        try:
            return any(path.is_dir() and Path(os.path.realpath(path)) != real for path in beside)
        except OSError:
            # no folder has a name as long as that, or nobody may look
            return False


class Record(NamedTuple):
    """The bytes of one record and where they came from."""

    raw: bytes
    """Bytes without the white space around them; never empty."""
    label: str
    """File name relative to the given path."""
    where: str
    """Label and line, or label and byte range."""
    context: Context = Context()
    repairs: tuple[str, ...] = ()
    """What was altered before the importer saw the bytes, such as a byte order mark removed."""
    last: bool = False
    """Whether nothing but white space follows in the file, so that a broken record may be half-written."""
    around: Mapping[str, Any] = _NOTHING
    """Where the record is an element of an array: the other members of the document, one object for all of them."""


class Document(NamedTuple):
    """One JSON value of a record."""

    value: JSON
    raw: bytes
    """Its own bytes, a slice of the record when several values stood in it."""
    where: str
    repairs: tuple[str, ...]


class Importer(Protocol):
    """One format. A third party registers one under the entry point group `tracemark.importers`.

    Importers derive from this class, for the answers that suit most formats stand here.
    """

    name: str
    """The name that `--format` and `source.format` use."""
    version: str
    """Raised when the same bytes would now give another trace: known records are then imported again."""
    surest: int
    """The most that `recognise` ever returns: it is not asked about a file of which another one is surer."""
    shows: tuple[str, ...]
    """The components of a harness of which files of this format can show something; empty when none."""

    def recognise(self, head: Head) -> int:
        """Return how sure it is that the file is of this format, from 0 (no) to 100 (certain), by content alone."""
        ...

    def unit(self, head: Head) -> Unit:
        """Return what one record of the file is."""
        ...

    def members(self, names: Sequence[str]) -> Sequence[str] | None:  # noqa: ARG002
        """Return those members of a zip archive that are records, when the archive as a whole is of this format.

        None when it is not; then each member is recognised by itself. The others are read by `Context.member`.
        """
        return None

    def beside(self, name: str, head: Head) -> str | None:  # noqa: ARG002
        """Return why a recognised file holds no trace and is read with others, in words; None when it holds some."""
        return None

    def beside_by_name(self, name: str) -> str | None:  # noqa: ARG002
        """Return why a file that no importer recognises, such as a text, stands beside traces of this format.

        It is told by its name alone, so by one that nothing else has; None for any other.
        """
        return None

    def gathers(self, name: str, head: Head) -> str | None:  # noqa: ARG002
        """Return the key that a file shares with others of its folder that are one record together; None for none.

        The record is then their bytes in the natural order of their names (`9` before `10`), a line end between them.
        """
        return None

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the traces of one record, `embedded` when it is within another. Never raises for content.

        Where it raises all the same, the rest of the record is refused. Of a record that holds several documents,
        `documents.each` reads each for itself, so that the others are read.
        """
        ...

    def read_lines(self, again: Callable[[], Iterator[Record | Refused]]) -> Iterator[Imported | Refused]:
        """Yield the traces of a file whose `unit` is `lines`, and every refusal among its records. Never raises.

        Args:
            again: begins a new reading of the file, record by record. The file is never to be held whole.
        """
        for record in again():
            if isinstance(record, Refused):
                yield record
            else:
                yield from self.read(record)


def refuse(code: str, record: Record | Document, message: str, hint: str | None = None) -> Refused:
    """Return the refusal of a record, with its digest and its first bytes."""
    return Refused(code, record.where, message, hint, digest.sha256(record.raw), record.raw[:EXCERPT])


def source_of(importer: Importer, record: Record, document: Document, repairs: Iterable[str]) -> dict[str, Any]:
    """Return the trace's `source`; `repairs` is left out when there are none, and each is named once."""
    source: dict[str, Any] = {
        "format": importer.name,
        "label": record.label,
        "raw": digest.sha256(document.raw),
        "importer": importer.name,
        "importer_version": importer.version,
    }
    named = list(dict.fromkeys([*document.repairs, *repairs]))
    if named:
        source["repairs"] = named
    return source


REWARD_RULES = ("reward", "score")
"""Values of `outcome.rule` by which the status is what `outcome_of_reward` makes of the reward."""


def outcome_of_reward(reward: JSON, success_reward: float) -> dict[str, Any]:
    """Return the outcome of a run whose only verdict is a reward: success at `success_reward`, else failure.

    A reward that is no number is unknown.
    """
    if isinstance(reward, bool):
        return {"status": "success" if reward else "failure"}
    if not isinstance(reward, (int, float)):
        return {"status": "unknown"}
    return {"status": "success" if reward == success_reward else "failure", "reward": reward}


def verbatim_digest(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes, line ends as they are; a lone surrogate counts as its three bytes."""
    return digest.sha256(text.encode("utf-8", "surrogatepass"))
