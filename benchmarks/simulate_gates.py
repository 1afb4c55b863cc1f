"""Simulate gates: how often an identical candidate is promoted, and how often a better one is missed.

    simulate_gates.py [--draws 12000] [--seed 4] [--out DIR]
    simulate_gates.py --from CSV --out DIR          draw the picture anew, without a simulation

A draw is one evaluation: each task gets a success rate out of a mixture of Beta distributions, the incumbent makes k
attempts at each task with these rates, the candidate with its own, and the functions that decide in a gate judge what
came out. An identical candidate has the same rates. A better one solves `gain` more tasks of an average run, spread in
one of two ways: `few` makes the tasks with the lowest rates certain, one after the other; `all` makes every failure
less likely by one factor. Attempts are independent, none is broken and none is missing, and so every tie is clean.

The mixture is WEIGHT:A:B for each part. The default has 65 % of the tasks near 1, 10 % near 0 and 25 % anywhere: about
76 of 102 are solved by an average run, two runs differ in 15, and their totals by 4 and more in a third of all cases.

Invariants:
- the same seed and draws give the same figures, whatever the number of workers: each job has a generator of its own;
- the verdict is that of `gates.compare` on the same cells; nothing is decided here;
- `--out` writes `gate-errors.csv` and `gate-errors.svg`; the picture names the digest of the table that it shows.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gate_picture import draw

from tracemark import digest, engine
from tracemark.gates.compare import decide
from tracemark.gates.terms import LEVEL, Policy
from tracemark.stats.compare import paired, sign_test
from tracemark.stats.counts import Counts
from tracemark.stats.noise import noise_floor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rates = NDArray[np.float64]

NAME = "gate-errors"
SPREADS = ("few", "all")
_CHUNK = 250
"""Draws of one job: few enough to keep all cores busy to the end."""


class Part(NamedTuple):
    """One part of the mixture of success rates."""

    weight: float
    """Share of the tasks."""
    a: float
    """First parameter of its Beta distribution."""
    b: float
    """Second parameter."""

    def __str__(self) -> str:
        """Return it as it is given on the command line."""
        return ":".join(f"{number:g}" for number in self)


MIXTURE = (Part(0.65, 20, 1), Part(0.1, 1, 20), Part(0.25, 1, 1))


class Case(NamedTuple):
    """What is simulated in one row of the table."""

    tasks: int
    """Tasks of the evaluation set."""
    attempts: int
    """Attempts at each, k."""
    gain: int
    """How many more tasks an average run of the candidate solves."""
    spread: str
    """How the gain is spread: `few` or `all`; `same` where there is none."""
    mixture: tuple[Part, ...]
    """Where the rates come from."""


class Verdict(NamedTuple):
    """What a gate says of one draw."""

    ups: int
    """Tasks whose score went up."""
    downs: int
    """Tasks whose score went down."""
    significant: bool
    """Whether policy `significant` promotes."""
    cotrace: bool
    """Whether policy `cotrace` promotes."""
    floor: int | None
    """The noise floor in tasks; None where it is withheld."""


class Job(NamedTuple):
    """Some draws of one case."""

    case: Case
    """What is drawn."""
    seed: tuple[int, ...]
    """Seed of its generator."""
    draws: int
    """How many."""


class Tally(NamedTuple):
    """What became of some draws: how many, and sums over them."""

    draws: int = 0
    """How many there were."""
    significant: int = 0
    """Promoted by `significant`."""
    cotrace: int = 0
    """Promoted by `cotrace`."""
    ties: int = 0
    """With as many ups as downs."""
    inside: int = 0
    """Where the difference lies inside the noise floor."""
    ups: int = 0
    """Tasks that went up."""
    downs: int = 0
    """Tasks that went down."""
    floors: int = 0
    """Draws with a noise floor."""
    floor: int = 0
    """Sum of the noise floors, in tasks."""

    def and_more(self, other: Tally) -> Tally:
        """Return both together."""
        return Tally(*(mine + more for mine, more in zip(self, other, strict=True)))


def judge(before: Mapping[str, Counts], after: Mapping[str, Counts], attempts: int) -> Verdict:
    """Return what a gate says of two evaluations without a broken attempt.

    Args:
        before: counts of each task under the incumbent.
        after: those under the candidate.
        attempts: attempts at each task.
    """
    moved = paired(before, after)
    ups, downs = len(moved.ups), len(moved.downs)
    said = decide(ups, downs, sign_test(ups, downs), LEVEL, clean=True)
    return Verdict(
        ups=ups,
        downs=downs,
        significant=said[Policy.SIGNIFICANT].accepted,
        cotrace=said[Policy.COTRACE].accepted,
        floor=noise_floor(before, attempts).tasks,
    )


def better(rates: Rates, gain: int, spread: str) -> Rates:
    """Return the candidate's rates, one row a draw: `gain` tasks more than the incumbent's in expectation.

    Args:
        rates: those of the incumbent.
        gain: by how much the rates of a draw together grow.
        spread: how: `few` or `all`; anything else with a gain of 0.

    Raises:
        SystemExit: when the incumbent fails too little to be that much worse.
    """
    import numpy as np  # noqa: PLC0415 - the table of a CSV is printed without it

    room = 1 - rates
    if gain and room.sum(axis=1).min() < gain:
        sys.exit(f"a gain of {gain} tasks is more than an incumbent of this mixture may fail; take a smaller one")
    if spread == "few":
        order = np.argsort(rates, axis=1, kind="stable")
        sorted_room = np.take_along_axis(room, order, axis=1)
        spent_before = np.cumsum(sorted_room, axis=1) - sorted_room
        growth = np.clip(gain - spent_before, 0, sorted_room)
        grown = rates.copy()
        np.put_along_axis(grown, order, np.take_along_axis(rates, order, axis=1) + growth, axis=1)
    else:
        grown = rates + room * (gain / room.sum(axis=1, keepdims=True) if gain else 0)
    clipped: Rates = np.clip(grown, 0, 1)
    return clipped


def play(job: Job) -> Tally:
    """Return what became of the draws of a job."""
    import numpy as np  # noqa: PLC0415 - as above

    case = job.case
    generator = np.random.default_rng(job.seed)
    shape = (job.draws, case.tasks)
    weights = [part.weight for part in case.mixture]
    which = generator.choice(len(weights), size=shape, p=weights)
    first, second = (np.array([part[place] for part in case.mixture])[which] for place in (1, 2))
    rates = generator.beta(first, second)
    sides = (rates, better(rates, case.gain, case.spread))
    drawn = (generator.binomial(case.attempts, side).tolist() for side in sides)
    names = [f"task-{number:04d}" for number in range(case.tasks)]
    possible = [Counts(case.attempts, successes) for successes in range(case.attempts + 1)]
    tally = Tally()
    for rows in zip(*drawn, strict=True):
        before, after = (dict(zip(names, (possible[done] for done in row), strict=True)) for row in rows)
        tally = tally.and_more(tally_of(judge(before, after, case.attempts)))
    return tally


def tally_of(verdict: Verdict) -> Tally:
    """Return the tally of one draw."""
    difference = verdict.ups - verdict.downs
    return Tally(
        draws=1,
        significant=verdict.significant,
        cotrace=verdict.cotrace,
        ties=difference == 0,
        inside=verdict.floor is not None and abs(difference) <= verdict.floor,
        ups=verdict.ups,
        downs=verdict.downs,
        floors=verdict.floor is not None,
        floor=verdict.floor or 0,
    )


def cases(tasks: int, attempts: Sequence[int], gains: Sequence[int], mixture: tuple[Part, ...]) -> Iterator[Case]:
    """Yield every case: for each number of attempts the identical candidate, then the better ones."""
    for number in attempts:
        yield Case(tasks, number, 0, "same", mixture)
        for spread in SPREADS:
            for gain in gains:
                yield Case(tasks, number, gain, spread, mixture)


def simulate(todo: Sequence[Case], draws: int, seed: int) -> list[Tally]:
    """Return what became of so many draws of each case, on all cores.

    Args:
        todo: the cases.
        draws: how many of each.
        seed: of the whole simulation.
    """
    places = [(row, chunk) for row in range(len(todo)) for chunk in range(math.ceil(draws / _CHUNK))]
    jobs = (Job(todo[row], (seed, row, chunk), min(_CHUNK, draws - chunk * _CHUNK)) for row, chunk in places)
    tallies = [Tally()] * len(todo)
    for (row, _), tally in zip(places, engine.run(play, jobs), strict=True):
        tallies[row] = tallies[row].and_more(tally)
    return tallies


COLUMNS = (
    *("tasks", "attempts", "gain", "spread", "draws", "seed", "significant", "cotrace", "ties", "inside_noise"),
    *("mean_ups", "mean_downs", "mean_noise_floor", "command"),
)
"""Columns of the table. `significant` to `inside_noise` are shares of the draws; the noise floor's two are empty where
it is withheld."""


def rows(todo: Sequence[Case], tallies: Sequence[Tally], seed: int, command: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the table."""
    for case, tally in zip(todo, tallies, strict=True):
        shares = [tally.significant, tally.cotrace, tally.ties]
        yield dict(
            zip(
                COLUMNS,
                (
                    *(str(case.tasks), str(case.attempts), str(case.gain), case.spread, str(tally.draws), str(seed)),
                    *(f"{count / tally.draws:.5f}" for count in shares),
                    f"{tally.inside / tally.floors:.5f}" if tally.floors else "",
                    *(f"{count / tally.draws:.2f}" for count in (tally.ups, tally.downs)),
                    f"{tally.floor / tally.floors:.2f}" if tally.floors else "",
                    command,
                ),
                strict=True,
            )
        )


