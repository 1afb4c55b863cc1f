"""Harness versions by folder, by name and by fingerprint.

A name is a label and leads to a version that is on disk now; a fingerprint is an identity and leads to the same texts
whether the version's folder or only its snapshot is left.
"""

from __future__ import annotations

from pathlib import Path

from tracemark.digest import FINGERPRINT_PREFIX
from tracemark.errors import IntegrityError, NewerFormatError, UnknownNameError
from tracemark.findings import Finding, finding
from tracemark.harness.fingerprint import ALGORITHM, Identity
from tracemark.harness.folder import HarnessFolder
from tracemark.harness.loading import Examined, examine, load, manifest_error
from tracemark.harness.snapshot import from_bytes
from tracemark.harness.version import Harness
from tracemark.model.harness import MANIFEST_NAME

__all__ = [
    "ALGORITHM",
    "Examined",
    "Harness",
    "Identity",
    "examine",
    "find",
    "known",
    "known_with_findings",
    "load",
    "manifest_error",
    "snapshots",
    "versions",
]

VERSIONS = "harness_versions"
"""The folder of a corpus that holds harness versions, a folder each."""

SNAPSHOTS = "traces/harnesses"
"""The folder of a corpus that holds snapshots, a file each."""


def versions(root: Path) -> list[Path]:
    """Return the folders of all harness versions of a corpus, sorted by name; empty when there are none."""
    folder = root / VERSIONS
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST_NAME}")) if folder.is_dir() else []


def snapshots(root: Path) -> list[Path]:
    """Return the snapshot files of a corpus, sorted by name; empty when there are none."""
    folder = root / SNAPSHOTS
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def known(root: Path) -> list[Harness]:
    """Return every harness of a corpus, versions before snapshots, each fingerprint once.

    Args:
        root: the corpus. What cannot be read is left out; `known_with_findings` says why.
    """
    return known_with_findings(root)[0]


def known_with_findings(root: Path) -> tuple[list[Harness], list[Finding]]:
    """Return every harness of a corpus, each fingerprint once, and the findings of those that cannot be read.

    Args:
        root: the corpus.
    """
    found: dict[str, Harness] = {}
    findings: list[Finding] = []
    for folder in _folders(root):
        examined = examine(folder)
        if examined.harness is not None:
            found.setdefault(examined.harness.fingerprint, examined.harness)
        findings += [
            finding(problem.code, f"{VERSIONS}/{folder.name}/{problem.where}", problem.message, problem.hint)
            for problem in examined.problems
        ]
    for path in snapshots(root):
        if FINGERPRINT_PREFIX + path.stem in found:
            continue
        try:
            harness = _snapshot(path)
        except (IntegrityError, NewerFormatError) as error:
            findings.append(finding("snapshot-unreadable", f"{SNAPSHOTS}/{path.name}", error.message, error.hint))
        else:
            found.setdefault(harness.fingerprint, harness)
    return list(found.values()), findings


def find(root: Path, name_or_fingerprint: str) -> Harness:
    """Return the harness of a corpus that a name or a fingerprint means.

    Args:
        root: the corpus.
        name_or_fingerprint: the name of a folder in `harness_versions/`, else a manifest's `name`, else a fingerprint
            or the first 8 or more of its hexadecimal digits, with or without `tm1:`.

    Raises:
        ManifestError: when the name means a folder that cannot be read.
        UnknownNameError: when nothing, or more than one harness, answers.
    """
    wanted = name_or_fingerprint
    # a name is compared with names that are there, never joined to a path
    for folder in versions(root):
        if folder.name == wanted:
            return load(folder)
    harnesses, findings = known_with_findings(root)
    digits = wanted.removeprefix(FINGERPRINT_PREFIX)
    named = [harness for harness in harnesses if harness.name == wanted]
    matching = named or [
        harness
        for harness in harnesses
        if len(digits) >= 8 and harness.fingerprint.removeprefix(FINGERPRINT_PREFIX).startswith(digits)
    ]
    if len(matching) == 1:
        return matching[0]
    if matching:
        several = ", ".join(sorted(harness.fingerprint[:16] for harness in matching))
        raise UnknownNameError(
            f"{wanted!r} means {len(matching)} harnesses", hint=f"name one by fingerprint: {several}"
        )
    names = sorted({folder.name for folder in versions(root)} | {harness.name for harness in harnesses})
    hint = f"known: {', '.join(names)}" if names else f"no harness version in {VERSIONS}/ yet; tracemark init makes one"
    if findings:
        hint += f"; {len(findings)} problems in others: tracemark harness check"
    raise UnknownNameError(f"no harness is named {wanted!r}", hint=hint)


def _folders(root: Path) -> list[Path]:
    """Return every folder that is, or was meant to be, a harness version: one with files that count."""
    parent = root / VERSIONS
    folders = sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []
    return [path for path in folders if (path / MANIFEST_NAME).exists() or HarnessFolder(path).walk().files]


def _snapshot(path: Path) -> Harness:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise IntegrityError(f"the snapshot cannot be read: {error.strerror}") from None
    harness = from_bytes(raw)
    if harness.fingerprint != FINGERPRINT_PREFIX + path.stem:
        raise IntegrityError(f"the snapshot holds {harness.fingerprint}, which is not its name")
    return harness
