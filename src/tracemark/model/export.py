"""The manifest of an export: what it holds, under which terms, out of which content, and why the rest is not in it.

A manifest states content and nothing else: no time, no host, no git commit (committing an export would change the
commit that it names). So the same corpus under the same terms gives the same manifest, and two manifests can be
compared. The policy stands first, because it says what every other number means.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from tracemark.model.value import Digest, Fingerprint, Maybe, Value

FORMAT = "tracemark/export/1"
"""The value of a manifest's `format`."""


class Exporter(Value):
    """What wrote the export."""

    name: str
    """The exporter, such as `sft`."""
    version: str
    """Its version; another one may give other rows for the same traces."""
    tracemark: str
    """Version of the package."""


class Equivalence(Value):
    """Fingerprints whose traces count as those of one harness, because the ledger says so."""

    fingerprints: list[Fingerprint]
    """The fingerprints, sorted."""
    rule: str | None
    """`equal-trees`: they differ in nothing but the text of Python files whose syntax trees are equal; `forced`: in
    more, and somebody declared it all the same. None: another program wrote the entry, and nobody compared them."""
    reason: str
    """Why, in the words of whoever declared it."""
    entry: Digest
    """The entry of the ledger."""


class HarnessOf(Value):
    """The harness whose traces the rows are."""

    fingerprint: str
    """The accepted fingerprint."""
    label: str | None
    """Its name; no identity. None when no known harness version has the fingerprint."""
    components: dict[str, str]
    """The digests of its four components; empty when no known harness version has the fingerprint."""
    equivalents: list[str]
    """Other fingerprints that the ledger declares equivalent, directly or through others, and whose traces count,
    sorted."""
    equivalences: Maybe[list[Equivalence]] = None
    """The declarations behind them, sorted by entry; absent when there are none."""

    @model_serializer(mode="wrap")
    def _absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = dump(self)
        if self.equivalences is None:
            del members["equivalences"]
        return members


class Parameters(Value):
    """What decided which traces were taken. None means that a limit is off."""

    models: list[str]
    """Models whose traces count, sorted; empty means every model."""
    evaluation_tasks: int
    """Size of the evaluation set; none of its tasks is in a row."""
    evaluation_digest: str
    """SHA-256 of the canonical JSON of the sorted list of its tasks: which set it was, wherever it was listed."""
    per_task: int | None
    """Most rows of one task."""
    total: int | None
    """Most rows in all."""
    minimum: int
    """Fewest rows for which the export is written."""
    tool_calls: list[int] | None
    """Fewest and most tool calls of a trace."""


class Counts(Value):
    """Where every stored trace went: `traces` is `rows` and all of `excluded`; with `superseded` it is the store."""

    traces: int
    """Traces looked at: every one in the store that no newer importer has read again."""
    superseded: int
    """Traces not looked at, since others, made of the same records by newer importers, stand for them."""
    rows: int
    """Rows written."""
    excluded: dict[str, int]
    """Traces left out by first reason, in the order in which the reasons are looked for; 0 where there was none."""
    not_trainable: dict[str, int]
    """The reason `not-trainable` in detail."""
    models: dict[str, int]
    """Rows by model; `unknown` where nobody names it."""


class File(Value):
    """One file of the export."""

    sha256: str
    """Digest of its bytes."""
    bytes: int
    """Its size."""


class Manifest(Value):
    """What an export says of itself."""

    policy: Literal["recorded", "unique", "claimed"]
    """How well the harness of each row is known."""
    format: Literal["tracemark/export/1"] = "tracemark/export/1"
    """Always `tracemark/export/1`."""
    exporter: Exporter
    """What wrote it."""
    harness: HarnessOf
    """Whose traces the rows are."""
    outcomes: dict[str, int]
    """What is known of the rows' success, in words, with the number of rows: `recorded success (grader X)`."""
    counts: Counts
    """Where every trace went."""
    parameters: Parameters
    """What decided it."""
    corpus: str
    """Digest over the names of all segments and annotations of the store, those of exports left out."""
    objects: dict[str, str]
    """Git object ids of the content of `harness_versions` and `params.yaml` as they stood in the work tree: `absent`
    for one that is not there, `unversioned` outside git."""
    findings: list[dict[str, Any]]
    """Findings of the harness that weaken what its fingerprint says, such as `closure-incomplete`."""
    files: dict[str, File]
    """The other files of the export by name."""
    rows: list[str]
    """Ids of the rows' traces, in the order of the rows."""
