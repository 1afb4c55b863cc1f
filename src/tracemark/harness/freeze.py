"""Write a harness out as the folder of a harness version, with the same fingerprint.

A harness that was captured, or read from a snapshot, has its files in memory: those of its folder, of roots and of
packages. All of them go into one folder by the paths that are hashed, so that the version stands by itself, without
roots or packages. Prompts and schemas that stood in the manifest become files, which can be read and compared.

Invariants:
- the folder is there whole or not at all, and what is there already stays as it is;
- no path leads out of the folder, whatever a snapshot says;
- it is read back before it gets its name, and has its name only if the fingerprint is the same.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from tracemark.durable import make_folder, sync_folder, write_atomic
from tracemark.errors import TracemarkError, UsageError
from tracemark.harness import manifest_text
from tracemark.harness.fingerprint import bare, plain
from tracemark.harness.folder import outside
from tracemark.harness.loading import load
from tracemark.harness.names import RENAME, reserved
from tracemark.harness.version import Harness
from tracemark.model.harness import MANIFEST_NAME, Manifest, PromptTemplate, ToolBinding

_SLUG = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 255


def freeze(harness: Harness, folder: Path) -> Harness:
    """Write a harness to a new folder, and return it as it is read from there.

    Args:
        harness: a captured one, one of a snapshot, or one of another folder.
        folder: the folder to make; its name becomes the label.

    Raises:
        UsageError: when the folder is there, its name is no label, or the harness cannot be written so that it reads
            back with its fingerprint.
        OSError: when the disk refuses.
    """
    folder = Path(folder)
    if os.path.lexists(folder):
        raise UsageError("there is something of that name already", where=str(folder), hint="choose another name")
    reason = reserved(folder.name) or (None if re.fullmatch(r"[^.\x00-\x1f\x7f][^\x00-\x1f\x7f]*", folder.name) else "")
    if reason is not None:
        said = reason or "begins with a dot, or holds control characters"
        raise UsageError(f"a harness version cannot be called {folder.name!r}: it {said}", hint=RENAME)
    contents = files(harness, folder.name)
    make_folder(folder.parent)
    # a name with a dot in front is no version's
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for path, raw in contents.items():
            write_atomic(temporary / path, raw)
        _require_same(temporary, harness)
        temporary.chmod(folder.parent.stat().st_mode & 0o777)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(folder.parent)
    return load(folder)


def files(harness: Harness, name: str) -> dict[str, bytes]:
    """Return the files of the version's folder by path, `harness.yaml` first.

    Args:
        harness: the harness.
        name: the label that the manifest gets.

    Raises:
        UsageError: when a path leads out of the folder, or two files have one.
    """
    made: dict[str, bytes] = {}
    for key, raw in harness.files.items():
        path = bare(key)
        if refused := _refused(path):
            raise UsageError(f"the file {key!r} cannot be written: {refused}", where=harness.fingerprint)
        if made.setdefault(path, raw) != raw:
            raise UsageError(
                f"two files of the harness have the path {path!r}", where=harness.fingerprint, hint="rename one of them"
            )
    for path in made:
        above = next((str(one) for one in PurePosixPath(path).parents if str(one) in made), None)
        if above is not None:
            raise UsageError(f"the file {path!r} cannot be written: {above!r} is a file too", where=harness.fingerprint)
    prompts = tuple(_prompt(prompt, made) for prompt in harness.manifest.prompt_templates)
    tools = {tool: _tool(tool, binding, made) for tool, binding in harness.manifest.tool_bindings.items()}
    # all that roots and packages led to lies in the folder, and nothing that was ignored does
    changes = {"name": name, "prompt_templates": prompts, "tool_bindings": tools}
    placed = harness.manifest.model_copy(update={**changes, "roots": (), "packages": (), "ignore": ()})
    return {MANIFEST_NAME: _manifest(placed, harness), **made}


def _manifest(manifest: Manifest, harness: Harness) -> bytes:
    try:
        return manifest_text.write(manifest)
    except UnicodeEncodeError:
        raise UsageError("a text of the harness holds half of a surrogate pair", where=harness.fingerprint) from None


def _refused(path: str) -> str | None:
    """Return why a path cannot be that of a file in the folder; None when it can."""
    pieces = path.split("/")
    if refused := outside(path):
        return refused
    if any(piece in ("", ".") or len(piece.encode("utf-8", "replace")) > _LONGEST for piece in pieces):
        return "the path has an empty, a `.` or an overlong piece"
    if re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", path):
        return "the path holds control characters"
    return f"{MANIFEST_NAME} is the manifest's own" if path == MANIFEST_NAME else None


def _prompt(prompt: PromptTemplate, made: dict[str, bytes]) -> PromptTemplate:
    """Return a prompt template whose text stands in a file, which is added to `made`."""
    if prompt.text is None:
        return prompt
    try:
        raw = plain(prompt.text).encode("utf-8")
    except UnicodeEncodeError:
        return prompt
    path = _free(f"prompts/{_slug(prompt.name)}", ".jinja" if prompt.syntax == "jinja" else ".txt", made)
    if path is None:
        return prompt
    made[path] = raw
    return prompt.model_copy(update={"text": None, "file": path})


def _tool(name: str, binding: ToolBinding, made: dict[str, bytes]) -> ToolBinding:
    """Return a binding whose schema stands in a file, which is added to `made`."""
    if isinstance(binding.definition, str):
        return binding
    path = _free(f"tools/{_slug(name)}", ".json", made)
    if path is None:
        return binding
    made[path] = _json(binding.definition)
    return binding.model_copy(update={"definition": path})


def _json(value: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=2) + "\n").encode()


def _slug(name: str) -> str:
    return _SLUG.sub("-", name).strip("-")[:100] or "part"


def _free(stem: str, suffix: str, made: dict[str, bytes]) -> str | None:
    """Return a path that no file has, not even in other letters' case; None when its folder's name is a file's."""
    taken = {path.casefold() for path in made}
    if stem.partition("/")[0].casefold() in taken:
        return None
    number, path = 1, stem + suffix
    while path.casefold() in taken:
        number += 1
        path = f"{stem}-{number}{suffix}"
    return path


def _require_same(folder: Path, harness: Harness) -> None:
    """Make sure that what was written reads back with the fingerprint.

    Raises:
        UsageError: when it does not.
    """
    try:
        found = load(folder).fingerprint
    except TracemarkError as error:
        raise UsageError(
            f"the harness cannot be written as a folder: {error.message}", where=harness.fingerprint
        ) from None
    if found != harness.fingerprint:
        raise UsageError(f"written as a folder it would be another harness, {found[:16]}", where=harness.fingerprint)
