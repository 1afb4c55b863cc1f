"""What `audit` says of one trace is what an export made now counts it as."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemark import digest
from tracemark.acts import audit, decisions
from tracemark.acts.corpus import open_store
from tracemark.errors import NegativeAnswerError
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document

PARAMS = """\
evaluation: {{tasks: [held-out]}}
export:
  evidence: {policy}
  sft: {{minimum: 1, per_task: null, total: null, tool_calls: [2, 60]}}
"""


def carrying(shop: Shop, made: dict[str, Any]) -> dict[str, Any]:
    """Return a run with a stamp of desk_a that is corroborated part by part, as an export of another store has it."""
    with open_store(shop.root) as store:
        stamp = digest.load_canonical(store.get(shop.ids()["t-0"]))["harness"]
    bare = {name: value for name, value in made.items() if name != "extra"}
    carried = {**made["extra"]["tracemark"], "harness": stamp, "trajectory": digest.of(bare)}
    return {**made, "extra": {"tracemark": carried}}


def answers(shop: Shop) -> dict[str, str]:
    """Return what `audit` says of the export of each trace, by its id."""
    with open_store(shop.root) as store:
        ids = [state.trace_id for state in store.select(Selection(superseded=True))]
    return {trace_id: audit.audit(shop.root, trace_id).export for trace_id in ids}  # type: ignore[union-attr]


def counted(shop: Shop) -> Counter[str]:
    """Return how many traces an export takes and leaves out, in the words of `audit`."""
    report = shop.export()
    found = Counter({"yes": report.rows, "no: superseded": report.superseded})
    found.update({f"no: {reason}": n for reason, n in report.excluded.items() if reason != "not-trainable"})
    found.update({f"no: not-trainable ({detail})": n for detail, n in report.not_trainable.items()})
    return +found


def agree(shop: Shop) -> None:
    said = answers(shop)
    assert Counter(said.values()) == counted(shop)
    differing = {found.code for found in audit.audit(shop.root, str(shop.root / "exports" / "sft")).findings}
    assert not {code for code in differing if code.startswith("export-row")}


@pytest.mark.parametrize("role", ["subagent", "continuation"])
def test_what_is_no_run_of_its_own_has_one_first_reason_whoever_is_asked(shop: Shop, role: str) -> None:
    part = carrying(shop, document("part", role=role))
    shop.ingest([part], None, "part")
    shop.accept()
    said = answers(shop)[shop.ids()["part"]]
    # nothing of a sub-agent's document is compared, so every known harness fits it
    assert said == ("no: evidence" if role == "subagent" else "no: not-trainable (continuation)")
    agree(shop)


def test_of_a_run_that_was_read_anew_the_older_reading_is_left_out_for_that_and_the_newer_is_taken(shop: Shop) -> None:
    old = shop.ids()["t-0"]
    again = shop.read_anew(old)
    shop.accept()
    said = answers(shop)
    assert (said[old], said[again]) == ("no: superseded", "yes")
    agree(shop)


RUNS = st.fixed_dictionaries(
    {
        "extra": st.sampled_from(["", "", "", "Be brief.", "A third prompt."]),
        "reward": st.sampled_from([1.0, 1.0, 0.0, None]),
        "calls": st.sampled_from([2, 2, 1]),
        "run": st.sampled_from([{}, {}, {"role": "subagent"}, {"role": "continuation"}]),
        "stated": st.sampled_from(["desk_a", "desk_a", "desk_b", "carried", "nobody"]),
        "again": st.sampled_from(["no", "no", "as it is", "another reward", "as a sub-agent's"]),
        "decided": st.sampled_from(["no", "no", "no", "retracted", "settled"]),
        "task": st.sampled_from(["one", "two", "held-out", None]),
    }
)


def store(shop: Shop, number: int, kind: dict[str, Any]) -> None:
    """Store one run of a kind, and what is said and decided of it later."""
    how = {"extra": kind["extra"], "calls": kind["calls"], "said": f"Done, {number}."}
    made = document(kind["task"], reward=kind["reward"], **how, **kind["run"])
    made = carrying(shop, made) if kind["stated"] == "carried" else made
    claimed = kind["stated"] if kind["stated"].startswith("desk") else None
    before = set(trace_ids(shop))
    shop.ingest([made], claimed, f"run-{number}")
    (trace_id,) = set(trace_ids(shop)) - before
    if kind["again"] != "no":
        role = {"role": "subagent"} if kind["again"] == "as a sub-agent's" else kind["run"]
        reward = 0.5 if kind["again"] == "another reward" else kind["reward"]
        shop.ingest([document(kind["task"], reward=reward, **how, **role)], claimed, f"again-{number}")
    if kind["decided"] == "retracted":
        decisions.retract(shop.root, [trace_id], "leaked", CLOCK)
    elif kind["decided"] == "settled":
        # where an outcome is disputed, no stamp settles that
        with suppress(NegativeAnswerError):
            decisions.stamp(shop.root, [trace_id], "none", "unknown after all", CLOCK)


def trace_ids(shop: Shop) -> list[str]:
    with open_store(shop.root) as opened:
        return [state.trace_id for state in opened.select(Selection(superseded=True))]


def test_every_trace_has_the_reason_that_the_export_counts_it_under(shop: Shop, tmp_path: Path) -> None:
    shop.record("recorded")

    @settings(max_examples=8)
    @given(runs=st.lists(RUNS, min_size=1, max_size=4), policy=st.sampled_from(["unique", "recorded", "claimed"]))
    def holds(runs: list[dict[str, Any]], policy: str) -> None:
        corpus = tmp_path / "drawn"
        shutil.rmtree(corpus, ignore_errors=True)
        shutil.copytree(shop.root, corpus)
        drawn = Shop(corpus)
        (corpus / "params.yaml").write_text(PARAMS.format(policy=policy))
        drawn.accept()
        for number, kind in enumerate(runs):
            store(drawn, number, kind)
        agree(drawn)

    holds()
