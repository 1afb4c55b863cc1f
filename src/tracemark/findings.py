"""A finding: one problem as data.

Checks return findings and do not raise; the caller decides what they mean for the exit code. A finding's severity comes
from the one table `CODES`, so a code means the same everywhere, and the page `docs/reference/findings.md` is made from
it. Severity `error` is what turns an answer into *no*; `warning` and `info` never change an exit code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple


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


_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

CODES: dict[str, Code] = {
    # harness versions
    "closure-incomplete": Code(
        _WARNING,
        "The import closure of an entry cannot be known from its source (dynamic import, data file, environment).",
        "declare the file, the variable or the package in harness.yaml",
    ),
    "entry-missing": Code(
        _ERROR,
        "The file or module of an entry exists, and does not define the attribute that the entry names.",
        "correct the entry in harness.yaml, or define the attribute",
    ),
    "ignored-file-used": Code(
        _ERROR,
        "A file that belongs to a part of the harness is under `ignore`, so a change to it would not be seen.",
        "take the pattern out of `ignore`, or the file out of the harness",
    ),
    "manifest-duplicate": Code(
        _ERROR,
        "A key of harness.yaml, or the name of a prompt template or handler, occurs twice.",
        "give each its own name",
    ),
    "manifest-file-missing": Code(
        _ERROR,
        "A file or folder that the harness names does not exist or cannot be read.",
        "correct the path, or put the file there",
    ),
    "manifest-invalid": Code(
        _ERROR,
        "harness.yaml is no YAML, or a member is not what the format allows.",
        "docs/format/fingerprint.md lists the members of a manifest",
    ),
    "manifest-path-outside": Code(
        _ERROR,
        "A path, or a link, leads out of the harness folder (or out of a root or package).",
        "keep the file in the folder, or reach Python modules through `roots` or `packages`",
    ),
    "manifest-unknown-key": Code(
        _ERROR,
        "harness.yaml holds a key that the format does not know.",
        "docs/format/fingerprint.md lists the members of a manifest",
    ),
    "manifest-unsupported": Code(
        _ERROR,
        "harness.yaml asks for something that this version cannot do yet.",
        "write the schema to a JSON file and name it in `schema`",
    ),
    "module-ambiguous": Code(
        _WARNING,
        "An import has two places that answer to it; the first is hashed, and the other may be what runs.",
        "rename one of the two",
    ),
    "schema-invalid": Code(
        _ERROR,
        "A tool's schema is no JSON, no tool definition, or no valid JSON Schema.",
        "correct the schema",
    ),
    "siblings-differ-in-handler": Code(
        _WARNING,
        "Two harness versions differ only in observation handlers, so content alone cannot tell their traces apart.",
        "record the runs with `tracemark.record`, or export with the policy `recorded`",
    ),
    "snapshot-unreadable": Code(
        _ERROR,
        "A snapshot of a harness is damaged, or was written by a newer tracemark.",
        "restore the file with `git checkout` or `dvc pull`",
    ),
    "source-unparsable": Code(
        _ERROR,
        "A Python file or a template cannot be parsed, so what it imports cannot be known.",
        "correct the file",
    ),
    "template-invalid": Code(
        _ERROR,
        "A prompt template is not UTF-8, or does not parse in its syntax.",
        "correct the template, or its `syntax`",
    ),
    "template-variable": Code(
        _WARNING,
        "A template uses a variable that `variables` does not declare, or the other way round.",
        "declare what each variable depends on: constant, task or run",
    ),
    "unassigned-file": Code(
        _INFO,
        "A file of the folder belongs to no part; it counts into `runtime` as unassigned.",
        "name it under `ignore` if it does not matter, or in the part that uses it",
    ),
    # ingest
    "stamp-contradicted": Code(
        _ERROR,
        "The content of a trace disagrees with the harness stated for it; it is stored under no fingerprint.",
        "tracemark audit TRACE",
    ),
    "harness-unknown": Code(
        _WARNING,
        "A trace carries the fingerprint of a harness that is not known here; it is stored under no fingerprint.",
        "add the harness version, or put its snapshot beside the traces, and ingest again",
    ),
    "journal-open": Code(
        _WARNING,
        "A journal is still being written; it was skipped.",
        "ingest again when the run has ended",
    ),
    "journal-damaged": Code(
        _ERROR,
        "A journal of a recorded run cannot be read, or holds what no recorder writes.",
        "record the run again",
    ),
    "journal-empty": Code(
        _WARNING,
        "A recorded run ended before its first step, so there is no trace of it.",
        "record the run again",
    ),
    "batch-invalid": Code(
        _ERROR,
        "A batch.yaml cannot be understood; nothing of it was used.",
        "correct it and ingest again",
    ),
    "format-unknown": Code(
        _ERROR,
        "A file is of no format that is known.",
        "tracemark ingest --format NAME, or leave the file out",
    ),
    "format-tie": Code(
        _ERROR,
        "A file fits several formats equally well.",
        "tracemark ingest --format NAME",
    ),
    "empty-file": Code(
        _ERROR,
        "A file holds nothing.",
        "fetch the file again, or leave it out",
    ),
    "git-lfs-pointer": Code(
        _ERROR,
        "A Git-LFS pointer stands in place of a file.",
        "git lfs pull",
    ),
    "utf-16": Code(
        _ERROR,
        "A file is UTF-16, not UTF-8.",
        "iconv -f UTF-16 -t UTF-8 FILE",
    ),
    "invalid-utf8": Code(
        _ERROR,
        "A record holds bytes that are not UTF-8.",
        "export it again as UTF-8",
    ),
    "unreadable": Code(
        _ERROR,
        "A file cannot be opened or read.",
        "check its permissions",
    ),
    "symlink-outside": Code(
        _ERROR,
        "A symbolic link leads out of the given folder; it was not followed.",
        "copy the file into the folder, or give its own path",
    ),
    "path-outside": Code(
        _ERROR,
        "An archive member's name leads out of the archive; it was not read.",
        "unpack the archive and look at the file",
    ),
    "compressed-broken": Code(
        _ERROR,
        "A compressed file cannot be expanded.",
        "fetch the file again, or expand it by hand",
    ),
    "expanded-too-large": Code(
        _ERROR,
        "A compressed file expands to more than ingest.max_expanded.",
        "raise ingest.max_expanded in params.yaml if the file is what it should be",
    ),
    "record-too-large": Code(
        _ERROR,
        "A record is larger than ingest.max_record.",
        "raise ingest.max_record in params.yaml if the record is what it should be",
    ),
    "record-truncated": Code(
        _ERROR,
        "The last record of a file is half-written.",
        "ingest again when the writer has finished, or cut the last line",
    ),
    "record-not-json": Code(
        _ERROR,
        "A record is not JSON.",
        "look at the place named, correct it and ingest again",
    ),
    "record-not-object": Code(
        _ERROR,
        "A record is JSON of another kind than its format wants.",
        "look at the place named",
    ),
    "too-deep": Code(
        _ERROR,
        "A record is nested too deeply to be judged.",
        "look at the place named",
    ),
    "newer-format": Code(
        _ERROR,
        "A record says a version of its format that is not known.",
        "upgrade tracemark",
    ),
    "not-atif": Code(
        _ERROR,
        "A record is no ATIF trajectory, and no near miss of one that can be repaired without a guess.",
        "look at the place named",
    ),
    "not-chat": Code(
        _ERROR,
        "A record is no list of chat messages.",
        "look at the place named",
    ),
    "unknown-role": Code(
        _ERROR,
        "A message has a role that is not known; who spoke is not guessed.",
        "rename the role, or ask for an importer of that format",
    ),
    "trial-without-trajectory": Code(
        _ERROR,
        "A Harbor trial has no trajectory: the agent wrote none.",
        "leave the trial out, or run it again",
    ),
    # store
    "params-unusable": Code(
        _ERROR,
        "params.yaml cannot be used.",
        "correct the line that is named",
    ),
    "not-pulled": Code(
        _ERROR,
        "Files that dvc.lock pins are not on disk.",
        "dvc pull",
    ),
    "not-pinned": Code(
        _INFO,
        "Segments are stored that dvc.lock does not pin yet.",
        "dvc repro, or dvc commit",
    ),
    "stored-not-indexed": Code(
        _WARNING,
        "A segment is stored and could not be entered in the catalogue.",
        "tracemark reindex",
    ),
    "file-damaged": Code(
        _ERROR,
        "A stored file is not what its name says: bytes changed, cut short, or not of its format.",
        "dvc checkout, or fetch the file from a backup; its name is the SHA-256 of its bytes",
    ),
    "line-not-canonical": Code(
        _ERROR,
        "A stored line or snapshot is not in canonical JSON, so another program wrote it.",
        "restore the file; tracemark check",
    ),
    "wrong-partition": Code(
        _ERROR,
        "A segment or an annotation file lies in another folder than its lines say.",
        "move the file to the folder named; tracemark check",
    ),
    "snapshot-missing": Code(
        _WARNING,
        "A trace names a harness of which no snapshot is stored, so its digests cannot be recomputed.",
        "tracemark harness list, then ingest again beside that harness version",
    ),
    "snapshot-damaged": Code(
        _ERROR,
        "A stored harness snapshot does not give the fingerprint that names it.",
        "git checkout or dvc checkout of traces/harnesses",
    ),
    "annotation-dangling": Code(
        _WARNING,
        "An annotation is about a trace that is not stored.",
        "dvc checkout, if the segment belongs to another revision",
    ),
    "catalogue-differs": Code(
        _WARNING,
        "The catalogue is not what the stored files give.",
        "tracemark reindex",
    ),
    "stranger-file": Code(
        _INFO,
        "A file below traces/ is no part of a store; nothing reads it.",
        "remove it, or list it in .gitignore and .dvcignore",
    ),
    "catalogue-rebuilt": Code(
        _WARNING,
        "The catalogue was damaged and was made again from the stored files; nothing is lost.",
        "",
    ),
    # ledger
    "ledger-torn-line": Code(
        _ERROR,
        "The ledger's last line is half-written: an append was cut short before it was acknowledged.",
        "tracemark repair sets the fragment aside; then decide again",
    ),
    "ledger-conflict-marker": Code(
        _ERROR,
        "A merge left a conflict marker in the ledger.",
        "keep the lines of both sides, delete the marker lines, and put `ledger.jsonl merge=union` in .gitattributes",
    ),
    "ledger-line-unreadable": Code(
        _ERROR,
        "A line of the ledger is no entry.",
        "git log -p ledger.jsonl shows what stood there; restore the line",
    ),
    "ledger-line-edited": Code(
        _ERROR,
        "A line of the ledger is not the one that was written.",
        "git log -p ledger.jsonl shows what stood there; restore it and add a new decision instead",
    ),
    "ledger-parent-missing": Code(
        _ERROR,
        "An entry of the ledger names a parent that is not there.",
        "git log -p ledger.jsonl shows the line that was removed; restore it",
    ),
    "ledger-newer-format": Code(
        _ERROR,
        "A newer tracemark wrote an entry of the ledger.",
        "update tracemark",
    ),
    "ledger-accept-conflict": Code(
        _ERROR,
        "Two branches accepted different harnesses; neither counts until someone decides.",
        "tracemark harness accept NAME --reason TEXT",
    ),
    "ledger-stamp-conflict": Code(
        _ERROR,
        "Two branches settled a trace under different harnesses; it stays contested until someone decides.",
        "tracemark stamp TRACE --harness NAME|FINGERPRINT|none --reason TEXT",
    ),
    "accepted-differs": Code(
        _ERROR,
        "params.yaml names another accepted harness than the ledger.",
        "tracemark harness accept NAME --reason TEXT",
    ),
    # exports
    "export-manifest-unreadable": Code(
        _ERROR,
        "The manifest of an export is missing or is no manifest.",
        "export again",
    ),
    "export-manifest-edited": Code(
        _ERROR,
        "The manifest of an export is not the one that was written.",
        "export again",
    ),
    "export-file-differs": Code(
        _ERROR,
        "A file of an export is missing, is not the one that was written, or is not listed in its manifest.",
        "export again",
    ),
    "export-rows-differ": Code(
        _ERROR,
        "An export's rows are not those that its manifest lists, or its counts do not add up.",
        "export again",
    ),
    "export-row-unreadable": Code(
        _ERROR,
        "A row of an export is no JSON object with a trace id.",
        "export again",
    ),
    "export-trace-missing": Code(
        _ERROR,
        "A row's trace is not in the store.",
        "dvc pull, or export again",
    ),
    "export-trace-damaged": Code(
        _ERROR,
        "A row's trace is in the store, and its bytes do not give its id.",
        "tracemark check",
    ),
    "export-other-harness": Code(
        _ERROR,
        "An export, or a row of it, is not of the accepted harness.",
        "export again",
    ),
    "export-row-differs": Code(
        _ERROR,
        "A row is not what rendering its trace gives.",
        "export again",
    ),
    "export-trace-retracted": Code(
        _ERROR,
        "A row's trace was retracted.",
        "export again, and see what was trained on the old export",
    ),
    "export-trace-contested": Code(
        _ERROR,
        "Two statements about a row's trace disagree.",
        "tracemark stamp TRACE --harness NAME|FINGERPRINT|none --reason TEXT",
    ),
}


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
    def exit_code(self) -> int:
        """Return 1 when a finding is an error, else 0."""
        return int(any_error(self.findings))

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON members: those of the subclass, then `findings`."""
        data = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "findings"}
        return {**data, "findings": [finding.as_json() for finding in self.findings]}
