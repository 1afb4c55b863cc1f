"""Bad input through the whole program: what is said, with which exit code, and that nothing else suffers."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tracemark.acts.ingest import IngestOptions, ingest

LIMITS = "ingest: {max_record: 20000, max_expanded: 200000}\n"
HUGE = 2**64
Build = Callable[[Path], Any]


def document(name: str, **members: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": name,
        "agent": {"name": "desk", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Please see to it."},
            {"step_id": 2, "source": "agent", "message": "Done."},
        ],
        **members,
    }


def text(name: str, **members: Any) -> bytes:
    return json.dumps(document(name, **members)).encode()


def bomb() -> bytes:
    return text("bomb", notes="0" * 1_000_000)


# --- what is refused


@dataclass(frozen=True)
class Case:
    """One kind of bad input."""

    build: Build
    """Writes the files to the inbox."""
    code: str
    """Code of the finding."""
    where: str
    """What it names."""
    others: int = 0
    """Traces that are read from the same files all the same."""


CASES: dict[str, Case] = {}


def case(code: str, where: str, others: int = 0) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        CASES[build.__name__] = Case(build, code, where, others)
        return build

    return register


@case("format-unknown", "notes.txt")
def a_file_of_no_known_format(inbox: Path) -> Any:
    (inbox / "notes.txt").write_text("Dear diary\n")


@case("record-truncated", "cut.json")
def truncated_json(inbox: Path) -> Any:
    (inbox / "cut.json").write_bytes(text("cut")[:-20])


@case("record-truncated", "runs.jsonl:3", others=2)
def a_half_written_last_line(inbox: Path) -> Any:
    (inbox / "runs.jsonl").write_bytes(text("a") + b"\n" + text("b") + b"\n" + text("c")[:-30])


@case("record-not-json", "runs.jsonl:2", others=2)
def a_broken_line_between_whole_ones(inbox: Path) -> Any:
    (inbox / "runs.jsonl").write_bytes(text("a") + b"\n" + text("c")[:-30] + b"\n" + text("b") + b"\n")


@case("invalid-utf8", "runs.jsonl:2", others=2)
def invalid_utf8(inbox: Path) -> Any:
    broken = text("b").replace(b"Done.", b"Don\xff.")
    (inbox / "runs.jsonl").write_bytes(text("a") + b"\n" + broken + b"\n" + text("c") + b"\n")


@case("compressed-broken", "bomb.zip/bomb.json")
def a_zip_bomb_that_understates_its_size(inbox: Path) -> Any:
    with zipfile.ZipFile(inbox / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", bomb())
    path = inbox / "bomb.zip"
    size = len(bomb()).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (1000).to_bytes(4, "little")))


@case("expanded-too-large", "bomb.zip")
def a_zip_bomb(inbox: Path) -> Any:
    with zipfile.ZipFile(inbox / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", bomb())
        archive.writestr("fine.json", text("fine"))


@case("expanded-too-large", "bomb.json.zst")
def a_zstd_bomb(inbox: Path) -> Any:
    (inbox / "bomb.json.zst").write_bytes(zstandard.compress(bomb()))


@case("compressed-broken", "cut.json.gz")
def a_compressed_file_that_is_cut(inbox: Path) -> Any:
    (inbox / "cut.json.gz").write_bytes(gzip.compress(text("cut"))[:-10])


@case("compressed-broken", "cut.json.zst")
def a_zstd_file_that_is_cut(inbox: Path) -> Any:
    (inbox / "cut.json.zst").write_bytes(zstandard.compress(text("cut"))[:-10])


@case("compressed-broken", "cut.jsonl.zst")
def a_zstd_file_that_is_cut_at_the_end_of_a_line(inbox: Path) -> Any:
    lines = [zstandard.compress(text(name) + b"\n") for name in ("a", "b")]
    (inbox / "cut.jsonl.zst").write_bytes(lines[0] + lines[1][:9])


@case("record-too-large", "runs.jsonl:2", others=2)
def a_line_above_the_limit(inbox: Path) -> Any:
    (inbox / "runs.jsonl").write_bytes(text("a") + b"\n" + text("b", notes="0" * 30_000) + b"\n" + text("c") + b"\n")


@case("record-too-large", "large.json")
def a_document_above_the_limit(inbox: Path) -> Any:
    (inbox / "large.json").write_text(json.dumps(document("large", notes="0" * 30_000), indent=1))


@case("path-outside", "files.zip/../outside.json", others=1)
def an_archive_member_that_leaves_the_folder(inbox: Path) -> Any:
    with zipfile.ZipFile(inbox / "files.zip", "w") as archive:
        archive.writestr("../outside.json", text("outside"))
        archive.writestr("inside.json", text("inside"))


@case("symlink-outside", "link.json")
def a_symbolic_link_out_of_the_folder(inbox: Path) -> Any:
    outside = inbox.parent / "outside.json"
    outside.write_bytes(text("outside"))
    (inbox / "link.json").symlink_to(outside)


@case("symlink-outside", "folder")
def a_symbolic_link_to_a_folder_outside(inbox: Path) -> Any:
    outside = inbox.parent / "outside"
    outside.mkdir()
    (outside / "runs.json").write_bytes(text("outside"))
    (inbox / "folder").symlink_to(outside)


@case("git-lfs-pointer", "runs.json")
def a_git_lfs_pointer(inbox: Path) -> Any:
    oid = hashlib.sha256(b"x").hexdigest()
    (inbox / "runs.json").write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n")


@case("empty-file", "empty.json")
def an_empty_file(inbox: Path) -> Any:
    (inbox / "empty.json").touch()


@case("utf-16", "wide.json")
def a_file_in_utf_16(inbox: Path) -> Any:
    (inbox / "wide.json").write_bytes(text("wide").decode().encode("utf-16"))


@case("record-not-json", "deep.json")
def a_record_nested_too_deeply(inbox: Path) -> Any:
    deep = json.dumps(document("deep", extra={"x": 0})).replace("0}", "[" * 3000 + "]" * 3000 + "}")
    (inbox / "deep.json").write_text(deep)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_with(name: str, tracemark) -> None:
    bad = CASES[name]
    (tracemark.root / "params.yaml").write_text(LIMITS)
    (tracemark.inbox / "good.json").write_bytes(text("good"))
    bad.build(tracemark.inbox)
    done = tracemark.ingest()
    assert done.codes == [bad.code]
    (found,) = done.data["findings"]
    assert found["where"] == bad.where
    assert found["hint"]
    assert done.code == 1
    assert done.data["refused"] == 1
    assert done.data["ingested"] == 1 + bad.others
    assert "good.json" in tracemark.labels()
    tracemark.check()

    again = ingest(tracemark.root, [tracemark.inbox], IngestOptions())
    assert (again.exit_code, again.refused, again.ingested, again.duplicates) == (1, 1, 0, 1 + bad.others)
    tracemark.check()


def test_what_stands_in_front_of_a_limit_is_read(tracemark) -> None:
    (tracemark.root / "params.yaml").write_text(LIMITS)
    (tracemark.inbox / "bomb.jsonl.zst").write_bytes(zstandard.compress(text("a") + b"\n" + (text("b") + b"\n") * 5000))
    done = tracemark.ingest()
    assert (done.code, done.codes, done.data["ingested"]) == (1, ["expanded-too-large"], 2)
    assert 0 < done.data["duplicates"] < 4999
    tracemark.check()


def test_alone_each_of_them_is_nothing_readable_and_the_reason_is_told(tracemark) -> None:
    (tracemark.root / "params.yaml").write_text(LIMITS)
    alone = ["a_file_of_no_known_format", "a_zstd_bomb", "a_git_lfs_pointer", "an_empty_file"]
    for name in alone:
        folder = tracemark.inbox / name
        folder.mkdir()
        CASES[name].build(folder)
        done = tracemark.ingest(folder)
        assert done.code == 20
        assert (done.data["error"], done.data["exit_code"]) == ("NothingReadableError", 20)
        assert done.data["where"] == CASES[name].where
        assert done.data["hint"]
        assert "error: " in done.words


# --- what is read, and how it comes out


def one(tracemark, data: bytes, name: str = "runs.json") -> tuple[dict[str, Any], bytes]:
    """Ingest one file without a finding; return the trace's stored line and its hashed bytes."""
    (tracemark.inbox / name).write_bytes(data)
    done = tracemark.ingest()
    assert (done.code, done.data["findings"], done.data["ingested"]) == (0, [], 1)
    (row,) = tracemark.traces()
    raw = tracemark.run("traces", "show", row["trace_id"], "--raw").out
    assert hashlib.sha256(raw).hexdigest() == row["trace_id"]
    tracemark.check()
    return tracemark.line(row["trace_id"]), raw


