"""A format may span files: several that are one record, some that only stand beside, archives that are one source."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tracemark.importers import detect
from tracemark.importers.base import Elements, Imported, Importer, Record, Refused, Unit, refuse
from tracemark.importers.head import Head

from .conftest import Inbox


class Parted(Importer):
    """A format of parts: what it reads it refuses, with the record's own bytes in the message."""

    name = "parted"
    version = "1"
    surest = 100
    shows = ()

    def recognise(self, head: Head) -> int:
        return 100 if b'"parted"' in head.data else 0

    def unit(self, head: Head) -> Unit:
        return Elements("parted", ("info",)) if head.data.startswith(b'{"parted": [') else "document"

    def beside(self, name: str, head: Head) -> str | None:  # noqa: ARG002 - the protocol's
        return "settings of the runs beside it" if name.startswith("settings") else None

    def gathers(self, name: str, head: Head) -> str | None:  # noqa: ARG002 - the protocol's
        return name.partition("_")[0] if "_" in name else None

    def members(self, names: Sequence[str]) -> Sequence[str] | None:
        return [name for name in names if name.startswith("runs/")] if "parted.txt" in names else None

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        context = record.context
        about = [context.sibling("settings.json"), context.above("top.json"), context.member("parted.txt")]
        assert context.once("key", lambda: record.where) in (record.where, context.once("key", str))
        said = b"|".join([record.raw, str(dict(record.around)).encode(), *(one or b"-" for one in about)])
        yield refuse("not-atif", record, said.decode())


@pytest.fixture(autouse=True)
def parted(monkeypatch: pytest.MonkeyPatch) -> None:
    real = detect.importer
    monkeypatch.setattr(detect, "importer", lambda name: Parted() if name == "parted" else real(name))
    monkeypatch.setattr(detect.IMPORTERS, "_plugins", {"parted": ""})


def said(inbox: Inbox, *names: str, **limits: int) -> list[tuple[str, str, str]]:
    return [(item.where, item.code, item.message) for item in inbox.read(*names, **limits).refused]


def test_files_of_one_key_are_one_record_in_the_natural_order_of_their_names(inbox: Inbox) -> None:
    for number in (10, 9, 2):
        inbox.write(f"a/run_{number}.json", f' {{"parted": {number}}}\n')
    inbox.write("a/walk_1.json", '{"parted": 1}')
    inbox.write("b/run_1.json", '{"parted": 7}')
    joined = '{"parted": 2}\n{"parted": 9}\n{"parted": 10}'
    assert said(inbox) == [
        ("a/run_2.json", "not-atif", joined + "|{}|-|-|-"),
        ("a/walk_1.json", "not-atif", '{"parted": 1}|{}|-|-|-'),
        ("b/run_1.json", "not-atif", '{"parted": 7}|{}|-|-|-'),
    ]
    assert inbox.read("a").refused[0].raw_digest == hashlib.sha256(joined.encode()).hexdigest()


def test_files_that_are_together_above_the_limit_are_refused_by_name(inbox: Inbox) -> None:
    for number in range(9):
        inbox.write(f"run_{number}.json", '{"parted": "' + "x" * 20 + '"}')
    [(where, code, message)] = said(inbox, max_record=100)
    assert (where, code) == ("run_0.json", "record-too-large")
    assert message == "9 files that are one record of more than 100 bytes"


def test_a_file_that_stands_beside_is_a_finding_and_can_be_read_by_the_others(inbox: Inbox) -> None:
    inbox.write("x/settings.json", '{"parted": 0}')
    inbox.write("x/run.json", '{"parted": 1}')
    inbox.write("top.json", '{"parted": 2}')
    found = inbox.read()
    [finding] = found.plan.findings
    assert (finding.code, finding.where) == ("file-beside", "x/settings.json")
    assert finding.message == "settings of the runs beside it"
    assert finding.severity == "info"
    messages = [item.message for item in found.refused if item.where == "x/run.json"]
    assert messages == ['{"parted": 1}|{}|{"parted": 0}|{"parted": 2}|-']


def test_nothing_above_the_folder_that_was_given_is_read(inbox: Inbox) -> None:
    inbox.write("top.json", '{"parted": 2}')
    inbox.write("x/run.json", '{"parted": 1}')
    assert said(inbox, "x") == [("run.json", "not-atif", '{"parted": 1}|{}|-|-|-')]
    assert said(inbox, "x/run.json") == [("run.json", "not-atif", '{"parted": 1}|{}|-|-|-')]


def test_a_link_above_is_not_followed(inbox: Inbox, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("secret")
    inbox.write("x/run.json", '{"parted": 1}')
    (inbox.path / "top.json").symlink_to(tmp_path / "secret.json")
    assert ("x/run.json", "not-atif", '{"parted": 1}|{}|-|-|-') in said(inbox)


def test_an_archive_is_one_source_of_which_some_members_are_records(inbox: Inbox) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in (("parted.txt", "about"), ("runs/1.json", "one"), ("runs/2.json", "two"), ("x.json", "no")):
            archive.writestr(name, text)
    inbox.write("a.zip", buffer.getvalue())
    assert said(inbox) == [
        ("a.zip/runs/1.json", "not-atif", "one|{}|-|-|about"),
        ("a.zip/runs/2.json", "not-atif", "two|{}|-|-|about"),
    ]


def test_an_archive_of_a_format_without_records_says_so(inbox: Inbox) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("parted.txt", "about")
    inbox.write("a.zip", buffer.getvalue())
    [(where, code, message)] = said(inbox)
    assert (where, code, message) == ("a.zip", "record-unfit", "an archive of parted that holds no finished run")


def test_elements_are_records_and_know_what_stands_around_them_also_behind(inbox: Inbox) -> None:
    inbox.write("a.json", '{"parted": [1, {"b": 2}], "info": 3}')
    assert said(inbox) == [
        ("a.json#0", "not-atif", "1|{'info': 3}|-|-|-"),
        ("a.json#1", "not-atif", "{\"b\": 2}|{'info': 3}|-|-|-"),
    ]


def test_a_document_that_ends_between_elements_gives_them_and_is_refused(inbox: Inbox) -> None:
    inbox.write("a.json", '{"parted": [1, 2, ')
    told = [("a.json#0", "not-atif"), ("a.json#1", "not-atif"), ("a.json", "record-truncated")]
    assert [(where, code) for where, code, _ in said(inbox)] == told


def test_the_element_in_which_a_document_ends_is_refused_and_nothing_else(inbox: Inbox) -> None:
    inbox.write("a.json", '{"parted": [1, 2, {"b": ')
    assert [(where, code) for where, code, _ in said(inbox)] == [(f"a.json#{n}", "not-atif") for n in range(3)]


def test_an_element_above_the_limit_costs_itself(inbox: Inbox) -> None:
    inbox.write("a.json", '{"parted": [1, "' + "x" * 500 + '", [' + "4," * 400 + "5], 3]" + ', "info": 3}')
    assert [(where, code) for where, code, _ in said(inbox, max_record=300)] == [
        ("a.json#0", "not-atif"),
        ("a.json#1", "record-too-large"),
        ("a.json#2", "record-too-large"),
        ("a.json#3", "not-atif"),
    ]


def test_a_second_document_behind_an_array_of_records_is_refused_and_not_lost(inbox: Inbox) -> None:
    inbox.write("a.json", '{"parted": [1], "info": 3}\n{"parted": [2]}')
    told = [("a.json#0", "not-atif"), ("a.json", "record-unfit")]
    assert [(where, code) for where, code, _ in said(inbox)] == told
