"""A trace's stamp as a reader sees it: for each component what is stated, or what the content itself shows.

Invariants:
- where a decision settled under which harness a trace counts, the components are those of that harness;
- a component without parts is `vacuous`: nothing was recorded of it, and nothing is missing;
- a component that nobody declared is shown by its observed digests, which name no harness: they group traces, and equal
  ones of form `rendered` prove sameness while different ones prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracemark import digest
from tracemark.harness.match import Content
from tracemark.harness.observed import DECISIVE
from tracemark.harness.version import Harness
from tracemark.importers.atif import content_of
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import component_stamp, fingerprint_of, recorded_parts, weakest
from tracemark.store.selection import Decisions, State
from tracemark.store.state import Joined, Statement, harness_named, join, of_harness

HARNESS = "harness"
"""The member that stands for all that may be disputed of a harness."""

VACUOUS = "vacuous"
"""How the evidence of a component without parts is shown; in a stored stamp nothing lowers it, so it is `recorded`."""

UNDECLARED = "undeclared"
"""Stands in place of the evidence of a component that the harness declares no part of, where the trace shows one."""

_KNOWN_EMPTY = "known-empty"

_DIGITS = 16
_UNDECLARED: dict[str, Any] = {"digest": None, "evidence": "unrecorded", "parts": {}}


def standing(said: Sequence[Statement], state: State, decisions: Decisions, harness: Harness | None) -> Joined:
    """Return what is true of a trace now, its stamp being that of the harness under which it counts.

    Args:
        said: the statements in force about it.
        state: the trace as it stands.
        decisions: what people decided, as far as it holds (`Reading.applied`).
        harness: the one of `state.row.fingerprint`; None when it is not known, or there is none.
    """
    joined = join(said)
    if state.trace_id not in decisions.stamps and state.trace_id not in decisions.divided:
        return joined
    fingerprint = decisions.stamps.get(state.trace_id)
    # what speaks against a harness that was stated says nothing of the one under which it was settled
    others = {"declared"} if fingerprint is None else {"declared", "contradictions"}
    stamp = {name: value for name, value in joined.harness.items() if name not in others}
    naming = [one for one in said if fingerprint is not None and fingerprint_of(one.harness or {}) == fingerprint]
    if naming:
        stamp["declared"] = join(naming).harness["declared"]
    elif harness is not None:
        stamp["declared"] = _declared(harness, state.row.evidence)
    return Joined(stamp, joined.run, joined.outcome, state.conflicts)


def components(stamp: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each component of a stored stamp: `digest`, `evidence`, `parts` and, beside a declaration, `observed`.

    A component that nobody declared has the digests that its content shows in their place, each part with its `form`;
    the evidence of a declared one without parts is `vacuous`.
    """
    declared = (stamp.get("declared") or {}).get("components") or {}
    observed = stamp.get("observed") or {}
    return {name: _component(declared.get(name), observed.get(name) or []) for name in COMPONENTS}


def observed_digests(stamp: Mapping[str, Any]) -> dict[str, str]:
    """Return for each component that nobody declared, and of which the content shows something, one digest of that."""
    if stamp.get("declared"):
        return {}
    return {name: shown["digest"] for name, shown in components(stamp).items() if shown["digest"] is not None}


def contradictions(said: Sequence[Statement]) -> list[dict[str, Any]]:
    """Return each place where a statement in force and the content disagree, with the `harness` that was stated."""
    found: list[dict[str, Any]] = []
    for statement in said:
        stamp = statement.harness or {}
        name = declared_name(stamp)
        found += [{"harness": name, **place} for place in stamp.get("contradictions") or []]
    return distinct(found)


def disputed(said: Sequence[Statement], conflicts: Sequence[str]) -> list[dict[str, Any]]:
    """Return what statements in force say of the members that they dispute, each value once for each source.

    Args:
        said: the statements.
        conflicts: dotted paths of the members; all that are about the harness are one, `harness`.

    Returns:
        A row each with `member`, `value` (of a harness its label and the beginning of its fingerprint) and `source`
        (the label of the source that says so, None when nobody noted it), the members in the order of `conflicts`.
    """
    members = dict.fromkeys(HARNESS if of_harness(path) else path for path in conflicts)
    rows = [
        {"member": member, "value": value, "source": one.source}
        for member in members
        for one in said
        if (value := _stated(one, member)) is not None
    ]
    return distinct(rows)


