"""Lines that are no traces: annotations and refused records, as the catalogue sees them.

Invariants:
- an annotation's identity is the SHA-256 of its canonical line, so stating the same thing twice adds nothing;
- an annotation is out of force exactly when another one that is present names its digest, whoever is newer.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

from tracemark import digest
from tracemark.digest import JSON
from tracemark.errors import IntegrityError
from tracemark.model.annotation import FORMAT
from tracemark.store.stated import EXPORTS, wrong_in_annotation

STAMPS = "stamps"
"""Kind of annotations whose value is `{"harness": STAMP}`: what is later said of the harness."""

OUTCOMES = "outcomes"
"""Kind of annotations whose value is `{"outcome"?: OUTCOME, "run"?: RUN}`: what is later said of the run."""

SOURCES = "sources"
"""Kind of annotations whose value is `{"source": SOURCE}`: one more raw record that holds the trace."""

INGESTED = (STAMPS, OUTCOMES, SOURCES)
"""The kinds that `ingest` writes. What it says a second time of a new trace is stored before the trace, so that no
crash leaves the trace undisputed; where the trace never came, the statement says nothing and is no fault."""

REFUSED_FORMAT = "tracemark/refused/1"
"""The value of a refused record's `format`."""


class SourceRow(NamedTuple):
    """Which further record holds a trace, and who read it. Text is None where the statement says nothing."""

    raw: bytes
    """SHA-256 of the raw record, 32 bytes."""
    trace: bytes
    """The trace's id, 32 bytes."""
    format: str | None
    """Format of the source."""
    label: str | None
    """File name and place in the source."""
    importer: str | None
    """Name of the importer."""
    importer_version: str | None
    """Its version."""


class AnnotationRow(NamedTuple):
    """What the catalogue holds of one annotation."""

    digest: bytes
    """SHA-256 of its canonical line, 32 bytes."""
    kind: str
    """Its kind, also the name of its folder."""
    trace: bytes | None
    """Id of the trace it is about, 32 bytes; None when it is about many."""
    supersedes: tuple[bytes, ...]
    """Digests of what it replaces: annotations of its kind, or the first statement of its trace."""
    traces: tuple[bytes, ...]
    """Ids listed in `value.traces`: what an export took."""
    source: SourceRow | None
    """What a statement of kind `sources` says; None for every other kind."""


class RefusedRow(NamedTuple):
    """What the catalogue holds of one refused record."""

    digest: bytes
    """SHA-256 of its canonical line, 32 bytes."""
    raw: bytes
    """SHA-256 of the record's bytes, 32 bytes."""
    code: str
    """Code of the finding that says why."""


def refused(code: str, where: str, message: str, raw_digest: str, excerpt: bytes) -> dict[str, JSON]:
    """Return the stored form of a record that could not be read.

    Args:
        code: code of the finding.
        where: file name and place in the source, never absolute.
        message: what is wrong.
        raw_digest: SHA-256 of the record's bytes, 64 hexadecimal digits.
        excerpt: the record's bytes, or their beginning.
    """
    return {
        "format": REFUSED_FORMAT,
        "code": code,
        "where": where,
        "message": message,
        "raw": raw_digest,
        "excerpt": base64.b64encode(excerpt).decode(),
    }


def project_annotation(line: bytes, value: JSON = None) -> AnnotationRow:
    """Return what the catalogue holds of a stored annotation.

    Args:
        line: the canonical line, without its line feed.
        value: what it says, where somebody parsed it already; None parses it.

    Raises:
        IntegrityError: when it is not a line of an annotation.
    """
    try:
        value = digest.load_canonical(line) if value is None else value
        if value["format"] != FORMAT:
            raise IntegrityError(f"a line has format {str(value['format'])[:60]!r}, not {FORMAT}")
        wrong = wrong_in_annotation(value)
        if wrong is not None:
            raise IntegrityError(f"a line is not an annotation: {wrong}")
        trace = value.get("trace")
        return AnnotationRow(
            bytes.fromhex(digest.sha256(line)),
            str(value["kind"]),
            None if trace is None else bytes.fromhex(trace),
            tuple(bytes.fromhex(item) for item in value.get("supersedes") or ()),
            tuple(map(bytes.fromhex, value["value"]["traces"])) if value["kind"].startswith(EXPORTS) else (),
            _source(bytes.fromhex(trace), value["value"]["source"]) if value["kind"] == SOURCES else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(f"a line is not an annotation: {type(error).__name__}: {error}") from None


def _source(trace: bytes, source: dict[str, JSON]) -> SourceRow:
    told = (source.get(name) for name in SourceRow._fields[2:])
    return SourceRow(bytes.fromhex(source["raw"]), trace, *(None if text is None else str(text) for text in told))


def project_refused(line: bytes, value: JSON = None) -> RefusedRow:
    """Return what the catalogue holds of a stored refused record.

    Args:
        line: the canonical line, without its line feed.
        value: what it says, where somebody parsed it already; None parses it.

    Raises:
        IntegrityError: when it is not a line of a refused record.
    """
    try:
        value = digest.load_canonical(line) if value is None else value
        if value["format"] != REFUSED_FORMAT:
            raise IntegrityError(f"a line has format {str(value['format'])[:60]!r}, not {REFUSED_FORMAT}")
        return RefusedRow(bytes.fromhex(digest.sha256(line)), bytes.fromhex(value["raw"]), str(value["code"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(f"a line is not a refused record: {type(error).__name__}: {error}") from None
