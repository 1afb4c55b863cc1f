"""The folder of an interchange export: its files, its manifest, and what in it is somebody else's.

Invariants:
- the manifest is there before anything else is, so a folder without one is no export's; while documents are written it
  says that they are not complete;
- `ingest` reads the folder as it is: the manifest and the snapshots have names that it knows to hold no traces;
- what no export writes is never replaced or removed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tracemark import digest
from tracemark.exporters.manifest import states_format
from tracemark.importers.tree import INTERCHANGE, SNAPSHOT_SUFFIX
from tracemark.model.interchange import FORMAT, Interchange

NAME = INTERCHANGE
"""The manifest's file name."""

LINES = "trajectories.jsonl"
"""The documents, one a line."""

FILES = "trajectories"
"""The folder of the documents, one a file."""

TEMPORARY = ".tmp"
"""How the name of what is not finished yet ends; a dot stands before it."""

_SNAPSHOT = re.compile(rf"[0-9a-f]{{64}}{re.escape(SNAPSHOT_SUFFIX)}")
_SHARD = re.compile(r"[0-9a-f]{2}")
_DOCUMENT = re.compile(r"[0-9a-f]{64}\.json")


def snapshot_name(fingerprint: str) -> str:
    """Return the name of the file that holds a harness."""
    return fingerprint.removeprefix(digest.FINGERPRINT_PREFIX) + SNAPSHOT_SUFFIX


def document_name(trace_id: str) -> str:
    """Return the place of a document below `FILES`."""
    return f"{trace_id[:2]}/{trace_id}.json"


def encode(manifest: Interchange) -> bytes:
    """Return the bytes of the manifest."""
    members = manifest.model_dump()
    return json.dumps({**members, "digest": digest.of(members)}, indent=2).encode("ascii") + b"\n"


def strangers(folder: Path) -> list[str]:
    """Return what lies in a folder and is no part of an interchange export, sorted; a few are enough.

    Args:
        folder: a folder that is there.

    Raises:
        OSError: when it cannot be listed.
    """
    names = sorted(path.name for path in folder.iterdir())
    if not states_format(folder / NAME, FORMAT):
        return names
    others = [name for name in names if name not in (NAME, LINES, FILES) and not is_own(name)]
    return sorted([*others, *_strange_documents(folder / FILES)])


def is_own(name: str) -> bool:
    """Return whether a name is that of a snapshot, or of what an export that was cut short left behind."""
    begun = any(name.startswith(f".{own}") for own in (NAME, LINES, FILES)) or _SNAPSHOT.match(name[1:]) is not None
    return _SNAPSHOT.fullmatch(name) is not None or (name.startswith(".") and name.endswith(TEMPORARY) and begun)


def _strange_documents(folder: Path) -> Iterator[str]:
    """Yield the first of what lies among documents and is none."""
    for path, inner, names in os.walk(folder):
        top = Path(path) == folder
        wanted = _SHARD if top else None
        strange = [name for name in inner if wanted is None or not wanted.fullmatch(name)]
        strange += [name for name in names if top or not _DOCUMENT.fullmatch(name)]
        if strange:
            yield str(Path(path, strange[0]).relative_to(folder.parent))
            return
