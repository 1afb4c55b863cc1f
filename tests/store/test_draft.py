from __future__ import annotations

import pickle
from pathlib import Path

from tracemark.store import draft as drafting
from tracemark.store.draft import DraftWriter
from tracemark.store.row import project_line
from tracemark.store.segment import read_line


def test_lines_are_packed_by_the_partition_of_their_first_statement(make, tmp_path: Path) -> None:
    lines = [make.trace(1), make.trace(2, make.stamp("a")), make.trace(3), make.trace(4, make.stamp("b"))]
    drafts = make.drafts(tmp_path, lines)
    assert [draft.partition for draft in drafts] == ["a" * 16, "b" * 16, "none"]
    assert list(drafts[2].projections) == [project_line(lines[0]), project_line(lines[2])]
    assert [read_line(drafts[2].temporary, at) for at in drafts[2].locations] == [lines[0], lines[2]]


def test_a_draft_travels_between_processes(make, tmp_path: Path) -> None:
    (draft,) = make.drafts(tmp_path, [make.trace(1)])
    assert pickle.loads(pickle.dumps(draft)) == draft


def test_no_lines_make_no_draft(make, tmp_path: Path) -> None:
    assert make.drafts(tmp_path, []) == []
    assert list(tmp_path.iterdir()) == []


def test_a_segment_is_closed_when_it_is_full_and_names_are_all_that_travels(make, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(drafting, "LINES", 3)
    lines = [make.trace(n, make.stamp("a")) for n in range(8)]
    writer = DraftWriter(tmp_path, "0")
    for line in lines:
        writer.add(line, project_line(line))
    drafts = writer.close()
    assert [len(d.projections) for d in drafts] == [3, 3, 2]
    sent = pickle.dumps(drafts)
    assert len(sent) < 2_000
    assert [list(d.projections) for d in pickle.loads(sent)] == [list(d.projections) for d in drafts]
    for d in drafts:
        d.discard()
    assert list(tmp_path.iterdir()) == []
