"""What a third party inherits to test what it adds to tracemark: the contract of an importer.

    from pathlib import Path
    from tracemark.testing import ImporterContract
    from my_package.importer import IMPORTER

    class TestMyImporter(ImporterContract):
        importer = IMPORTER
        samples = Path(__file__).parent / "samples"

pytest collects the methods of such a class. `samples` is a folder of files that the importer reads, small ones with
every shape that the format has; none of them may be refused. The importer has to be installed under the entry point
group `tracemark.importers`, since the files are read as `tracemark ingest` reads them.

The contract is what the rest of tracemark relies on: values that fit the model, the same reading every time, nothing
raised for any content, nothing of this machine in a trace. A test that fails says which sample, and what was changed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tracemark import digest
from tracemark.importers import detect, source
from tracemark.importers.base import Imported, Importer, Refused
from tracemark.importers.guard import FAILED
from tracemark.importers.head import Head
from tracemark.importers.strict import faults
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import Stamp
from tracemark.model.trace import STATUSES, Outcome, Run, Source

Item = Imported | Refused

_DEEP = 10_000
_ODD: tuple[bytes, ...] = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"-1",
    b"1.5",
    b"NaN",
    b"1e400",
    b"1180591620717411303424",
    b'"\\ud800 \\u0000 \\u001b[31m \\u202e"',
    b'"../../etc/passwd"',
    b'"{\\"a\\": 1}"',
    b'[null, 1, "a", {"a": []}]',
    b'{"a": {"b": [{"c": null}]}}',
    b'{"role": "nobody", "content": [{"type": "odd"}]}',
)
_FOREIGN: tuple[bytes, ...] = (
    b"{}",
    b"[]",
    b"[1, 2]",
    b'{"a": 1}\n{"a": 2}\n',
    b"some words\n",
    b"\x00\x01\x02",
    b'{"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": []}',
    b'{"messages": [{"role": "user", "content": "a"}]}',
    b'{"event": "start", "format": "tracemark/journal/1"}\n',
)
_OTHER: tuple[bytes, ...] = (b'{"nothing": "of it"}\n', b'["nothing of it"]\n', b"null\n", b"{}\n{}\n")
_OWNERS = ("atif", "openai-chat", "journal")


class ImporterContract:
    """What every importer keeps; derive a test class from it."""

    importer: ClassVar[Importer]
    """The importer."""
    samples: ClassVar[Path]
    """A folder of files that it reads, none of which is refused."""
    changes: ClassVar[int] = 150
    """How many damaged copies of the samples are read."""

    def test_its_samples_are_recognised_and_read(self) -> None:
        """Every sample is told by its content, and every record of it is a trace."""
        items = list(self._read(self.samples))
        refused = [(item.where, item.code, item.message) for item in items if isinstance(item, Refused)]
        assert not refused, refused
        others = {item.source["importer"] for item in items if isinstance(item, Imported)} - {self.importer.name}
        assert items, f"there are no traces in {self.samples.name}/"
        assert not others, f"samples were read by {', '.join(sorted(others))}: they must be told by their content"

    def test_what_it_reads_fits_the_model(self) -> None:
        """Trajectory, run, outcome, source and observed digests are valid, and the bytes are the canonical ones."""
        for item in self._traces():
            self._require_valid(item)

    def test_the_same_bytes_give_the_same_trace(self) -> None:
        """Reading twice gives equal traces in equal order."""
        first, second = ([_said(item) for item in self._read(self.samples)] for _ in range(2))
        assert first == second

    def test_every_trace_names_the_record_that_it_was_read_from(self) -> None:
        """Raw digests are SHA-256 digests, and one record that is a whole file has the digest of that file."""
        whole = {digest.sha256(path.read_bytes().strip()) for path in self._files()}
        lines = {digest.sha256(line.strip()) for path in self._files() for line in path.read_bytes().splitlines()}
        for item in self._traces():
            raw = item.source["raw"]
            assert len(raw) == 64
            assert int(raw, 16) >= 0
            if item.where == item.source["label"] and not self._is_joined(item):
                assert raw in whole | lines, f"{item.where}: not the digest of the file's bytes"

    def test_it_claims_no_file_that_others_know(self) -> None:
        """It is less sure than the owner of a file, and unsure of what is no trace at all."""
        for data in _FOREIGN:
            head = Head(data, complete=True)
            owners = [detect.importer(name).recognise(head) for name in _OWNERS if name != self.importer.name]
            if self.importer.name not in _OWNERS:
                sure = self.importer.recognise(head)
                assert sure <= max(0, max(owners) - 1), f"{sure} sure of {data[:60]!r}"

    def test_it_is_never_surer_than_it_says(self) -> None:
        """`surest` bounds `recognise`, and both are from 0 to 100."""
        assert 0 < self.importer.surest <= 100
        for path in self._files():
            data = path.read_bytes()
            for size in (1, 20, 200, 2000, len(data)):
                sure = self.importer.recognise(Head(data[:size], complete=size >= len(data)))
                assert 0 <= sure <= self.importer.surest, f"{path.name}: {sure}"

    def test_it_shows_only_what_it_says_that_it_shows(self) -> None:
        """`shows` names the components of which anything is ever observed."""
        assert set(self.importer.shows) <= set(COMPONENTS)
        for item in self._traces():
            assert set(item.observed) <= set(self.importer.shows), item.where

    def test_no_content_makes_it_fail(self) -> None:
        """Damaged copies of the samples give valid traces and refusals; nothing is raised, no file stops another."""
        chance = _Chance()
        files = [path for path in self._files() if path.stat().st_size]
        for number in range(self.changes):
            path = files[number % len(files)]
            damaged, what = _damaged(path.read_bytes(), chance)
            with tempfile.TemporaryDirectory() as folder:
                self._copy(path, Path(folder), damaged)
                for item in self._read(Path(folder), self.importer.name):
                    if isinstance(item, Refused):
                        told = f"{path.name}, {what}: {item.message}"
                        assert item.code != FAILED, told
                    else:
                        self._require_valid(item, f"{path.name}, {what}")

    def test_what_it_cannot_read_is_refused_and_not_left_out(self) -> None:
        """A sample that holds something else gives a refusal, or a finding that names it: it never just vanishes."""
        for path in self._files():
            for data in _OTHER:
                with tempfile.TemporaryDirectory() as folder:
                    copy = Path(folder) / path.name
                    copy.write_bytes(path.read_bytes())
                    if not any(isinstance(item, Imported) for item in self._read(copy, self.importer.name)):
                        # what holds no trace by itself is read beside others
                        continue
                    copy.write_bytes(data)
                    planned = source.plan([copy], format=self.importer.name)
                    items = [*planned.refused, *(item for job in planned.jobs for item in source.read(job))]
                    # what is said of a file in which nothing was found says nothing of the record in it
                    said = [item for item in items if not isinstance(item, Refused) or item.code != "runs-missing"]
                    assert said or planned.findings, f"{path.name}, replaced by {data!r}: nothing was said of it"

    def test_nothing_of_this_machine_reaches_a_trace(self) -> None:
        """Traces and refusals hold no path of the files that were read."""
        with tempfile.TemporaryDirectory() as folder:
            inner = Path(folder) / "inner-7f3a"
            shutil.copytree(self.samples, inner)
            for item in self._read(inner):
                stored = repr(item) if isinstance(item, Refused) else item.trajectory_bytes.decode() + str(_said(item))
                assert "inner-7f3a" not in stored, item.where
                assert folder not in stored, item.where

    def test_it_says_what_it_keeps_drops_and_invents(self) -> None:
        """The module's docstring has the three lists, and `SUCCESS` says which verdict gives which status."""
        module = sys.modules[type(self.importer).__module__]
        for word in ("Keeps:", "Drops:", "Invents:"):
            assert word in (module.__doc__ or ""), f"the docstring of {module.__name__} has no {word}"
        table = module.SUCCESS
        assert table
        for row in table:
            assert [type(cell) for cell in row] == [str, str], row

    def _files(self) -> list[Path]:
        return sorted(path for path in self.samples.rglob("*") if path.is_file())

    def _is_joined(self, item: Imported) -> bool:
        """Return whether the record of a trace is more, or less, than one file or line."""
        path = self.samples / item.source["label"]
        if not path.is_file():
            return True
        head = Head(path.read_bytes(), complete=True)
        return self.importer.gathers(path.name, head) is not None

    def _traces(self) -> Iterator[Imported]:
        return (item for item in self._read(self.samples) if isinstance(item, Imported))

    def _read(self, path: Path, name: str | None = None) -> Iterator[Item]:
        planned = source.plan([path], format=name)
        yield from planned.refused
        for job in planned.jobs:
            yield from source.read(job)

    def _copy(self, path: Path, folder: Path, data: bytes) -> None:
        """Write a damaged copy of a sample, and what stands beside the sample as it is."""
        shutil.copytree(self.samples, folder, dirs_exist_ok=True)
        for other in self._files():
            if other.suffix == path.suffix and other.parent == path.parent and other != path:
                (folder / other.relative_to(self.samples)).unlink()
        (folder / path.relative_to(self.samples)).write_bytes(data)

    def _require_valid(self, item: Imported, told: str = "") -> None:
        told = f"{told or item.where}: "
        found = faults(item.trajectory)
        assert not found, f"{told}no ATIF v1.8: {found[:3]}"
        assert digest.canonical(item.trajectory) == item.trajectory_bytes, f"{told}not the canonical bytes"
        Run.model_validate(item.run)
        Outcome.model_validate(item.outcome)
        Source.model_validate(item.source)
        Stamp.model_validate({"observed": item.observed})
        assert item.outcome["status"] in STATUSES, told
        name, version = item.source["importer"], item.source["importer_version"]
        assert (name, version) == (self.importer.name, self.importer.version), told
        assert not item.source["label"].startswith("/"), told
        assert digest.canonical({"run": item.run, "outcome": item.outcome}), told


