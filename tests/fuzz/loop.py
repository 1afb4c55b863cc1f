"""The loop: an input is drawn, changed and read twice; what breaks a law is noted, what has new answers is kept."""

from __future__ import annotations

import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.importers import detect, source

from .changes import LARGEST_INPUT, Changes, spans
from .laws import Items, answers, broken, in_words

SAMPLES = Path(__file__).resolve().parents[1] / "importers" / "samples"
CORPUS = Path(__file__).resolve().parent / "corpus"

LARGEST = 120_000
"""Bytes of the whole corpus."""

Keep = Callable[["Seed", bytes], None]

_BLANKS = re.compile(rb"\s*\n\s+")
_SECONDS = 20
_INPUTS = 400
_TRIES = 400
_LARGEST_KEPT = 1_500


@dataclass(frozen=True)
class Seed:
    """A file to be changed, and those that are read with it."""

    root: Path
    name: str
    """Its name, relative to `root`."""
    beside: tuple[str, ...] = ()
    """Names of what stands beside it: the other files of its folder, or of the same name but for its endings."""

    @property
    def path(self) -> Path:
        """Where it stands."""
        return self.root / self.name


def seeds(name: str) -> list[Seed]:
    """Return the samples of a format, and the inputs that were kept."""
    root = SAMPLES / name
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    groups: dict[str, list[str]] = {}
    for path in files:
        inner = path.relative_to(root)
        groups.setdefault(inner.parts[0].partition(".")[0], []).append(str(inner))
    found = [
        Seed(root, one, tuple(other for other in group if other != one))
        for group in groups.values()
        for one in group
        if 0 < (root / one).stat().st_size <= LARGEST_INPUT
    ]
    corpus = CORPUS / name
    return found + [Seed(corpus, path.name) for path in sorted(corpus.glob("*"))]


class Reader:
    """Reads inputs as `ingest` does, those of one seed in a folder of its own.

    Args:
        folder: an empty folder to write to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Seed, Path] = {}

    def write(self, seed: Seed, data: bytes) -> Path:
        """Write an input in place of its seed; return the folder to be read."""
        folder = self._known.get(seed)
        if folder is None:
            folder = self._known[seed] = self.folder / str(len(self._known))
            for name in (seed.name, *seed.beside):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(seed.root / name, folder / name)
        (folder / seed.name).write_bytes(data)
        return folder

    def read(self, folder: Path, stated: str | None) -> Items:
        """Return what becomes of a folder, with its `format` stated or not."""
        plan = source.plan([folder], format=stated)
        return [*plan.refused, *(item for job in plan.jobs for item in source.read(job))]


class TooSlowError(BaseException):
    """An input took more time than any of its size may; no `Exception`, for importers' faults are caught as such."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise `TooSlowError` when what is done here takes more than `_SECONDS`."""

    def ring(*_: Any) -> None:
        raise TooSlowError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


@contextmanager
def unraised() -> Iterator[list[str]]:
    """Give what could not be raised where it happened: files that were left open above all."""
    found: list[str] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda fault: found.append(str(fault.exc_value))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            yield found
    finally:
        sys.unraisablehook = before


