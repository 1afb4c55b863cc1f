"""From what is claimed and what is seen to a stamp.

A trace comes with a stamp of its own (it was recorded here, or exported from a store), or somebody states at ingest
which harness made it, or both, or neither. Whatever is stated is compared with the content, and disagreement beats
every evidence: then the stamp lists the places and holds no fingerprint.

Invariants:
- a fingerprint is stored only for a harness whose snapshot can be stored, so digests can be recomputed for ever;
- comparing never strengthens a part beyond `corroborated`, and no claim is `recorded`: only a stamp that came with the
  trace is, from a journal or from an export that names the trajectory. It is believed as far as it can be checked: its
  fingerprint must be known here, and all its parts be those of that harness; else its evidence counts as claimed. Who
  writes a file can still forge all of that, so `recorded` is as good as where the file comes from;
- a carried stamp and a claim that agree are one statement; where they differ both are kept;
- a sub-agent's document holds no message, tool or observation of the agent itself, so nothing in it is compared: what
  is stated of its harness stays as it is stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemark.acts.provenance import declared_name, distinct, worded
from tracemark.findings import Finding, finding
from tracemark.harness.match import Content, Judgement, Matcher
from tracemark.harness.version import Harness
from tracemark.importers.base import Imported
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import component_stamp, fingerprint_of, lowered, strongest
from tracemark.store.state import Statement, is_claim, join

CONTRADICTED = "stamp-contradicted"
"""Code of the finding that content and a stated harness disagree."""

TRACE_DIGITS = 12
"""Digits of a trace id that name it to a reader."""

_CACHE = 1024
_NOTHING = Content()


@dataclass(slots=True)
class Stamped:
    """What is known of the harness of one trace at ingest."""

    stamp: dict[str, Any]
    """The first statement; empty when nobody knows anything."""
    second: dict[str, Any] | None = None
    """A second statement, which disagrees with the first; None in the ordinary case."""
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
        self._declared: dict[tuple[str, int, bool], tuple[object, dict[str, Any]]] = {}

    def stamp(self, imported: Imported, trace_id: str, claim: Harness | None) -> Stamped:
        """Return the stamp of one trace.

        Args:
            imported: what the importer read.
            trace_id: the trace's id, by which findings name it.
            claim: the harness that the caller or the batch names; None when nobody does.
        """
        result = Stamped({})
        carried = imported.stamp
        content = _NOTHING if imported.run.get("role") == "subagent" else imported.content
        if carried:
            result.stamp = self._carried(carried, content)
            fingerprint = fingerprint_of(carried)
            if fingerprint is not None and fingerprint not in self._known:
                message = (
                    f"trace {trace_id[:TRACE_DIGITS]} is stamped {fingerprint}, which no known harness version has"
                )
                result.findings.append(finding("harness-unknown", imported.where, message))
        if claim is not None and (not carried or fingerprint_of(carried) != claim.identity.fingerprint):
            _state(result, self._claimed(claim, content, None))
        if imported.observed:
            # what is seen now counts more than what somebody saw
            result.stamp = {**result.stamp, "observed": {**result.stamp.get("observed", {}), **imported.observed}}
        if imported.mixed:
            result.stamp = {**result.stamp, "mixed": True, "changes": list(imported.mixed)}
            message = f"trace {trace_id[:TRACE_DIGITS]}: {'; '.join(imported.mixed)}"
            result.findings.append(finding("mixed-harness", imported.where, message))
        for stamp in (result.stamp, result.second or {}):
            if stamp.get("contradictions"):
                result.findings.append(contradicted(imported.where, trace_id, stamp))
        return result

    def inherited(self, stamp: Mapping[str, Any], content: Content) -> dict[str, Any]:
        """Return what a stamp that was stated of another reading of a run is worth for this one, compared anew.

        What a recorder stated stays recorded; all else is a claim until the content shows more.

        Args:
            stamp: the stamp, which declares a harness and lists no contradictions.
            content: what the new reading shows.
        """
        claimed = Statement("", harness=dict(stamp))
        components = stamp["declared"]["components"]
        if is_claim(claimed):
            components = lowered(components)
        return self._carried({"declared": {**stamp["declared"], "components": components}}, content)

    def _carried(self, carried: Mapping[str, Any], content: Content) -> dict[str, Any]:
        """Return the stamp that a trace brought, as far as it can be believed here."""
        fingerprint = fingerprint_of(carried)
        if fingerprint is None:
            return _unnamed(carried)
        harness = self._known.get(fingerprint)
        if harness is None:
            declared = {name: value for name, value in carried["declared"].items() if name != "fingerprint"}
            return {**carried, "declared": {**declared, "components": lowered(declared["components"])}}
        components = carried["declared"]["components"]
        if _parts_of(components) != {name: dict(harness.identity.parts[name]) for name in COMPONENTS}:
            components = lowered(components)
        judged = self._claimed(harness, content, components)
        places = [*judged.get("contradictions", []), *carried.get("contradictions", [])]
        stamp = {**carried, "declared": judged["declared"]}
        if places:
            stamp["contradictions"] = distinct(places)
            stamp["declared"] = {k: v for k, v in judged["declared"].items() if k != "fingerprint"}
        return stamp

    def _claimed(self, harness: Harness, content: Content, carried: Mapping[str, Any] | None) -> dict[str, Any]:
        judgement = self._matcher(harness).judge(content)
        stamp: dict[str, Any] = {"declared": self._declaration(harness, judgement, carried)}
        if judgement.contradictions:
            stamp["contradictions"] = [place.as_json() for place in judgement.contradictions]
        return stamp

    def _matcher(self, harness: Harness) -> Matcher:
        fingerprint = harness.identity.fingerprint
        if fingerprint not in self._matchers:
            self._matchers[fingerprint] = Matcher(harness)
        return self._matchers[fingerprint]

    def _declaration(self, harness: Harness, judgement: Judgement, carried: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the declared half; equal ones are built once, as most traces of a run share theirs."""
        if carried is not None:
            return _declare(harness, judgement, carried)
        key = (harness.identity.fingerprint, id(judgement.evidence), judgement.contradicted)
        cached = self._declared.get(key)
        if cached is not None and cached[0] is judgement.evidence:
            return cached[1]
        declared = _declare(harness, judgement, {})
        if len(self._declared) >= _CACHE:
            self._declared.clear()
        self._declared[key] = (judgement.evidence, declared)
        return declared


