"""What goes wrong with one record or one place on disk costs that one, and nothing else of a source."""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.importers import atif_repair, detect, openai_chat
from tracemark.importers.atif import AtifImporter
from tracemark.importers.base import Document, Imported, Importer, Record, Refused, refuse
from tracemark.importers.documents import documents, each, elements
from tracemark.importers.head import Head

from .conftest import Inbox

Make = Callable[..., dict[str, Any]]


def failing(error: BaseException, session: str = "s-2") -> Callable[..., Any]:
    """Return a method that fails for the document of one session, and does its work for any other."""
    real = AtifImporter._trace

    def trace(self: AtifImporter, record: Any, document: Any, value: dict[str, Any], context: Any) -> Any:
        if value.get("session_id") == session:
            raise error
        return real(self, record, document, value, context)

    return trace


def written(inbox: Inbox, form: str, values: list[Any]) -> list[tuple[str, str]]:
    """Write values in one of the forms in which a source may hold several; return the place and the text of each."""
    lines = [json.dumps(value) for value in values]
    if form == "files":
        for number, text in enumerate(lines):
            inbox.write(f"{number}.json", text)
        return [(f"{number}.json", text) for number, text in enumerate(lines)]
    if form == "lines":
        inbox.write("a.jsonl", "\n".join(lines))
        return [(f"a.jsonl:{number}", text) for number, text in enumerate(lines, 1)]
    if form == "indented array":
        lines = [json.dumps(value, indent=1).replace("\n", "\n ") for value in values]
    begin, between, end = {
        "one behind the other": ("", " ", ""),
        "array": ("[", ",", "]"),
        "indented array": ("[\n ", ",\n ", "\n]"),
        "array in a line": ("{}\n[", ", ", "]"),
    }[form]
    inbox.write("a.json", begin + between.join(lines) + end)
    place = "a.json:2" if form == "array in a line" else "a.json"
    return [(f"{place}#{number}", text) for number, text in enumerate(lines)]


FORMS = ["files", "lines", "array", "indented array", "array in a line", "one behind the other"]


@pytest.mark.parametrize("form", FORMS)
def test_an_importer_that_fails_costs_one_document(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(AtifImporter, "_trace", failing(KeyError("results")))
    places = written(inbox, form, [document(number) for number in (1, 2, 3)])
    found = inbox.read(format="atif" if form == "array in a line" else None)
    assert [item.trajectory["session_id"] for item in found.traces] == ["s-1", "s-3"]
    refused = found.refused[-1]
    where, text = places[1]
    assert (refused.code, refused.where) == ("importer-failed", where)
    assert (refused.excerpt, refused.raw_digest) == (text.encode(), digest.sha256(text.encode()))
    assert "the importer atif failed: KeyError: 'results' (test_source_faults.py, line " in refused.message
    assert [item.code for item in found.refused[:-1]] == (["not-atif"] if form == "array in a line" else [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("error", "code"), [(TypeError("odd"), "importer-failed"), (RecursionError(), "too-deep")])
def test_chat_records_fail_one_by_one_as_well(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, form: str, error: Exception, code: str
) -> None:
    real = openai_chat.ChatImporter._trace

    def trace(self: Any, record: Any, document: Any) -> Any:
        if document.value.get("id") == "s-2":
            raise error
        return real(self, record, document)

    monkeypatch.setattr(openai_chat.ChatImporter, "_trace", trace)
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}]
    places = written(inbox, form, [{"id": f"s-{number}", "messages": messages} for number in (1, 2, 3)])
    found = inbox.read(format="openai-chat")
    assert [item.trajectory["session_id"] for item in found.traces] == ["s-1", "s-3"]
    assert (found.refused[-1].code, found.refused[-1].where) == (code, places[1][0])


@pytest.mark.parametrize("failing_on", ["s-1", "s-2"])
def test_an_importer_that_fails_on_a_document_costs_none_that_it_is_embedded_in_or_embeds(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch, failing_on: str
) -> None:
    main = document(1)
    main["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_path": "part.json"}]
    inbox.write("main.json", main)
    inbox.write("part.json", document(2))
    monkeypatch.setattr(AtifImporter, "_trace", failing(KeyError("results"), failing_on))
    found = inbox.read()
    assert [item.trajectory["session_id"] for item in found.traces] == ["s-2" if failing_on == "s-1" else "s-1"]
    assert [(item.code, item.where) for item in found.refused] == [
        ("importer-failed", "main.json" if failing_on == "s-1" else "part.json")
    ]


