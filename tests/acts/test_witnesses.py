"""What `check` says of several traces together: constants that vary, and counts of tokens that differ."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import health
from tracemark.acts.corpus import Corpus
from tracemark.acts.witnesses import witness_of
from tracemark.findings import Finding, Severity

from .conftest import Shop, document, write_version

PROMPT = "You answer for the shop {shop}, whatever happens. You were asked to be exact, so be exact."


def found(shop: Shop, code: str) -> list[Finding]:
    return [one for one in health.check(shop.root).findings if one.code == code]


@pytest.fixture
def chain(shop: Shop) -> Shop:
    """A corpus with a harness that calls the name of its shop constant, and does not say it."""
    folder = write_version(shop.root, "chain")
    folder.joinpath("system.txt").write_text(PROMPT)
    manifest = folder / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("literal", "format, variables: {shop: constant}"))
    return shop


def run(task: str, shop: str) -> dict[str, Any]:
    made = document(task)
    made["steps"][0]["message"] = PROMPT.format(shop=shop)
    return made


def test_a_constant_that_changes_over_the_corpus_is_a_finding_with_both_values(chain: Shop) -> None:
    chain.ingest([run("n", "North"), run("m", "North")], "chain", "north")
    assert found(chain, "constant-varies") == []
    chain.ingest([run("s", "South")], "chain", "south")
    (varies,) = found(chain, "constant-varies")
    ids = chain.ids()
    assert (varies.severity, varies.where) == (Severity.WARNING, "harness chain")
    assert varies.message.startswith("prompt 'system' calls the variable 'shop' constant, and it is ")
    assert f"'South' in trace {ids['s'][:12]}" in varies.message
    assert any(f"'North' in trace {ids[task][:12]}" in varies.message for task in "nm")


def test_a_trace_that_counts_under_no_harness_shows_no_constant_of_it(chain: Shop) -> None:
    chain.ingest([run("n", "North")], "chain", "north")
    other = run("s", "South")
    other["steps"][0]["message"] += " But first of all offer a discount."
    assert chain.ingest([other], "chain", "south").contradicted == 1
    assert found(chain, "constant-varies") == []


def measured(task: str, tokens: int, said: str = "Done.") -> dict[str, Any]:
    made = document(task, said=said)
    made["agent"]["model_name"] = "m-1"
    made["steps"][1]["message"] = "Please see to it."
    made["steps"][2]["metrics"] = {"prompt_tokens": tokens}
    return made


def test_equal_beginnings_that_count_different_tokens_are_a_finding_that_names_the_traces(shop: Shop) -> None:
    shop.ingest([measured("one", 3319), measured("two", 3319)], None, "first")
    assert found(shop, "usage-differs") == []
    shop.ingest([measured("three", 3374)], None, "second")
    (differs,) = found(shop, "usage-differs")
    assert differs.severity is Severity.WARNING
    assert sorted(differs.message.split(" counted ")[1].split(" tokens")[0].split(" and ")) == ["3319", "3374"]
    assert "'m-1'" in differs.message
    assert shop.ids()["three"][:12] in differs.where
    assert health.check(shop.root).exit_code == 0


def test_a_line_that_is_no_trajectory_shows_nothing_and_stops_nothing(shop: Shop) -> None:
    witness = witness_of(Corpus(shop.root).harnesses)
    for trajectory in ({}, {"steps": None}, {"steps": [{}]}, {"steps": [{"source": "user", "message": 7}]}):
        witness.see("t", {"trajectory": trajectory, "run": {}, "harness": {}})
    assert list(witness.findings({})) == []


def test_what_is_told_is_bounded_and_the_rest_is_counted(shop: Shop) -> None:
    witness = witness_of([])
    for number in range(25):
        for tokens in (1, 2):
            made = measured(f"t{number}", tokens)
            made["steps"][1]["message"] = f"Please see to {number}."
            witness.see(digest.of([number, tokens]), {"trajectory": made, "run": {}, "harness": {}})
    told = list(witness.findings({}))
    assert [one.code for one in told] == ["usage-differs"] * 20
    assert told[-1].message.endswith("counted 1 and 2 tokens; so it is with 5 further beginnings")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_number_of_processes_changes_nothing(shop: Shop, workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        shop.ingest([measured(f"t{number}", 100 + number)], None, f"batch-{number}")
    monkeypatch.setenv("TRACEMARK_WORKERS", workers)
    (differs,) = found(shop, "usage-differs")
    assert sorted(differs.message.split(" counted ")[1].split(" tokens")[0].split(" and ")) == ["100", "101", "102"]
