"""Paths to records: order, cuts, packing, limits, and every bad file by name."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import io
import json
import lzma
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemark import digest
from tracemark.errors import UnknownNameError, UsageError
from tracemark.findings import CODES
from tracemark.importers import source
from tracemark.importers.base import Limits, Record

from .conftest import Inbox

Make = Callable[..., dict[str, Any]]


def line(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


# order and shape


def test_files_come_in_the_order_of_their_names_with_relative_labels(inbox: Inbox, document: Make) -> None:
    for name in ("b.json", "a/z.json", "c.jsonl", "a.json"):
        inbox.write(name, document())
    assert [trace.source["label"] for trace in inbox.read().traces] == ["a/z.json", "a.json", "b.json", "c.jsonl"]


def test_a_file_given_twice_is_read_once(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", document())
    assert len(inbox.read("a.json", "a.json").traces) == 1
    assert len(source.plan([inbox.path, inbox.path / "a.json"]).jobs[0].pieces) == 1


def test_a_path_that_does_not_exist_is_a_usage_error(inbox: Inbox) -> None:
    with pytest.raises(UsageError, match="no such file"):
        inbox.read("nothing.json")


def test_an_unknown_format_name_lists_the_known_ones(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", document())
    with pytest.raises(UnknownNameError) as caught:
        inbox.read(format="atlf")
    assert "atif" in str(caught.value.hint)


def test_a_document_and_the_same_document_as_a_line_are_one_record(inbox: Inbox, document: Make) -> None:
    inbox.write("one.json", line(document()))
    inbox.write("two.jsonl", line(document()) + line(document(2)))
    inbox.write("bare.json", json.dumps(document()))
    raws = {trace.source["label"]: trace.source["raw"] for trace in inbox.read().traces[:3]}
    assert raws["one.json"] == raws["bare.json"] == digest.sha256(json.dumps(document()).encode())
    assert raws["one.json"] in {trace.source["raw"] for trace in inbox.read("two.jsonl").traces}


def test_places_are_label_and_line(inbox: Inbox, document: Make) -> None:
    inbox.write("a.jsonl", b"\n" + line(document()) + b"\n\n" + line(document(2)))
    assert [trace.where for trace in inbox.read().traces] == ["a.jsonl:2", "a.jsonl:5"]


def test_a_job_can_be_sent_to_another_process(inbox: Inbox, document: Make) -> None:
    inbox.write("batch.yaml", "harness: desk_a\n")
    inbox.write("a.json", document())
    [job] = inbox.read().plan.jobs
    assert pickle.loads(pickle.dumps(job)) == job


# cuts


def ranges(path: Path) -> list[tuple[int, int | None]]:
    return [(piece.start, piece.end) for job in source.plan([path]).jobs for piece in job.pieces]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 400), min_size=1, max_size=30), st.booleans())
def test_a_cut_file_gives_the_same_records_as_a_whole_one(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, sizes: list[int], newline: bool
) -> None:
    lines = [json.dumps({"schema_version": "ATIF-v1.8", "steps": [], "n": "x" * size}) for size in sizes]
    path = inbox.write("a.jsonl", "\n".join([lines[0], *lines]) + ("\n" if newline else ""))
    with monkeypatch.context() as patch:
        patch.setattr(source, "RANGE", 300)
        jobs = source.plan([path]).jobs
    found = [record for job in jobs for piece in job.pieces for record in source.records(piece)]
    assert [record.raw.decode() for record in found if isinstance(record, Record)] == [lines[0], *lines]
    assert [record.last for record in found if isinstance(record, Record)] == [False] * len(sizes) + [True]
    cuts = [(piece.start, piece.end) for job in jobs for piece in job.pieces]
    if len(cuts) > 1:
        assert cuts[0][0] == 0
        assert all(before[1] == after[0] for before, after in pairwise(cuts))
        assert cuts[-1][1] == path.stat().st_size


def test_records_behind_a_cut_are_named_by_their_bytes(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "RANGE", len(line(document())))
    inbox.write("a.jsonl", line(document()) + line(document(2)))
    size = len(line(document()))
    assert [trace.where for trace in inbox.read().traces] == ["a.jsonl:1", f"a.jsonl[{size}-{2 * size}]"]


def test_small_files_of_one_batch_share_a_job_up_to_its_size(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "RANGE", 2 * len(json.dumps(document())))
    for name in ("a/1.json", "a/2.json", "b/3.json", "b/4.json"):
        inbox.write(name, document())
    inbox.write("b/batch.yaml", "domain: desk\n")
    inbox.write("a/5.json", document())
    jobs = inbox.read().plan.jobs
    assert [[piece.label for piece in job.pieces] for job in jobs] == [
        ["a/1.json", "a/2.json"],
        ["a/5.json"],
        ["b/3.json", "b/4.json"],
    ]


# packing

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
    "zst-frames": lambda data: zstandard.compress(data[:100]) + zstandard.compress(data[100:]),
    "gz-members": lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]),
}


def zipped(**files: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


@pytest.mark.parametrize("kind", PACKED)
def test_packed_files_are_read_as_plain_ones_whatever_their_name(inbox: Inbox, document: Make, kind: str) -> None:
    plain = line(document()) + line(document(2))
    inbox.write("packed.json", PACKED[kind](plain))
    inbox.write("plain.jsonl", plain)
    traces = inbox.read().traces
    assert [trace.trajectory_bytes for trace in traces[:2]] == [trace.trajectory_bytes for trace in traces[2:]]
    assert [trace.source["raw"] for trace in traces[:2]] == [trace.source["raw"] for trace in traces[2:]]


def test_the_files_of_an_archive_are_read_in_order_of_name(inbox: Inbox, document: Make) -> None:
    inbox.write("a.zip", zipped(**{"b.json": line(document(2)), "a/x.jsonl": line(document()) * 2, ".DS_Store": b"?"}))
    assert [trace.where for trace in inbox.read().traces] == ["a.zip/a/x.jsonl:1", "a.zip/a/x.jsonl:2", "a.zip/b.json"]


@pytest.mark.parametrize("kind", PACKED)
def test_a_bomb_is_refused_at_the_limit(inbox: Inbox, document: Make, kind: str) -> None:
    many = line(document()) * 600
    inbox.write("bomb", PACKED[kind](many))
    inbox.write("good.json", document(2))
    read = inbox.read(max_expanded=200_000)
    assert read.codes == ["expanded-too-large"]
    assert len(read.traces) == 200_000 // len(line(document())) + 1


def test_a_zip_bomb_is_refused_before_it_is_expanded(inbox: Inbox, document: Make) -> None:
    inbox.write("bomb.zip", zipped(**{f"{n}.json": b" " * 60_000 for n in range(5)}))
    read = inbox.read(max_expanded=100_000)
    assert (read.codes, read.traces) == (["expanded-too-large"], [])


def test_a_zip_whose_stated_sizes_lie_is_broken_not_a_bomb(inbox: Inbox, document: Make) -> None:
    data = bytearray(zipped(**{"a.json": json.dumps(document()).encode() * 50}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (40).to_bytes(4, "little")
    inbox.write("lie.zip", bytes(data))
    read = inbox.read()
    assert read.traces == []
    assert set(read.codes) <= {"compressed-broken", "record-truncated", "format-unknown"}
    assert read.codes


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_broken_packing_is_named_and_what_was_before_the_fault_is_kept(inbox: Inbox, document: Make, kind: str) -> None:
    lines = b"".join(line(document(n)) for n in range(3000))
    data = PACKED[kind](lines)
    inbox.write("cut", data[: len(data) - 40])
    inbox.write("junk", data[:8] + b"\x07" * 60)
    read = inbox.read()
    assert "compressed-broken" in read.codes
    assert set(read.codes) <= {"compressed-broken", "record-truncated", "record-not-json"}


@pytest.mark.parametrize("name", ["../up.json", "/root.json", "a/../../up.json", "..\\up.json"])
def test_an_archive_member_that_leads_out_is_refused(inbox: Inbox, document: Make, name: str) -> None:
    inbox.write("a.zip", zipped(**{name: line(document()), "good.json": line(document())}))
    read = inbox.read()
    assert read.codes == ["path-outside"]
    assert len(read.traces) == 1


def test_one_bad_member_does_not_hide_the_others(inbox: Inbox, document: Make) -> None:
    data = bytearray(zipped(**{"a.json": line(document()), "b.json": line(document(2)), "c.txt": b"hello\n"}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 10 : entry + 12] = (93).to_bytes(2, "little")
    inbox.write("a.zip", bytes(data))
    read = inbox.read()
    assert [trace.source["label"] for trace in read.traces] == ["a.zip/b.json"]
    broken, unknown = read.refused
    assert (broken.code, broken.where) == ("compressed-broken", "a.zip/a.json")
    assert (unknown.code, unknown.where, unknown.excerpt) == ("format-unknown", "a.zip/c.txt", b"hello\n")
    assert unknown.raw_digest == digest.sha256(b"hello\n")


def test_an_archive_without_files_and_a_damaged_one_are_named(inbox: Inbox, document: Make) -> None:
    inbox.write("empty.zip", zipped())
    inbox.write("half.zip", zipped(a=line(document()))[:-30])
    assert inbox.read().codes == ["empty-file", "compressed-broken"]


# bad input gets


def test_an_unknown_format_is_refused_with_the_known_ones(inbox: Inbox) -> None:
    inbox.write("a.json", b"{}")
    [refused] = inbox.read().refused
    assert refused.message == "no known format: it begins with '{}'"
    assert refused.hint is not None
    assert "journal, atif, openai-chat" in refused.hint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("inspect", {"version": 2, "status": "error", "eval": {}, "plan": {}, "samples": []}),
        ("otel-genai", {"resourceSpans": []}),
        ("tau-bench", []),
        ("verifiers", []),
        ("nemo-gym", []),
    ],
)
def test_a_file_whose_list_of_runs_is_empty_is_refused_and_not_passed_over(
    inbox: Inbox, document: Make, name: str, content: Any
) -> None:
    inbox.write("a.json", content)
    inbox.write("b.json", document())
    assert inbox.read("a.json", format=name).codes == ["runs-missing"]


def test_of_a_file_that_is_cut_a_part_without_a_line_is_no_empty_file(
    inbox: Inbox, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "RANGE", 64)
    inbox.write("a.jsonl", line(document()) + b"\n" * 300)
    found = inbox.read()
    assert (len(found.traces), found.codes) == (1, [])


def test_every_refusal_is_in_the_table_of_findings(inbox: Inbox) -> None:
    inbox.write("empty.json", b"")
    inbox.write("unknown.txt", b"hello\n")
    assert all(code in CODES for code in inbox.read().codes)


BAD: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "empty-file"),
    "blank file": (b" \n\n", "empty-file"),
    "byte order mark alone": (b"\xef\xbb\xbf", "empty-file"),
    "no known format": (b"hello, world\n", "format-unknown"),
    "another format": (b'{"simulations": [], "tasks": []}', "format-unknown"),
    "truncated JSON": (b'{"schema_version": "ATIF-v1.8", "agent": {"name": "a", "ver', "record-truncated"),
    "invalid UTF-8": (b'{"schema_version": "ATIF-v1.8", "agent": {}, "steps": ["\xff"]}', "invalid-utf8"),
    "UTF-16": ('{"schema_version": "ATIF-v1.8"}'.encode("utf-16"), "utf-16"),
    "UTF-16 without a mark": ('{"schema_version": "ATIF-v1.8"}'.encode("utf-16-le"), "utf-16"),
    "UTF-32": ('{"schema_version": "ATIF-v1.8"}'.encode("utf-32"), "format-unknown"),
    "UTF-32 without a mark": ('{"schema_version": "ATIF-v1.8"}'.encode("utf-32-le"), "format-unknown"),
    "UTF-32 the other way round": ('{"schema_version": "ATIF-v1.8"}'.encode("utf-32-be"), "format-unknown"),
    "nothing but NUL": (b"\0" * 100, "format-unknown"),
    "Git-LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 131\n", "git-lfs-pointer"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_bytes_and_the_rest_is_read(inbox: Inbox, document: Make, name: str) -> None:
    data, code = BAD[name]
    inbox.write("bad.json", data)
    inbox.write("good.json", document())
    read = inbox.read()
    assert read.codes == [code]
    assert len(read.traces) == 1
    [refused] = read.refused
    assert (refused.where, refused.excerpt.strip()) == ("bad.json", data.strip() if code != "invalid-utf8" else data)
    assert refused.message


@pytest.mark.parametrize(("data", "named"), [("{}".encode("utf-32"), "UTF-32"), (b"\0" * 100, "NUL")])
def test_what_is_no_utf_8_is_named_for_what_it_is(inbox: Inbox, data: bytes, named: str) -> None:
    inbox.write("bad.json", data)
    [refused] = inbox.read().refused
    assert named in refused.message
    assert "UTF-16" not in refused.message


def test_links_that_lead_to_themselves_are_refused_and_the_rest_is_read(inbox: Inbox, document: Make) -> None:
    inbox.write("good.json", document())
    (inbox.path / "loop").symlink_to("loop")
    for name in ("config.json", "result.json"):
        inbox.write(f"trial/{name}", {})
    (inbox.path / "trial/agent").mkdir()
    (inbox.path / "trial/agent/trajectory.json").symlink_to("trajectory.json")
    read = inbox.read()
    assert [(found.code, found.where) for found in read.refused] == [
        ("unreadable", "loop"),
        ("unreadable", "trial/agent/trajectory.json"),
    ]
    assert len(read.traces) == 1


def test_folders_in_one_another_without_end_are_refused_and_the_rest_is_read(inbox: Inbox, document: Make) -> None:
    inbox.write("deep/" + "d/" * 150 + "a.json", document())
    inbox.write("deep/" + "d/" * 99 + "b.json", document(2))
    inbox.write("z.json", document(3))
    read = inbox.read()
    assert [(found.code, found.where) for found in read.refused] == [("unreadable", "deep")]
    assert len(read.traces) == 2


def test_limits_beyond_all_files_are_no_limits(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", json.dumps(document() | {"notes": "x" * 300_000}))
    inbox.write("b.jsonl", line(document(2)) + line(document(3)))
    most = 99_999_999_999_999_999_999
    assert len(inbox.read(max_record=most, max_expanded=most).traces) == 3


def test_a_half_written_last_line_is_refused_and_the_lines_before_it_are_read(inbox: Inbox, document: Make) -> None:
    half = line(document(3))[:50]
    inbox.write("a.jsonl", line(document()) + line(document(2)) + half)
    read = inbox.read()
    assert len(read.traces) == 2
    [refused] = read.refused
    assert (refused.code, refused.where, refused.excerpt) == ("record-truncated", "a.jsonl:3", half)
    assert refused.raw_digest == digest.sha256(half)


def test_a_partial_first_line_does_not_hide_the_lines_after_it(inbox: Inbox, document: Make) -> None:
    inbox.write("a.jsonl", line(document())[:60] + b"\n" + line(document()) + line(document(2)))
    read = inbox.read()
    assert (read.codes, len(read.traces)) == (["record-not-json"], 2)


def test_lines_that_are_no_objects_are_refused_one_by_one(inbox: Inbox, document: Make) -> None:
    inbox.write("a.jsonl", line(document()) + b'"massive error"\n42\n[1]\nnull\n\n' + line(document(2)))
    read = inbox.read()
    assert read.codes == ["record-not-object"] * 4
    assert [refused.where for refused in read.refused] == [f"a.jsonl:{n}" for n in (2, 3, 4, 5)]
    assert len(read.traces) == 2


def test_documents_concatenated_on_one_line_are_all_read(inbox: Inbox, document: Make) -> None:
    inbox.write("a.jsonl", line(document()).strip() + line(document(2)) + line(document(3)))
    read = inbox.read()
    assert len(read.traces) == 3
    assert "several JSON values" in read.traces[0].source["repairs"][0]


def test_indented_documents_behind_one_another_are_all_read(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", json.dumps(document(), indent=2) + "\n" + json.dumps(document(2), indent=2) + "\n")
    assert len(inbox.read(format="atif").traces) == 2


def test_a_byte_order_mark_is_removed_and_named(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", b"\xef\xbb\xbf" + line(document()))
    inbox.write("b.jsonl", b"\xef\xbb\xbf" + line(document()) + line(document(2)))
    traces = inbox.read().traces
    assert [trace.source.get("repairs") for trace in traces] == [["byte order mark removed"]] * 2 + [None]
    assert traces[0].source["raw"] == traces[1].source["raw"] == digest.sha256(line(document()).strip())


def test_crlf_line_ends_change_no_record(inbox: Inbox, document: Make) -> None:
    inbox.write("a.jsonl", (line(document()) + line(document(2))).replace(b"\n", b"\r\n"))
    assert inbox.read().traces[0].source["raw"] == digest.sha256(line(document()).strip())


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "18446744073709551616", '"\\ud800"', '1, "k": 2'])
def test_strange_values_are_kept_or_named(inbox: Inbox, document: Make, literal: str) -> None:
    text = json.dumps(document(extra={"k": "HERE"})).replace('"HERE"', literal)
    inbox.write("a.json", text)
    trace = inbox.read().only
    kept = {"18446744073709551616": 2**64, '"\\ud800"': "\ud800"}
    if literal in kept:
        assert trace.trajectory["extra"] == {"k": kept[literal]}
        assert "repairs" not in trace.source
        assert literal.encode() in trace.trajectory_bytes
    else:
        assert len(trace.source["repairs"]) == 1


def test_a_record_above_the_limit_is_refused_and_its_neighbours_are_read(inbox: Inbox, document: Make) -> None:
    huge = line(document(2, notes="x" * 5000))
    inbox.write("a.jsonl", line(document()) + huge + line(document(3)))
    inbox.write("b.json", json.dumps(document(4, notes="y" * 5000), indent=1))
    read = inbox.read(max_record=2000)
    assert read.codes == ["record-too-large"] * 2
    assert len(read.traces) == 2
    line_refused, file_refused = read.refused
    assert line_refused.where == "a.jsonl:2"
    assert line_refused.raw_digest == digest.sha256(huge.strip())
    assert file_refused.raw_digest == digest.sha256((inbox.path / "b.json").read_bytes())


def test_memory_is_bounded_by_a_record_not_by_the_file(inbox: Inbox, document: Make) -> None:
    small = line(document(notes="x" * 10_000))
    inbox.write("a.jsonl", small)
    assert len(inbox.read().traces) == 1
    inbox.write("a.jsonl", small * 2000)
    inbox.write("one-line.jsonl", b'{"schema_version": "ATIF-v1.8", "agent": {}, "steps": ["' + b"x" * 20_000_000)
    tracemalloc.start()
    for job in source.plan([inbox.path], limits=Limits(max_record=100_000)).jobs:
        for item in source.read(job):
            assert item is not None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


@pytest.mark.parametrize("depth", [300, 5000, 100_000])
def test_deep_nesting_is_kept_or_refused(inbox: Inbox, document: Make, depth: int) -> None:
    text = json.dumps(document(extra={"k": "HERE"})).replace('"HERE"', "[" * depth + "]" * depth)
    inbox.write("a.json", text)
    read = inbox.read()
    assert len(read.traces) + len(read.refused) == 1
    assert set(read.codes) <= {"record-not-json", "too-deep"}


# links, special files, what stands beside


def test_a_link_out_of_the_folder_is_refused_and_not_read(inbox: Inbox, document: Make, tmp_path: Path) -> None:
    outside = tmp_path / "secret.json"
    outside.write_text(json.dumps(document()))
    (inbox.path / "link.json").symlink_to(outside)
    (inbox.path / "folder").symlink_to(tmp_path)
    inbox.write("good.json", document(2))
    read = inbox.read()
    assert read.codes == ["symlink-outside"] * 2
    assert all(refused.excerpt == b"" for refused in read.refused)
    assert len(read.traces) == 1


def test_an_agent_folder_of_a_trial_that_is_a_link_out_of_the_folder_is_not_read(
    inbox: Inbox, document: Make, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "trajectory.json").write_text(json.dumps(document()))
    inbox.write("t/config.json", "{}")
    inbox.write("t/result.json", "{}")
    (inbox.path / "t" / "agent").symlink_to(tmp_path / "elsewhere")
    read = inbox.read()
    assert read.traces == []
    assert ("symlink-outside", "t/agent") in {(refused.code, refused.where) for refused in read.refused}


def test_one_file_reached_through_links_and_by_several_paths_is_read_once(
    inbox: Inbox, document: Make, tmp_path: Path
) -> None:
    inbox.write("a/b.json", document())
    inbox.write("c.json", document(2))
    (inbox.path / "a.json").symlink_to(inbox.path / "a" / "b.json")
    (tmp_path / "way").symlink_to(inbox.path)
    way = tmp_path / "way"
    paths = [way / "a" / "b.json", inbox.path / "a" / ".." / "c.json", inbox.path, way, way / "c.json"]
    pieces = [piece for job in source.plan(paths).jobs for piece in job.pieces]
    assert [piece.label for piece in pieces] == ["b.json", "c.json"]


def test_a_link_within_the_folder_is_the_same_file(inbox: Inbox, document: Make) -> None:
    inbox.write("a.json", document())
    (inbox.path / "z.json").symlink_to(inbox.path / "a.json")
    assert len(inbox.read().traces) == 1


def test_what_is_no_regular_file_is_refused(inbox: Inbox, document: Make) -> None:
    os.mkfifo(inbox.path / "pipe.json")
    (inbox.path / "gone.json").symlink_to(inbox.path / "nothing.json")
    refused = inbox.read().refused
    assert [(found.code, found.where, found.message) for found in refused] == [
        ("unreadable", "gone.json", "a symbolic link that leads to nothing"),
        ("unreadable", "pipe.json", "it is a pipe, no file"),
    ]
    assert {found.hint for found in refused} == {"put the file itself there, or take away what is in its place"}
    [given_alone] = source.plan([inbox.path / "pipe.json"]).refused
    assert given_alone.message == "it is a pipe, no file"


def test_files_beside_traces_are_passed_over(inbox: Inbox, document: Make) -> None:
    for name in ("batch.yaml", ".gitignore", ".git/config", "a.json.dvc", "abc.harness.json", "__pycache__/x"):
        inbox.write(name, b"")
    inbox.write("a.json", document())
    read = inbox.read()
    assert (read.codes, len(read.traces)) == ([], 1)


def test_a_file_that_vanishes_between_plan_and_read_is_refused(inbox: Inbox, document: Make) -> None:
    path = inbox.write("a.json", document())
    plan = source.plan([inbox.path])
    path.unlink()
    [refused] = [item for job in plan.jobs for item in source.read(job)]
    assert getattr(refused, "code", None) == "unreadable"


def test_a_journal_that_is_being_written_is_skipped_and_named(inbox: Inbox) -> None:
    path = inbox.write("t-1.journal.jsonl", b'{"format":"tracemark/journal/1"}\n{"event":"x"}\n')
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        plan = source.plan([inbox.path])
    assert plan.jobs == []
    assert [(found.code, found.where) for found in plan.findings] == [("journal-open", "t-1.journal.jsonl")]


# batch.yaml


def test_the_nearest_batch_file_speaks_for_a_file(inbox: Inbox, document: Make) -> None:
    inbox.write("batch.yaml", "domain: far\nsplit: train\n")
    inbox.write("a.json", document())
    inbox.write("near/batch.yaml", "domain: near\nmodel: {name: m, revision: r1, tokenizer: t1}\n")
    inbox.write("near/deep/b.json", document(2))
    far, near = inbox.read().traces
    assert far.run == {"domain": "far", "split": "train", "model": {"name": "m"}}
    assert near.run == {"domain": "near", "model": {"name": "m", "revision": "r1", "tokenizer": "t1"}}


def test_the_halves_of_a_character_in_a_batch_are_read_as_the_character(inbox: Inbox, document: Make) -> None:
    inbox.write("batch.yaml", 'domain: "\\ud83d\\ude00"\n')
    inbox.write("a.json", document())
    assert inbox.read().only.run["domain"] == "\U0001f600"


def test_a_batch_file_reaches_the_context_of_its_files(inbox: Inbox, document: Make) -> None:
    inbox.write("batch.yaml", "harness: desk_a\nnote: first try\n")
    inbox.write("a.json", document())
    [job] = inbox.read("a.json").plan.jobs
    assert job.pieces[0].context.batch == {"harness": "desk_a", "note": "first try"}


@pytest.mark.parametrize(
    "text", ["- a list\n", "harnes: typo\n", "split: 7\n", "a: [\n", "model: {size: 8}\n", "model: 7\n"]
)
def test_a_batch_file_that_cannot_be_understood_states_nothing(inbox: Inbox, document: Make, text: str) -> None:
    inbox.write("b/batch.yaml", text)
    inbox.write("b/a.json", document())
    read = inbox.read()
    assert [(found.code, found.where) for found in read.plan.findings] == [("batch-invalid", "b/batch.yaml")]
    assert read.only.run == {"model": {"name": "m"}}


def test_a_batch_file_that_must_not_be_read_states_nothing_and_is_named(
    inbox: Inbox, document: Make, tmp_path: Path
) -> None:
    inbox.write("batch.yaml", "domain: far\n")
    (tmp_path / "secret.yaml").write_text("domain: secret\n")
    for name in "abcd":
        inbox.write(f"{name}/a.json", document(ord(name)))
    (inbox.path / "a" / "batch.yaml").symlink_to(tmp_path / "secret.yaml")
    (inbox.path / "b" / "batch.yaml").symlink_to(inbox.path / "nothing.yaml")
    inbox.write("c/batch.yaml", "domain: near\n" + "#" * 65_536)
    (inbox.path / "d" / "batch.yaml").mkdir()
    read = inbox.read()
    assert [(found.code, found.where, found.message) for found in read.plan.findings] == [
        ("batch-invalid", "a/batch.yaml", "cannot be read: a symbolic link out of the given folder"),
        ("batch-invalid", "b/batch.yaml", "cannot be read: a symbolic link that leads to nothing"),
        ("batch-invalid", "c/batch.yaml", "cannot be read: larger than 65536 bytes"),
        ("batch-invalid", "d/batch.yaml", "cannot be read: it is a folder, no file"),
    ]
    assert [trace.run.get("domain") for trace in read.traces] == [None] * 4


def test_links_within_the_folder_or_into_the_cache_of_dvc_are_followed(
    inbox: Inbox, document: Make, tmp_path: Path
) -> None:
    cache = Inbox(tmp_path / ".dvc" / "cache" / "files" / "md5" / "ab")
    inbox.write("stated.yaml.txt", "domain: within\n")
    for name in ("a", "b"):
        (inbox.path / name).mkdir()
        (inbox.path / name / "a.json").symlink_to(cache.write(name, document(ord(name))))
    (inbox.path / "a" / "batch.yaml").symlink_to(cache.write("c", "domain: cached\n"))
    (inbox.path / "b" / "batch.yaml").symlink_to(inbox.path / "stated.yaml.txt")
    read = inbox.read()
    assert [trace.run["domain"] for trace in read.traces] == ["cached", "within"]
    assert read.plan.findings == []


def test_an_archive_of_many_files_is_read_in_one_pass_over_its_table(inbox: Inbox, document: Make) -> None:
    opened: list[str] = []
    data = zipped(**{f"{n:03d}.json": line(document(n)) for n in range(200)})
    inbox.write("a.zip", data)
    original = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]

    def counting(self: Any) -> None:
        opened.append("read")
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "_RealGetContents", counting)
        assert len(inbox.read().traces) == 200
    assert len(opened) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=300),
        st.sampled_from(sorted(PACKED)).flatmap(lambda kind: st.binary(max_size=99).map(PACKED[kind])),
        st.lists(
            st.sampled_from([b"{", b"}", b'"agent":', b'"steps":[', b"]", b"\n", b"{}", b"\xef\xbb\xbf", b"[", b","])
        ).map(b"".join),
    )
)
def test_no_file_raises_and_none_passes_in_silence(inbox: Inbox, data: bytes) -> None:
    inbox.write("any", data)
    for format in (None, "atif", "openai-chat"):  # noqa: A001
        read = inbox.read("any", format=format)
        assert read.refused
        assert all(refused.code in CODES and len(refused.raw_digest) == 64 for refused in read.refused)
