"""What importers share: values in records, siblings, outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers.base import (
    EXCERPT,
    Context,
    Document,
    Limits,
    Record,
    Refused,
    documents,
    fill_from_batch,
    outcome_of_reward,
    refuse,
)


def read(raw: bytes, *, last: bool = False) -> list[Document | Refused]:
    return list(documents(Record(raw, "a.jsonl", "a.jsonl:1", last=last)))


def test_one_value_is_one_document_with_its_bytes() -> None:
    assert read(b'{"a": 1}') == [Document({"a": 1}, b'{"a": 1}', "a.jsonl:1", ())]


def test_values_written_one_behind_the_other_are_read_one_by_one_and_named() -> None:
    first, second = read(b'{"a":1} {"a":2}')
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert (first.value, second.value) == ({"a": 1}, {"a": 2})
    assert (first.where, second.where) == ("a.jsonl:1#0", "a.jsonl:1#1")
    assert second.raw == b'{"a":2}'
    assert "several JSON values" in second.repairs[0]


def test_values_before_a_fault_are_kept_and_the_rest_is_refused_with_its_bytes() -> None:
    first, rest = read(b'{"a":1}{"a": tru}')
    assert isinstance(first, Document)
    assert isinstance(rest, Refused)
    assert (rest.code, rest.excerpt, rest.where) == ("record-not-json", b'{"a": tru}', "a.jsonl:1#1")
    assert rest.raw_digest == digest.sha256(b'{"a": tru}')


@pytest.mark.parametrize("raw", [b'{"a": [1, 2', b'{"a": "text', b'{"a": "\\"', b'[{"a": 1},'])
def test_an_open_text_at_the_end_of_a_file_is_half_written(raw: bytes) -> None:
    [refused] = read(raw, last=True)
    assert isinstance(refused, Refused)
    assert refused.code == "record-truncated"
    [within] = read(raw)
    assert isinstance(within, Refused)
    assert within.code == "record-not-json"


def test_bytes_that_are_not_utf8_are_named_with_their_place() -> None:
    [refused] = read(b'{"a": "\xff"}')
    assert isinstance(refused, Refused)
    assert refused.code == "invalid-utf8"
    assert "byte 7" in refused.message


@pytest.mark.parametrize(
    ("raw", "repair"),
    [
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1, "a": 2}', "duplicate key"),
        (b'{"a": 1e400}', "beyond a double"),
    ],
)
def test_what_json_cannot_keep_is_named(raw: bytes, repair: str) -> None:
    [document] = read(raw)
    assert isinstance(document, Document)
    assert repair in document.repairs[0]


@pytest.mark.parametrize(("raw", "value"), [(b"18446744073709551616", 2**64), (b'"\\ud800"', "\ud800")])
def test_big_integers_and_lone_surrogates_survive_without_a_repair(raw: bytes, value: object) -> None:
    [document] = read(raw)
    assert isinstance(document, Document)
    assert (document.value, document.repairs) == (value, ())


@given(st.binary(min_size=1, max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    assert all(isinstance(item, (Document, Refused)) for item in read(raw, last=True))


def test_a_refusal_keeps_the_first_bytes_and_the_digest_of_all() -> None:
    raw = b"x" * (EXCERPT + 10)
    refused = refuse("record-not-json", Record(raw, "a", "a:1"), "no")
    assert (len(refused.excerpt), refused.raw_digest) == (EXCERPT, digest.sha256(raw))


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "sub/file.json", "a\\b", "", "..", "a\0b"])
def test_a_name_from_a_trace_is_no_path(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.json").write_text("{}")
    (folder / "sub" / "file.json").write_text("{}")
    assert Context(folder=str(folder)).sibling(name) is None


def test_a_sibling_is_a_plain_file_below_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    context = Context(folder=str(tmp_path), limits=Limits(max_record=2))
    assert context.sibling("a.json") == b"{}"
    assert context.sibling("link.json") is None
    (tmp_path / "a.json").write_text("{ }")
    assert context.sibling("a.json") is None
    assert Context().sibling("a.json") is None


@pytest.mark.parametrize(
    ("reward", "status"),
    [(1.0, "success"), (1, "success"), (0.9, "failure"), (0, "failure"), (True, "success"), (None, "unknown")],
)
def test_full_reward_is_success_and_part_of_it_is_failure(reward: object, status: str) -> None:
    assert outcome_of_reward(reward, 1.0)["status"] == status


def test_a_batch_fills_only_what_the_record_leaves_open() -> None:
    run = {"domain": "mine", "model": {"name": "m"}}
    fill_from_batch(run, {"domain": "theirs", "split": "train", "model": {"name": "x", "revision": "r"}})
    assert run == {"domain": "mine", "split": "train", "model": {"name": "m", "revision": "r"}}
