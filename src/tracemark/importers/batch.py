"""`batch.yaml`: what is known of all the files of a folder, stated once beside them.

Members, all optional: `harness` (a name or a fingerprint), `model` (a name, or `name`, `revision`, `chat_template`,
`tokenizer`, `server`), `domain`, `split`, `note`. Write name and revision apart to have a revision: a text is a name as
a whole, also where it holds an `@`. The nearest one counts, looking up from a file to the path that was given. A file
that cannot be understood is a finding, and states nothing: the one above it does not count in its place.

It says what records leave open, and a record that says otherwise counts: its `domain`, `split` and `note`, and each
member of its model stand. Of a model of another name than the record's nothing is taken, since a revision is one of its
model alone. What was left out so is the finding `batch-overruled`. The harness is another matter: what is claimed for a
trace and what it says of itself are compared, and disagree as two statements do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.findings import Finding, finding
from tracemark.importers.tree import Folder, is_within, why_no_file

NAME = "batch.yaml"

_TEXTS = ("harness", "domain", "split", "note")
_MODEL = ("name", "revision", "chat_template", "tokenizer", "server")
_LARGEST = 65_536


class Batches:
    """The statements of every folder met, each file read once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any] | None] = {}
        self._folder: Folder | None = None
        self._stated: dict[str, Any] = {}
        self.findings: list[Finding] = []

    def of(self, folder: Folder) -> dict[str, Any]:
        """Return what the nearest `batch.yaml` states about the files of a folder; empty when there is none."""
        # files come folder by folder
        if folder is not self._folder:
            self._folder, self._stated = folder, self._nearest(folder)
        return self._stated

    def _nearest(self, folder: Folder) -> dict[str, Any]:
        path, label = folder.path, folder.label
        while True:
            stated = self._read(path, f"{label}/{NAME}" if label else NAME, folder.root)
            if stated is not None or path == folder.root:
                return stated or {}
            path, label = str(Path(path).parent), label.rpartition("/")[0]

    def _read(self, folder: str, label: str, root: str) -> dict[str, Any] | None:
        if folder not in self._known:
            self._known[folder] = self._load(Path(folder) / NAME, label, root)
        return self._known[folder]

    def _load(self, path: Path, label: str, root: str) -> dict[str, Any] | None:
        try:
            text = _text(path, root)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self.findings.append(finding("batch-invalid", label, f"cannot be read: {reason}"))
            return {}
        if text is None:
            return None
        # the YAML library is slow to import, and many sources have no batch file
        from ruamel.yaml import YAML  # noqa: PLC0415
        from ruamel.yaml.error import YAMLError  # noqa: PLC0415

        try:
            value = YAML(typ="safe", pure=True).load(text)
        except (YAMLError, ValueError, RecursionError) as error:
            self.findings.append(finding("batch-invalid", label, f"not YAML: {str(error).splitlines()[0]}"))
            return {}
        return self._checked(value, label)

    def _checked(self, value: Any, label: str) -> dict[str, Any]:
        if value is None:
            return {}
        faults = _faults(value)
        for fault in faults:
            self.findings.append(finding("batch-invalid", label, fault))
        if faults:
            return {}
        # YAML gives the halves of a character apart; as everything that is stored they are read as one
        stated: dict[str, Any] = digest.load_canonical(digest.canonical(value))
        if isinstance(stated.get("model"), str):
            stated["model"] = {"name": stated["model"]}
        return {name: member for name, member in stated.items() if member is not None}


def _text(path: Path, root: str) -> str | None:
    """Return the text of a batch file; None when there is no such file.

    Raises:
        OSError, ValueError: when it is there and cannot or must not be read.
    """
    if path.is_symlink():
        if not is_within(os.path.realpath(path), os.path.realpath(root)):
            raise ValueError("a symbolic link out of the given folder")
    elif not path.exists():
        return None
    if not path.is_file():
        raise ValueError(why_no_file(path))
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"larger than {_LARGEST} bytes")
    return data.decode("utf-8")


def _faults(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return ["not a mapping"]
    known = (*_TEXTS, "model")
    faults = [f"unknown member {name!r}: known are {', '.join(sorted(known))}" for name in value if name not in known]
    faults += [f"{name} is no text" for name in _TEXTS if not isinstance(value.get(name), (str, type(None)))]
    model = value.get("model")
    if isinstance(model, dict):
        if any(name not in _MODEL or not isinstance(member, str) for name, member in model.items()):
            faults.append(f"model holds texts named {', '.join(_MODEL)}, nothing else")
    elif not isinstance(model, (str, type(None))):
        faults.append("model is neither a text nor a mapping")
    return faults
