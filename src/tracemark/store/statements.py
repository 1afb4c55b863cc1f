"""Reading what was said of traces, and keeping the catalogue's restated rows true.

Most traces are stated once, and their row says all. For the few that are not, the statements are read from the files,
joined, and the difference to the first statement is kept in the catalogue, so that selecting reads no file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from tracemark import digest
from tracemark.digest import JSON
from tracemark.errors import IntegrityError
from tracemark.findings import Finding, finding
from tracemark.model.stamp import fingerprint_of
from tracemark.store.annotations import OUTCOMES, STAMPS
from tracemark.store.catalogue import Catalogue, Reader, Restated
from tracemark.store.layout import Layout, located
from tracemark.store.row import HEAD_FIELDS, TraceRow, head_of, head_values, shown_of
from tracemark.store.segment import read_lines
from tracemark.store.state import Joined, Statement, in_force, join, of_harness
from tracemark.words import first_few

_BATCH = 256
_STAMP_FIELDS = ("fingerprint", "harness", "evidence", "corroborated", "contradicted")


def statements(catalogue: Reader, layout: Layout, ids: Collection[bytes]) -> dict[bytes, list[Statement]]:
    """Return the statements in force about each of `ids`, the first statement first; traces not present are left out.

    Raises:
        IntegrityError: when a file that holds one is damaged.
    """
    heads: dict[bytes, Statement] = {}
    others: dict[bytes, dict[str, Statement]] = {}
    for trace, kind, statement in _read(catalogue, layout, ids):
        if kind == "trace":
            heads[trace] = statement
        else:
            others.setdefault(trace, {})[statement.digest] = statement
    replaced: dict[bytes, dict[str, frozenset[str]]] = {}
    for trace, old, kind in catalogue.superseded(ids):
        kinds = replaced.setdefault(trace, {STAMPS: frozenset(), OUTCOMES: frozenset()})
        kinds[kind] = kinds.get(kind, frozenset()) | {old.hex()}
    found = {}
    for trace, head in heads.items():
        more = [s for key, s in others.get(trace, {}).items() if key != head.digest]
        found[trace] = in_force(head, more, replaced.get(trace, {}))
    return found


def statement_in(name: str, annotation: Mapping[str, JSON]) -> Statement:
    """Return what an annotation of kind `stamps` or `outcomes` says, given its digest and its value."""
    value, told = annotation["value"], annotation["tool"].get("parameters") or {}
    noted = tuple(told.get(name) for name in ("source", "raw", "inherited"))
    if annotation["kind"] == STAMPS:
        return Statement(name, value.get("harness"), None, None, *noted)
    return Statement(name, None, value.get("run"), value.get("outcome"), *noted)


def refresh(catalogue: Catalogue, layout: Layout) -> dict[bytes, IntegrityError]:
    """Make the restated rows of all stale traces again.

    Returns:
        The traces of which a statement cannot be read, and why; their rows are as before, and stale.
    """
    unread: dict[bytes, IntegrityError] = {}
    while len(catalogue.stale(len(unread) + 1)) > len(unread):
        # in one transaction, lest another process add a statement between the reading and the writing
        with catalogue.transaction():
            ids = [i for i in catalogue.stale(len(unread) + _BATCH) if i not in unread]
            found, failed = restated_apart(catalogue, layout, ids)
            catalogue.restate([(i, found.get(i)) for i in ids if i not in failed])
        unread |= failed
    return unread


def left_aside(unread: Mapping[bytes, IntegrityError]) -> list[Finding]:
    """Return a finding for each file that kept the statements about a trace from being read, see `refresh`."""
    by_file: dict[tuple[str, str], list[bytes]] = {}
    for identity, error in unread.items():
        by_file.setdefault((error.where or "", error.message), []).append(identity)
    return [
        finding("file-damaged", where, f"{message}: what was stated since of {_counted(ids)} is not applied")
        for (where, message), ids in sorted(by_file.items())
    ]


def _counted(ids: Sequence[bytes]) -> str:
    shown = first_few((one.hex()[:12] for one in ids), 1)
    return f"trace {shown}" if len(ids) == 1 else f"{len(ids)} traces ({shown})"


def untrue(catalogue: Reader, layout: Layout, ids: Collection[bytes]) -> list[bytes]:
    """Return those of `ids` of which the catalogue keeps another present state than their statements give, sorted.

    Raises:
        IntegrityError: when a file that holds a statement is damaged.
    """
    found, unread = untrue_apart(catalogue, layout, ids)
    for error in unread.values():
        raise error
    return found


def untrue_apart(
    catalogue: Reader, layout: Layout, ids: Collection[bytes]
) -> tuple[list[bytes], dict[bytes, IntegrityError]]:
    """Return what `untrue` does, and the traces of which a statement cannot be read, with the reason."""
    found: list[bytes] = []
    unread: dict[bytes, IntegrityError] = {}
    ordered = sorted(ids)
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        (expected, failed), kept = restated_apart(catalogue, layout, batch), catalogue.restated(batch)
        found += [i for i in batch if i not in failed and expected.get(i) != kept.get(i)]
        unread |= failed
    return found, unread


def restated(catalogue: Reader, layout: Layout, ids: Collection[bytes]) -> dict[bytes, Restated]:
    """Return how the present state of traces differs from their first statement; where it does not they are left out.

    Raises:
        IntegrityError: when a file that holds a statement is damaged.
    """
    said = statements(catalogue, layout, ids)
    rows = {stored.row.id: stored.row for stored in catalogue.lookup(ids)}
    found = {i: _restated(rows[i], said[i]) for i in said}
    return {i: state for i, state in found.items() if state is not None}


def restated_apart(
    catalogue: Reader, layout: Layout, ids: Sequence[bytes]
) -> tuple[dict[bytes, Restated], dict[bytes, IntegrityError]]:
    """Return what `restated` does, and the traces of which a statement cannot be read, with the reason."""
    try:
        return restated(catalogue, layout, ids), {}
    except IntegrityError as error:
        if len(ids) == 1:
            return {}, {ids[0]: error}
    half = len(ids) // 2
    first, second = (restated_apart(catalogue, layout, part) for part in (ids[:half], ids[half:]))
    return first[0] | second[0], first[1] | second[1]


def _read(catalogue: Reader, layout: Layout, ids: Collection[bytes]) -> Iterator[tuple[bytes, str, Statement]]:
    for file, group in groupby(catalogue.statement_places(ids), key=lambda place: place[3]):
        places = list(group)
        try:
            for place, line in zip(places, read_lines(layout.path(file), [p[4] for p in places]), strict=True):
                trace, kind, name = place[:3]
                yield trace, kind, _statement(name.hex(), kind, line)
        except IntegrityError as error:
            raise _unread(error.message, file) from None
        except digest.NotJSONError as error:
            raise _unread(f"a stored file is damaged: {error}", file) from None


def _unread(message: str, file: str) -> IntegrityError:
    return IntegrityError(message, where=located(file), hint="tracemark check")


def _statement(name: str, kind: str, line: bytes) -> Statement:
    if kind in (STAMPS, OUTCOMES):
        if digest.sha256(line) != name:
            raise IntegrityError("a stored annotation is not what its digest says")
        annotation: dict[str, JSON] = digest.load_canonical(line)
        return statement_in(name, annotation)
    head = head_of(line)
    source = head["source"]
    return Statement(name, head["harness"], head["run"], head["outcome"], source.get("label"), source.get("raw"))


def _restated(row: TraceRow, said: list[Statement]) -> Restated | None:
    joined = join(said)
    now = dict(zip(HEAD_FIELDS, head_values(joined.harness, joined.run, joined.outcome), strict=True))
    changed = {name: value for name, value in now.items() if value != getattr(row, name)}
    shown = _shown_since(row, said[0], joined)
    if not changed and not joined.conflicts and shown is None:
        return None
    return Restated(changed, joined.conflicts, _choices(said) if joined.conflicts else {}, shown)


def _shown_since(row: TraceRow, first: Statement, joined: Joined) -> str | None:
    """Return what statements show together of a harness that nobody names, see `Restated.shown`."""
    if row.fingerprint is not None:
        return None
    shown = "" if any(map(of_harness, joined.conflicts)) else shown_of(joined.harness)
    # a stamp that is out of force cannot be compared any more
    return None if first.harness is not None and shown == shown_of(first.harness) else shown


def _choices(said: list[Statement]) -> dict[str, JSON]:
    """Return, for each fingerprint that is declared, the stamp fields that those who declare it give together."""
    sides: dict[str, list[Statement]] = {}
    for statement in said:
        fingerprint = fingerprint_of(statement.harness or {})
        if fingerprint is not None:
            sides.setdefault(fingerprint, []).append(statement)
    choices: dict[str, JSON] = {}
    for fingerprint, side in sides.items():
        values = dict(zip(HEAD_FIELDS, head_values(join(side).harness, {}, {}), strict=True))
        choices[fingerprint] = {name: values[name] for name in _STAMP_FIELDS}
    return choices
