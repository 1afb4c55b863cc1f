"""What a stamp leaves open is never less than what fits; and it spares reading traces that are left out anyway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts import export_job
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.fitting import Fitting
from tracemark.acts.ingest_job import line_of
from tracemark.acts.provenance import content_in
from tracemark.errors import ExportRefusedError
from tracemark.harness.match import Content, fits
from tracemark.importers.atif import TERMINUS, TERMINUS_CUT
from tracemark.store.row import head_of, trajectory_slice
from tracemark.store.selection import Selection

from .conftest import PROMPT, SCHEMA, Shop, document, write_version


def lines(root: Path) -> list[bytes]:
    with open_store(root) as store:
        return [line for _, line in store.lines(store.select(Selection(superseded=True)))]


def seen(shop: Shop, fitting: Fitting, line: bytes) -> list[str]:
    return fitting.of(line, content_in(digest.load_canonical(line)))


def names(shop: Shop, fingerprints: list[str] | None) -> list[str]:
    return sorted(Corpus(shop.root).by_fingerprint[one].name for one in fingerprints or [])


def by_task(shop: Shop) -> dict[str, bytes]:
    return {digest.load_canonical(line)["run"]["task"]: line for line in lines(shop.root)}


@pytest.fixture
def fitting(shop: Shop) -> Fitting:
    return Fitting(list(Corpus(shop.root).matchers.values()))


def test_what_fits_is_exact_and_a_stamp_that_was_seen_answers_for_the_next(shop: Shop, fitting: Fitting) -> None:
    found = by_task(shop)
    assert fitting.at_most(found["t-0"]) is None
    assert names(shop, seen(shop, fitting, found["t-0"])) == ["desk_a"]
    assert names(shop, fitting.at_most(found["t-1"])) == ["desk_a"]
    assert fitting.at_most(found["u-0"]) is None
    assert names(shop, seen(shop, fitting, found["u-0"])) == ["desk_b"]


def test_what_only_the_rest_of_a_trace_excludes_stays_open(shop: Shop) -> None:
    folder = write_version(shop.root, "desk_short")
    manifest = folder / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("observe.py:observe'", "observe.py:observe', max_characters: 3"))
    shop.ingest([document("n-1")], None, "unclaimed")
    fitting = Fitting(list(Corpus(shop.root).matchers.values()))
    found = by_task(shop)
    assert names(shop, seen(shop, fitting, found["t-0"])) == ["desk_a"]
    assert names(shop, fitting.at_most(found["t-1"])) == ["desk_a", "desk_short"]


def without_tools(made: dict[str, Any]) -> dict[str, Any]:
    del made["agent"]["tool_definitions"]
    return made


def without_prompt(made: dict[str, Any]) -> dict[str, Any]:
    made["steps"] = [{**step, "step_id": n} for n, step in enumerate(made["steps"][1:], 1)]
    return made


def with_another_tool(made: dict[str, Any]) -> dict[str, Any]:
    made["agent"]["tool_definitions"] = [{"type": "function", "function": {**SCHEMA, "description": "Another."}}]
    return made


def test_at_most_is_never_less_than_what_fits(shop: Shop) -> None:
    changes = [without_tools, without_prompt, with_another_tool, lambda made: without_tools(without_prompt(made))]
    made = [change(document(f"n-{n}-{m}")) for n, change in enumerate(changes) for m in range(2)]
    shop.ingest(made, None, "unclaimed")
    fitting = Fitting(list(Corpus(shop.root).matchers.values()))
    for line in lines(shop.root):
        exact = seen(shop, fitting, line)
        assert exact == fits(Corpus(shop.root).matchers.values(), content_in(digest.load_canonical(line)))
        assert set(exact) <= set(fitting.at_most(line) or [])


@pytest.mark.parametrize("first", ["t-0", "part"])
def test_a_stamp_that_a_sub_agents_document_shares_with_a_run_excludes_nothing_for_it(shop: Shop, first: str) -> None:
    shop.ingest([document("part", role="subagent")], "desk_a", "part")
    found = by_task(shop)
    # as a document from another store, whose importer noted of the part what it would of a run
    run, part = head_of(found["t-0"]), head_of(found["part"])
    said = {"harness": run["harness"], "outcome": run["outcome"], "run": part["run"]}
    found["part"] = line_of(digest.canonical(said), part["source"], trajectory_slice(found["part"]))
    fitting = Fitting(list(Corpus(shop.root).matchers.values()))
    seen(shop, fitting, found[first])
    assert set(seen(shop, fitting, found["part"])) == set(Corpus(shop.root).by_fingerprint)
    assert fitting.at_most(found["part"]) is None
    assert "desk_a" in names(shop, fitting.at_most(found["t-1"]))


@pytest.mark.parametrize("first", ["own", "foreign"])
def test_traces_of_one_prefix_may_show_different_system_messages(shop: Shop, first: str) -> None:
    """What a format's separator cuts off is all that such a stamp tells of the prompt."""
    made = {}
    for task, prompt in (("own", PROMPT.format(extra="")), ("foreign", "You are somebody else's agent.")):
        made[task] = document(task)
        made[task]["agent"]["name"] = TERMINUS
        made[task]["steps"][0]["message"] = prompt
        made[task]["steps"][1]["message"] = f"Act as the desk.\n{TERMINUS_CUT}\nPlease see to {task}."
    shop.ingest(made.values(), None, "unclaimed")
    found = by_task(shop)
    stamps = [digest.load_canonical(found[task])["harness"] for task in made]
    assert stamps[0] == stamps[1]
    assert [seen["form"] for seen in stamps[0]["observed"]["prompt_templates"]] == ["prefix"]
    fitting = Fitting(list(Corpus(shop.root).matchers.values()))
    seen(shop, fitting, found[first])
    assert names(shop, seen(shop, fitting, found["own"])) == ["desk_a"]
    assert "desk_a" in names(shop, fitting.at_most(found["own"]))