def distinct(places: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each of some objects once, in the order in which they first come."""
    return list({digest.canonical(place): dict(place) for place in places}.values())


def declared_name(stamp: Mapping[str, Any] | None) -> str | None:
    """Return the label of the harness that a stored stamp declares; None when it declares none."""
    name = ((stamp or {}).get("declared") or {}).get("name")
    return str(name) if name else None


def worded(places: Sequence[Mapping[str, Any]]) -> str:
    """Return the first of some contradictions in words, and how many more there are."""
    first = places[0]
    step = f", step {first['step']}" if "step" in first else ""
    more = "" if len(places) == 1 else f" (and {len(places) - 1} more)"
    return f"{first['component']} {first['part']}{step}: {first['text']}{more}"


def content_in(line: Mapping[str, Any]) -> Content:
    """Return what of a stored trace a harness is compared with.

    A sub-agent's document holds no message, tool or observation of the agent itself, so nothing in it is compared. What
    the recorder of a run saw at work, as its first statement says, is compared as well.
    """
    if line["run"].get("role") == "subagent":
        return Content()
    return replace(content_of(line["trajectory"]), recorded=recorded_parts(line["harness"]))


def labels_of(trajectory: Mapping[str, Any]) -> dict[str, str]:
    """Return the name and the version that a trajectory gives for its agent."""
    return {name: trajectory["agent"][name] for name in ("name", "version")}


def _stated(statement: Statement, member: str) -> Any:
    """Return what a statement says of a member; None when it says nothing, as an unknown status does."""
    if member == HARNESS:
        stamp = statement.harness or {}
        if not stamp.get("declared"):
            return None
        fingerprint, name = harness_named(stamp), declared_name(stamp) or "unnamed"
        return name if fingerprint is None else f"{name}, {fingerprint[:_DIGITS]}"
    value: Any = {"run": statement.run, "outcome": statement.outcome}
    for key in member.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return None if (member, value) == ("outcome.status", "unknown") else value


def _component(declared: Mapping[str, Any] | None, observed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    observed = sorted(observed, key=lambda seen: (seen["part"], seen["digest"]))
    if declared is not None:
        shows_parts = any(seen["form"] != _KNOWN_EMPTY for seen in observed)
        evidence = declared["evidence"] if declared["parts"] else UNDECLARED if shows_parts else VACUOUS
        return {**declared, "evidence": evidence, "observed": observed}
    if not observed:
        return {**_UNDECLARED, "observed": observed}
    parts: dict[str, dict[str, str]] = {}
    for seen in observed:
        name, number = seen["part"], 1
        while name in parts:
            number += 1
            name = f"{seen['part']} {number}"
        parts[name] = {"digest": seen["digest"], "evidence": _evidence(seen["form"]), "form": seen["form"]}
    whole = sorted([name, part["digest"]] for name, part in parts.items())
    return {
        # one digest is shown as it is, so that it can be looked for; several are made into one
        "digest": whole[0][1] if len(whole) == 1 else digest.of(whole),
        "evidence": weakest(part["evidence"] for part in parts.values()),
        "parts": parts,
        "observed": [],
    }


def _evidence(form: str) -> str:
    """Return what an observed digest is worth by itself.

    A rendering says only that it was the same, and values taken out of a text may leave some of its task in it: what
    only a second task can confirm is not recovered by one trace.
    """
    return "recovered" if form in DECISIVE else "unrecorded"


def _declared(harness: Harness, evidence: str) -> dict[str, Any]:
    identity = harness.identity
    return {
        "name": harness.name,
        "fingerprint": identity.fingerprint,
        "components": {
            name: component_stamp(identity.components[name], parts, dict.fromkeys(parts, evidence))
            for name, parts in identity.parts.items()
        },
    }
