"""Read `harness.yaml`, and say of everything wrong in it where it stands.

The text is composed into YAML nodes and turned into plain values here, because only nodes know their lines. What a
manifest needs is small, so the rest of YAML is refused rather than guessed at: aliases, tags, dates, repeated keys,
keys that are no text. Nothing is constructed that a tag names.

Invariants:
- every problem is reported, not only the first, each with line and column;
- a manifest that is returned holds what the file says; a default is filled in by `model.harness`, never here;
- paths and the files they name are looked at by whoever reads them, through `folder`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracemark.findings import Finding, finding
from tracemark.harness.names import RENAME, reserved
from tracemark.model.faults import reason_of
from tracemark.model.harness import DERIVED, MANIFEST_FORMAT, MANIFEST_NAME, ORDERED, Manifest, known_keys

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

Place = tuple[str | int, ...]
"""A path into the manifest: keys and list positions."""

_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,999})")
_QUOTE = "put it in quotation marks"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Reading:
    """A manifest as far as it could be read."""

    manifest: Manifest | None = None
    """The manifest; None when something in it is not allowed."""
    problems: list[Finding] = field(default_factory=list)
    """Everything wrong with it, in the order met."""
    places: dict[Place, str] = field(default_factory=dict)
    """Where each member stands: `harness.yaml:LINE:COLUMN`, both counted from 1."""

    unread: set[Place] = field(default_factory=set)
    """Places whose value could not be read; what is missing there has been reported."""

    def where(self, place: Place) -> str:
        """Return where the member `place`, or the nearest one around it that the file holds, stands."""
        while place and place not in self.places:
            place = place[:-1]
        return self.places.get(place, MANIFEST_NAME)

    def problem(self, code: str, where: str, message: str, hint: str | None = None) -> None:
        """Add a problem."""
        self.problems.append(finding(code, where, message, hint))


@lru_cache(maxsize=64)
def read(raw: bytes) -> Reading:
    """Read the bytes of a `harness.yaml`; equal bytes are read once and give the same object, so it is not changed.

    Args:
        raw: the file's bytes, UTF-8; a byte order mark is allowed.

    Returns:
        The manifest, or what is wrong with it; never raises for content.
    """
    reading = Reading()
    value = _parse(raw, reading)
    if not isinstance(value, dict):
        if reading.problems:
            return reading
        reading.problem("manifest-invalid", f"{MANIFEST_NAME}:1:1", "the file holds no mapping")
        return reading
    if value.get("format") != MANIFEST_FORMAT:
        message = f"`format` is {value['format']!r}" if "format" in value else "`format` is missing"
        hint = f"begin the file with `format: {MANIFEST_FORMAT}`; another format may need another tracemark"
        reading.problem("manifest-invalid", reading.where(("format",)), message, hint)
        return reading
    _leave_to_entries(value)
    _repeated_names(value, reading)
    try:
        manifest = Manifest.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _translate(detail, reading)
        return reading
    reason = reserved(manifest.name or "")
    if reason is not None:
        message = f"`name` cannot be {manifest.name!r}: it {reason}"
        reading.problem("manifest-invalid", reading.where(("name",)), message, RENAME)
    if not reading.problems:
        reading.manifest = manifest
    return reading


def _parse(raw: bytes, reading: Reading) -> Any:
    # a YAML library takes longer to import than the rest of a harness to load, and snapshots need none
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        reading.problem("manifest-invalid", f"{MANIFEST_NAME}:{line}", "the file is not UTF-8")
        return None
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        return _Converter(reading).convert(node, ()) if node is not None else None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{MANIFEST_NAME}:{mark.line + 1}:{mark.column + 1}" if mark else MANIFEST_NAME
        reading.problem("manifest-invalid", where, f"no YAML: {error.problem or error.context}")
    except YAMLError as error:
        reading.problem("manifest-invalid", MANIFEST_NAME, f"no YAML: {str(error).splitlines()[0]}")
    except RecursionError:
        reading.problem("manifest-invalid", MANIFEST_NAME, "the YAML is nested too deeply")
    return None


class _Converter:
    """Turns nodes into plain values and notes where each stands."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.seen: set[int] = set()

    def convert(self, node: Node, place: Place) -> Any:
        where = self.reading.places.setdefault(place, _where(node))
        if id(node) in self.seen:
            self._refuse(place, where, "aliases are not supported; write the value out")
            return None
        self.seen.add(id(node))
        tag = str(node.tag or "").removeprefix(_TAG)
        if tag == "map":
            return self._mapping(node, place)
        if tag == "seq":
            return [self.convert(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._scalar(tag, node.value, place)

    def _mapping(self, node: Node, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = _where(key_node)
            key = key_node.value
            if key_node.tag != _TAG + "str" or not isinstance(key, str):
                self._refuse((*place, str(key)), where, f"the key {key!r} is no text", _QUOTE)
            elif _SURROGATE.search(key):
                self._refuse((*place, key), where, "the key holds half of a surrogate pair")
            elif key in values:
                self.reading.problem("manifest-duplicate", where, f"the key {key!r} occurs twice in one mapping")
            else:
                self.reading.places[(*place, key)] = where
                values[key] = self.convert(value_node, (*place, key))
        return values

    def _scalar(self, tag: str, text: Any, place: Place) -> Any:
        where = self.reading.where(place)
        if tag == "str":
            if _SURROGATE.search(text):
                self._refuse(place, where, "the text holds half of a surrogate pair")
            return text
        if tag == "null":
            return None
        if tag == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if tag == "int" and _INTEGER.fullmatch(text):
            return int(text)
        if tag == "float":
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if math.isfinite(number):
                return number
        self._refuse(place, where, f"{text!r} is read by YAML as a value of type `{tag}`", _QUOTE)
        return None

    def _refuse(self, place: Place, where: str, message: str, hint: str | None = None) -> None:
        self.reading.unread.add(place)
        self.reading.problem("manifest-invalid", where, message, hint)


def _where(node: Node) -> str:
    return f"{MANIFEST_NAME}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def _leave_to_entries(value: dict[str, Any]) -> None:
    """Write down that the schema of a tool without one is made of its entry's signature."""
    tools = value.get("tool_bindings")
    for tool in tools.values() if isinstance(tools, dict) else ():
        if isinstance(tool, dict) and tool.get("entry") is not None and tool.get("schema") is None:
            tool["schema"] = DERIVED


def _repeated_names(value: dict[str, Any], reading: Reading) -> None:
    for component in ORDERED:
        parts = value.get(component)
        if not isinstance(parts, list):
            continue
        names = [part.get("name") if isinstance(part, dict) else None for part in parts]
        counted = Counter(name for name in names if isinstance(name, str))
        for index, name in enumerate(names):
            if isinstance(name, str) and counted[name] > 1 and names.index(name) != index:
                where = reading.where((component, index, "name"))
                reading.problem("manifest-duplicate", where, f"two parts of `{component}` are named {name!r}")


def _translate(detail: Any, reading: Reading) -> None:
    """Turn one complaint of pydantic into a problem, in words of the manifest."""
    place: Place = tuple(detail["loc"])
    if any(place[:depth] in reading.unread for depth in range(1, len(place) + 1)):
        return
    kind, given = detail["type"], detail["input"]
    where = reading.where(place)
    known = [part for part in place if part in _words(place, reading)]
    inside = ".".join(map(str, known)) or "the manifest"
    hint: str | None = None
    if kind == "extra_forbidden":
        keys = known_keys(place[:-1])
        near = get_close_matches(str(place[-1]), keys, n=1, cutoff=0.75)
        hint = (f"did you mean `{near[0]}`? " if near else "") + f"known here: {', '.join(sorted(keys))}"
        reading.problem("manifest-unknown-key", where, f"unknown key `{inside}`", hint)
        return
    if kind == "missing":
        message = f"`{place[-1]}` is missing in {'.'.join(map(str, place[:-1])) or 'the manifest'}"
    else:
        shown = f", not {given!r}" if isinstance(given, str | int | float) and len(repr(given)) < 80 else ""
        reason = reason_of(detail)
        message = f"`{inside}` {reason}{shown}" if reason.startswith("must ") else f"`{inside}`: {reason}{shown}"
        if kind == "string_type" and isinstance(given, int | float):
            hint = _QUOTE
        elif kind == "bool_type":
            hint = "write true or false"
        elif kind == "string_pattern_mismatch" and known[-1:] == ["entry"]:
            hint = "write `path/in/folder.py:attribute` or `package.module:attribute`"
    if not any(problem.where == where and f"`{inside}`" in problem.message for problem in reading.problems):
        reading.problem("manifest-invalid", where, message, hint)


def _words(place: Place, reading: Reading) -> set[str | int]:
    """Return the parts of `place` that stand in the file; pydantic adds names of types to some."""
    words: set[str | int] = set()
    path: Place = ()
    for part in place:
        if (*path, part) in reading.places:
            path = (*path, part)
            words.add(part)
    return words
