"""The algorithm `tracemark-harness/1`: from the values and bytes of a harness to its fingerprint.

    fingerprint = "tm1:" + sha256(canonical({"algorithm": …, "components": {component: digest}}))
    component   = sha256(canonical([[part, digest], …]))   prompts and handlers, in order
                  sha256(canonical({part: digest}))        tools and runtime
    part        = sha256(canonical(members)), every file replaced by the digest of its text

Invariants:
- pure: the same manifest, bytes and file lists give the same digests for ever, so a snapshot can be checked without the
  folder, the interpreter or the installed packages that once read it;
- defaults are filled in, and a member that says nothing (None) is left out, so writing a default changes nothing;
- labels and places are not hashed; the name of the algorithm is;
- a part of `runtime` exists when it says something; a component without parts is vacuous and has the digest of `[]` or
  `{}`.

`docs/format/fingerprint.md` is the normative text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemark import digest
from tracemark.harness.folder import PACKAGE, ROOT
from tracemark.harness.tools import reduce_tool
from tracemark.model.harness import COMPONENTS, ORDERED, Manifest, ToolBinding

ALGORITHM = "tracemark-harness/1"
"""The name of the algorithm, which is part of what is hashed."""

Place = tuple[str, str]
"""A component and a part of it."""


@dataclass(frozen=True)
class Sources:
    """The bytes of a harness, and which of them each part consists of."""

    files: Mapping[str, bytes]
    """Bytes by key (see `folder`)."""
    closures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each entry: dotted module name to key."""
    includes: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    """For each part whose template brings in others: their keys."""
    unassigned: tuple[str, ...] = ()
    """Keys of files that belong to no part, sorted."""


@dataclass(frozen=True)
class Identity:
    """The digests of a harness, in the order of the manifest. Two harnesses are one when these are equal."""

    fingerprint: str
    """`tm1:` and 64 hexadecimal digits."""
    components: dict[str, str]
    """Digest of each of the four components."""
    parts: dict[str, dict[str, str]]
    """For each component the digest of each part; empty for a vacuous one."""


def text_digest(text: str) -> str:
    """Return the digest of a text: sha256 of its UTF-8, line ends as a line feed."""
    return digest.sha256(plain(text).encode("utf-8"))


def file_digest(raw: bytes) -> str:
    """Return the digest of a file: that of its text, or `bytes:` and the sha256 of its bytes when it is not UTF-8."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes:" + digest.sha256(raw)
    return text_digest(text)


def plain(text: str) -> str:
    """Return a text with carriage return and line feed as one line feed; a lone carriage return stays."""
    return text.replace("\r\n", "\n")


def schema(binding: ToolBinding, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the reduced tool schema of a binding.

    Raises:
        ValueError: when it is no JSON or no tool definition.
    """
    if isinstance(binding.definition, str):
        return reduce_tool(_decoded(binding.definition, files).value)
    return reduce_tool(binding.definition)


