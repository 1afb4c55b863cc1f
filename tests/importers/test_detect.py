"""Formats are recognised by content."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tracemark.errors import UsageError
from tracemark.importers import detect
from tracemark.importers.base import Imported, Importer, Record, Refused, Unit
from tracemark.importers.detect import IMPORTERS
from tracemark.importers.head import SIZE, Head
from tracemark.registry import Registry

from .conftest import Inbox

Make = Callable[..., dict[str, Any]]
CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}


def name_of(data: bytes, *, complete: bool = True) -> str | None:
    found = detect.detect(Head(data, complete)).importer
    return None if found is None else found.name


def test_the_name_of_a_file_says_nothing(inbox: Inbox, document: Make) -> None:
    inbox.write("a.txt", document())
    inbox.write("b.yaml", json.dumps(CHAT))
    assert [trace.source["format"] for trace in inbox.read().traces] == ["atif", "openai-chat"]


def test_each_format_is_told_from_the_others(document: Make) -> None:
    assert name_of(json.dumps(document()).encode()) == "atif"
    assert name_of(json.dumps(CHAT).encode()) == "openai-chat"
    assert name_of(json.dumps(CHAT["messages"]).encode()) == "openai-chat"
    assert name_of(b'{"format":"tracemark/journal/1"}\n{"a":1}\n') == "journal"
    assert name_of(b'{"a": 1}') is None
    assert name_of(b"not json") is None


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_long_document_is_recognised_by_its_beginning(document: Make, indent: int | None) -> None:
    data = json.dumps(document(notes="x" * SIZE), indent=indent).encode()[:SIZE]
    assert name_of(data, complete=False) == "atif"
    data = json.dumps({**CHAT, "x": "x" * SIZE}, indent=indent).encode()[:SIZE]
    assert name_of(data, complete=False) == "openai-chat"


@pytest.mark.parametrize("order", [("steps", "agent"), ("agent", "steps")])
def test_members_are_found_in_any_order_without_a_version(document: Make, order: tuple[str, str]) -> None:
    made = {name: document()[name] for name in order}
    assert name_of(json.dumps(made).encode()) == "atif"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a": 1}', False),
        ('{"a": 1}\n', False),
        ('{"a": 1}\n{"a": 2}\n', True),
        ('\n\n{"a": 1}\n\n{"a": 2}', True),
        ('{"a": 1}\n{"a": ', True),
        ('{"a": 1, "b\n{"a": 2}\n', True),
        ('{\n"a": [\n{"b": 1}\n]\n}', False),
        ('[\n{"b": 1},\n{"b": 2}\n]', False),
        ('"text"\n{"a": 1}\n', True),
    ],
)
def test_a_file_is_lines_when_a_line_is_a_value_and_more_follows(text: str, lines: bool) -> None:
    assert Head(text.encode(), complete=True).lines is lines


class Rival(Importer):
    """An importer that is as sure as the best."""

    name = "rival"
    version = "1"
    surest = 100
    shows = ()

    def recognise(self, head: Head) -> int:
        return 100 if "steps" in head.members else 0

    def unit(self, head: Head) -> Unit:
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        yield Refused("not-atif", record.where, "a rival read it", None, "", b"")


RIVAL = Rival()


def test_a_tie_names_both_and_the_way_out(inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Registry("tracemark.importers", {"atif": "tracemark.importers.atif:IMPORTER"}, "format")
    monkeypatch.setattr(detect, "IMPORTERS", table)
    monkeypatch.setattr(table, "names", lambda: ["atif", "rival"])
    known = {"rival": RIVAL, "atif": detect.importer("atif")}
    monkeypatch.setattr(detect, "importer", known.__getitem__)
    inbox.write("a.json", document())
    [refused] = inbox.read().refused
    assert refused.code == "format-tie"
    assert "atif and rival" in refused.message
    assert refused.hint == "--format atif or --format rival"
    assert len(inbox.read(format="atif").traces) == 1


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("tracemark.importers.atif:AtifImporter", "its entry point names no importer"),
        ("tracemark.importers.detect:IMPORTERS", "its entry point names no importer"),
        ("tracemark.importers.atif:IMPORTER", "its importer is called 'atif'"),
    ],
)
def test_an_entry_point_that_names_no_importer_of_that_name_is_said_so(
    monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    monkeypatch.setattr(detect, "IMPORTERS", Registry("tracemark.importers", {"strange": target}, "format"))
    with pytest.raises(UsageError, match="format 'strange' cannot be used") as raised:
        detect.importer("strange")
    assert raised.value.message.endswith(said)


def test_a_stated_format_is_believed(inbox: Inbox) -> None:
    inbox.write("a.json", b'{"a": 1}')
    assert inbox.read(format="openai-chat").codes == ["not-chat"]
    assert inbox.read().codes == ["format-unknown"]


def test_an_importer_that_cannot_be_surer_is_not_asked(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Humble(Rival):
        surest = 99

        def recognise(self, head: Head) -> int:
            asked.append("humble")
            return super().recognise(head)

    known: dict[str, Any] = {"atif": detect.importer("atif"), "humble": Humble()}
    monkeypatch.setattr(detect, "IMPORTERS", Registry("tracemark.importers", dict.fromkeys(known, ""), "format"))
    monkeypatch.setattr(detect, "importer", known.__getitem__)
    inbox.write("a.json", document())
    assert inbox.read().only.source["format"] == "atif"
    assert asked == []
    assert detect.detect(Head(b'{"steps": []}', True)).importer is known["humble"]
    assert asked == ["humble"]


ARRAYS = [
    ([{"agent": {"name": "a", "version": "1"}, "steps": []}], "atif"),
    ([{"x": 1, "schema_version": "ATIF-v1.4", "steps": []}, {}], "atif"),
    ([CHAT, CHAT], "openai-chat"),
    ([{"id": 7, **CHAT}], "openai-chat"),
    ([CHAT["messages"]], None),
    ([{**CHAT, "history": []}], None),
    ([{"a": 1}], None),
    ([], None),
]


@pytest.mark.parametrize(("value", "name"), ARRAYS)
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_what_its_first_element_is(value: Any, name: str | None, indent: int | None) -> None:
    assert name_of(json.dumps(value, indent=indent).encode()) == name


@pytest.mark.parametrize("indent", [None, 2])
def test_a_long_array_is_recognised_by_its_beginning(document: Make, indent: int | None) -> None:
    made = {name: document()[name] for name in ("agent", "steps")}
    for value, name in ((made, "atif"), ({"id": 1, **CHAT}, "openai-chat")):
        data = json.dumps([{**value, "x": "x" * SIZE}], indent=indent).encode()[:SIZE]
        assert name_of(data, complete=False) == name


@pytest.mark.parametrize("name", IMPORTERS.names())
def test_every_importer_says_what_it_keeps_drops_invents_and_counts_as_success(name: str) -> None:
    module = sys.modules[type(IMPORTERS.load(name)).__module__]
    for word in ("Keeps:", "Drops:", "Invents:"):
        assert f"\n{word} " in str(module.__doc__)
    assert module.SUCCESS[-1] == ("none of these", "unknown")
