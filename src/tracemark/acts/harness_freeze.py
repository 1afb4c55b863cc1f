"""`harness freeze`: write a harness out as a version in `harness_versions/`.

The harness is one that the corpus knows, or one that a module of the user's makes. Such a module is imported only
because the user names it, and nothing that a trace or a snapshot says is ever imported or run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tracemark.acts.corpus import VERSIONS, Corpus, place_of
from tracemark.acts.harnesses import placed, twice
from tracemark.digest import FINGERPRINT_PREFIX
from tracemark.errors import UsageError
from tracemark.findings import Report
from tracemark.harness.capture import Captured
from tracemark.harness.freeze import freeze as write_version
from tracemark.harness.version import Harness

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_ATTRIBUTE = re.compile(f"{_NAME}:{_NAME}")


@dataclass(frozen=True)
class Frozen(Report):
    """A harness was written out as a version."""

    name: str
    """The version's label, which is the name of its folder."""
    fingerprint: str
    """Its fingerprint, the same as before."""
    source: str
    """Where the harness was: a folder, relative to the corpus, `snapshot`, or `package.module:ATTRIBUTE`."""
    folder: str
    """The folder made, relative to the corpus."""
    files: tuple[str, ...]
    """Its files, relative to the folder, sorted."""


def freeze(root: Path, name: str, label: str) -> Frozen:
    """Write a harness out as the version `label`.

    Args:
        root: the corpus.
        name: a label, a fingerprint or its beginning, or `package.module:ATTRIBUTE`; the module is imported, and the
            attribute is a harness, a captured one, or a function without parameters that gives one.
        label: the new version's name.

    Raises:
        UnknownNameError: when nothing answers to `name`.
        UsageError: when the module or its attribute is nothing to freeze, the folder is there, or the harness cannot be
            written so that it reads back with its fingerprint.
        ManifestError: when a part of a captured harness is unrecorded.
        OSError: when the folder cannot be written.
    """
    if "/" in label or "\\" in label:
        raise UsageError(f"{label!r} is no name of a folder in {VERSIONS}/", hint="leave the slashes out")
    if _ATTRIBUTE.fullmatch(name) and not name.startswith(FINGERPRINT_PREFIX):
        harness, source = _of_module(name), name
    else:
        harness = Corpus(root).resolve(name)
        source = place_of(harness)
    frozen = write_version(harness, root / VERSIONS / label)
    assert frozen.folder is not None
    files = sorted(path.relative_to(frozen.folder).as_posix() for path in frozen.folder.rglob("*") if path.is_file())
    again = [found for found in twice(Corpus(root)) if f"{VERSIONS}/{label}" in found.where.split(", ")]
    findings = (*(placed(found, frozen) for found in frozen.findings), *again)
    return Frozen(findings, label, frozen.fingerprint, source, f"{VERSIONS}/{label}", tuple(files))


def _of_module(name: str) -> Harness:
    """Return the harness that an attribute of a module is or gives."""
    place, _, attribute = name.partition(":")
    with _working_folder_importable():
        found: Any = _run(name, lambda: import_module(place))
        for step in attribute.split("."):
            try:
                found = getattr(found, step)
            except AttributeError:
                raise UsageError(f"{place!r} has no attribute {attribute!r}", where=name) from None
        if callable(found) and not isinstance(found, Harness | Captured):
            found = _run(name, found)
    if isinstance(found, Captured):
        return found.require()
    if not isinstance(found, Harness):
        hint = "name what `tracemark.capture(…)` gave, or a function without parameters that gives it"
        raise UsageError(f"it is an object of {type(found).__qualname__!r}, and no harness", where=name, hint=hint)
    return found


def _run(name: str, call: Any) -> Any:
    """Return what somebody else's code gives.

    Raises:
        UsageError: when it ends in an exception of any kind, or wants to end the program.
    """
    try:
        return call()
    except SystemExit as error:
        raise UsageError(f"it cannot be loaded: it ends the program with {error}", where=name) from error
    except ModuleNotFoundError as error:
        hint = "modules are looked up in the current folder and among what is installed; PYTHONPATH adds folders"
        raise UsageError(f"it cannot be loaded: {error}", where=name, hint=hint) from error
    except Exception as error:
        raise UsageError(f"it cannot be loaded: {type(error).__name__}: {error}", where=name) from error


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """Let modules of the working folder be imported, as `python -m` does."""
    here = os.getcwd()  # noqa: PTH109 - a text, as the other entries are
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)
