"""The reports of gates that lie below `reports/`, and those of them that are kept as evidence of decisions.

Invariants:
- a report is known by the digest of what its file holds, wherever below `reports/` it lies: what was edited is another;
- a file is kept as evidence under the digest of its content, and one that is not is named;
- one that no decision names is named too: a decision was cut short, or taken out of the ledger;
- the folder is committed, so what a killed process left in it is gone with the next decision;
- what is no report of a gate lies where it may, unless it is in the place of one that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from tracemark import digest
from tracemark.durable import own_file, read_regular, why_unread
from tracemark.errors import IrregularFileError
from tracemark.findings import Finding, finding
from tracemark.gates.grounds import Read, read
from tracemark.model.gate import FORMAT, GateReport

REPORTS = "reports"
"""The folder of a corpus below which reports of gates are looked for."""

DECIDED = f"{REPORTS}/decisions"
"""The folder in it where reports on which a decision rests are kept, each under its digest."""

_LEFTOVER = re.compile(r"\.[0-9a-f]{64}\.json\..+\.tmp")
_LARGEST = 64 * 1024 * 1024
_DIGITS = 12
_RESTORE = f"git log -- {DECIDED} shows who changed it: restore it, or take it out of the folder"


@dataclass(frozen=True, slots=True)
class AtHand:
    """The reports of gates that lie below `reports/`."""

    reports: dict[str, Read[GateReport]]
    """By digest."""
    kept: tuple[str, ...]
    """Digests of those that are kept as evidence and are what was kept."""
    findings: tuple[Finding, ...]
    """What is kept as evidence and is not what was kept."""


def place_for(root: Path, key: str) -> Path:
    """Return where the report of a decision is kept, once what others left there who died while they wrote is gone.

    The caller holds the lock of decisions, so nobody is writing there.

    Args:
        root: the corpus.
        key: the digest of the report.

    Raises:
        IrregularFileError: when the folder is a link that leads out of the corpus.
    """
    folder = own_file(root / DECIDED)
    for path in folder.glob(".*.tmp"):
        if _LEFTOVER.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink()
    return folder / f"{key}.json"


def at_hand(root: Path) -> AtHand:
    """Return the reports of gates that lie below `reports/` of a corpus."""
    found: dict[str, Read[GateReport]] = {}
    whole: list[str] = []
    findings: list[Finding] = []
    for path in sorted((root / REPORTS).glob("**/*.json")):
        kept = path.parent == root / DECIDED
        try:
            value = _value(path)
        except _UnreadError as error:
            value, problem = None, str(error)
        else:
            key = digest.of(value)
            problem = f"it has the digest {key[:_DIGITS]}: it was edited, or has another's name"
            if isinstance(value, dict) and value.get("format") == FORMAT:
                found[key] = read(GateReport, value)
            elif key == path.stem:
                problem = "it is no report of a gate"
            if key == path.stem and key in found:
                whole += [key] if kept else []
                continue
        if kept:
            message = f"the report of a decision is kept here under its digest, and {problem}"
            findings.append(finding("evidence-broken", path.relative_to(root).as_posix(), message, _RESTORE))
    return AtHand(found, tuple(whole), tuple(findings))


def unnamed(hand: AtHand, named: Container[str]) -> list[Finding]:
    """Return the finding of each report that is kept as evidence and that no decision names.

    Args:
        hand: the reports at hand.
        named: the digests of reports that decisions name.
    """
    message = "a report is kept here as the evidence of a decision, and no decision in the ledger names it"
    return [finding("evidence-unnamed", f"{DECIDED}/{key}.json", message) for key in hand.kept if key not in named]


class _UnreadError(Exception):
    """Why a file holds nothing that can be looked at."""


def _value(path: Path) -> digest.JSON:
    try:
        if path.stat().st_size > _LARGEST:
            raise _UnreadError(f"it is larger than {_LARGEST >> 20} MiB")
        return digest.loads(read_regular(path)).value
    except (OSError, IrregularFileError) as error:
        raise _UnreadError(f"it cannot be read: {why_unread(error)[0]}") from None
    except digest.NotJSONError as error:
        raise _UnreadError(f"it is no JSON value: {error}") from None
