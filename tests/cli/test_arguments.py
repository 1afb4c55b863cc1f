from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracemark.cli.app import build
from tracemark.cli.arguments import corpus
from tracemark.errors import NoStoreError


def context(root: Path | None) -> Any:
    tree = build()
    return tree.context_class(tree, info_name="tracemark", obj=root)


@pytest.mark.parametrize("mark", ["traces/STORE", "params.yaml"])
def test_the_corpus_is_the_nearest_parent_with_a_mark(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "params.yaml").touch()
    inner = tmp_path / "inner"
    (inner / mark).parent.mkdir(parents=True)
    (inner / mark).touch()
    below = inner / "inbox" / "batch"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert corpus(context(None)) == inner


def test_the_option_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "params.yaml").touch()
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    assert corpus(context(elsewhere)) == elsewhere


def test_outside_of_any_corpus_there_is_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoStoreError) as caught:
        corpus(context(None))
    assert "tracemark init" in str(caught.value.hint)
