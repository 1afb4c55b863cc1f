"""Make a harness of live objects: prompts, tools, handlers and runtime that live in code, and in no `harness.yaml`.

Each object is turned into the member of a manifest that stands for it, and from there on everything goes the way of a
folder: the same closure, the same digests, the same bytes that a recorder executes. So a captured harness has the
fingerprint of a `harness.yaml` that declares the same parts.

Invariants:
- a part is either identified by texts that say everything about it, or it is *unrecorded* and the reason is told; with
  an unrecorded part there is no fingerprint, and nothing stands in for it;
- what is hashed is what the process has loaded, as far as a text can be compared with it (see `compiled`);
- nothing is imported, and no code that is given is called, but that a pydantic model is asked for its schema, and a
  Jinja environment for the sources of its templates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from tracemark import digest
from tracemark.errors import LISTED, ManifestError, UsageError
from tracemark.findings import Finding
from tracemark.harness import captured_prompts, captured_tools
from tracemark.harness.captured_code import (
    Home,
    Located,
    UnrecordedError,
    differs,
    guarded,
    home_of,
    locate,
    ordered,
    running,
)
from tracemark.harness.closure import module_name
from tracemark.harness.fingerprint import Place
from tracemark.harness.folder import PACKAGE, ROOT, Base, HarnessFolder
from tracemark.harness.loading import Examined, assemble
from tracemark.harness.names import RENAME, reserved
from tracemark.harness.version import Harness
from tracemark.model.faults import first
from tracemark.model.harness import COMPONENTS, MANIFEST_FORMAT, ORDERED, Manifest

Values = Mapping[str, Any] | Iterable[Any]
"""Parts by name, or parts that have their names themselves."""

_CODE = ("parser", "context_manager", "recovery")
_RUNTIME = (*_CODE, "limits", "environment", "packages", "offered")


@dataclass(frozen=True)
class Captured:
    """What capturing gave: the harness, or which parts are known and why the others are not."""

    name: str
    """The label."""
    harness: Harness | None
    """The harness, to be used wherever a loaded one is; None when a part is unrecorded."""
    unrecorded: Mapping[Place, str]
    """For each (component, part) that cannot be identified the reason; empty when there is a harness."""
    components: Mapping[str, str | None]
    """Digest of each component; None where a part of it is unrecorded."""
    parts: Mapping[str, Mapping[str, str | None]]
    """For each component the digest of each part, in the harness's order; None where it is unrecorded."""
    findings: tuple[Finding, ...] = ()
    """What is uncertain about the known parts, such as an incomplete closure."""

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint; None when a part is unrecorded."""
        return self.harness.fingerprint if self.harness is not None else None

    def require(self) -> Harness:
        """Return the harness.

        Raises:
            ManifestError: when a part is unrecorded; the message tells each with its reason.
        """
        if self.harness is not None:
            return self.harness
        lines = [f"{component} {part!r}: {reason}" for (component, part), reason in self.unrecorded.items()]
        hint = "give what the message says, or declare the part in a harness.yaml"
        message = LISTED.join([f"{len(lines)} of its parts cannot be identified, so it has no fingerprint", *lines])
        raise ManifestError(message, where=f"captured harness {self.name!r}", hint=hint)


def capture(
    *,
    prompt_templates: Values = (),
    tool_bindings: Any = (),
    observation_handlers: Values = (),
    runtime: Mapping[str, Any] | None = None,
    name: str = "captured",
    packages: Iterable[str | Path | ModuleType] = (),
) -> Captured:
    """Make a harness of live objects.

    Args:
        prompt_templates: in order, by name: a text, a `pathlib.Path` to one, a Jinja template, code that makes the
            text, or a mapping with members as in `harness.yaml`, in which `text` and `entry` may be such objects.
        tool_bindings: by name, as a list, or an MCP server's answer to `tools/list`: a definition in any provider's
            wrapper, a pydantic model, a function or a class (whose schema comes from its signature), or a mapping with
            `schema`, `entry`, `mutates`, `parameters`.
        observation_handlers: in order, by name or as a list: code, or a mapping with members as in `harness.yaml`.
        runtime: the members of `runtime` in `harness.yaml`; `parser`, `context_manager` and `recovery` are code, or
            mappings with `entry` and `parameters`. None for an empty one.
        name: the label.
        packages: first-party packages that count with their source besides what lies beside the code that is given:
            names, modules, or the packages' folders; wherever they are installed.

    Returns:
        The harness, or what keeps it from having a fingerprint.

    Raises:
        UsageError: when something given is no part at all, or a member is none that a manifest knows.
    """
    if (reason := reserved(name)) is not None:
        raise UsageError(f"a harness cannot be called {name!r}: it {reason}", hint=RENAME)
    capturing = _Capturing(name)
    capturing.runtime(dict(runtime or {}))
    for given, value in _listed(prompt_templates, "prompt_templates"):
        capturing.part("prompt_templates", given, lambda v: _prompt(v, capturing.included), value)
    for given, value in captured_tools.listed(tool_bindings):
        capturing.part("tool_bindings", given, lambda v, given=given: captured_tools.members(given, v), value)
    for given, value in _listed(observation_handlers, "observation_handlers"):
        capturing.part("observation_handlers", given, _code, value)
    return capturing.finish(packages)


@dataclass
class _Capturing:
    """One capture: parts as members of a manifest, and what is known of the code in them."""

    name: str
    members: dict[Place, dict[str, Any]] = field(default_factory=dict)
    located: dict[str, Located] = field(default_factory=dict)
    unrecorded: dict[Place, str] = field(default_factory=dict)
    included: dict[str, bytes] = field(default_factory=dict)
    order: list[Place] = field(default_factory=list)
    stated: dict[str, Any] = field(default_factory=dict)
    loading: dict[str, int] = field(default_factory=running)
    compared: dict[tuple[str, bool], str | None] = field(default_factory=dict)

    def runtime(self, given: dict[str, Any]) -> None:
        """Take the members of `runtime`."""
        if unknown := sorted(given.keys() - set(_RUNTIME)):
            raise UsageError(f"`runtime` has no member {unknown[0]!r}", hint=f"known: {', '.join(_RUNTIME)}")
        self.stated = {member: given[member] for member in _RUNTIME if member in given and member not in _CODE}
        for member in _CODE:
            if given.get(member) is not None:
                self.part("runtime", member, _code, given[member])

    def part(self, component: str, name: str, read: Any, value: Any) -> None:
        """Take one part, or note why it is unrecorded."""
        place = (component, name)
        if place in self.order:
            raise UsageError(f"two parts of `{component}` are named {name!r}", hint="give each its own name")
        self.order.append(place)
        try:
            members = read(value)
            code = members.get("entry")
            if code is not None:
                found = locate(code)
                self.located[found.entry] = found
                members["entry"] = found.entry
            if component in ORDERED:
                members["name"] = name
            _require_json(members, name)
        except UnrecordedError as error:
            self.unrecorded[place] = str(error)
        else:
            self.members[place] = members

    def finish(self, packages: Iterable[str | Path | ModuleType]) -> Captured:
        """Return what the parts taken make."""
        folder = _Nowhere()
        folder.files.update(self.included)
        folder.bases += self._bases(packages)
        alone: dict[Place, Examined] = {}
        for place in list(self.members):
            alone[place] = examined = assemble(folder, self._manifest([place]))
            reason = self._doubt(place, examined, folder)
            if reason is not None:
                self.unrecorded[place] = reason
                del self.members[place]
        whole = assemble(folder, self._manifest(list(self.members)))
        if whole.harness is None:
            raise ManifestError(whole.problems[0].message, where=whole.problems[0].where, hint=whole.problems[0].hint)
        return self._captured(replace(whole.harness, folder=None))

    def _captured(self, known: Harness) -> Captured:
        parts: dict[str, dict[str, str | None]] = {}
        for component in COMPONENTS:
            digests = known.identity.parts[component]
            ours = [part for owner, part in self.order if owner == component]
            in_order = {**dict.fromkeys(ours), **digests}
            parts[component] = in_order if component in ORDERED else dict(sorted(in_order.items()))
        components = {
            component: known.identity.components[component]
            if not any(owner == component for owner, _ in self.unrecorded)
            else None
            for component in COMPONENTS
        }
        harness = None if self.unrecorded else known
        unrecorded = {place: self.unrecorded[place] for place in self.order if place in self.unrecorded}
        return Captured(self.name, harness, unrecorded, components, parts, known.findings)

    def _bases(self, packages: Iterable[str | Path | ModuleType]) -> list[Base]:
        homes: list[Home] = [found.home for found in self.located.values()]
        for package in packages:
            try:
                homes.append(home_of(package))
            except UnrecordedError as error:
                raise UsageError(
                    f"`packages`: {error}", hint="name a package that is installed, or its folder"
                ) from None
        return [Base(PACKAGE if home.only else ROOT, home.folder, home.only) for home in ordered(homes)]

    def _manifest(self, places: Sequence[Place]) -> Manifest:
        """Return the manifest of some of the parts, with the runtime's plain members."""
        value: dict[str, Any] = {
            "format": MANIFEST_FORMAT,
            "name": self.name,
            "prompt_templates": [self.members[place] for place in places if place[0] == "prompt_templates"],
            "tool_bindings": {place[1]: self.members[place] for place in places if place[0] == "tool_bindings"},
            "observation_handlers": [self.members[place] for place in places if place[0] == "observation_handlers"],
            "runtime": {**self.stated, **{place[1]: self.members[place] for place in places if place[0] == "runtime"}},
        }
        try:
            return Manifest.model_validate(value)
        except ValidationError as error:
            where, reason = first(error, value)
            raise UsageError(f"{where}: {reason}", where=f"captured harness {self.name!r}") from None

    def _doubt(self, place: Place, examined: Examined, folder: _Nowhere) -> str | None:
        """Return why a part is unrecorded although its members are known; None when it is not."""
        if examined.harness is None:
            return "; ".join(problem.message for problem in examined.problems)
        entry = self.members[place].get("entry")
        if entry is None:
            return None
        modules = examined.harness.closures[entry]
        paths = {dotted: folder.path_of(key) for dotted, key in modules.items()}
        real = {os.path.realpath(path) for path in paths.values()}
        located = self.located[entry]
        for file in located.code:
            if file not in real:
                shown = Path(file).name
                return f"a wrapper of it is somebody else's: its code is in {shown!r}, which is no file of the harness"
        for dotted, path in paths.items():
            raw = folder.files[modules[dotted]]
            line = self.loading.get(os.path.realpath(path))
            if line is not None and not guarded(raw, line):
                return (
                    f"`{dotted}`, which belongs to it, is still being loaded; capture in a module that it does not"
                    ' import, or below `if __name__ == "__main__":`'
                )
            asked = (dotted, located.main is not None)
            if asked not in self.compared:
                self.compared[asked] = differs(dotted, path, raw, located)
            if reason := self.compared[asked]:
                return reason
        if module_name(entry) not in modules:
            return "no import leads to its module"
        return None