def test_a_part_that_is_called_outcome_says_nothing_of_others() -> None:
    line = b'{"format":"f","harness":{"declared":{"parts":{"a":1,"outcome":{"digest":"x"}}}},"outcome":{},"run":{}}'
    fitting = Fitting([])
    assert fitting.of(line, Content()) == []
    assert fitting.at_most(line) == []


def test_a_long_stamp_is_not_remembered() -> None:
    name = "x" * 300_000
    line = f'{{"format":"f","harness":{{"name":"{name}"}},"outcome":{{}},"run":{{}}}}'.encode()
    fitting = Fitting([])
    assert fitting.of(line, Content()) == []
    assert fitting.at_most(line) is None


def test_a_failure_is_not_read_when_its_stamp_tells_the_first_reason(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.ingest([document(f"f-{n}", reward=0.0) for n in range(5)], name="failed")
    shop.accept()
    read: list[str] = []
    whole = export_job.trajectory_of

    def counting(line: bytes, trace_id: str) -> bytes:
        read.append(trace_id)
        return whole(line, trace_id)

    monkeypatch.setattr(export_job, "trajectory_of", counting)
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    report = shop.export()
    assert (report.rows, report.excluded["outcome"], report.excluded["evidence"]) == (3, 5, 0)
    # one job for each segment; the first of each stamp is read
    assert len(read) == 3 + 1


def test_the_first_reason_does_not_depend_on_what_was_seen_before(shop: Shop) -> None:
    shop.ingest([document(f"f-{n}", reward=0.0) for n in range(3)], name="failed")
    write_version(shop.root, "desk_c", handler=" + '.'")
    shop.accept()
    shop.set(("minimum: 1 ", "minimum: 0 "))
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert "left out: other-harness 2, evidence 6" in refused.value.message
    assert "no content tells desk_a" in str(refused.value.hint)
    sibling = f"desk_c ({shop.fingerprint('desk_c')[:16]}…)"
    assert f" apart from {sibling}, or take away {sibling}, which made no trace" in str(refused.value.hint)
