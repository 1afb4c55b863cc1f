"""Runs of the support desk without a recorder, and what an evaluation of one harness against another makes of them.

    python -m tests.domains.desk_runs 7 1 2 3

plays the measuring tasks under each harness version with each seed and prints, for each candidate, how many tasks got
better (w) and worse (l) than under the accepted harness, with the exact one-sided sign test. The verdicts are those of
`play.py` for the same seed; a test compares them.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# run as a program, nothing has put the domains there
if str(ROOT / "domains") not in sys.path:
    sys.path.insert(0, str(ROOT / "domains"))

from support_desk import grader, play, reading, tasks, tools  # noqa: E402
from support_desk.agent import Agent, Reply  # noqa: E402
from support_desk.environment import Environment  # noqa: E402
from support_desk.grader import Verdict  # noqa: E402
from support_desk.habits import STRENGTHS  # noqa: E402
from support_desk.tasks import Task  # noqa: E402

from tracemark.clock import FixedClock  # noqa: E402
from tracemark.harness.loading import load  # noqa: E402
from tracemark.stats.compare import sign_test  # noqa: E402

ACCEPTED = "desk-labelled"
CANDIDATES = ("desk-advised", "desk-plain", "desk-commented")
HARNESSES = (ACCEPTED, *CANDIDATES)
STEPS = 10


@dataclass(frozen=True)
class Run:
    """One run as it was played."""

    task: Task
    replies: tuple[Reply, ...]
    results: tuple[dict[str, Any], ...]
    verdict: Verdict

    @property
    def tools(self) -> list[str]:
        return [reply.tool for reply in self.replies if reply.tool]


class Compared(NamedTuple):
    """Tasks that succeed more often (ups) and less often (downs) than before, and the one-sided exact sign test."""

    ups: int
    downs: int
    p: float

    @property
    def accepted(self) -> bool:
        return self.ups > self.downs and self.p <= 0.05


@cache
def parts(harness: str) -> tuple[str, Callable[[dict[str, Any]], str], str]:
    """Return a harness's system prompt for the day of the tasks, its handler, and its fingerprint."""
    folder = ROOT / "harness_versions" / harness
    policy = play.POLICY.read_text(encoding="utf-8").strip()
    system = (folder / "prompts" / "system.jinja").read_text(encoding="utf-8")
    system = system.replace("{{ today }}", tasks.START[:10]).replace("{{ policy }}", policy)
    observe = runpy.run_path(str(folder / "handlers" / "observe.py"))["observe"]
    return system, observe, load(folder).identity.fingerprint


@cache
def every_task() -> dict[str, Task]:
    return {task.task_id: task for task in tasks.all_tasks()}


def run(harness: str, task: Task, luck: str, strength: str = "base") -> Run:
    """Play one task once; the limit of steps ends it as the recorder's caller does."""
    system, observe, _ = parts(harness)
    desk = Environment(FixedClock(tasks.START))
    work = Agent(system, task.request, luck, STRENGTHS[strength]).work()
    replies: list[Reply] = [next(work)]
    results: list[dict[str, Any]] = []
    while (tool := replies[-1].tool) is not None and len(results) < STEPS:
        results.append(getattr(tools, tool)(desk, **replies[-1].arguments))
        replies.append(work.send(reading.read(observe(results[-1]))))
    answer = replies[-1].message if len(replies) <= STEPS else ""
    verdict = grader.grade(task, desk, answer)
    desk.close()
    return Run(task, tuple(replies), tuple(results), verdict)


def verdicts(harness: str, seed: int, attempts: int = 4) -> dict[str, Verdict]:
    """Return the verdict of every run that `play.py` plays under a harness with this seed."""
    fingerprint = parts(harness)[2]
    return {
        turn.name: run(harness, turn.task, turn.luck(seed, fingerprint), turn.strength).verdict
        for turn in play.turns(attempts)
    }


@cache
def successes(harness: str, strength: str, seed: int) -> dict[str, int]:
    """Return how many of the attempts at each measuring task succeed."""
    fingerprint = parts(harness)[2]
    found = dict.fromkeys(tasks.EVALUATION, 0)
    for turn in play.turns(attempts=4):
        if turn.task.split == "evaluation" and turn.strength == strength:
            played = run(harness, turn.task, turn.luck(seed, fingerprint), strength)
            found[turn.task.task_id] += played.verdict.success
    return found


def compared(before: dict[str, int], after: dict[str, int]) -> Compared:
    """Return what changed from one set of successes per task to another."""
    ups = sum(after[task] > before[task] for task in before)
    downs = sum(after[task] < before[task] for task in before)
    return Compared(ups, downs, sign_test(ups, downs))


def table(seeds: list[int]) -> str:
    """Return the rows of all candidates for each seed, as text."""
    rows = [f"{'seed':>4}  {'candidate':<22} {'before':>7} {'after':>7} {'w':>3} {'l':>3} {'p':>8}  significant"]
    for seed in seeds:
        before = successes(ACCEPTED, "base", seed)
        others = {name: successes(name, "base", seed) for name in CANDIDATES}
        others["desk-agent@tuned"] = successes(ACCEPTED, "tuned", seed)
        for name, after in others.items():
            found = compared(before, after)
            rates = [sum(each.values()) / (4 * len(each)) for each in (before, after)]
            decided = "accepted" if found.accepted else "rejected"
            rows.append(
                f"{seed:>4}  {name:<22} {rates[0]:>7.3f} {rates[1]:>7.3f} {found.ups:>3} {found.downs:>3}"
                f" {found.p:>8.5f}  {decided}"
            )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(table([int(word) for word in sys.argv[1:]] or [7]) + "\n")