class _Nowhere(HarnessFolder):
    """A harness folder that is not there: only what is imported, and what it was given, is in it."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull) / "harness")

    def shown(self, base: Base, path: str) -> str:
        """Return a path that tells files of different places apart and names no place of this machine."""
        place = next(index for index, one in enumerate(self.bases) if one.folder == base.folder)
        return f"{base.prefix}{place}/{path}"

    def path_of(self, key: str) -> Path:
        """Return where the file of a key lies."""
        for base in self.bases[1:]:
            path = key.removeprefix(base.prefix)
            looked_up = key.startswith(base.prefix) and base.only in (None, path.partition("/")[0].partition(".")[0])
            if looked_up and (base.folder / path).is_file():
                return base.folder / path
        return self.path / key


def _listed(values: Values, component: str) -> list[tuple[str, Any]]:
    """Return parts with their names."""
    if isinstance(values, Mapping):
        return list(values.items())
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"`{component}` is neither a mapping nor a list")
    found = []
    for value in values:
        name = value.get("name") if isinstance(value, Mapping) else None
        name = name or getattr(value, "__name__", None) or (not isinstance(value, str) and getattr(value, "name", None))
        if not isinstance(name, str):
            raise UsageError(
                f"a part in the list of `{component}` has no name", hint="give a mapping of names to parts"
            )
        found.append((name, value))
    return found


def _prompt(value: Any, files: dict[str, bytes]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return captured_prompts.members(value, files)
    text, entry = value.get("text"), value.get("entry")
    if (text is None) == (entry is None):
        raise UsageError("a prompt template has exactly one of `text` and `entry`", where=str(value.get("name", "")))
    made = {"entry": entry} if text is None else captured_prompts.members(text, files)
    return {**{member: inner for member, inner in value.items() if member not in ("text", "entry")}, **made}


def _code(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        if value.get("entry") is None:
            raise UsageError("a handler, and a runtime entry, needs the member `entry`")
        return dict(value)
    return {"entry": value}


def _require_json(value: Any, place: str) -> None:
    """Make sure that members are values which JSON has.

    Raises:
        UnrecordedError: when one is a live object.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UnrecordedError(f"`{place}` has a key that is no text: {key!r}")
            _require_json(key, place)
            _require_json(inner, key)
    elif isinstance(value, list | tuple):
        for inner in value:
            _require_json(inner, place)
    elif type(value) not in (str, int, float, bool, type(None)):
        raise UnrecordedError(f"`{place}` holds an object of `{type(value).__qualname__}`, which no manifest can state")
    elif isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        raise UnrecordedError(f"`{place}` holds half of a surrogate pair, which no manifest may")
    try:
        if isinstance(value, float):
            digest.canonical(value)
    except (TypeError, ValueError) as error:
        raise UnrecordedError(f"`{place}` holds what JSON has no value for: {error}") from None
