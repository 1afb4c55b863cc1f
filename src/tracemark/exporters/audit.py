"""Does an export still say the truth? Every row is made again from the store and compared.

Nothing that the export says of itself is believed: digests are taken of the bytes, ids of the trajectories, rows are
rendered afresh. Each difference is one finding; where rows differ, it names the column and the place in it. Members in
another order are a difference, for a chat template renders them as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.digest import JSON
from tracemark.errors import IntegrityError
from tracemark.exporters import manifest as manifests
from tracemark.exporters import sft
from tracemark.exporters.select import Facts
from tracemark.findings import Finding, finding
from tracemark.model.export import Manifest
from tracemark.store.row import trajectory_slice

_EXCERPT = 40
_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Found:
    """A trace as the store has it."""

    line: bytes
    """Its stored line."""
    facts: Facts
    """The trace as it stands now."""


@dataclass(frozen=True, slots=True)
class Present:
    """What an export is held against."""

    accepted: frozenset[str]
    """The accepted fingerprint and its declared equivalents; empty when none is accepted."""
    fetch: Callable[[str], Found | None]
    """Gives the trace of an id; None when the store does not hold it."""
    tools: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    """Fingerprint to the definitions of that harness's tools, which stand in where a trace records none."""
    recorded: frozenset[str] | None = None
    """Digests of the manifests that `exports.sft` annotations record; None when that is not to be judged."""


def audit(folder: Path, present: Present) -> list[Finding]:
    """Return every difference between an export and what the store would give now; empty when there is none.

    Args:
        folder: the export.
        present: the store, the accepted harness and the decisions as they are now.

    Raises:
        NewerFormatError: when another version wrote the manifest.
    """
    try:
        manifest, whole = manifests.decode((folder / manifests.NAME).read_bytes())
    except (OSError, IntegrityError) as error:
        reason = error.message if isinstance(error, IntegrityError) else error.strerror
        return [finding("export-manifest-unreadable", manifests.NAME, f"the manifest cannot be read: {reason}")]
    return [
        *_of_manifest(manifest, whole, present),
        *_of_files(folder, manifest),
        *_of_rows(folder / sft.FILE, manifest, present),
    ]


def difference(row: JSON, fresh: JSON) -> str | None:
    """Return where two JSON values first differ, and how, in words; None when they are equal.

    Where all values are equal, the first object whose members stand in another order is named.
    """
    reordered: str | None = None
    stack = [("", row, fresh)]
    while stack:
        path, ours, theirs = stack.pop()
        if isinstance(ours, dict) and isinstance(theirs, dict):
            keys = sorted(ours.keys() | theirs.keys(), reverse=True)
            stack += [(f"{path}.{key}".lstrip("."), ours.get(key, _ABSENT), theirs.get(key, _ABSENT)) for key in keys]
            if reordered is None and list(ours) != list(theirs):
                reordered = f"{path or 'the row'} has its members as {_names(ours)} instead of {_names(theirs)}"
        elif isinstance(ours, list) and isinstance(theirs, list):
            pairs = enumerate(zip_longest(ours, theirs, fillvalue=_ABSENT))
            stack += reversed([(f"{path}[{index}]", *pair) for index, pair in pairs])
        elif type(ours) is not type(theirs) or ours != theirs:
            return f"{path} {_unlike(ours, theirs)}"
    return reordered