def test_integers_beyond_64_bits_keep_every_digit(tracemark) -> None:
    _, raw = one(tracemark, text("huge", extra={"above": HUGE, "below": -HUGE, "edge": HUGE - 1}))
    assert json.loads(raw)["extra"] == {"above": HUGE, "below": -HUGE, "edge": HUGE - 1}
    assert b'"above":18446744073709551616' in raw


def test_lone_surrogates_are_kept_as_they_were_written(tracemark) -> None:
    data = text("half").replace(b"Done.", b"half a smile \\uD83D, key and value")
    data = data.replace(b'"session_id"', b'"extra": {"\\udead": "\\ud800x"}, "session_id"')
    _, raw = one(tracemark, data)
    value = json.loads(raw)
    assert value["steps"][1]["message"] == "half a smile \ud83d, key and value"
    assert value["extra"] == {"\udead": "\ud800x"}
    assert b"\\ud83d" in raw, "in lower case, whatever the source had"


def test_a_byte_order_mark_is_removed_and_named(tracemark) -> None:
    line, _ = one(tracemark, b"\xef\xbb\xbf" + text("bom"))
    assert line["source"]["repairs"] == ["byte order mark removed"]


def test_numbers_that_json_does_not_have_are_named(tracemark) -> None:
    data = text("nan", extra={"a": 1, "b": 2}).replace(b'"a": 1', b'"a": NaN').replace(b'"b": 2', b'"b": -Infinity')
    line, raw = one(tracemark, data)
    assert any("NaN" in repair for repair in line["source"]["repairs"])
    assert b"NaN" not in raw.replace(b'"NaN"', b"")
    json.loads(raw, parse_constant=lambda name: pytest.fail(f"a bare {name} was written"))


