"""What is true of a trace now: its statements joined, and what they disagree about.

A trace is stated once when it is stored (the head of its line) and may be stated again: by annotations of the kinds
`stamps` and `outcomes`, or by a second copy of the same trajectory. Statements are joined by what they say, never by
when they were made.

Invariants:
- a member that only one statement knows is knowledge added; an `unknown` status knows nothing;
- two known values that differ are a conflict; a trace with conflicts is *contested*, whatever the order of statements;
- labels (a harness' name, the rule behind a status) and observed digests never conflict;
- one contradiction takes the fingerprint away, whoever else claims it;
- a claim that the content refutes says nothing about a trace for which another harness is stated: it is out of force,
  also where nobody replaced it because two writers stored the trace at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.harness.fingerprint import of_components
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import strongest, weakest

_LABELS = frozenset({"outcome.rule", "run.note"})
_OF_A_CLAIM = frozenset({"corroborated", "claimed", "unrecorded"})


class Statement(NamedTuple):
    """One statement about a trace."""

    digest: str
    """Digest of the head (of `{harness, outcome, run}`) or of the annotation, 64 hexadecimal digits."""
    harness: dict[str, JSON] | None = None
    """A stamp; None when the statement is not about the harness."""
    run: dict[str, JSON] | None = None
    """Run facts; None when it is not about the run."""
    outcome: dict[str, JSON] | None = None
    """An outcome; None when it is not about the outcome."""
    source: str | None = None
    """Label of the source that said so; None when nobody noted it. No part of what is said, like the rest."""
    raw: str | None = None
    """Digest of the raw record that said so; None when nobody noted it."""
    inherited: str | None = None
    """Id of the superseded trace of which it was said; None for what was said of the trace itself."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Statements joined."""

    harness: dict[str, JSON]
    """The stamp; `{}` when nobody knows anything. Without a fingerprint when contradicted or contested."""
    run: dict[str, JSON]
    """The run facts; in a conflict the value of the earliest statement in the sequence."""
    outcome: dict[str, JSON]
    """The outcome; its status is `unknown` when nobody knows or when statements disagree about it."""
    conflicts: tuple[str, ...]
    """Dotted paths of the members about which known values differ, sorted; empty when nothing is contested."""

    def content(self) -> dict[str, JSON]:
        """Return stamp, outcome and run as one value."""
        return {"harness": self.harness, "outcome": self.outcome, "run": self.run}


def join(statements: Sequence[Statement]) -> Joined:
    """Return what `statements`, each still in force, say together; the first statement of the trace comes first."""
    conflicts: set[str] = set()
    harness: dict[str, JSON] = {}
    run: dict[str, JSON] = {}
    outcome: dict[str, JSON] = {}
    for statement in statements:
        if statement.harness:
            harness = _join_stamps(harness, statement.harness, conflicts)
        if statement.run:
            run = _join(run, statement.run, "run", conflicts)
        if statement.outcome:
            known = {k: v for k, v in statement.outcome.items() if (k, v) != ("status", "unknown")}
            outcome = _join(outcome, known, "outcome", conflicts)
    if "outcome.status" in conflicts or "status" not in outcome:
        outcome = {**outcome, "status": "unknown"}
    if any(map(of_harness, conflicts)) or harness.get("contradictions"):
        declared = {k: v for k, v in harness.get("declared", {}).items() if k != "fingerprint"}
        harness = {**harness, "declared": declared} if "declared" in harness else harness
    return Joined(harness, run, outcome, tuple(sorted(conflicts)))


def relation(statements: Sequence[Statement], new: Statement) -> str:
    """Return what `new` does to what `statements` say already.

    Returns:
        `nothing` when it adds no knowledge, `strengthens` when it only adds, `contests` when it disagrees.
    """
    before = join(statements)
    after = join([*statements, new])
    if set(after.conflicts) - set(before.conflicts):
        return "contests"
    same = digest.canonical(after.content()) == digest.canonical(before.content())
    return "nothing" if same else "strengthens"


def of_harness(conflict: str) -> bool:
    """Return whether a member of `Joined.conflicts` is about the harness, which is what a stamp settles."""
    return conflict.startswith("harness.")


def harness_named(stamp: Mapping[str, JSON]) -> str | None:
    """Return the fingerprint of the harness that a stamp names, be it that the content refutes it.

    None when it names none, or leaves a component open.
    """
    components = (stamp.get("declared") or {}).get("components") or {}
    if components.keys() != set(COMPONENTS):
        return None
    return _fingerprint(tuple((name, components[name]["digest"]) for name in COMPONENTS))


@lru_cache(maxsize=1024)
def _fingerprint(components: tuple[tuple[str, str], ...]) -> str:
    return of_components(dict(components))


def in_force(head: Statement, others: Sequence[Statement], replaced: Mapping[str, frozenset[str]]) -> list[Statement]:
    """Return the statements that count, `head` first and the others by digest.

    A statement that is out of force by half is returned without that half.

    Args:
        head: the first statement.
        others: all other statements of the trace, replaced ones included.
        replaced: for each kind (`stamps`, `outcomes`) the digests that annotations of that kind replace. A head may be
            replaced by half: its stamp by `stamps`, its outcome by `outcomes`.
    """
    stamps, outcomes = replaced.get("stamps", frozenset()), replaced.get("outcomes", frozenset())
    counted = []
    for statement in [head, *sorted(others, key=lambda other: other.digest)]:
        if statement.digest in stamps:
            statement = statement._replace(harness=None)
        if statement.digest in outcomes:
            statement = statement._replace(outcome=None)
            if statement.digest != head.digest:
                statement = statement._replace(run=None)
        counted.append(statement)
    return _without_refuted(counted)


