"""The manifest of an interchange export: what of a corpus the documents are, and what was left out.

Like that of a training set it states content and nothing else: no time, no host, no git commit. It lists no traces,
since each document names its own.
"""

from __future__ import annotations

from typing import Literal

from tracemark.model.export import Exporter, File
from tracemark.model.value import Value

FORMAT = "tracemark/interchange/1"
"""The value of a manifest's `format`."""

FORMS = ("lines", "files")
"""How documents are laid out: a line each in one file, or a file each."""


class Selected(Value):
    """Which traces were asked for. None means that it did not matter."""

    harness: str | None
    """Fingerprint of the harness under which they count; `none` for those that count under none."""
    status: str | None
    """How they ended."""
    task: str | None
    """The task."""
    limit: int | None
    """At most so many."""
    traces: list[str] | None
    """Their ids, sorted."""


class Left(Value):
    """How many traces were left out, each under the first reason that holds."""

    not_selected: int
    """Nobody asked for them."""
    superseded: int
    """Others stand for them, made of the same records by newer importers."""
    retracted: int
    """They were retracted, which no document could say: the ledger does."""


class Counted(Value):
    """Where every stored trace went: `traces` is `documents` and all of `excluded`."""

    traces: int
    """Traces in the store."""
    documents: int
    """Documents written, one for each trace."""
    contested: int
    """Those of them that carry statements which disagree."""
    excluded: Left
    """The others."""


class Interchange(Value):
    """What an interchange export says of itself."""

    format: Literal["tracemark/interchange/1"] = "tracemark/interchange/1"
    """Always `tracemark/interchange/1`."""
    complete: bool
    """False while the documents are being written, and for ever when that was cut short."""
    exporter: Exporter
    """What wrote it."""
    form: Literal["lines", "files"]
    """`lines`: `trajectories.jsonl`; `files`: `trajectories/<two digits>/<trace id>.json`."""
    selected: Selected
    """Which traces were asked for."""
    counts: Counted
    """Where every trace went."""
    corpus: str
    """Digest over the names of all segments and annotations of the store, those of exports left out."""
    objects: dict[str, str]
    """As in the manifest of a training set."""
    files: dict[str, File]
    """Digest and size of each file beside the manifest, by name; of the form `files` that of the snapshots alone."""