def schema_repairs(binding: ToolBinding, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return what of a binding's schema file could not be kept as it stands; empty when nothing was lost.

    Raises:
        ValueError: when the file is no JSON.
    """
    return _decoded(binding.definition, files).repairs if isinstance(binding.definition, str) else ()


def _decoded(path: str, files: Mapping[str, bytes]) -> digest.Decoded:
    return digest.loads(files[normal(path)].removeprefix(b"\xef\xbb\xbf"))


def normal(path: str) -> str:
    """Return the key of a path of the manifest: without empty pieces and `.`."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def entry_digest(entry: str, sources: Sources) -> str:
    """Return the digest of an entry over its name and the files of its closure."""
    return digest.of({"entry": entry, "files": _digests(set(sources.closures[entry].values()), sources)})


def members(manifest: Manifest, sources: Sources) -> dict[str, dict[str, Any]]:
    """Return what is hashed: for each component, in order, each part's members with files replaced by digests.

    Raises:
        ValueError: when a tool schema is not usable, or two files of a part have one path.
        KeyError: when `sources` lacks a file that the manifest names.
    """
    return {
        "prompt_templates": _prompts(manifest, sources),
        "tool_bindings": _tools(manifest, sources),
        "observation_handlers": _handlers(manifest, sources),
        "runtime": _runtime(manifest, sources),
    }


def identify(manifest: Manifest, sources: Sources) -> Identity:
    """Return the fingerprint of a harness with the digests it is made of.

    Raises:
        ValueError: when a tool schema is not usable, or two files of a part have one path.
        KeyError: when `sources` lacks a file that the manifest names.
    """
    parts = {
        component: {name: digest.of(value) for name, value in described.items()}
        for component, described in members(manifest, sources).items()
    }
    components = {
        component: digest.of([[name, value] for name, value in parts[component].items()])
        if component in ORDERED
        else digest.of(parts[component])
        for component in COMPONENTS
    }
    return Identity(of_components(components), components, parts)


def of_components(components: Mapping[str, str]) -> str:
    """Return the fingerprint of a harness whose four components have these digests."""
    return digest.FINGERPRINT_PREFIX + digest.of({"algorithm": ALGORITHM, "components": dict(components)})


def _prompts(manifest: Manifest, sources: Sources) -> dict[str, Any]:
    parts = {}
    for prompt in manifest.prompt_templates:
        said = _said(prompt.model_dump(mode="json"))
        if prompt.entry is not None:
            said["entry"] = entry_digest(prompt.entry, sources)
        elif prompt.file is not None:
            del said["file"]
            said["text"] = file_digest(sources.files[normal(prompt.file)])
        else:
            said["text"] = text_digest(prompt.text or "")
        _include(said, ("prompt_templates", prompt.name), sources)
        parts[prompt.name] = said
    return parts


def _tools(manifest: Manifest, sources: Sources) -> dict[str, Any]:
    parts = {}
    for name, tool in sorted(manifest.tool_bindings.items()):
        said = _said(tool.model_dump(mode="json", by_alias=True))
        said["schema"] = digest.of(schema(tool, sources.files))
        if tool.entry is not None:
            said["entry"] = entry_digest(tool.entry, sources)
        parts[name] = said
    return parts


def _handlers(manifest: Manifest, sources: Sources) -> dict[str, Any]:
    parts = {}
    for handler in manifest.observation_handlers:
        said = _said(handler.model_dump(mode="json"))
        said["entry"] = entry_digest(handler.entry, sources)
        if handler.template is not None:
            said["template"] = text_digest(handler.template)
        _include(said, ("observation_handlers", handler.name), sources)
        parts[handler.name] = said
    return parts


def _runtime(manifest: Manifest, sources: Sources) -> dict[str, Any]:
    runtime = manifest.runtime
    parts: dict[str, Any] = {}
    for part in ("parser", "context_manager", "recovery"):
        call = getattr(runtime, part)
        if call is not None:
            parts[part] = {"entry": entry_digest(call.entry, sources), "parameters": call.parameters}
    parts["limits"] = _said(runtime.limits.model_dump(mode="json"))
    parts["environment"] = runtime.environment
    parts["packages"] = runtime.packages
    if runtime.offered != "all":
        parts["offered"] = runtime.offered
    parts["unassigned"] = _digests(sources.unassigned, sources)
    return {part: value for part, value in parts.items() if value}


def _said(dumped: dict[str, Any]) -> dict[str, Any]:
    return {member: value for member, value in dumped.items() if value is not None}


def _include(said: dict[str, Any], place: Place, sources: Sources) -> None:
    included = sources.includes.get(place)
    if included:
        said["includes"] = _digests(included, sources)


def _digests(keys: Collection[str], sources: Sources) -> dict[str, str]:
    """Return the digest of each file by the path that is hashed for it.

    Raises:
        ValueError: when two files have one path, so that one of them would not be hashed; no folder gives such keys.
        KeyError: when `sources` lacks a file.
    """
    found: dict[str, str] = {}
    for key in dict.fromkeys(keys):
        if bare(key) in found:
            raise ValueError(f"two files have the path {bare(key)!r}")
        found[bare(key)] = file_digest(sources.files[key])
    return found


def bare(key: str) -> str:
    """Return the path that is hashed for a key: relative to the harness folder, the root, or the package's parent."""
    return key.removeprefix(ROOT).removeprefix(PACKAGE)
