"""A harness version as a value: its manifest, the bytes of its parts, and the digests made of exactly those bytes.

Every file was read once. A later edit of the folder changes neither the texts nor the fingerprint of the value, and
whoever executes `Harness.files` executes what was hashed. A value read from a folder and one read from a snapshot
differ in `folder` and `seen` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tracemark.findings import Finding
from tracemark.harness.fingerprint import Identity, Place, Sources, normal, plain, schema
from tracemark.harness.sighting import Sighting
from tracemark.model.harness import Manifest


@dataclass(frozen=True)
class Harness:
    """One harness version. Equal fingerprints mean the same harness, whatever the names."""

    name: str
    """A label: the manifest's `name`, else the name of the folder."""
    folder: Path | None
    """Where it was read from; None when it comes from a snapshot."""
    manifest: Manifest
    """What `harness.yaml` says."""
    files: Mapping[str, bytes] = field(repr=False)
    """The bytes of every file that the fingerprint read, by key (see `folder`)."""
    closures: Mapping[str, Mapping[str, str]]
    """For each entry: dotted module name to key of its file. A parent without a file is a namespace package."""
    includes: Mapping[Place, tuple[str, ...]]
    """For each (component, part) whose Jinja template brings in others: their keys."""
    unassigned: tuple[str, ...]
    """Keys of files that belong to no part."""
    identity: Identity
    """The digests."""
    findings: tuple[Finding, ...] = ()
    """What was uncertain when it was read; `where` is relative to the folder."""
    incomplete: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each component the parts with a finding `closure-incomplete`; components without any are left out."""
    seen: Sighting | None = field(default=None, repr=False, compare=False)
    """What its folder held when it was read; None when no manifest of a folder was read."""

    @staticmethod
    def capture(**parts: Any) -> Any:
        """Make a harness of live objects: what `tracemark.capture` does, with its arguments and its answer."""
        # capturing stands above this value, and a program that loads harnesses has no need of it
        return import_module("tracemark.harness.capture").capture(**parts)

    @property
    def fingerprint(self) -> str:
        """The fingerprint, `tm1:` and 64 hexadecimal digits."""
        return self.identity.fingerprint

    @property
    def sources(self) -> Sources:
        """The bytes and file lists from which the identity was computed."""
        return Sources(self.files, self.closures, self.includes, self.unassigned)

    @property
    def modules(self) -> dict[str, str]:
        """The local modules of all entries: dotted name to key."""
        return {name: key for modules in self.closures.values() for name, key in modules.items()}

    def text(self, key: str) -> str:
        """Return the text of a file as it was hashed, line ends as a line feed.

        Raises:
            KeyError: when the harness has no file of that key.
            UnicodeDecodeError: when the file is not UTF-8.
        """
        return plain(self.files[key].decode("utf-8"))

    def prompt_text(self, name: str) -> str | None:
        """Return the text of a prompt template, or None when code makes it.

        Raises:
            KeyError: when there is no template of that name.
            UnicodeDecodeError: when its file is not UTF-8.
        """
        for prompt in self.manifest.prompt_templates:
            if prompt.name == name:
                if prompt.entry is not None:
                    return None
                return self.text(normal(prompt.file)) if prompt.file is not None else plain(prompt.text or "")
        raise KeyError(name)

    def tool_schema(self, name: str) -> dict[str, Any]:
        """Return the reduced schema of a tool: `name`, `description`, `parameters`, `strict` when true.

        Raises:
            KeyError: when there is no tool of that name.
        """
        return schema(self.manifest.tool_bindings[name], self.files)
