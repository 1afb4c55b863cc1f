"""Write `docs/reference/identity.md`: how often what is said of two real traces is true.

    python docs/identity.py            write it
    python docs/identity.py --check    end with 1 when it differs

The collection of trace files beside the checkout is ingested by the verb that users run, without a claim about any
harness. Each two of its traces are compared by the function that `harness match` uses, component by component, and
what that asserts is held against what is known of them (`identity_truth`). Where the collection is absent the script
says so and ends with 0.

Invariants:
- two traces are known to be the same in a component when their labels are equal there, and different when these
  differ; where one has no label, nothing is known, and nothing is counted as right;
- it ends with 1 when anything asserted is known to be false.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

from identity_truth import DOCS, TRACES, Found, Kind, Rule, collect, label, rules

from tracemark import digest
from tracemark.harness.declared import Comparison
from tracemark.harness.observed import Half, compare, differing
from tracemark.model.harness import COMPONENTS

PAGE = DOCS / "reference" / "identity.md"

SAME, DIFFERENT, UNKNOWN = Comparison.SAME, Comparison.DIFFERENT, Comparison.UNKNOWN

_TEXT = """\
# Identity on real files

<!-- made by docs/identity.py; edit the source instead -->

Two traces whose harness nobody states: were they made with the same one? tracemark answers for each component `same`,
`different`, or not at all, and means to be silent rather than wrong ([what evidence
proves](../concepts/evidence.md)). This page says how often it spoke and how often that was true, on the public trace
files that the project is tested with ([coverage](coverage.md)). `python docs/identity.py` makes it; where the
collection is not at hand, nothing is compared.

