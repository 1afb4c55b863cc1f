"""Does an export still say the truth? Every row is made again from the store and compared.

Nothing that the export says of itself is believed: digests are taken of the bytes, ids of the trajectories, rows are
rendered afresh, and each row's trace is put through the strict filter under the terms of now; only limits of number
(`per-task`, `total`), which compare traces with each other, are not asked again. Each difference is one finding; where
rows differ, it names the column and the place in it. Members in another order are a difference, for a chat template
renders them as they stand. What was found to be so is said as well, so that silence is not mistaken for proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.durable import read_regular, require_regular, why_unread
from tracemark.errors import IntegrityError, IrregularFileError
from tracemark.exporters import manifest as manifests
from tracemark.exporters import sft
from tracemark.exporters.select import ContentNeededError, Facts, Reason, Terms, Verdict, judge
from tracemark.findings import Finding, finding
from tracemark.model.export import Manifest
from tracemark.store.deciding import settling
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

    terms: Terms
    """The terms of an export that was made now; `accepted` is empty when no harness is."""
    fetch: Callable[[str], Found | None]
    """Gives the trace of an id; None when the store does not hold it."""
    tools: Callable[[str], Sequence[dict[str, Any]] | None]
    """Gives the definitions of the tools of the harness of a fingerprint; None when nobody knows that harness."""
    fits: Callable[[dict[str, Any]], Collection[str]]
    """Gives the known fingerprints that the content of a line, parsed, does not exclude; asked under `unique` only."""
    recorded: frozenset[str] | None = None
    """Digests of the manifests that `exports.sft` annotations record; None when that is not to be judged."""


@dataclass(slots=True)
class Audited:
    """What an audit of an export found."""

    manifest: Manifest | None = None
    """The manifest; None when it cannot be read, and then nothing else was looked at."""
    differences: list[Finding] = field(default_factory=list)
    """Every difference from what the store would give now; empty when there is none."""
    notes: list[Finding] = field(default_factory=list)
    """What is worth knowing and no difference: other terms than those of now, files of which nobody says anything."""
    ids: int = 0
    """Rows whose trace is stored and whose bytes there give its id."""
    usable: int = 0
    """Rows whose trace passes the strict filter now."""
    rows: int = 0
    """Rows that are, byte for byte, what rendering their trace gives."""
    files: int = 0
    """Files that have the digest that the manifest states."""

    def proved(self) -> tuple[str, ...]:
        """Return what was derived again and found to be so, one sentence each."""
        if self.manifest is None:
            return ()
        of = len(self.manifest.rows)
        sentences = [
            f"rows that are, byte for byte, what the store gives now: {self.rows} of {of}",
            f"rows whose trace is stored, and its bytes give its id: {self.ids} of {of}",
            f"rows whose trace an export made now may take (limits of number aside): {self.usable} of {of}",
            f"files with the SHA-256 that the manifest states: {self.files} of {len(self.manifest.files)}",
        ]
        if not any(found.where == manifests.NAME for found in self.differences):
            sentences.append("the manifest is the one that the store records, and its counts add up")
        return tuple(sentences)


def audit(folder: Path, present: Present) -> Audited:
    """Hold an export against what the store would give now.

    Args:
        folder: the export.
        present: the store, the terms and the decisions as they are now.

    Raises:
        NewerFormatError: when another version wrote the manifest.
    """
    try:
        manifest, whole = manifests.decode(read_regular(folder / manifests.NAME))
    except (OSError, IrregularFileError, IntegrityError) as error:
        reason = error.message if isinstance(error, IntegrityError) else why_unread(error)[0]
        message = f"the manifest cannot be read: {reason}"
        return Audited(None, [finding("export-manifest-unreadable", manifests.NAME, message)])
    audited = Audited(manifest)
    audited.differences += _of_manifest(manifest, whole, present)
    audited.differences += _of_files(folder, audited, manifest)
    audited.notes += [*_of_terms(manifest, present.terms), *_of_hidden(folder)]
    audited.differences += _of_rows(folder / sft.FILE, audited, manifest, present)
    return audited


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
        yield finding("export-manifest-edited", manifests.NAME, "its bytes are not those that were written")
    elif present.recorded is not None and digest.of(manifest.model_dump()) not in present.recorded:
        yield finding("export-not-recorded", manifests.NAME, "the store records no export with this manifest")
    if manifest.harness.fingerprint not in present.terms.accepted:
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


def _of_terms(manifest: Manifest, terms: Terms) -> Iterator[Finding]:
    """Yield under which other terms than those of now the export was made."""
    stated = {"export.evidence": manifest.policy, **manifest.parameters.model_dump()}
    now = {"export.evidence": terms.policy.value, **manifests.parameters(terms).model_dump()}
    for name, value in stated.items():
        if value != now[name]:
            message = f"{name} was {_short(value)} when it was made, and is {_short(now[name])} now"
            yield finding("export-terms-differ", manifests.NAME, message)
    one = {manifest.harness.fingerprint, *manifest.harness.equivalents}
    for verb, fingerprints in (("counted", one - terms.accepted), ("counts now", terms.accepted - one)):
        for fingerprint in sorted(fingerprints if manifest.harness.fingerprint in terms.accepted else ()):
            message = f"{fingerprint} {verb} as the accepted harness, and not {'now' if verb == 'counted' else 'then'}"
            yield finding("export-terms-differ", manifests.NAME, message)


def _of_hidden(folder: Path) -> Iterator[Finding]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            yield finding("export-file-hidden", path.name, "no export writes it, and nothing is known of it")


def _of_files(folder: Path, audited: Audited, manifest: Manifest) -> Iterator[Finding]:
    for name, stated in manifest.files.items():
        if Path(name).name != name:
            yield finding("export-manifest-edited", manifests.NAME, f"{name!r} is no file name")
            continue
        try:
            require_regular(folder / name)
            found = digest.sha256_file(folder / name)
        except (OSError, IrregularFileError) as error:
            yield finding("export-file-differs", name, f"the file cannot be read: {why_unread(error)[0]}")
            continue
        if found != stated.sha256:
            yield finding("export-file-differs", name, f"its SHA-256 is {found}, not {stated.sha256}")
        else:
            audited.files += 1
    for path in sorted(folder.iterdir()):
        if path.name not in {manifests.NAME, *manifest.files} and not path.name.startswith("."):
            yield finding("export-file-differs", path.name, "the manifest does not list it")


def _of_rows(path: Path, audited: Audited, manifest: Manifest, present: Present) -> Iterator[Finding]:
    try:
        require_regular(path)
        with path.open("rb") as file:
            for number, (line, stated) in enumerate(zip_longest(file, manifest.rows), 1):
                where = f"{path.name}:{number}"
                if line is None:
                    yield finding("export-rows-differ", where, f"the row of {stated} is missing")
                else:
                    yield from _of_row(line, _Row(where, stated, audited), present)
    except (OSError, IrregularFileError):
        # that the file cannot be read is a finding already
        return


class _Row(NamedTuple):
    """One row that is looked at."""

    where: str
    stated: str | None
    """The trace that the manifest names for it; None when it names no more."""
    audited: Audited


def _of_row(line: bytes, place: _Row, present: Present) -> Iterator[Finding]:
    where, stated = place.where, place.stated
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
    proved = _gives(found.line, trace_id)
    if not proved:
        yield finding("export-trace-damaged", where, f"the stored bytes of {trace_id} do not give that id")
    fresh, verdict = _now(found, present)
    standing = list(_of_standing(trace_id, where, found.facts, verdict))
    rendering = list(_of_rendering(line, where, fresh, verdict))
    yield from (*standing, *rendering)
    place.audited.ids += proved
    place.audited.usable += not standing
    same = fresh is not None and fresh.line is not None and not rendering
    place.audited.rows += proved and same and trace_id == stated


def _gives(line: bytes, trace_id: str) -> bool:
    try:
        return digest.sha256(trajectory_slice(line)) == trace_id
    except IntegrityError:
        return False


def _now(found: Found, present: Present) -> tuple[sft.Rendered | None, Verdict]:
    """Return the row that a trace gives now, None when it cannot be read, and what the filter says of it now."""
    known = found.facts
    try:
        line = digest.load_canonical(found.line)
        trajectory = line["trajectory"]
    except (digest.NotJSONError, KeyError, TypeError):
        try:
            return None, judge(known, present.terms)
        except ContentNeededError:
            return None, Verdict(None)
    fresh = sft.render(trajectory, known, present.tools(known.fingerprint or ""))
    return fresh, judge(known, present.terms, lambda: present.fits(line), lambda: fresh.untrainable)


def _of_standing(trace_id: str, where: str, known: Facts, verdict: Verdict) -> Iterator[Finding]:
    """Yield why an export that was made now would leave a trace out."""
    if known.retracted:
        yield finding("export-trace-retracted", where, f"{trace_id} was retracted")
    if known.contested:
        hint = f"{settling(trace_id[:12], known.disputed)}; then export again"
        yield finding("export-trace-contested", where, f"statements about {trace_id} disagree", hint)
    elif verdict.reason in (Reason.NO_FINGERPRINT, Reason.OTHER_HARNESS):
        made_by = known.fingerprint or "no known harness"
        yield finding("export-other-harness", where, f"{trace_id} is of {made_by}, which is not the accepted one")
    elif verdict.reason not in (None, Reason.RETRACTED):
        detail = f" ({verdict.detail})" if verdict.detail else ""
        message = f"{trace_id} would be left out now: {verdict.reason}{detail}"
        yield finding("export-row-excluded", where, message)


def _of_rendering(line: bytes, where: str, fresh: sft.Rendered | None, verdict: Verdict) -> Iterator[Finding]:
    if fresh is None:
        return
    if fresh.line is None:
        if verdict.reason is not Reason.NOT_TRAINABLE:
            yield finding("export-row-differs", where, f"the trace gives no row: {fresh.untrainable}")
    elif fresh.line != line:
        named = difference(digest.loads(line).value, digest.load_canonical(fresh.line))
        yield finding("export-row-differs", where, named or "the row is written in other bytes for the same values")
