"""The stamp: what a trace says of the harness that made it, and how far that may be believed.

A stamp has two halves. The *declared* half names digests of the fingerprint algorithm and the evidence of each part.
The *observed* half holds digests of what the content itself shows, each with its form. The two are never compared as
digests. Evidence belongs to parts; a component has that of its weakest part, the stamp that of its weakest component.

Invariants:
- `declared.fingerprint` is there exactly when nothing contradicts the declaration and no component is unrecorded;
- a component without parts is vacuous and lowers no evidence; a harness without any part is claimed at most, because
  nothing of it can be recorded or show in a trace;
- an empty stamp `{}` says that nobody knows anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from tracemark.model.harness import COMPONENTS
from tracemark.model.value import Digest, Fingerprint, Maybe, Value

Evidence = Literal["recorded", "recovered", "corroborated", "claimed", "unrecorded"]
"""Evidence of a part."""

EVIDENCE: tuple[str, ...] = get_args(Evidence)
"""Evidence, strong to weak."""

Form = Literal["template", "prefix", "schema", "constant", "substituted", "rendered", "transcript", "known-empty"]
"""What kind of thing an observed digest was taken of.

`template`, `prefix`, `schema` and `constant` are the part itself: equal digests prove the same, other ones another.
`substituted` is a text out of which values of its own record were taken; it counts as a template once a trace of
another task gives the same, and like `rendered` until then: equal ones prove the same, other ones nothing.
`transcript` is a text of a conversation that is not said to be the request: what was sent may have held more, such as
the tools, so not even equal ones prove anything."""

_RANK = {name: rank for rank, name in enumerate(EVIDENCE)}


class PartStamp(Value):
    """One part of a declared component."""

    digest: Digest
    """The part's digest, 64 hexadecimal digits."""
    evidence: Evidence
    """How the part is known to have been used in this run."""


class ComponentStamp(Value):
    """One component of the declared half."""

    digest: Digest
    """The component's digest, 64 hexadecimal digits."""
    evidence: Evidence
    """That of the weakest part; `recorded` for a component without parts."""
    parts: dict[str, PartStamp]
    """Every part by name; empty for a vacuous component."""


class Declared(Value):
    """The half that names a harness."""

    name: Maybe[str] = None
    """The label under which the harness was declared; no identity."""
    fingerprint: Maybe[Fingerprint] = None
    """`tm1:` and 64 hexadecimal digits; None when contradicted or when a component is unrecorded."""
    components: dict[str, ComponentStamp]
    """The four components by name."""


class Observed(Value):
    """One digest taken of the content itself."""

    part: str
    """What it was taken of, such as `system`, `first-user` or a tool's name."""
    form: Form
    """What kind of thing it was taken of; `rendered` may prove equality and never difference, `transcript` neither."""
    digest: Digest
    """64 hexadecimal digits."""


class Contradiction(Value):
    """One place where the content disagrees with the declared harness."""

    component: str
    """The component concerned."""
    part: str
    """The part concerned."""
    step: Maybe[int] = None
    """Step id in the trajectory; None when the place is not a step."""
    text: str
    """What was found there, shortened."""


class Stamp(Value):
    """What a trace says of its harness."""

    declared: Maybe[Declared] = None
    """None when nobody named a harness."""
    observed: Maybe[dict[str, list[Observed]]] = None
    """Digests of the content by component; None when nothing could be taken."""
    contradictions: Maybe[list[Contradiction]] = None
    """Where content and declaration disagree; None when nowhere."""
    mixed: Maybe[bool] = None
    """True when more than one harness was at work during the run; otherwise None."""
    changes: Maybe[list[str]] = None
    """Where another harness took over, each in words with its step; None when nobody says."""


def weakest(evidence: Iterable[str]) -> str:
    """Return the weakest of `evidence`; `recorded` when there is none, as nothing lowers a vacuous component."""
    return max(evidence, key=_RANK.__getitem__, default="recorded")


def strongest(evidence: Iterable[str]) -> str:
    """Return the strongest of `evidence`; `unrecorded` when there is none."""
    return min(evidence, key=_RANK.__getitem__, default="unrecorded")


def component_stamp(digest: str, parts: Mapping[str, str], evidence: Mapping[str, str]) -> dict[str, Any]:
    """Return the stored form of one declared component.

    Args:
        digest: the component's digest.
        parts: part name to digest.
        evidence: part name to evidence; a part that is missing here counts as unrecorded.
    """
    stamped = {name: {"digest": value, "evidence": evidence.get(name, "unrecorded")} for name, value in parts.items()}
    return {"digest": digest, "evidence": weakest(part["evidence"] for part in stamped.values()), "parts": stamped}


def lowered(components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored components of a stamp that cannot be believed here, with no evidence above `claimed`.

    A component without parts stays as it is: nothing of its kind was there, whoever says so.
    """
    return {
        name: component_stamp(
            component["digest"],
            {part: value["digest"] for part, value in component["parts"].items()},
            {part: weakest([value["evidence"], "claimed"]) for part, value in component["parts"].items()},
        )
        for name, component in components.items()
    }


def fingerprint_of(stamp: Mapping[str, Any]) -> str | None:
    """Return the declared fingerprint of a stored stamp; None when it has none."""
    declared = stamp.get("declared")
    return declared.get("fingerprint") if declared else None


def evidence_of(stamp: Mapping[str, Any]) -> str:
    """Return the evidence of a stored stamp, that of its weakest component.

    All four components count, so one that nobody declared makes it `unrecorded`. Where no component has a part it is
    `claimed` at most.
    """
    components = (stamp.get("declared") or {}).get("components") or {}
    found = weakest(components[name]["evidence"] if name in components else "unrecorded" for name in COMPONENTS)
    return found if any(component["parts"] for component in components.values()) else weakest([found, "claimed"])


def corroborated_parts(stamp: Mapping[str, Any]) -> int:
    """Return how many declared parts are corroborated or better."""
    declared = stamp.get("declared") or {"components": {}}
    return sum(
        _RANK[part["evidence"]] <= _RANK["corroborated"]
        for component in declared["components"].values()
        for part in component["parts"].values()
    )


def recorded_parts(stamp: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return what a recorder saw at work, as a stored stamp says: component to part to digest.

    A component is there when a part of it was recorded. All are left out where the content contradicts the stamp, or
    more than one harness was at work: then nobody knows which of them did what.
    """
    if stamp.get("contradictions") or stamp.get("mixed"):
        return {}
    found = {}
    for name, component in ((stamp.get("declared") or {}).get("components") or {}).items():
        parts = {part: seen["digest"] for part, seen in component["parts"].items() if seen["evidence"] == "recorded"}
        if parts:
            found[name] = parts
    return found