A *false merge* is `same` of two that differ: their traces would be trained on together. A *false split* is `different`
of two that are the same: usable traces would be thrown away. What is known to be true was labelled by hand, from file
names, from what the producers wrote into their files, and from the texts themselves: [the rules](#what-is-known), each
with its reason. Of a pair with a trace without a label nothing is known.

{counts}

## What is asserted of each pair

"""
_METHODS = """\

## What simpler rules would have asserted

On the same traces, against the same labels. *label and version* compares `agent.name` and `agent.version`, as the
traces have them. *system message* compares the first system message, as it was sent. *every digest* takes the observed
digests as they are, equal for the same and unequal for different, whatever their form.

"""
_FALSE = """\

## What is asserted and not true

"""
_RULES = """\

## What is known

The rules of `docs/identity_truth.toml`, and how many traces each gives its labels to. Labels stand for one text, one
list of tools, one set of settings; two labels of a component are two of them.

"""


@dataclass(slots=True)
class Tally:
    """What was said of pairs of traces in one component."""

    said: Counter[Comparison] = field(default_factory=Counter)
    """How many pairs of each answer."""
    right: Counter[Comparison] = field(default_factory=Counter)
    """Of those, how many are known to be true."""
    wrong: Counter[Comparison] = field(default_factory=Counter)
    """How many are known to be false."""

    def add(self, answer: Comparison, known: bool | None, pairs: int) -> None:
        """Count pairs of which the labels say that they are the same, or not; None where they say nothing."""
        self.said[answer] += pairs
        if known is not None and answer is not UNKNOWN:
            counted = self.right if known == (answer is SAME) else self.wrong
            counted[answer] += pairs

    def row(self) -> list[int]:
        """Return asserted same, asserted different, not asserted, right, false merges, false splits, not labelled."""
        said, right = self.said, self.right
        asserted = said[SAME] + said[DIFFERENT]
        open_ = asserted - right.total() - self.wrong.total()
        wrong = [self.wrong[SAME], self.wrong[DIFFERENT]]
        return [said[SAME], said[DIFFERENT], said[UNKNOWN], right.total(), *wrong, open_]


def pairs(found: Found) -> Iterator[tuple[Kind, Kind, int]]:
    """Yield each two kinds of traces, and how many pairs of traces there are of them."""
    for one, other in combinations_with_replacement(found.kinds, 2):
        here, there = len(found.kinds[one]), len(found.kinds[other])
        number = here * (here - 1) // 2 if one is other else here * there
        if number:
            yield one, other, number


def known_of(one: Kind, other: Kind, index: int) -> bool | None:
    """Return whether two traces are the same in a component, as the labels say; None when they do not."""
    here, there = one.truth[index], other.truth[index]
    return None if here is None or there is None else here == there


@cache
def half_of(text: str) -> Half:
    """Return an observed half that was written as text."""
    half: Half = digest.load_canonical(text.encode())
    return half


def _by_label(one: Kind, other: Kind, _: str) -> Comparison:
    return SAME if one.agent == other.agent else DIFFERENT


def _by_system(one: Kind, other: Kind, component: str) -> Comparison:
    if component != COMPONENTS[0] or one.system is None or other.system is None:
        return UNKNOWN
    return SAME if one.system == other.system else DIFFERENT


def _by_digests(one: Kind, other: Kind, component: str) -> Comparison:
    here, there = (half_of(kind.half).get(component) for kind in (one, other))
    if not here or not there:
        return UNKNOWN
    shown = [sorted((entry["part"], entry["digest"]) for entry in entries) for entries in (here, there)]
    return SAME if shown[0] == shown[1] else DIFFERENT


METHODS: dict[str, Callable[[Kind, Kind, str], Comparison]] = {
    "label and version": _by_label,
    "system message": _by_system,
    "every digest": _by_digests,
}
"""Simpler ways to tell whether two harnesses are one, for comparison."""


def page(found: Found, known: list[Rule]) -> tuple[str, list[str]]:
    """Return the page, and what is asserted and not true, a row of its table for each."""
    tallies = {name: Tally() for name in COMPONENTS}
    simpler = {(method, name): Tally() for method in METHODS for name in COMPONENTS}
    apart, total, false = 0, 0, []
    compared: dict[tuple[str, str], Mapping[str, Comparison]] = {}
    for one, other, number in pairs(found):
        key = (one.half, other.half)
        if key not in compared:
            compared[key] = compare(half_of(one.half), half_of(other.half), found.confirmed)
        answers = compared[key]
        total += number
        apart += number * (DIFFERENT in answers.values())
        for index, name in enumerate(COMPONENTS):
            truth = known_of(one, other, index)
            tallies[name].add(answers[name], truth, number)
            if truth is not None and answers[name] is not UNKNOWN and truth != (answers[name] is SAME):
                false.append(_false(found, (one, other), name, answers[name]))
            for method, judge in METHODS.items():
                simpler[method, name].add(judge(one, other, name), truth, number)
    header = ["same", "different", "not asserted", "right", "false merges", "false splits", "not labelled"]
    lines = [_TEXT.format(counts=_counts(found, total, apart))]
    lines += _table(["component", *header], [[f"`{name}`", *tally.row()] for name, tally in tallies.items()])
    lines += [_METHODS]
    lines += _table(
        ["rule", "component", *header],
        [[m, f"`{name}`", *tally.row()] for (m, name), tally in simpler.items() if tally.said[UNKNOWN] != total],
    )
    listed = list(_table(["component", "asserted", "of pairs", "trace", "and", "parts"], false)) if false else []
    lines += [_FALSE, *(listed or ["Nothing.\n"]), _RULES]
    rows = [[_named(rule), found.applied[number], _labels(rule), rule.why] for number, rule in enumerate(known)]
    lines += _table(["files", "traces", "labels", "why"], rows)
    return "".join(lines), listed[2:]


def _counts(found: Found, total: int, apart: int) -> str:
    traces = sum(map(len, found.kinds.values()))
    shown = [half_of(kind.half) for kind in found.kinds for _ in found.kinds[kind]]
    showing = ",\n".join(f"- {sum(name in half for half in shown)} show something of `{name}`" for name in COMPONENTS)
    return (
        f"{traces} traces make {total} pairs. Traces in which one harness took over from another are compared with\n"
        f"nothing (there: {found.mixed}). Of those in pairs\n\n{showing}.\n\n"
        f"{apart} pairs are said to be of two harnesses, by at least one component. No pair is said to be of one:\n"
        "no foreign file shows a harness whole."
    )


def _false(found: Found, two: tuple[Kind, Kind], component: str, answer: Comparison) -> list[Any]:
    """Return the row of a pair of kinds of which something false is asserted."""
    one, other = two
    number = len(found.kinds[one]) * len(found.kinds[other])
    if one is other:
        number = len(found.kinds[one]) * (len(found.kinds[one]) - 1) // 2
    parts = [p for c, p in differing(half_of(one.half), half_of(other.half), found.confirmed) if c == component]
    places = [f"`{found.kinds[one][0]}`", f"`{found.kinds[other][-1]}`"]
    return [f"`{component}`", answer.value, number, *places, ", ".join(f"`{part}`" for part in parts) or "all"]


def _named(rule: Rule) -> str:
    numbers = "" if rule.traces is None else f" #{', '.join(map(str, sorted(rule.traces)))}"
    but = f" but {', '.join(f'`{one}`' for one in rule.but)}" if rule.but else ""
    return f"{', '.join(f'`{one}`' for one in rule.files)}{numbers}{but}"


def _labels(rule: Rule) -> str:
    return "; ".join(f"`{name}`: {rule.labels[name]}" for name in COMPONENTS if name in rule.labels)


def _table(header: list[str], rows: list[list[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |\n"
    yield "|" + "---|" * len(header) + "\n"
    for row in rows:
        yield "| " + " | ".join(str(cell).replace("|", r"\|").replace("\n", " ") for cell in row) + " |\n"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it differs; return 1 when it does, or when it tells of an error."""
    if not TRACES.is_dir():
        print("docs/reference/identity.md: not compared, the collection of trace files is not beside the checkout")
        return 0
    known = rules()
    text, false = page(label(collect(), known), known)
    print("".join(false), end="")
    is_current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
    if not is_current and "--check" in arguments:
        print("docs/reference/identity.md: not current (python docs/identity.py)")
        return 1
    if not is_current:
        PAGE.write_text(text, encoding="utf-8")
        print("docs/reference/identity.md: written")
    return int(bool(false))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