def is_claim(statement: Statement) -> bool:
    """Return whether nothing in it is a recorder's statement."""
    return all(
        part["evidence"] in _OF_A_CLAIM
        for component in _components(statement).values()
        for part in component["parts"].values()
    )


def is_refuted(statement: Statement) -> bool:
    """Return whether it is a claim, and the content itself speaks against it."""
    return bool((statement.harness or {}).get("contradictions")) and is_claim(statement)


def names_another(one: Statement, other: Statement) -> bool:
    """Return whether two statements name harnesses that differ in a component which both state."""
    ours, theirs = _components(one), _components(other)
    return any(theirs[name]["digest"] != ours[name]["digest"] for name in ours.keys() & theirs.keys())


def _components(statement: Statement) -> dict[str, JSON]:
    return ((statement.harness or {}).get("declared") or {}).get("components") or {}


def _without_refuted(said: list[Statement]) -> list[Statement]:
    """Return the statements, without the stamps of refuted claims beside another harness; of such alone one stays."""
    refuted = [is_refuted(statement) for statement in said]
    if not any(refuted):
        return said
    kept = [statement for statement, out in zip(said, refuted, strict=True) if not out]
    counted = []
    for statement, out in zip(said, refuted, strict=True):
        if out and any(names_another(other, statement) for other in kept):
            statement = statement._replace(harness=None)
        elif out:
            kept.append(statement)
        counted.append(statement)
    return counted


def _same(a: JSON, b: JSON) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _join(a: dict[str, JSON], b: Mapping[str, JSON], path: str, conflicts: set[str]) -> dict[str, JSON]:
    joined = dict(a)
    for key, value in b.items():
        place = f"{path}.{key}"
        if key not in joined or joined[key] is None:
            joined[key] = value
        elif isinstance(joined[key], dict) and isinstance(value, dict):
            joined[key] = _join(joined[key], value, place, conflicts)
        elif value is not None and not _same(joined[key], value) and place not in _LABELS:
            conflicts.add(place)
    return joined


def _join_stamps(a: dict[str, JSON], b: dict[str, JSON], conflicts: set[str]) -> dict[str, JSON]:
    joined: dict[str, JSON] = {}
    if "declared" in a and "declared" in b:
        joined["declared"] = _join_declared(a["declared"], b["declared"], conflicts)
    elif "declared" in a or "declared" in b:
        joined["declared"] = a.get("declared", b.get("declared"))
    observed: dict[str, list[JSON]] = {}
    for half in (a.get("observed") or {}, b.get("observed") or {}):
        for component, seen in half.items():
            observed[component] = _union(observed.get(component, []), seen)
    if observed:
        joined["observed"] = observed
    contradictions = _union(a.get("contradictions") or [], b.get("contradictions") or [])
    if contradictions:
        joined["contradictions"] = contradictions
    if a.get("mixed") or b.get("mixed"):
        joined["mixed"] = True
    changes = _union(a.get("changes") or [], b.get("changes") or [])
    if changes:
        joined["changes"] = changes
    return joined


def _join_declared(a: dict[str, JSON], b: dict[str, JSON], conflicts: set[str]) -> dict[str, JSON]:
    joined: dict[str, JSON] = {}
    name = a.get("name") or b.get("name")
    if name is not None:
        joined["name"] = name
    prints = [half["fingerprint"] for half in (a, b) if half.get("fingerprint")]
    if prints:
        joined["fingerprint"] = prints[0]
        if prints[0] != prints[-1]:
            conflicts.add("harness.declared.fingerprint")
    components = dict(a.get("components") or {})
    for component, stamped in (b.get("components") or {}).items():
        mine = components.get(component)
        place = f"harness.declared.components.{component}"
        components[component] = stamped if mine is None else _join_component(mine, stamped, place, conflicts)
    joined["components"] = components
    return joined


def _join_component(a: dict[str, JSON], b: dict[str, JSON], place: str, conflicts: set[str]) -> dict[str, JSON]:
    if a["digest"] != b["digest"]:
        conflicts.add(place)
        return a
    parts: dict[str, Any] = dict(a["parts"])
    for name, part in b["parts"].items():
        mine = parts.get(name)
        evidence = strongest([part["evidence"], *([mine["evidence"]] if mine else [])])
        parts[name] = {"digest": part["digest"], "evidence": evidence}
        if mine and mine["digest"] != part["digest"]:
            conflicts.add(f"{place}.parts.{name}")
    evidence = weakest(part["evidence"] for part in parts.values())
    return {"digest": a["digest"], "evidence": evidence, "parts": parts}


def _union(a: list[JSON], b: list[JSON]) -> list[JSON]:
    seen = {digest.canonical(item): item for item in [*a, *b]}
    return [seen[key] for key in sorted(seen)]