class _Chance:
    """Numbers without a pattern, the same ones every time."""

    def __init__(self) -> None:
        self._drawn = 0

    def below(self, limit: int) -> int:
        """Return the next number, from 0 up to `limit`."""
        self._drawn += 1
        return int(digest.sha256(str(self._drawn).encode()), 16) % limit


def _said(item: Item) -> Any:
    """Return what an importer says, as something that can be compared."""
    if isinstance(item, Refused):
        return item
    return item.trajectory_bytes, item.run, item.outcome, item.source, item.observed, item.mixed, item.where


def _damaged(data: bytes, chance: _Chance) -> tuple[bytes, str]:
    """Return bytes with one fault, and what it is, in words."""
    kind = chance.below(8)
    at = chance.below(len(data))
    if kind == 0:
        return data[:at], f"cut at byte {at}"
    if kind == 1:
        return data[:at] + bytes([data[at] ^ (1 << chance.below(8))]) + data[at + 1 :], f"a bit of byte {at} turned"
    places = _values(data)
    if not places:
        return data[at:], f"without its first {at} bytes"
    start, end = places[chance.below(len(places))]
    if kind == 2:
        deep = b"[" * _DEEP + b"]" * _DEEP
        return data[:start] + deep + data[end:], f"bytes {start} to {end} replaced by {_DEEP} brackets"
    if kind == 3:
        first, last = places[chance.below(len(places))]
        return data[:start] + data[first:last] + data[end:], f"bytes {start} to {end} replaced by those at {first}"
    odd = _ODD[chance.below(len(_ODD))]
    return data[:start] + odd + data[end:], f"bytes {start} to {end} replaced by {odd[:40]!r}"


def _values(data: bytes) -> list[tuple[int, int]]:
    """Return where the values in JSON text stand, at any depth; only brackets and the ends of texts are looked at."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    at = 0
    while at < len(data):
        mark = data[at : at + 1]
        start = at
        at += 1
        if mark == b'"':
            while at < len(data) and data[at : at + 1] != b'"':
                at += 2 if data[at : at + 1] == b"\\" else 1
            at += 1
            if data[at : at + 2].lstrip()[:1] != b":":
                found.append((start, at))
        elif mark in (b"{", b"["):
            opened.append(start)
        elif mark in (b"}", b"]") and opened:
            found.append((opened.pop(), at))
        elif mark.isalnum() or mark == b"-":
            while at < len(data) and data[at : at + 1] not in b",]} \t\r\n":
                at += 1
            found.append((start, at))
    return found
