"""The contract of importers: an importer that keeps it passes, and each way of breaking it is found by a law."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemark.importers import detect
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, Unit, refuse
from tracemark.importers.documents import each
from tracemark.importers.finish import Draft, finish
from tracemark.importers.head import Head
from tracemark.testing import ImporterContract

__doc__ += """

Keeps: the text. Drops: nothing. Invents: nothing.
"""
SUCCESS = [("nothing", "unknown")]

_TESTS = [name for name in dir(ImporterContract) if name.startswith("test_")]


class Toy(Importer):
    """`{"toy": TEXT}` is a run of one word."""

    name = "toy"
    version = "1"
    surest = 90
    shows = ("prompt_templates",)

    def recognise(self, head: Head) -> int:
        return 90 if "toy" in head.members else 0

    def unit(self, head: Head) -> Unit:
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        yield from each(self.name, record, lambda document: self.trace(record, document))

    def trace(self, record: Record, document: Document) -> Imported | Refused:
        if not isinstance(document.value, dict) or not isinstance(document.value.get("toy"), str):
            return refuse("record-unfit", document, "no toy")
        return finish(self, record, document, self.draft(document.value["toy"]))

    def draft(self, text: str) -> Draft:
        steps = [
            {"step_id": 1, "source": "system", "message": "Play."},
            {"step_id": 2, "source": "agent", "message": text},
        ]
        agent = {"name": "toy", "version": "1"}
        return Draft({"schema_version": "ATIF-v1.8", "agent": agent, "steps": steps}, {}, {"status": "unknown"})


class Raises(Toy):
    def trace(self, record: Record, document: Document) -> Imported | Refused:
        return finish(self, record, document, self.draft(document.value["toy"]))


class Greedy(Toy):
    def recognise(self, head: Head) -> int:
        return 90 if head.data.startswith(b"{") else 0


class Surer(Toy):
    surest = 10


class Unsure(Toy):
    def recognise(self, head: Head) -> int:  # noqa: ARG002 - the protocol's signature
        return 0


class Forgetful(Toy):
    count = itertools.count()

    def draft(self, text: str) -> Draft:
        return super().draft(f"{text} {next(self.count)}")


class Bare(Toy):
    def trace(self, record: Record, document: Document) -> Imported | Refused:
        found = super().trace(record, document)
        return found._replace(trajectory_bytes=b"{}") if isinstance(found, Imported) else found


class Odd(Toy):
    def draft(self, text: str) -> Draft:
        draft = super().draft(text)
        draft.run["tasks"] = text
        return draft


class Shy(Toy):
    shows = ()


class Elsewhere(Toy):
    def trace(self, record: Record, document: Document) -> Imported | Refused:
        return super().trace(record, document._replace(raw=b"other"))


class Local(Toy):
    def trace(self, record: Record, document: Document) -> Imported | Refused:
        found = super().trace(record, document)
        if isinstance(found, Imported):
            found.run["note"] = str(record.context.folder)
        return found


class Careless(Toy):
    def read(self, record: Record) -> Iterator[Imported | Refused]:
        return (item for item in super().read(record) if isinstance(item, Imported))


class Mute(Toy):
    pass


Mute.__module__ = "string"

_BREAKS = [
    (Raises, "test_no_content_makes_it_fail"),
    (Greedy, "test_it_claims_no_file_that_others_know"),
    (Surer, "test_it_is_never_surer_than_it_says"),
    (Unsure, "test_its_samples_are_recognised_and_read"),
    (Forgetful, "test_the_same_bytes_give_the_same_trace"),
    (Bare, "test_what_it_reads_fits_the_model"),
    (Odd, "test_what_it_reads_fits_the_model"),
    (Shy, "test_it_shows_only_what_it_says_that_it_shows"),
    (Elsewhere, "test_every_trace_names_the_record_that_it_was_read_from"),
    (Local, "test_nothing_of_this_machine_reaches_a_trace"),
    (Careless, "test_what_it_cannot_read_is_refused_and_not_left_out"),
    (Mute, "test_it_says_what_it_keeps_drops_and_invents"),
]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "one.json").write_text('{"toy": "ball"}')
    (folder / "two.jsonl").write_text('{"toy": "kite"}\n{"toy": "drum"}\n')
    return folder


def contract(kind: type[Toy], samples: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    real, toy = detect.importer, kind()
    monkeypatch.setattr(detect, "importer", lambda name: toy if name == "toy" else real(name))
    monkeypatch.setattr(detect.IMPORTERS, "_plugins", {"toy": ""})
    return type("Kept", (ImporterContract,), {"importer": toy, "samples": samples})()


@pytest.mark.parametrize("law", _TESTS)
def test_an_importer_that_keeps_the_contract_passes(law: str, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    getattr(contract(Toy, samples, monkeypatch), law)()


@pytest.mark.parametrize(("kind", "law"), _BREAKS)
def test_what_breaks_the_contract_is_found(
    kind: type[Toy], law: str, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = contract(kind, samples, monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        getattr(kept, law)()


def test_every_law_has_an_importer_that_breaks_it() -> None:
    assert {law for _, law in _BREAKS} == set(_TESTS)


def test_a_sample_that_is_refused_is_named(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (samples / "three.json").write_text('{"toy": 3}')
    with pytest.raises(AssertionError, match=r"three\.json"):
        contract(Toy, samples, monkeypatch).test_its_samples_are_recognised_and_read()
