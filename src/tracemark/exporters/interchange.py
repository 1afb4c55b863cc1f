"""ATIF documents out of stored traces: the interchange form, made so that ingesting a document gives its trace again.

A document is the trajectory as it is stored, its bytes untouched, with one member more: `tracemark` in the root's
`extra`, which holds what is true of the trace now (`model.carried`). Ingest takes it out again.

Invariants:
- without that member a document's canonical bytes are the trajectory's, so its id is what it was: where there was no
  `extra`, an empty one or null, and where its `extra` had a member of that name, the document says so;
- steps are copied and never parsed: only what stands in front of `schema_version` is, and that is little;
- a contested trace carries every statement that is in force, so it comes back contested.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tracemark import digest
from tracemark.digest import JSON
from tracemark.model.stamp import fingerprint_of
from tracemark.model.trace import statement
from tracemark.store.row import head_of

NAME = "atif"
"""The exporter's name."""

VERSION = "1"
"""Its version; another one may give other bytes for the same traces."""

_BEHIND = b',"schema_version":'
_TRIES = 8
_ABSENT: Any = object()


def stated(line: bytes) -> list[dict[str, JSON]]:
    """Return what a stored line says of its trace, as `document` takes it."""
    return [statement(head_of(line))]


def standing_as(content: Mapping[str, JSON], fingerprint: str | None) -> dict[str, JSON]:
    """Return what is true of a trace now, its stamp naming no harness under which it does not count.

    Args:
        content: `harness`, `outcome` and `run`.
        fingerprint: that of the harness under which it counts; None when it counts under none.
    """
    stamp = content["harness"]
    if fingerprint_of(stamp) in (None, fingerprint):
        return dict(content)
    declared = {name: value for name, value in stamp["declared"].items() if name != "fingerprint"}
    return {**content, "harness": {**stamp, "declared": declared}}


def document(trajectory: bytes, said: Sequence[Mapping[str, JSON]], trace_id: str) -> bytes:
    """Return the document of one trace, one line of JSON without a line feed.

    Args:
        trajectory: its canonical bytes.
        said: what is true of it (`harness`, `outcome`, `run`); several statements, the first one whole, where they
            disagree and nobody has decided.
        trace_id: its id.
    """
    root, rest = _parted(trajectory)
    extra = root.get("extra", _ABSENT)
    carried = {**said[0], "trajectory": trace_id}
    if len(said) > 1:
        carried["further"] = list(said[1:])
    if extra is None:
        carried["null_extra"] = True
    elif extra == {}:
        carried["empty_extra"] = True
    kept = {} if extra is None or extra is _ABSENT else dict(extra)
    if "tracemark" in kept:
        # a level deeper it might be too deep to be read again
        carried["original"] = _free("original_tracemark", kept)
        kept[carried["original"]] = kept["tracemark"]
    return digest.canonical({**root, "extra": {**kept, "tracemark": carried}}, finite=True)[:-1] + rest


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _parted(trajectory: bytes) -> tuple[dict[str, JSON], bytes]:
    """Return the members of the root that stand in front of `schema_version`, and the bytes from there on."""
    # An object within may have such a member too; what precedes the right one is an object once closed. A text can hold
    # any number of them, so after a few the whole is parsed.
    at = -1
    for _ in range(_TRIES):
        at = trajectory.find(_BEHIND, at + 1)
        if at < 0:
            break
        try:
            return digest.load_canonical(trajectory[:at] + b"}"), trajectory[at:]
        except digest.NotJSONError:
            continue
    return digest.load_canonical(trajectory), b"}"
