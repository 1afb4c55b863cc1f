"""A user's own conditions, from the file that params.yaml names to the log, in worker processes as in one."""

from __future__ import annotations

import pytest

from tracemark.acts import failure_log
from tracemark.errors import ParamsError

from .conftest import Shop
from .failed_runs import ended, export, failed, rows

OWN = """version = 1

[[condition]]
name = "mine"
order = 0
says = "mine"
side = "tool"
confidence = 0.9
destination = "harness"
test = "failure-matches"
patterns = ['{pattern}']
"""


@pytest.fixture
def own(shop: Shop) -> Shop:
    """Runs that failed of two harnesses, so in two segments, and conditions of the corpus's own."""
    shop.set(("conditions: null", "conditions: own.toml"))
    shop.ingest([failed("f-0", f"Error: {'a' * 60}!"), ended("f-1", "sandbox_error")], name="failures")
    shop.ingest([failed("f-2", f"Error: {'a' * 60}!", extra="Be brief.")], "desk_b", "failures-b")
    shop.accept()
    return shop


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_expression_without_an_end_stops_the_log_and_is_named(
    own: Shop, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEMARK_WORKERS", workers)
    (own.root / "own.toml").write_text(OWN.format(pattern="(a+)+$"))
    with pytest.raises(ParamsError, match="condition 'mine'") as refused:
        export(own)
    assert refused.value.where == "own.toml"
    assert not (own.root / "failures").exists()
    with pytest.raises(ParamsError, match="condition 'mine'"):
        failure_log.list_(own.root, failure_log.FailureFilter())


def test_a_condition_that_takes_everything_takes_no_fault_of_the_environment(own: Shop) -> None:
    (own.root / "own.toml").write_text(OWN.format(pattern="."))
    export(own)
    assert [row["task"] for row in rows(own.root / "failures")] == ["f-0"]
    assert [row["task"] for row in rows(own.root / "failures", "environment.jsonl")] == ["f-1"]
