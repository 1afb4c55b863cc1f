"""What fuzzing came upon is read again: every input that had an answer of its own, and every law."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark.importers import detect
from tracemark.importers.base import Imported
from tracemark.importers.tau2 import Tau2Importer

from .loop import CORPUS, LARGEST, Fuzzer, seeds

NUMBERS = itertools.count()


@pytest.mark.parametrize("name", detect.IMPORTERS.names())
def test_no_input_of_the_corpus_breaks_a_law(name: str, tmp_path: Path) -> None:
    fuzzer = Fuzzer(name, random.Random(0), tmp_path)
    assert fuzzer.broken == []
    assert fuzzer.inputs == len(seeds(name)) > 0


@pytest.mark.parametrize("name", detect.IMPORTERS.names())
def test_changed_inputs_break_no_law(name: str, tmp_path: Path) -> None:
    fuzzer = Fuzzer(name, random.Random(1), tmp_path)
    for _ in range(40):
        fuzzer.step()
    assert fuzzer.broken == []


def test_the_corpus_is_small_and_names_importers() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(detect.IMPORTERS.names())
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) <= LARGEST


@pytest.mark.parametrize(
    ("breaks", "law"),
    [
        (lambda item: item.nothing, "AttributeError"),
        (lambda item: item._replace(trajectory_bytes=item.trajectory_bytes + b" "), "not the canonical bytes"),
        (lambda item: item._replace(run={"tasks": 1}), "ValidationError"),
        (lambda item: item.trajectory["steps"].clear() or item, "no ATIF"),
        (lambda item: item._replace(where=f"{item.where} {next(NUMBERS)}"), "a second reading"),
    ],
)
def test_a_law_that_is_broken_is_found(
    breaks: Callable[[Any], Any], law: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Tau2Importer._read

    def read(self: Any, record: Any, part: Any) -> Any:
        item = real(self, record, part)
        return breaks(item) if isinstance(item, Imported) else item

    monkeypatch.setattr(Tau2Importer, "_read", read)
    fuzzer = Fuzzer("tau2", random.Random(0), tmp_path)
    assert fuzzer.broken
    assert all(law in words for words, _, _ in fuzzer.broken)