def _declare(harness: Harness, judgement: Judgement, carried: Mapping[str, Any]) -> dict[str, Any]:
    identity = harness.identity
    components = {}
    for component in COMPONENTS:
        judged = judgement.evidence.get(component, {})
        before = carried.get(component, {}).get("parts", {})
        evidence = {
            part: strongest([judged.get(part, "unrecorded"), _carried_evidence(before.get(part), value)])
            for part, value in identity.parts[component].items()
        }
        components[component] = component_stamp(identity.components[component], identity.parts[component], evidence)
    declared: dict[str, Any] = {"components": components, "name": harness.name}
    if not judgement.contradicted:
        declared["fingerprint"] = identity.fingerprint
    return declared


def _state(result: Stamped, claimed: dict[str, Any]) -> None:
    """Add a claim to what the trace itself says: they are one statement unless they disagree."""
    if not result.stamp:
        result.stamp = claimed
        return
    joined = join([Statement("", harness=result.stamp), Statement("", harness=claimed)])
    if joined.conflicts:
        result.second = claimed
    else:
        result.stamp = joined.harness


def _unnamed(carried: Mapping[str, Any]) -> dict[str, Any]:
    """Return a carried stamp without a fingerprint: nothing in it can be recomputed, so its evidence is claimed.

    Where the harness was contradicted it stays as it is: no claim brings its fingerprint back, or takes its place.
    """
    declared = carried.get("declared") or {}
    if carried.get("contradictions") or "components" not in declared:
        return dict(carried)
    return {**carried, "declared": {**declared, "components": lowered(declared["components"])}}


def _parts_of(components: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {
        name: {part: value["digest"] for part, value in component["parts"].items()}
        for name, component in components.items()
    }


def _carried_evidence(part: Mapping[str, Any] | None, digest: str) -> str:
    """Return the evidence that a carried stamp has for a part, if it speaks of the same bytes."""
    return part["evidence"] if part is not None and part["digest"] == digest else "unrecorded"


def contradicted(where: str, trace_id: str, stamp: Mapping[str, Any]) -> Finding:
    """Return the finding that the content of a trace refutes the harness that a stamp states for it.

    Args:
        where: its place.
        trace_id: its id.
        stamp: the stamp, which lists the contradictions.
    """
    name = declared_name(stamp) or "the harness stated"
    message = f"trace {trace_id[:TRACE_DIGITS]} was not made by {name}: {worded(stamp['contradictions'])}"
    return finding(CONTRADICTED, where, message, f"tracemark audit {trace_id[:TRACE_DIGITS]}")
