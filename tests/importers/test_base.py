"""What importers share: refusals, siblings, outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracemark import digest
from tracemark.importers.base import EXCERPT, Context, Limits, Record, outcome_of_reward, refuse


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
