"""The folder of a harness while a run goes on, and the snapshot of the harness that lies beside the run's journal."""

from __future__ import annotations

from pathlib import Path

from tracemark import digest, durable
from tracemark.errors import HarnessChangedError, TracemarkError
from tracemark.harness import snapshot
from tracemark.harness.capture import Captured
from tracemark.harness.loading import load
from tracemark.harness.version import Harness
from tracemark.importers.tree import SNAPSHOT_SUFFIX


def loaded(harness: Path | Harness | Captured) -> Harness:
    """Return the harness that somebody gives as a folder, as it is, or as it was captured.

    Raises:
        ManifestError: when the folder is no usable harness, or a part of what was captured is unrecorded.
    """
    if isinstance(harness, Captured):
        return harness.require()
    return harness if isinstance(harness, Harness) else load(Path(harness))


def differs(harness: Harness, folder: Path | None) -> bool:
    """Return whether a folder holds another harness by now, or none; False when there is no folder to look at.

    Every file is read, each time. Where all of it is as it was when the harness was read, nothing is parsed again.
    """
    if folder is None or (harness.seen is not None and harness.seen.holds(folder)):
        return False
    try:
        return load(folder).identity.fingerprint != harness.identity.fingerprint
    except TracemarkError:
        return True


def require_as_loaded(harness: Harness, folder: Path | None) -> None:
    """Do nothing when the folder holds what was loaded.

    Raises:
        HarnessChangedError: when it does not.
    """
    if differs(harness, folder):
        raise HarnessChangedError(
            "the harness folder is not what was loaded",
            where=str(harness.manifest.name or "harness.yaml"),
            hint="load the harness again",
        )


def keep_snapshot(harness: Harness, inbox: Path) -> None:
    """Write the snapshot of a harness to the folder of a journal, unless it is there."""
    target = inbox / (harness.identity.fingerprint.removeprefix(digest.FINGERPRINT_PREFIX) + SNAPSHOT_SUFFIX)
    # of one fingerprint any snapshot will do: they differ in labels at most
    if not target.exists():
        durable.write_atomic(target, snapshot.to_bytes(harness))
