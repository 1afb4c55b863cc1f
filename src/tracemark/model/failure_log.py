"""The manifest of a failure log: whose failures it holds, and where every other trace of the store went.

Like that of a training set it states content and nothing else: no time, no host, no git commit. So the same corpus
under the same conditions and decisions gives the same manifest.
"""

from __future__ import annotations

from typing import Literal

from tracemark.model.export import Exporter, File
from tracemark.model.value import Digest, Fingerprint, Value

FORMAT = "tracemark/failure-log/1"
"""The value of a manifest's `format`."""


class LogOf(Value):
    """The log of one harness."""

    fingerprint: Fingerprint
    """The harness; failures of its equivalents count as its own."""
    label: str | None
    """Its name; no identity. None when no known harness version has the fingerprint."""
    equivalents: list[Fingerprint]
    """Other fingerprints whose traces count as its own, sorted."""
    folder: str
    """Where its log lies: `.` for the accepted harness, `candidates/<16 digits>` for a rejected candidate."""
    clusters: int
    """Clusters, each with a file of its own."""
    unclustered: int
    """Rows of `failures.jsonl` whose clusters have no file, because there were too many."""
    evidence: dict[str, int]
    """Rows of all its files by how well it is known that this harness made their traces."""


class Routed(Value):
    """Traces of one harness that one condition sent one way."""

    harness: Fingerprint
    """The harness whose log they belong to."""
    condition: str
    """The first condition that holds for them, or `unmatched`."""
    side: str
    """Whose fault it is."""
    destination: str
    """Where they go."""
    file: str | None
    """The file with a row for each, relative to the folder of the log. None: they are in none, since they succeeded, or
    because they go into training."""
    traces: int
    """How many."""


class FailureCounts(Value):
    """Where every stored trace went: `traces` is `superseded`, all of `left_out`, and the traces of all of `routed`."""

    traces: int
    """Traces in the store."""
    superseded: int
    """Others stand for them, made of the same records by newer importers."""
    left_out: dict[str, int]
    """Traces that were not routed by first reason, in the order in which the reasons are looked for; 0 where there was
    none."""
    routed: list[Routed]
    """The others."""


class ConditionsUsed(Value):
    """The conditions by which traces were routed."""

    version: int
    """Version of the form in which conditions are written."""
    digest: Digest
    """SHA-256 of what they say, the shipped ones and one's own."""
    file: str | None
    """The file with one's own, as params.yaml names it; None when there are none."""


class FailureLog(Value):
    """What a failure log says of itself."""

    format: Literal["tracemark/failure-log/1"] = "tracemark/failure-log/1"
    """Always `tracemark/failure-log/1`."""
    exporter: Exporter
    """What wrote it."""
    logs: list[LogOf]
    """The accepted harness, then the rejected candidates that have traces, by fingerprint."""
    counts: FailureCounts
    """Where every stored trace went."""
    conditions: ConditionsUsed
    """By what they were routed."""
    evaluation_tasks: int
    """Size of the evaluation set; none of its tasks is in any file."""
    evaluation_digest: Digest
    """SHA-256 of the canonical JSON of the sorted list of its tasks."""
    corpus: Digest
    """Digest over the names of all segments and annotations of the store, those of exports left out."""
    objects: dict[str, str]
    """As in the manifest of a training set."""
    files: dict[str, File]
    """Digest and size of each other file by its path, those in `clusters/` left out: each of them is named by what it
    is about."""
