"""From what is claimed and what is seen to a stamp.

A trace comes with a stamp of its own (it was recorded here, or exported from a store), or somebody states at ingest
which harness made it, or neither. Whatever is stated is compared with the content, and disagreement beats every
evidence: then the stamp lists the places and holds no fingerprint.

Invariants:
- a fingerprint is stored only for a harness whose snapshot can be stored, so digests can be recomputed for ever;
- comparing never strengthens a part beyond `corroborated`, and only the recorder's own statement is `recorded`;
- a carried stamp and a claim that name different harnesses are both kept: the trace is contested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemark.findings import Finding, finding
from tracemark.harness.harness import Harness
from tracemark.harness.match import Contradiction, Judgement, Matcher
from tracemark.importers.base import Imported
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import component_stamp, fingerprint_of, strongest

_CACHE = 1024


@dataclass(slots=True)
class Stamped:
    """What is known of the harness of one trace at ingest."""

    stamp: dict[str, Any]
    """The first statement."""
    second: dict[str, Any] | None = None
    """A second statement that names another harness; None in the ordinary case."""
    findings: list[Finding] = field(default_factory=list)
    """Contradictions and unknown harnesses."""


class Stamper:
    """Makes the stamps of one ingest run.

    Args:
        known: every harness that the corpus knows, by fingerprint.
    """

    def __init__(self, known: Mapping[str, Harness]) -> None:
        self._known = known
        self._matchers: dict[str, Matcher] = {}
        self._declared: dict[tuple[str, int, int], tuple[object, object, dict[str, Any]]] = {}

    def stamp(self, imported: Imported, claim: Harness | None) -> Stamped:
        """Return the stamp of one trace.

        Args:
            imported: what the importer read.
            claim: the harness that the caller or the batch names; None when nobody does.
        """
        carried = imported.stamp or {}
        result = Stamped({})
        stated = carried.get("declared")
        fingerprint = fingerprint_of(carried)
        if fingerprint is not None:
            result.stamp = self._carried(imported, carried, fingerprint, result)
        elif claim is not None:
            result.stamp = self._claimed(imported, claim, None, result)
        elif stated:
            result.stamp = {"declared": dict(stated)}
        if fingerprint is not None and claim is not None and claim.identity.fingerprint != fingerprint:
            result.second = self._claimed(imported, claim, None, result)
        self._keep(imported, carried, result)
        return result

    def _carried(
        self, imported: Imported, carried: Mapping[str, Any], fingerprint: str, result: Stamped
    ) -> dict[str, Any]:
        harness = self._known.get(fingerprint)
        if harness is not None:
            return self._claimed(imported, harness, carried["declared"]["components"], result)
        result.findings.append(
            finding("harness-unknown", imported.where, f"stamped {fingerprint}, which no known harness version has")
        )
        declared = {name: value for name, value in carried["declared"].items() if name != "fingerprint"}
        return {"declared": {**declared, "components": _lowered(declared["components"])}}

    def _claimed(
        self, imported: Imported, harness: Harness, carried: Mapping[str, Any] | None, result: Stamped
    ) -> dict[str, Any]:
        judgement = self._matcher(harness).judge(imported.content)
        stamp: dict[str, Any] = {"declared": self._declaration(harness, judgement, carried)}
        if judgement.contradictions:
            stamp["contradictions"] = [place.as_json() for place in judgement.contradictions]
            result.findings.append(_contradicted(imported.where, harness, judgement.contradictions))
        return stamp

    def _matcher(self, harness: Harness) -> Matcher:
        fingerprint = harness.identity.fingerprint
        if fingerprint not in self._matchers:
            self._matchers[fingerprint] = Matcher(harness)
        return self._matchers[fingerprint]

    def _declaration(self, harness: Harness, judgement: Judgement, carried: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the declared half; equal ones are built once, as most traces of a run share theirs."""
        identity = harness.identity
        key = (identity.fingerprint, id(judgement.evidence), id(carried) if carried else int(judgement.contradicted))
        cached = self._declared.get(key)
        if cached is not None and cached[0] is judgement.evidence and cached[1] is carried:
            return cached[2]
        components = {}
        for component in COMPONENTS:
            judged = judgement.evidence.get(component, {})
            before = (carried or {}).get(component, {}).get("parts", {})
            evidence = {
                part: strongest([judged.get(part, "unrecorded"), _carried_evidence(before.get(part), value)])
                for part, value in identity.parts[component].items()
            }
            components[component] = component_stamp(identity.components[component], identity.parts[component], evidence)
        declared: dict[str, Any] = {"components": components, "name": harness.name}
        if not judgement.contradicted:
            declared["fingerprint"] = identity.fingerprint
        if len(self._declared) >= _CACHE:
            self._declared.clear()
        self._declared[key] = (judgement.evidence, carried, declared)
        return declared

    @staticmethod
    def _keep(imported: Imported, carried: Mapping[str, Any], result: Stamped) -> None:
        """Add what the content shows and what the source says beyond the declared half."""
        if imported.observed:
            result.stamp["observed"] = imported.observed
        if carried.get("mixed"):
            result.stamp["mixed"] = True
        if carried.get("contradictions"):
            found = result.stamp.setdefault("contradictions", [])
            found += [place for place in carried["contradictions"] if place not in found]
            declared = result.stamp.get("declared") or {}
            result.stamp["declared"] = {name: value for name, value in declared.items() if name != "fingerprint"}


def _carried_evidence(part: Mapping[str, Any] | None, digest: str) -> str:
    """Return the evidence that a carried stamp has for a part, if it speaks of the same bytes."""
    return part["evidence"] if part is not None and part["digest"] == digest else "unrecorded"


def _lowered(components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components of a stamp nobody here can recompute, with no evidence above `claimed`."""
    return {
        name: component_stamp(
            component["digest"],
            {part: value["digest"] for part, value in component["parts"].items()},
            {
                part: value["evidence"] if value["evidence"] == "unrecorded" else "claimed"
                for part, value in component["parts"].items()
            },
        )
        for name, component in components.items()
    }


def _contradicted(where: str, harness: Harness, places: list[Contradiction]) -> Finding:
    first = places[0]
    step = "" if first.step is None else f", step {first.step}"
    more = "" if len(places) == 1 else f" (and {len(places) - 1} more)"
    return finding(
        "stamp-contradicted",
        where,
        f"not made by {harness.name}: {first.component} {first.part}{step}: {first.text!r}{more}",
    )
