"""The harness versions and the snapshots of a corpus, and everything that reads one of them.

A version is what is on disk now; a snapshot leads to the same texts for ever. Which of them a name means is decided
where the corpus is known.
"""

from __future__ import annotations

from pathlib import Path

from tracemark.digest import FINGERPRINT_PREFIX
from tracemark.errors import IntegrityError, NewerFormatError
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


def known_with_findings(root: Path) -> tuple[list[Harness], list[Finding]]:
    """Return the harnesses of a corpus, and the findings of those that cannot be read.

    Every folder is there, also where several hold one harness; a snapshot is there where no folder has its fingerprint.

    Args:
        root: the corpus.
    """
    found: list[Harness] = []
    findings: list[Finding] = []
    for folder in _folders(root):
        examined = examine(folder)
        if examined.harness is not None:
            found.append(examined.harness)
        findings += [
            finding(problem.code, f"{VERSIONS}/{folder.name}/{problem.where}", problem.message, problem.hint)
            for problem in examined.problems
        ]
    present = {harness.fingerprint for harness in found}
    for path in snapshots(root):
        if FINGERPRINT_PREFIX + path.stem in present:
            continue
        try:
            harness = _snapshot(path)
        except (IntegrityError, NewerFormatError) as error:
            findings.append(finding("snapshot-unreadable", f"{SNAPSHOTS}/{path.name}", error.message, error.hint))
        else:
            found.append(harness)
    return found, findings


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