class Fuzzer:
    """Changes the samples of one format until told to stop.

    Args:
        name: the format.
        chance: draws.
        folder: an empty folder to read from.
        keep: gets an input, cut down, when its answers are new; None to keep none.
    """

    def __init__(self, name: str, chance: random.Random, folder: Path, keep: Keep | None = None) -> None:
        self.name = name
        self.inputs = self.kept = 0
        self.broken: list[tuple[str, Seed, bytes]] = []
        """Laws that were broken, in words, each with the input."""
        self._chance = chance
        self._keep = keep
        self._reader = Reader(folder)
        self._seen: set[str] = set()
        self._inputs = [(seed, seed.path.read_bytes()) for seed in seeds(name)]
        self._changes = Changes(chance, [data for _, data in self._inputs])
        # a file that is read with others, and holds no trace, has nothing to answer
        self._inputs = [(seed, data) for seed, data in self._inputs if self.check(seed, data, name) is not None]

    def step(self) -> None:
        """Read one more input, and change it further another time when its answers are new."""
        # many small inputs tell more than one large one
        weights = [(1_000 + len(data)) ** -0.5 for _, data in self._inputs]
        [(seed, data)] = self._chance.choices(self._inputs, weights)
        data = self._changes.change(data)[: 2 * LARGEST_INPUT]
        new = self.check(seed, data, self._chance.choice((self.name, self.name, None)))
        if not new or len(data) > LARGEST_INPUT:
            return
        alone = Seed(seed.path.parent, seed.path.name)
        if self._keep is not None and self._is_answered(alone, data, new):
            data = self._smallest(alone, data, new)
            self._keep(alone, data)
            self.kept += 1
        if len(self._inputs) < _INPUTS:
            self._inputs.append((seed, data))

    def check(self, seed: Seed, data: bytes, stated: str | None) -> set[str] | None:
        """Read an input and note a law that it breaks.

        Returns:
            The answers that were not seen before; None where there was no answer at all.
        """
        self.inputs += 1
        items: Items = []
        folder = self._reader.write(seed, data)
        try:
            with limited(), unraised() as left:
                items = self._reader.read(folder, stated)
                fault = broken(items, self._reader.read(folder, stated), str(folder))
            fault = fault or next(iter(left), None)
        except TooSlowError:
            fault = f"it takes more than {_SECONDS} seconds"
        except Exception as error:  # noqa: BLE001 - whatever comes out is what is looked for
            fault = f"{type(error).__name__}: {error}"
        if fault is not None and in_words(fault) not in self._seen:
            self._seen.add(in_words(fault))
            self.broken.append((fault, seed, data))
        found: set[str] = answers(items)
        new = found - self._seen
        self._seen |= new
        return new if found else None

    def _smallest(self, seed: Seed, data: bytes, wanted: set[str]) -> bytes:
        """Return data without entries and blanks that its new answers do not need, the largest entry tried first."""
        tries, at = _TRIES, 0
        while tries:
            entries = sorted(spans(data).entries, key=lambda entry: entry[0] - entry[1])
            if at >= len(entries):
                break
            start, end = entries[at]
            less = data[:start] + data[end:]
            tries -= 1
            data, at = (less, at) if self._is_answered(seed, less, wanted) else (data, at + 1)
        less = _BLANKS.sub(b" ", data)
        return less if self._is_answered(seed, less, wanted) else data

    def _is_answered(self, seed: Seed, data: bytes, wanted: set[str]) -> bool:
        try:
            found: set[str] = answers(self._reader.read(self._reader.write(seed, data), self.name))
        except Exception:  # noqa: BLE001 - a law that breaks here is looked for elsewhere
            return False
        return wanted <= found


def keeper(name: str) -> Keep:
    """Return what writes inputs to the corpus of a format, as long as there is room in its share of it."""
    folder = CORPUS / name
    share = LARGEST // len(detect.IMPORTERS.names())

    def keep(seed: Seed, data: bytes) -> None:
        used = sum(path.stat().st_size for path in folder.glob("*"))
        if used + len(data) <= share and 0 < len(data) <= _LARGEST_KEPT:
            folder.mkdir(parents=True, exist_ok=True)
            suffix = "".join(seed.path.suffixes[-2:])
            (folder / f"{digest.sha256(data)[:12]}{suffix}").write_bytes(data)

    return keep


def fuzz(names: Sequence[str], minutes: float, chance: random.Random, *, keep: bool) -> list[Fuzzer]:
    """Read changed samples of each format in turn until the time is over."""
    made: list[Fuzzer] = []
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="fuzz-7f3a-", dir=memory if memory.is_dir() else None) as folder:
        for name in names:
            inner = Path(folder) / name
            inner.mkdir()
            made.append(Fuzzer(name, chance, inner, keeper(name) if keep else None))
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            for one in made:
                one.step()
    return made