def test_keys_that_occur_twice_are_named(tracemark) -> None:
    data = text("twice").replace(b'"session_id": "twice"', b'"session_id": "first", "session_id": "twice"')
    line, raw = one(tracemark, data)
    assert any("session_id" in repair for repair in line["source"]["repairs"])
    assert json.loads(raw)["session_id"] == "twice"


def test_a_path_in_a_document_that_leaves_the_folder_is_not_followed(tracemark) -> None:
    (tracemark.root / "outside.json").write_bytes(text("outside", trajectory_id="outside"))
    ref = {"subagent_trajectory_ref": [{"trajectory_path": "../outside.json"}]}
    steps = [
        {"step_id": 1, "source": "user", "message": "Please see to it."},
        {"step_id": 2, "source": "agent", "message": "", "observation": {"results": [ref]}},
    ]
    _, raw = one(tracemark, text("main", steps=steps))
    value = json.loads(raw)
    assert "subagent_trajectories" not in value
    assert value["steps"][1]["observation"]["results"][0] == ref


def test_control_characters_of_a_trace_reach_no_terminal(tracemark) -> None:
    (tracemark.inbox / "good.json").write_bytes(text("good"))
    (tracemark.inbox / "bad\x1b[31m.txt").write_text("\x1b]0;owned\x07 is no trace\n")
    done = tracemark.run("ingest", tracemark.inbox)
    assert done.code == 1
    assert "\x1b" not in done.words + done.out.decode()
