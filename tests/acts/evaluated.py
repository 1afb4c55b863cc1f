"""Corpora in which pairs were evaluated: runs of evaluation tasks under two harnesses by two models, all stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracemark.acts import accepted_pair, evaluation_freeze, gating, ingest, installing
from tracemark.acts.corpus import open_store
from tracemark.store.selection import Selection

from .conftest import CLOCK, Shop, document, write_version

TASKS = [f"e-{number}" for number in range(8)]
ATTEMPTS = 2
HALF = {task: ATTEMPTS if number < 3 else 0 for number, task in enumerate(TASKS)}
"""Successes of each task where three of eight are solved."""
ALL = dict.fromkeys(TASKS, ATTEMPTS)
EXTRA = {"desk_a": "", "desk_b": "Be brief.", "desk_c": "", "desk_d": "Be brief.", "desk_x": "Broken."}


def run(task: str, harness: str, model: str, attempt: int | str | None, status: str, **more: Any) -> dict[str, Any]:
    """Return one run of an evaluation task; `more` are facts of the run, or `grader`, `cost`, `said`, `called`."""
    name, _, revision = model.partition("@")
    facts: dict[str, Any] = {"domain": "shop", "model": {"name": name, **({"revision": revision} if revision else {})}}
    cost, grader = more.pop("cost", 0.01), more.pop("grader", {"name": "shop", "version": "1"})
    facts["model"] |= more.pop("called", {})
    said = more.pop("said", f"Done by {harness} and {model}, attempt {attempt}.")
    facts |= {} if attempt is None else {"attempt": attempt}
    made = document(task, extra=EXTRA.get(harness, ""), said=said, **{**facts, **more})
    made["final_metrics"] = {} if cost is None else {"total_cost_usd": cost}
    outcome: dict[str, Any] = {"status": status}
    if status in ("success", "failure"):
        outcome["reward"] = 1.0 if status == "success" else 0.0
    if grader is not None:
        outcome["grader"] = grader
    made["extra"]["tracemark"]["outcome"] = outcome
    return made


def runs(harness: str, model: str, successes: Mapping[str, int], attempts: int = ATTEMPTS, **more: Any) -> list[Any]:
    """Return a whole evaluation: of each task so many attempts, the first of them successes."""
    return [
        run(task, harness, model, number, "success" if number < solved else "failure", **more)
        for task, solved in successes.items()
        for number in range(attempts)
    ]


class Bench(Shop):
    """A corpus with a frozen evaluation set."""

    def evaluate(self, harness: str, model: str, successes: Mapping[str, int], **more: Any) -> None:
        self.store(harness, runs(harness, model, successes, **more))

    def store(self, harness: str | None, made: Sequence[dict[str, Any]]) -> None:
        count = len(list((self.root / "inbox").iterdir()))
        self.ingest(made, harness, f"evaluation-{count}")

    def store_text(self, harness: str, text: str) -> None:
        """Store runs as they are written, be it no JSON that `store` could write."""
        path = self.root / "inbox" / "written.jsonl"
        path.write_text(text + "\n")
        ingest.ingest(self.root, [path], ingest.IngestOptions(harness=harness))

    def gate(self, candidate: str = "desk_b", model: str | None = None, out: Path | None = None) -> gating.GateAnswer:
        return gating.gate_harness(self.root, candidate, model, out)

    def install(self, candidate: str = "desk_b", **options: Any) -> installing.InstallAnswer:
        told = installing.InstallOptions(**{"reason": "measured", **options})
        return installing.install_harness(self.root, candidate, None, told, CLOCK)

    def install_model(self, candidate: str = "m@2", **options: Any) -> installing.InstallAnswer:
        told = installing.InstallOptions(**{"reason": "measured", **options})
        return installing.install_model(self.root, candidate, told, CLOCK)

    def freeze(self) -> evaluation_freeze.Frozen:
        return evaluation_freeze.freeze(self.root, "the set", CLOCK)

    def tasks(self, *names: str, attempts: int = ATTEMPTS) -> None:
        """Write the evaluation set into params.yaml in place of the one that is there."""
        path = self.root / "params.yaml"
        text = path.read_text()
        start, end = text.index("evaluation:\n"), text.index("export:\n")
        section = f"evaluation:\n  tasks: [{', '.join(names)}]\n  attempts: {attempts}\n\n"
        path.write_text(text[:start] + section + text[end:])

    def traces(self, harness: str, model: str = "m@1") -> list[str]:
        """Return the ids of the evaluation traces of a pair."""
        name, _, revision = model.partition("@")
        wanted = Selection(fingerprints=frozenset({self.fingerprint(harness)}), tasks=frozenset(TASKS))
        with open_store(self.root) as store:
            return [
                state.trace_id
                for state in store.select(wanted)
                if (state.row.model, state.row.revision) == (name, revision)
            ]


def measured(root: Path) -> Bench:
    """Make a corpus one whose pair desk_a and m@1 is accepted; desk_b is better, desk_c a comment, m@2 better too."""
    write_version(root, "desk_c", handler="  # the same")
    bench = Bench(root)
    bench.tasks(*TASKS)
    bench.accept()
    accepted_pair.accept_model(root, "m@1", "the first", CLOCK)
    bench.freeze()
    bench.evaluate("desk_a", "m@1", HALF)
    bench.evaluate("desk_b", "m@1", ALL)
    bench.evaluate("desk_c", "m@1", {**HALF, "e-0": 1, "e-7": 1})
    bench.evaluate("desk_a", "m@2", ALL)
    bench.evaluate("desk_b", "m@2", ALL)
    return bench