def written(table: Sequence[Mapping[str, str]]) -> bytes:
    """Return the table as a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue().encode()


def printed(table: Sequence[Mapping[str, str]]) -> str:
    """Return the table as it is printed, in per cent of the draws."""
    lines = ["  k  candidate    promoted by: significant  cotrace    ties   inside the noise floor    ups  downs"]
    for row in table:
        shares = [f"{100 * float(row[name]):.1f} %" for name in ("significant", "cotrace", "ties")]
        inside = (
            f"{100 * float(row['inside_noise']):.1f} % ({row['mean_noise_floor']} tasks)"
            if row["inside_noise"]
            else "-"
        )
        candidate = "identical" if row["spread"] == "same" else f"+{row['gain']} {row['spread']}"
        moved = f"{float(row['mean_ups']):5.1f}  {float(row['mean_downs']):5.1f}"
        lines.append(
            f"{row['attempts']:>3}  {candidate:<11}{shares[0]:>26}{shares[1]:>9}{shares[2]:>8}{inside:>25}  {moved}"
        )
    draws, seed = min(int(row["draws"]) for row in table), table[0]["seed"]
    lines.append(f"{draws} draws a row, seed {seed}: standard error at most {50 / math.sqrt(draws):.2f} points")
    return "\n".join(lines)


def main() -> None:
    """Simulate, print the table, and write what `--out` asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=_number, default=102)
    parser.add_argument("--attempts", type=_number, nargs="+", default=[1, 4, 20], help="k, one panel each")
    parser.add_argument("--gains", type=_number, nargs="+", default=[2, 4, 8], help="by how many tasks better")
    parser.add_argument("--mixture", type=_part, nargs="+", default=list(MIXTURE), metavar="WEIGHT:A:B")
    parser.add_argument("--draws", type=_number, default=12_000)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--from", type=Path, dest="source", metavar="CSV", help="a table that was written before")
    parser.add_argument("--out", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.source:
        with options.source.open(encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
    else:
        if not math.isclose(sum(part.weight for part in options.mixture), 1):
            parser.error("the weights of the mixture do not sum to 1")
        todo = list(cases(options.tasks, options.attempts, options.gains, tuple(options.mixture)))
        table = list(rows(todo, simulate(todo, options.draws, options.seed), options.seed, _command(options)))
    print(printed(table))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{NAME}.csv").write_bytes(written(table))
        drawn_from = f"{NAME}.csv {digest.sha256(written(table))}"
        draw(table, options.out / f"{NAME}.svg", LEVEL, drawn_from)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _part(text: str) -> Part:
    try:
        part = Part(*(float(number) for number in text.split(":")))
    except (TypeError, ValueError):
        part = Part(0, 0, 0)
    if not min(part) > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not WEIGHT:A:B with numbers above 0, as in 0.25:1:1")
    return part


def _command(options: argparse.Namespace) -> str:
    """Return the command that makes the same table."""
    words = ["benchmarks/simulate_gates.py", "--tasks", options.tasks, "--attempts", *options.attempts]
    words += ["--gains", *options.gains, "--mixture", *options.mixture]
    return " ".join(map(str, [*words, "--draws", options.draws, "--seed", options.seed]))


if __name__ == "__main__":
    main()