@pytest.mark.parametrize("error", [KeyError("results"), RecursionError()])
def test_a_part_that_cannot_be_repaired_for_a_fault_is_left_out_of_what_names_it(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real = atif_repair.repair

    def repair(value: dict[str, Any]) -> list[str]:
        if value["session_id"] == "s-2":
            raise error
        return real(value)

    monkeypatch.setattr(atif_repair, "repair", repair)
    main = document(1, odd=1)
    refs = [{"trajectory_path": "part.json"}, {"trajectory_path": "other.json"}]
    main["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = refs
    inbox.write("main.json", main)
    inbox.write("part.json", document(2, odd=1))
    inbox.write("other.json", document(3, odd=1))
    found = inbox.read()
    [trace] = found.traces
    assert [child["session_id"] for child in trace.trajectory["subagent_trajectories"]] == ["s-3"]
    code = "too-deep" if isinstance(error, RecursionError) else "importer-failed"
    assert [(item.code, item.where) for item in found.refused] == [(code, "part.json")]


class Others(Importer):
    """An importer of somebody else's format, which fails for 2."""

    name = "others"
    version = "1"
    surest = 100
    shows = ()

    def __init__(self, guarded: bool) -> None:
        self._guarded = guarded

    def recognise(self, head: Head) -> int:
        return 100 if head.data.startswith(b"[1") else 0

    def unit(self, head: Head) -> str:
        return "line" if head.lines else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        if self._guarded:
            yield from each(self.name, record, self._trace)
            return
        for document in documents(record):
            if isinstance(document, Document):
                for element in elements(record, document):
                    assert isinstance(element, Document)
                    yield self._trace(element)

    def _trace(self, document: Document) -> Refused:
        if document.value == 2:
            raise LookupError(document.value)
        return refuse("not-atif", document, "read")


@pytest.mark.parametrize("guarded", [True, False])
def test_an_importer_of_others_loses_one_document_or_the_rest_of_its_record(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    monkeypatch.setattr(detect, "importer", {"others": Others(guarded)}.__getitem__)
    inbox.write("a.json", "[1, 2, 3]")
    found = [(item.code, item.where) for item in inbox.read(format="others").refused]
    if guarded:
        assert found == [("not-atif", "a.json#0"), ("importer-failed", "a.json#1"), ("not-atif", "a.json#2")]
    else:
        assert found == [("not-atif", "a.json#0"), ("importer-failed", "a.json")]


def test_a_record_too_deep_for_any_importer_is_refused_as_that(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: Any, record: Any) -> Any:
        raise RecursionError

    monkeypatch.setattr(AtifImporter, "read", read)
    inbox.write("a.json", document())
    assert inbox.read().codes == ["too-deep"]


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
def test_what_is_no_fault_of_an_importer_is_not_held_back(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(AtifImporter, "_trace", failing(error))
    inbox.write("a.jsonl", json.dumps(document(2)))
    with pytest.raises(type(error)):
        inbox.read()


@pytest.mark.parametrize("method", ["recognise", "unit"])
def test_an_importer_that_fails_on_the_beginning_of_a_file_costs_that_file(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    real = getattr(openai_chat.ChatImporter, method)

    def sometimes(self: Any, head: Any) -> Any:
        if b"boom" in head.data:
            raise ValueError("boom")
        return real(self, head)

    monkeypatch.setattr(openai_chat.ChatImporter, method, sometimes)
    inbox.write("a.json", document())
    inbox.write("b.json", [{"role": "user", "content": "boom"}])
    found = inbox.read()
    assert len(found.traces) == 1
    [refused] = found.refused
    assert (refused.code, refused.where) == ("importer-failed", "b.json")
    assert "ValueError: boom" in refused.message


def without_permission(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let everything below these folders be refused by the system, also to root."""
    shut = tuple(str(folder) for folder in folders)
    calls: list[tuple[Any, str]] = [(os, "scandir"), (os, "stat"), (os, "lstat"), (builtins, "open"), (io, "open")]

    def guarded(real: Callable[..., Any], lists: bool) -> Callable[..., Any]:
        def call(path: Any = ".", *rest: Any, **named: Any) -> Any:
            if not isinstance(path, int):
                text = os.fspath(path)
                if text.startswith(tuple(f"{one}/" for one in shut)) or (lists and text in shut):
                    raise PermissionError(errno.EACCES, "Permission denied", text)
            return real(path, *rest, **named)

        return call

    for module, name in calls:
        monkeypatch.setattr(module, name, guarded(getattr(module, name), name == "scandir"))


@pytest.mark.parametrize("trial", [False, True])
def test_a_folder_that_cannot_be_listed_costs_that_folder(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch, trial: bool
) -> None:
    inbox.write("a/one.json", document(1))
    inbox.write("b/two.json", document(2))
    inbox.write("c/three.json", document(3))
    shut = inbox.path / "b"
    if trial:
        inbox.write("b/config.json", {})
        inbox.write("b/result.json", {})
        inbox.write("b/agent/trajectory.json", document(4))
        shut = inbox.path / "b" / "agent"
    without_permission(monkeypatch, shut)
    found = inbox.read()
    assert [item.trajectory["session_id"] for item in found.traces] == ["s-1", "s-3"]
    assert [(item.code, item.where) for item in found.refused] == [("unreadable", "b/agent" if trial else "b")]
    assert "cannot be listed: Permission denied" in found.refused[0].message


def test_a_given_path_that_cannot_be_looked_at_is_refused_and_the_others_are_read(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.write("shut/inner/one.json", document(1))
    inbox.write("b.json", document(2))
    without_permission(monkeypatch, inbox.path / "shut")
    found = inbox.read("shut/inner", "b.json")
    assert len(found.traces) == 1
    assert [(item.code, item.where) for item in found.refused] == [("unreadable", "inner")]


@pytest.mark.skipif(os.geteuid() == 0, reason="to root every folder is open")
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100])
@pytest.mark.parametrize("trial", [False, True])
def test_a_folder_without_permissions_costs_that_folder(inbox: Inbox, document: Make, mode: int, trial: bool) -> None:
    inbox.write("a/one.json", document(1))
    inbox.write("b/agent/trajectory.json", document(2))
    if trial:
        inbox.write("b/config.json", {})
        inbox.write("b/result.json", {})
    shut = inbox.path / ("b/agent" if trial else "b")
    shut.chmod(mode)
    try:
        found = inbox.read()
    finally:
        shut.chmod(0o700)
    assert [item.trajectory["session_id"] for item in found.traces] == ["s-1"]
    assert set(found.codes) == {"unreadable"}


def test_a_link_to_a_folder_is_named_and_not_followed(inbox: Inbox, document: Make) -> None:
    inbox.write("runs/a.json", document(1))
    inbox.write(".hidden/b.json", document(2))
    for name, target in (("latest", "runs"), ("more", ".hidden"), ("self", ".")):
        (inbox.path / name).symlink_to(target)
    found = inbox.read()
    assert [item.source["label"] for item in found.traces] == ["runs/a.json"]
    assert found.refused == []
    assert [(one.code, one.severity, one.where, one.message) for one in found.plan.findings] == [
        ("symlink-folder", "warning", name, f"a symbolic link to a folder, {target!r}: not followed")
        for name, target in (("latest", "runs"), ("more", ".hidden"), ("self", "."))
    ]


BEGUN = [b"", b" \n", b'{"agent":{"na']


@pytest.mark.parametrize("written", BEGUN)
def test_a_journal_that_ended_before_its_first_line_is_an_empty_run(inbox: Inbox, written: bytes) -> None:
    inbox.write("t-1.journal.jsonl", written)
    found = inbox.read()
    assert [(item.code, item.where, item.excerpt) for item in found.refused] == [
        ("journal-empty", "t-1.journal.jsonl", written)
    ]
    assert found.plan.findings == []


@pytest.mark.parametrize("written", BEGUN)
def test_a_journal_that_was_just_created_is_skipped_while_it_is_locked(inbox: Inbox, written: bytes) -> None:
    path = inbox.write("t-1.journal.jsonl", written)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = inbox.read()
    assert (found.items, found.refused) == ([], [])
    assert [(one.code, one.where) for one in found.plan.findings] == [("journal-open", "t-1.journal.jsonl")]


@pytest.mark.parametrize(("name", "code"), [("t-1.jsonl", "empty-file"), ("t-1.journal.jsonl.txt", "empty-file")])
def test_any_other_empty_file_is_refused_as_one(inbox: Inbox, name: str, code: str) -> None:
    inbox.write(name, b"")
    assert inbox.read().codes == [code]


def test_a_file_that_is_called_a_journal_and_is_none_is_read_as_what_it_is(inbox: Inbox, document: Make) -> None:
    inbox.write("a.journal.jsonl", document(1))
    inbox.write("b.journal.jsonl", b"no journal")
    found = inbox.read()
    assert [item.source["format"] for item in found.traces] == ["atif"]
    assert found.codes == ["format-unknown"]


HEADER = b'{"info": {"agent_info": {}, "environment_info": {}}, "tasks": [], "simulations": ['


@pytest.mark.parametrize("behind", [b'{"task_id": 2, "traj": [{"ro', b"17", b'"some te', b"  "])
@pytest.mark.parametrize(("begin", "name"), [(b"[", "tau-bench"), (HEADER, "tau2")])
def test_an_array_that_is_cut_is_refused_once(inbox: Inbox, begin: bytes, name: str, behind: bytes) -> None:
    said = b'[{"role": "user", "content": "Go."}]'
    inbox.write("runs.json", begin + b'{"task_id": 1, "traj": ' + said + b', "messages": ' + said + b"}, " + behind)
    found = inbox.read(format=name)
    assert (len(found.traces), len(found.refused)) == (1, 1)
