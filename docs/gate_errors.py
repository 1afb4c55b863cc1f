"""Write `docs/reference/gate-errors.md`: how often a gate promotes an identical candidate and misses a better one.

    python docs/gate_errors.py            write it
    python docs/gate_errors.py --check    end with 1 when it differs

The page shows `docs/reference/gate-errors.csv`, which `benchmarks/simulate_gates.py` wrote with the command that stands
in its rows, and the picture beside it. Nothing is simulated here.

Invariants:
- it ends with 1 when the table refutes a sentence of the page, above all that the shipped default promotes at most 5 %
  of identical candidates;
- it ends with 1 when the picture was drawn from another table.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tracemark import digest

FOLDER = Path(__file__).resolve().parent / "reference"
PAGE, TABLE, PICTURE = (FOLDER / f"gate-errors{suffix}" for suffix in (".md", ".csv", ".svg"))
REDRAW = "python benchmarks/simulate_gates.py --from docs/reference/gate-errors.csv --out docs/reference"

LIMIT = 0.05
"""Largest share of identical candidates that the shipped default may promote."""

Row = dict[str, str]

_TEXT = """\
# How often a gate errs

<!-- made by docs/gate_errors.py; edit the source instead -->

A gate compares two evaluations that were each made once, and chance has a part in both. How often does it promote a
candidate that is in truth identical, and how often does it miss one that is better? The functions that decide in
`tracemark gate` were asked about {draws} pairs of evaluations of {tasks} tasks for each row below. `significant` is the
shipped default; `cotrace` is told beside it with every decision.

![How often each policy promotes, by the true gain](gate-errors.svg)

## An identical candidate

The incumbent and the candidate have the same success rate at each task. Whoever promotes, errs.

{identical}
w and l are the tasks whose score went up and down. `significant` asks for w > l and a one-sided exact sign test of at
most 5 %, and so it errs in at most 5 % of all cases whatever the tasks and the attempts are: of identical candidates
each task that moved went up as likely as down. `cotrace` takes w > l and every clean tie, and here every tie is clean;
the last column is what it would promote if none were. More attempts do not help it: a score of more attempts is
sharper, and any difference of it still counts.

## A better candidate

An average run of the candidate solves that many more of the tasks. *few*: the tasks with the lowest rates are repaired
for good, one after the other. *all*: every failure of every task has become less likely by one factor. Whoever does not
promote, misses it.

{better}
- With few attempts `significant` mostly misses a gain of a few tasks. A rejected candidate is not shown to be no
  better.
- More attempts find a broad gain. They do not find a few repaired tasks: more tasks move by chance the more attempts
  there are, the repaired ones stay as few, and the test counts only whether a task moved, not by how much. Where a
  candidate is meant to repair certain tasks, look at the list of tasks that the report names.
- `cotrace` misses less, at the price of the table above: a promotion by it says little.

## What the noise floor says

The noise floor is the 95 % point of |w - l| between two draws from the incumbent's own measured rates. It is withheld
with one attempt a task. It comes out too low, because attempts show too little of rates near 0 and 1: 4 successes of 4
are read as a task that never fails. So of identical candidates fewer than 95 % lie inside:

{floor}
A difference outside the noise floor is therefore weaker evidence than it seems, and the gate does not decide by it. The
sign test takes no rates for true.

## How it was made

Each task of each draw has a success rate of its own. It comes out of a mixture that stands for what evaluations of
agents look like, many tasks near 0 and 1 and some between:

{mixture}
An average run of the incumbent solves {mean} % of the tasks. Attempts are independent; none is broken and none is
missing. The standard error of a share is at most {error} points. [{table}]({table}) holds the
figures, with seed, draws and this command, which takes a minute:

```sh
python {command} --out docs/reference
python docs/gate_errors.py
```