def _unlike(ours: JSON, theirs: JSON) -> str:
    if ours is _ABSENT:
        return "is missing"
    if theirs is _ABSENT:
        return "should not be there"
    if not isinstance(ours, str) or not isinstance(theirs, str):
        return f"is {_short(ours)} instead of {_short(theirs)}"
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((index for index, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
    return f"differs from character {at}: {ours[at : at + _EXCERPT]!r} instead of {theirs[at : at + _EXCERPT]!r}"


def _names(value: dict[str, JSON]) -> str:
    text = ", ".join(value)
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def _short(value: JSON) -> str:
    text = digest.canonical(value).decode("utf-8")
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def _of_manifest(manifest: Manifest, whole: bool, present: Present) -> Iterator[Finding]:
    if not whole:
        yield finding("export-manifest-edited", manifests.NAME, "a member was changed after the manifest was written")
    elif present.recorded is not None and digest.of(manifest.model_dump()) not in present.recorded:
        yield finding("export-manifest-edited", manifests.NAME, "the store records no export with this manifest")
    if manifest.harness.fingerprint not in present.accepted:
        yield finding(
            "export-other-harness",
            manifests.NAME,
            f"the export is of {manifest.harness.fingerprint}, which is not the accepted harness",
        )
    counts = manifest.counts
    if counts.traces != counts.rows + sum(counts.excluded.values()):
        yield finding("export-rows-differ", manifests.NAME, "rows and traces left out do not add up to the traces")
    if not counts.rows == len(manifest.rows) == sum(counts.models.values()):
        yield finding("export-rows-differ", manifests.NAME, "the numbers of rows in the manifest disagree")


def _of_files(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    for name, stated in manifest.files.items():
        if Path(name).name != name:
            yield finding("export-manifest-edited", manifests.NAME, f"{name!r} is no file name")
            continue
        try:
            found = digest.sha256_file(folder / name)
        except OSError as error:
            yield finding("export-file-differs", name, f"the file cannot be read: {error.strerror}")
            continue
        if found != stated.sha256:
            yield finding("export-file-differs", name, f"its SHA-256 is {found}, not {stated.sha256}")
    for path in sorted(folder.iterdir()):
        if path.name not in {manifests.NAME, *manifest.files} and not path.name.startswith("."):
            yield finding("export-file-differs", path.name, "the manifest does not list it")


def _of_rows(path: Path, manifest: Manifest, present: Present) -> Iterator[Finding]:
    try:
        with path.open("rb") as file:
            for number, (line, stated) in enumerate(zip_longest(file, manifest.rows), 1):
                where = f"{path.name}:{number}"
                if line is None:
                    yield finding("export-rows-differ", where, f"the row of {stated} is missing")
                else:
                    yield from _of_row(line, where, stated, present)
    except OSError:
        # that the file cannot be read is a finding already
        return


def _of_row(line: bytes, where: str, stated: str | None, present: Present) -> Iterator[Finding]:
    try:
        row = digest.loads(line).value
    except digest.NotJSONError as error:
        yield finding("export-row-unreadable", where, f"not a JSON value: {error}")
        return
    trace_id = row.get("tracemark_trace_id") if isinstance(row, dict) else None
    if not isinstance(trace_id, str):
        yield finding("export-row-unreadable", where, "the row names no trace")
        return
    if trace_id != stated:
        yield finding("export-rows-differ", where, f"the row is of {trace_id}, the manifest says {stated}")
    found = present.fetch(trace_id)
    if found is None:
        yield finding("export-trace-missing", where, f"the store holds no trace {trace_id}")
        return
    yield from _of_trace(trace_id, where, found, present)
    yield from _of_rendering(line, where, found, present)


def _of_trace(trace_id: str, where: str, found: Found, present: Present) -> Iterator[Finding]:
    try:
        proved = digest.sha256(trajectory_slice(found.line)) == trace_id
    except IntegrityError:
        proved = False
    if not proved:
        yield finding("export-trace-damaged", where, f"the stored bytes of {trace_id} do not give that id")
    if found.facts.retracted:
        yield finding("export-trace-retracted", where, f"{trace_id} was retracted")
    if found.facts.contested:
        yield finding("export-trace-contested", where, f"statements about {trace_id} disagree")
    elif found.facts.fingerprint not in present.accepted:
        made_by = found.facts.fingerprint or "no known harness"
        yield finding("export-other-harness", where, f"{trace_id} is of {made_by}, which is not the accepted one")


def _of_rendering(line: bytes, where: str, found: Found, present: Present) -> Iterator[Finding]:
    try:
        trajectory = digest.load_canonical(found.line)["trajectory"]
    except (digest.NotJSONError, KeyError, TypeError):
        return
    fresh = sft.render(trajectory, found.facts, present.tools.get(found.facts.fingerprint or ""))
    if fresh.line is None:
        yield finding("export-row-differs", where, f"the trace gives no row: {fresh.untrainable}")
    elif fresh.line != line:
        named = difference(digest.loads(line).value, digest.load_canonical(fresh.line))
        yield finding("export-row-differs", where, named or "the row is written in other bytes for the same values")
