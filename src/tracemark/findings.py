"""A finding: one problem as data.

Checks return findings and do not raise; the caller decides what they mean for the exit code. A finding's severity comes
from the one table `findings.toml`, so a code means the same everywhere, and the page `docs/reference/findings.md` is
made from it. Severity `error` is what turns an answer into *no*; `warning` and `info` never change an exit code.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tracemark.errors import NotPulledError

NOT_PULLED = "not-pulled"
"""The code of findings that pinned data is not on disk."""


class Severity(StrEnum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(NamedTuple):
    """What a finding code means, wherever it occurs."""

    severity: Severity
    meaning: str
    """One sentence for the reference page."""
    hint: str
    """The next step that usually helps."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem as data."""

    code: str
    """A key of `CODES`."""
    severity: Severity
    where: str
    """File, line, trace, part or record; never an absolute path of a source."""
    message: str
    """What is wrong, in one sentence; may quote a source, so printers make control characters visible."""
    hint: str | None = None
    """The next command or step; None when the table has none."""

    def as_json(self) -> dict[str, str]:
        """Return the finding as JSON members `code, severity, where, message` and `hint` where there is one."""
        data = {"code": self.code, "severity": self.severity.value, "where": self.where, "message": self.message}
        if self.hint:
            data["hint"] = self.hint
        return data


def _table() -> dict[str, Code]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        name: Code(Severity(entry["severity"]), entry["meaning"], entry.get("hint", ""))
        for name, entry in tomllib.loads(text).items()
    }


CODES: dict[str, Code] = _table()
"""Every finding code, from `findings.toml` beside this module."""


def finding(code: str, where: str, message: str, hint: str | None = None) -> Finding:
    """Return the finding `code`, with its severity (and, unless given, its hint) from the table.

    Raises:
        KeyError: when `code` is not in `CODES`.
    """
    entry = CODES[code]
    return Finding(code, entry.severity, where, message, hint or entry.hint or None)


def any_error(findings: Iterable[Finding]) -> bool:
    """Return whether a finding of severity error is among `findings`."""
    return any(f.severity is Severity.ERROR for f in findings)


@dataclass(frozen=True)
class Report:
    """What a verb answers: its own members, declared by the subclass, and findings.

    A subclass documents each member by the text below it; the reference page of JSON members is made from those.
    """

    findings: tuple[Finding, ...]
    """Every problem met, in the order met."""

    @property
    def lacks_data(self) -> bool:
        """Whether pinned data is not on disk, so that the answer is that of a part of the corpus."""
        return any(found.code == NOT_PULLED for found in self.findings)

    @property
    def exit_code(self) -> int:
        """Return 10 when pinned data is not on disk, 1 when another finding is an error, else 0."""
        return NotPulledError.exit_code if self.lacks_data else int(any_error(self.findings))

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON members: those of the subclass, then `findings`."""
        data = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "findings"}
        return {**data, "findings": [finding.as_json() for finding in self.findings]}
