"""A harness version written whole, so that its fingerprint can be computed again for ever.

A snapshot holds the manifest's members, the bytes of every file that the fingerprint read (text as text, the rest as
base64), the list of files of each entry, and the digests that came out. It is written before the first trace that names
the harness is stored. Reading it computes the digests from the contents and believes them only when they agree.

Invariants:
- a snapshot alone suffices: no folder, no parsing of Python, no installed package takes part in reading it;
- no path in it leads outside the corpus: places are relative to the harness folder.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pydantic import ValidationError

from tracemark import digest
from tracemark.digest import JSON
from tracemark.errors import IntegrityError, NewerFormatError
from tracemark.findings import Finding, Severity
from tracemark.harness.fingerprint import ALGORITHM, Identity, Place, Sources, identify
from tracemark.harness.version import Harness
from tracemark.model.harness import ORDERED, Manifest

FORMAT = "tracemark/harness-snapshot/1"
"""The `format` of a snapshot."""

_FAMILY = "tracemark/harness-snapshot/"


def to_bytes(harness: Harness) -> bytes:
    """Return the bytes of a harness's snapshot file: canonical JSON and a line feed."""
    return digest.canonical(write(harness)) + b"\n"


def write(harness: Harness) -> JSON:
    """Return the snapshot of a harness."""
    described = harness.manifest.model_dump(mode="json", by_alias=True)
    # the label travels, be it the folder's name; a snapshot of another's may have none
    described["name"] = harness.name or None
    snapshot: dict[str, Any] = {
        "format": FORMAT,
        "algorithm": ALGORITHM,
        "fingerprint": harness.identity.fingerprint,
        "components": harness.identity.components,
        "parts": harness.identity.parts,
        "manifest": _stated(described),
        "files": {key: _packed(raw) for key, raw in harness.files.items()},
        "closures": {entry: dict(modules) for entry, modules in harness.closures.items()},
    }
    includes: dict[str, dict[str, list[str]]] = {}
    for (component, part), keys in harness.includes.items():
        includes.setdefault(component, {})[part] = list(keys)
    optional = {
        "schemas": _written_out(harness.manifest),
        "includes": includes,
        "unassigned": list(harness.unassigned),
        "findings": [found.as_json() for found in harness.findings],
        "incomplete": {component: list(parts) for component, parts in harness.incomplete.items()},
    }
    return snapshot | {member: value for member, value in optional.items() if value}


def _written_out(described: Manifest) -> dict[str, str]:
    """Return the schemas that the manifest itself holds, as text.

    In what order their members stand is no identity, but it is what the model is shown.
    """
    return {
        name: digest.ordered(binding.definition).decode()
        for name, binding in described.tool_bindings.items()
        if isinstance(binding.definition, dict)
    }


def read(snapshot: JSON) -> Harness:
    """Read a snapshot, computing the digests anew from the contents.

    Args:
        snapshot: the JSON value of a snapshot file.

    Raises:
        IntegrityError: when it is no whole snapshot, or its digests are not those of its contents.
        NewerFormatError: when a newer tracemark wrote it.
    """
    stated = snapshot.get("format") if isinstance(snapshot, dict) else None
    if stated != FORMAT:
        if isinstance(stated, str) and stated.startswith(_FAMILY):
            raise NewerFormatError(f"the snapshot has format {stated!r}", hint="install a newer tracemark")
        raise IntegrityError("this is no snapshot of a harness", where="format")
    try:
        return _read(snapshot)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        # a ValidationError is a ValueError that quotes its input over many lines
        reason = f"{error.error_count()} members of the manifest" if isinstance(error, ValidationError) else repr(error)
        where = str(snapshot.get("fingerprint", "fingerprint missing"))
        raise IntegrityError(f"the snapshot is damaged: {reason}", where=where, hint=_HINT) from error


def from_bytes(raw: bytes) -> Harness:
    """Read the bytes of a snapshot file.

    Raises:
        IntegrityError: when they are no JSON, no whole snapshot, or the digests are not those of the contents.
        NewerFormatError: when a newer tracemark wrote them.
    """
    try:
        value = digest.load_canonical(raw)
    except digest.NotJSONError as error:
        raise IntegrityError(f"the snapshot is no JSON: {error}", hint=_HINT) from None
    return read(value)


_HINT = "restore the file with `git checkout` or `dvc pull`"


def _in_order(described: dict[str, Any], schemas: dict[str, str]) -> dict[str, Any]:
    """Return the manifest's members with the schemas that stand in it in their written order."""
    bindings = dict(described.get("tool_bindings", {}))
    for name, text in schemas.items():
        schema = digest.load_canonical(text.encode())
        if schema != bindings[name]["schema"]:
            raise ValueError(f"the schema of {name} is there twice and differs")
        bindings[name] = {**bindings[name], "schema": schema}
    return {**described, "tool_bindings": bindings} if schemas else described


def _read(snapshot: dict[str, Any]) -> Harness:
    described = Manifest.model_validate(_in_order(snapshot["manifest"], snapshot.get("schemas", {})))
    files = {str(key): _unpacked(packed) for key, packed in snapshot["files"].items()}
    closures = {entry: dict(modules) for entry, modules in snapshot["closures"].items()}
    includes: dict[Place, tuple[str, ...]] = {
        (component, part): _texts(keys)
        for component, parts in snapshot.get("includes", {}).items()
        for part, keys in parts.items()
    }
    unassigned = _texts(snapshot.get("unassigned", []))
    identity = identify(described, Sources(files, closures, includes, unassigned))
    claimed = Identity(snapshot["fingerprint"], snapshot["components"], snapshot["parts"])
    if identity != claimed:
        message = "the digests of the snapshot are not those of its contents"
        raise IntegrityError(message, where=str(claimed.fingerprint), hint=_HINT)
    return Harness(
        name=described.name or "",
        folder=None,
        manifest=described,
        files=files,
        closures=closures,
        includes=includes,
        unassigned=unassigned,
        # computed in the manifest's order, which sorted JSON has lost
        identity=identity,
        findings=tuple(_finding(found) for found in snapshot.get("findings", ())),
        incomplete={component: _texts(parts) for component, parts in snapshot.get("incomplete", {}).items()},
    )


def _finding(found: dict[str, str]) -> Finding:
    if not all(isinstance(value, str) for value in found.values()):
        raise ValueError("a finding holds something that is no text")
    return Finding(found["code"], Severity(found["severity"]), found["where"], found["message"], found.get("hint"))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("a list of texts was expected")
    return tuple(value)


def _stated(value: Any) -> Any:
    """Leave out members that say nothing; a null within free-form values (parameters, schemas) stays."""
    kept = {member: inner for member, inner in value.items() if inner is not None}
    for component in ORDERED:
        kept[component] = [{m: inner for m, inner in part.items() if inner is not None} for part in kept[component]]
    kept["tool_bindings"] = {
        name: {member: inner for member, inner in tool.items() if inner is not None}
        for name, tool in kept["tool_bindings"].items()
    }
    kept["runtime"] = {member: inner for member, inner in kept["runtime"].items() if inner is not None}
    limits = kept["runtime"]["limits"]
    kept["runtime"]["limits"] = {member: inner for member, inner in limits.items() if inner is not None}
    return kept


def _packed(raw: bytes) -> dict[str, str]:
    try:
        return {"text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode("ascii")}


def _unpacked(packed: dict[str, str]) -> bytes:
    if "text" in packed:
        return packed["text"].encode("utf-8")
    try:
        return base64.b64decode(packed["base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"base64: {error}") from None
