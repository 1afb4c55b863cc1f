"""The harness versions and the snapshots of a corpus, and everything that reads one of them.

A version is what is on disk now; a snapshot leads to the same texts for ever. Which of them a name means is decided
where the corpus is known.
"""

from __future__ import annotations

from pathlib import Path

from tracemark.digest import FINGERPRINT_PREFIX, is_fingerprint
from tracemark.durable import is_there, read_regular, why_unread
from tracemark.errors import IntegrityError, IrregularFileError, NewerFormatError
from tracemark.findings import Finding, finding
from tracemark.harness.folder import HarnessFolder
from tracemark.harness.loading import examine
from tracemark.harness.names import RENAME, reserved
from tracemark.harness.snapshot import from_bytes
from tracemark.harness.version import Harness
from tracemark.model.harness import MANIFEST_NAME


def versions(folder: Path) -> list[Path]:
    """Return the folders of all harness versions in a folder that have a manifest, sorted by name.

    Raises:
        OSError: when the folder cannot be listed.
    """
    return [path for path in _folders(folder)[0] if (path / MANIFEST_NAME).exists()]


def known_with_findings(root: Path, folders: Path, snapshots: Path) -> tuple[list[Harness], list[Finding]]:
    """Return the harnesses of a corpus, and the findings of those that cannot be read.

    Every folder is there, also where several hold one harness; a snapshot is there where no folder has its fingerprint.

    Args:
        root: the corpus, from which findings name places.
        folders: its folder of harness versions, a folder each.
        snapshots: its folder of snapshots, a file each.
    """
    found: list[Harness] = []
    findings: list[Finding] = []
    try:
        candidates, away = _folders(folders)
    except OSError as error:
        reason, hint = why_unread(error, "folder")
        findings.append(
            finding("folder-unreadable", f"{_place(folders, root)}/", f"it cannot be listed: {reason}", hint)
        )
        candidates, away = [], []
    for folder in away:
        leads = f"out of {folders.name}/; it was not followed" if folder.is_dir() else "nowhere"
        message = f"a link that leads {leads}"
        findings.append(finding("version-linked", f"{_place(folder, root)}/", message))
    for folder in candidates:
        refused = reserved(folder.name)
        if refused is not None:
            message = f"a version's folder cannot be named {folder.name!r}: the name {refused}"
            findings.append(finding("manifest-invalid", f"{_place(folder, root)}/{MANIFEST_NAME}", message, RENAME))
            continue
        examined = examine(folder)
        if examined.harness is not None:
            found.append(examined.harness)
        findings += [
            finding(problem.code, f"{_place(folder, root)}/{problem.where}", problem.message, problem.hint)
            for problem in examined.problems
        ]
    present = {harness.fingerprint for harness in found}
    for path in _stored(snapshots, root, findings):
        if FINGERPRINT_PREFIX + path.stem in present:
            continue
        try:
            harness = _snapshot(path)
        except (IntegrityError, NewerFormatError) as error:
            findings.append(finding("snapshot-unreadable", _place(path, root), error.message, error.hint))
        else:
            found.append(harness)
    return found, findings


def _stored(snapshots: Path, root: Path, findings: list[Finding]) -> list[Path]:
    """Return the snapshots in a folder; none, with a finding, where it is there and cannot be listed."""
    try:
        return sorted(filter(_is_snapshot, snapshots.iterdir())) if is_there(snapshots) else []
    except OSError as error:
        reason, hint = why_unread(error, "folder")
        findings.append(
            finding("folder-unreadable", f"{_place(snapshots, root)}/", f"it cannot be listed: {reason}", hint)
        )
        return []


def _is_snapshot(path: Path) -> bool:
    # what has another name is no part of the store, and check names it
    return path.suffix == ".json" and is_fingerprint(FINGERPRINT_PREFIX + path.stem)


def _place(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _folders(parent: Path) -> tuple[list[Path], list[Path]]:
    """Return every folder that is, or was meant to be, a harness version, and every link out of `parent` or to nowhere.

    A folder without a manifest was meant to be one where it holds a file that counts. Names that begin with a dot are
    no version's: editors, git and file managers put such things beside what they work on.
    """
    entries = sorted(path for path in parent.iterdir() if path.name[0] != ".") if is_there(parent) else []
    folders = [path for path in entries if path.is_dir() or (path.is_symlink() and not path.exists())]
    away = [path for path in folders if not path.is_dir() or not path.resolve().is_relative_to(parent.resolve())]
    within = [path for path in folders if path not in away]
    return [path for path in within if path.is_symlink() or HarnessFolder(path).holds_anything()], away


def _snapshot(path: Path) -> Harness:
    try:
        raw = read_regular(path)
    except IrregularFileError as error:
        raise IntegrityError(f"the snapshot cannot be read: {error.message}", hint=error.hint) from None
    except OSError as error:
        raise IntegrityError(f"the snapshot cannot be read: {error.strerror}") from None
    harness = from_bytes(raw)
    if harness.fingerprint != FINGERPRINT_PREFIX + path.stem:
        raise IntegrityError(f"the snapshot holds {harness.fingerprint}, which is not its name")
    return harness
