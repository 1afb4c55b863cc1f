"""Failures on the command line: tables that fit, examples whole, and nothing of a trace written raw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acts.conftest import document, write_version
from tests.acts.failed_runs import failed
from tracemark.acts import ingest, scaffold
from tracemark.cli.main import run

NASTY = "Error: \x1b[31mthe door\u202e is shut " + "and stays so " * 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with an accepted harness and runs of which four failed, in two ways."""
    root = tmp_path_factory.mktemp("failures") / "corpus"
    scaffold.init(root)
    write_version(root, "desk_a")
    runs = [failed(f"f-{number}", f"Error: order o-{number} is locked\nand a second line") for number in range(3)]
    runs += [failed("nasty\x1b[2J", NASTY), document("fine")]
    (root / "inbox" / "runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in runs))
    ingest.ingest(root, [root / "inbox" / "runs.jsonl"], ingest.IngestOptions(harness="desk_a"))
    assert run(["--root", str(root), "harness", "accept", "desk_a", "--reason", "the first"]) == 0
    return root


def printed(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run(["--root", str(root), "failures", *arguments]) == code
    out, err = capsys.readouterr()
    for text in (out, err):
        assert all(letter == "\n" or letter.isprintable() for letter in text)
    return out, err


def data(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> Any:
    return json.loads(printed(capsys, root, *arguments, "--output", "json")[0])


def test_a_list_is_a_table_that_fits_with_what_it_is_a_part_of(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = printed(capsys, corpus, "list")
    head, first, second = out.splitlines()
    assert head.split() == ["cluster", "traces", "share", "tasks", "harness", "tool", "line"]
    assert first.split()[1:6] == ["3", "60.0%", "3", "desk_a", "look"]
    assert first.endswith("Error: order o-<n> is locked")
    assert second.endswith("…")
    assert r"the door\u202e is shut" in second
    assert max(len(line) for line in out.splitlines()) <= 120
    assert err == "2 clusters; 5 runs routed\n"
    assert (
        printed(capsys, corpus, "list", "--limit", "1")[1] == "1 cluster; 5 runs routed; 1 more to show (--limit N)\n"
    )


def test_an_empty_list_says_what_was_looked_at(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, corpus, "list", "--harness", "none") == ("", "no clusters; 0 runs routed\n")


def test_each_cluster_is_a_line_of_json_too(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, corpus, "list", "--output", "jsonl")
    assert [json.loads(line)["traces"] for line in out.splitlines()] == [3, 1]


def test_a_cluster_is_shown_with_its_examples_over_their_lines(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = data(capsys, corpus, "list")["clusters"][0]["cluster"]
    out, _ = printed(capsys, corpus, "show", cluster[:12])
    assert "share            60.0%" in out
    assert out.count("observation:\n  Error: order o-") == 3
    assert out.count("\n  and a second line\n") == 3


def test_a_trace_is_shown_with_what_routed_it(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = data(capsys, corpus, "list")["clusters"][1]["cluster"]
    [trace] = data(capsys, corpus, "show", cluster)["representatives"]
    out, _ = printed(capsys, corpus, "show", trace[:12])
    assert "condition    not-recovered" in out
    assert f"cluster      {cluster}" in out
    assert r"\x1b[31mthe door" in out


def test_a_name_of_nothing_is_a_usage_error(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no cluster has an id" in printed(capsys, corpus, "show", "0" * 12, code=2)[1]


def test_an_export_says_what_is_in_it_and_where_the_rest_is(
    corpus: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, _ = printed(capsys, corpus, "export", "--out", str(tmp_path / "log"))
    assert "clusters" in out
    report = data(capsys, corpus, "export", "--out", str(tmp_path / "log"))
    assert report["rows"]["failures.jsonl"] == 4
    assert report["successes"] == 1
    assert (tmp_path / "log" / "overview.md").is_file()
