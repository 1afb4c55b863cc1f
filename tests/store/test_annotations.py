from __future__ import annotations

import base64

import pytest

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.store.annotations import project_annotation, project_refused, refused


def test_an_annotation_is_identified_by_its_line(make) -> None:
    note = make.annotation("exports.sft", "ab" * 32, {"traces": ["cd" * 32]}, ["ef" * 32])
    row = project_annotation(digest.canonical(note))
    assert (row.digest.hex(), row.kind, row.trace) == (digest.of(note), "exports.sft", bytes.fromhex("ab" * 32))
    assert (row.supersedes, row.traces) == ((bytes.fromhex("ef" * 32),), (bytes.fromhex("cd" * 32),))


def test_a_refused_record_keeps_its_bytes_whatever_they_are() -> None:
    raw = bytes(range(256))
    record = refused("not-utf8", "a.jsonl:1", "no text", digest.sha256(raw), raw)
    line = digest.canonical(record)
    assert project_refused(line).raw.hex() == digest.sha256(raw)
    assert base64.b64decode(digest.load_canonical(line)["excerpt"]) == raw


@pytest.mark.parametrize(
    "line", [b"", b"1", b"{}", b'{"format":"tracemark/annotation/2"}', b'{"format":"tracemark/refused/1"}']
)
def test_a_line_of_another_form_is_an_integrity_error(line: bytes) -> None:
    for project in (project_annotation, project_refused):
        with pytest.raises(IntegrityError):
            project(line)
