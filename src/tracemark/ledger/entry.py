r"""One line of the ledger.

A line is canonical JSON: the members of a `Decision` and `digest`, the SHA-256 of the canonical JSON of the others. So
each line proves itself (`jq -cS 'del(.digest)' | tr -d '\n' | sha256sum`), and an edit of the newest entry, which no
other entry names yet, is found as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from tracemark import digest
from tracemark.model.decision import FORMAT, Decision
from tracemark.model.faults import first


class EntryError(ValueError):
    """A line that is no entry, or not the entry that was written.

    Args:
        code: the finding code that says which.
        message: what is wrong, in one sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision and its digest."""

    digest: str
    """SHA-256 of the decision's canonical JSON, 64 hexadecimal digits."""
    decision: Decision
    """What was decided."""

    @property
    def place(self) -> str:
        """Return how findings name the entry."""
        return f"ledger.jsonl {self.digest[:12]}"


def seal(decision: Decision) -> Entry:
    """Return `decision` with its digest."""
    return Entry(digest.of(decision.as_json()), decision)


def encode(entry: Entry) -> bytes:
    """Return the line of `entry`, with its newline."""
    return digest.canonical(entry.decision.as_json() | {"digest": entry.digest}) + b"\n"


def decode(line: bytes) -> Entry:
    """Read one line.

    Raises:
        EntryError: `ledger-line-unreadable` when it is no entry, `ledger-newer-format` when another version wrote it,
            `ledger-line-edited` when it is not what was written.
    """
    try:
        members = digest.loads(line).value
    except digest.NotJSONError as error:
        raise EntryError("ledger-line-unreadable", f"not a JSON value: {error}") from None
    if not isinstance(members, dict):
        raise EntryError("ledger-line-unreadable", "not a JSON object")
    stated = members.pop("digest", None)
    if members.get("format") != FORMAT:
        raise _foreign(members.get("format"))
    if digest.of(members) != stated:
        raise EntryError("ledger-line-edited", "the digest does not hold: the line is not what was written")
    try:
        return Entry(stated, Decision.model_validate(members))
    except ValidationError as error:
        raise EntryError("ledger-line-unreadable", explain(error, members)) from None


def explain(error: ValidationError, members: object) -> str:
    """Return the first fault of what should have been a decision in one sentence."""
    place, reason = first(error, members)
    return f"{place}: {reason}" if place else reason


def _foreign(found: object) -> EntryError:
    if isinstance(found, str) and found.startswith("tracemark/ledger/"):
        return EntryError("ledger-newer-format", f"written in format {found[:40]!r}, this version reads {FORMAT!r}")
    return EntryError("ledger-line-unreadable", f"no entry of format {FORMAT!r}")