Not simulated: several candidates tried one after the other (the gate says how many there were), an incumbent judged by
the evaluation that installed it (its traces are flagged as reused), attempts that depend on one another, and candidates
that are better at some tasks and worse at others.
"""


def page(rows: Sequence[Row]) -> str:
    """Return the page.

    Args:
        rows: those of the table.
    """
    first = rows[0]
    identical, better = ([row for row in rows if (row["spread"] == "same") is same] for same in (True, False))
    mixture = _mixture(first["command"])
    return _TEXT.format(
        draws=f"{int(first['draws']):,}",
        tasks=first["tasks"],
        identical="".join(_identical(identical)),
        better="".join(_better(better)),
        floor="".join(_floor(identical)),
        mixture="".join(_parts(mixture)),
        mean=f"{100 * sum(weight * a / (a + b) for weight, a, b in mixture):.0f}",
        error=f"{_error(first):.2f}",
        table=TABLE.name,
        command=first["command"],
    )


def refuted(rows: Sequence[Row]) -> list[str]:
    """Return the sentences of the page that the table refutes, each with the place.

    Args:
        rows: those of the table.
    """
    found = []
    share = {(int(r["attempts"]), r["spread"], float(r["gain"])): float(r["significant"]) for r in rows}
    for row in rows:
        place = f"{row['attempts']} attempts, {row['spread']} +{row['gain']}"
        if row["spread"] == "same" and float(row["significant"]) > LIMIT:
            found.append(
                f"{place}: the shipped default promotes {_percent(row['significant'])} of identical candidates"
            )
        if row["spread"] == "same" and row["inside_noise"] and float(row["inside_noise"]) >= 0.95:
            found.append(f"{place}: the noise floor is not too low")
        if row["spread"] != "same" and float(row["cotrace"]) < float(row["significant"]):
            found.append(f"{place}: cotrace does not miss less")
        if _error(row) >= 0.5:
            found.append(f"{place}: {row['draws']} draws have a standard error of {_error(row):.2f} points")
        if any(row[name] != rows[0][name] for name in ("tasks", "draws", "seed", "command")):
            found.append(f"{place}: it is of another simulation than the first row")
    numbers = sorted({number for number, _, _ in share})
    gains = sorted({gain for _, spread, gain in share if spread != "same"})
    for gain in gains:
        few, every = (
            [share[number, spread, gain] for number in (numbers[0], numbers[-1])] for spread in ("few", "all")
        )
        if every[1] <= every[0]:
            found.append(f"all +{gain:g}: more attempts do not find it")
        if few[1] > few[0]:
            found.append(f"few +{gain:g}: more attempts find it")
    return found


def _identical(rows: Iterable[Row]) -> Iterator[str]:
    yield from _head("attempts a task", "w + l, mean", "`significant` promotes", "`cotrace` promotes", "w > l alone")
    for row in rows:
        moved = float(row["mean_ups"]) + float(row["mean_downs"])
        bare = str(float(row["cotrace"]) - float(row["ties"]))
        shares = (_percent(share) for share in (row["significant"], row["cotrace"], bare))
        yield _line(row["attempts"], f"{moved:.1f}", *shares)


def _better(rows: Sequence[Row]) -> Iterator[str]:
    numbers = list(dict.fromkeys(row["attempts"] for row in rows))
    missed = {(row["attempts"], row["spread"], row["gain"]): row for row in rows}
    yield from _head("better by", *(f"`{p}` misses, k = {k}" for p in ("significant", "cotrace") for k in numbers))
    for spread, gain in dict.fromkeys((row["spread"], row["gain"]) for row in rows):
        cells = [
            _percent(str(1 - float(missed[number, spread, gain][policy])))
            for policy in ("significant", "cotrace")
            for number in numbers
        ]
        yield _line(f"+{gain}, {spread}", *cells)


def _floor(rows: Iterable[Row]) -> Iterator[str]:
    yield from _head("attempts a task", "noise floor, mean", "of identical candidates inside")
    for row in rows:
        if row["inside_noise"]:
            yield _line(row["attempts"], f"{float(row['mean_noise_floor']):.1f} tasks", _percent(row["inside_noise"]))
        else:
            yield _line(row["attempts"], "withheld", "")


def _head(*cells: str) -> Iterator[str]:
    yield _line(*cells)
    yield "|" + "--:|" * len(cells) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _percent(share: str) -> str:
    return f"{100 * float(share):.1f} %"


def _error(row: Row) -> float:
    """Return the largest standard error of a share of its draws, in per cent points."""
    return 50 / math.sqrt(int(row["draws"]))


def _mixture(command: str) -> list[tuple[float, float, float]]:
    """Return weight and both parameters of each part of the mixture that a command states."""
    parts = re.findall(r"([\d.]+):([\d.]+):([\d.]+)", command)
    return [(float(weight), float(a), float(b)) for weight, a, b in parts]


def _parts(mixture: Iterable[tuple[float, float, float]]) -> Iterator[str]:
    yield from _head("of the tasks", "success rate")
    for weight, a, b in mixture:
        yield _line(f"{100 * weight:g} %", f"Beta({a:g}, {b:g}), {100 * a / (a + b):.0f} % on average")


def _drawn() -> str | None:
    """Return the digest of the table that the picture was drawn from, as it says; None when it says none."""
    named = re.search(r"gate-errors\.csv ([0-9a-f]{64})<", PICTURE.read_text(encoding="utf-8"))
    return named and named[1]


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it differs; return 1 when it does, or when it tells of an error."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = [f"docs/reference/gate-errors.csv: {sentence}" for sentence in refuted(rows)]
    if _drawn() != digest.sha256_file(TABLE):
        wrong.append(f"docs/reference/gate-errors.svg: not drawn from gate-errors.csv ({REDRAW})")
    text = page(rows)
    is_current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
    if not is_current and "--check" in arguments:
        wrong.append("docs/reference/gate-errors.md: not current (python docs/gate_errors.py)")
    if not is_current and "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        print("docs/reference/gate-errors.md: written")
    print("".join(f"{line}\n" for line in wrong), end="")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
