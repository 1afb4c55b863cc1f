"""What `dvc.lock` says of the outputs of all stages: DVC itself is neither imported nor called here.

Every reading verb asks, and a YAML library takes a tenth of a second for the file of a small pipeline. DVC writes one
narrow form of YAML, which is recognised here; whatever else stands in the file is left to the library.

Invariant:
- where the library can read a file that is recognised, it finds the same outputs, and of each the same `md5` and the
  same `nfiles`, which is all that is asked; one without `nfiles` has 0 files. All other members come as text here, and
  as what they are from the library.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tracemark.durable import is_there, read_regular, why_unread
from tracemark.errors import IrregularFileError, NotPulledError

NAME = "dvc.lock"
"""The file in which DVC keeps what it pins, in the root of a corpus."""

_HEAD = "schema: '2.0'\nstages:\n"
_OUT = r"    - path: ([A-Za-z][\w@=./-]*)\n((?:      (?:hash|md5|size|nfiles): [a-z0-9]+(?:\.dir)?\n)+)"
# what a stage reads is passed over: what belongs to a member of it is a list, or stands further in
_STAGE = re.compile(
    rf"  ([A-Za-z][\w.@-]*):\n(?:    (?:cmd|deps|params):.*\n(?:    (?:- | ).*\n)*)*(?:    outs:\n((?:{_OUT})+))?",
    re.ASCII,
)
_OUTS = re.compile(_OUT, re.ASCII)
_COUNT = re.compile(r"0|[1-9][0-9]{0,17}")


def outs(root: Path) -> dict[str, dict[str, Any]]:
    """Return what dvc.lock says of each output, by its path; empty without a dvc.lock.

    Of the members only `md5` and `nfiles` are to be asked; `nfiles` may be absent where it is 0.

    Raises:
        NotPulledError: when dvc.lock cannot be read, so that nobody can tell what it pins.
    """
    if not is_there(root / NAME):
        return {}
    try:
        data = read_regular(root / NAME)
    except (OSError, IrregularFileError) as error:
        raise _unread(error) from None
    recognised = _recognised(data)
    return _read(data) if recognised is None else recognised


def unreadable(error: Exception) -> NotPulledError:
    """Return the error that nobody can tell what dvc.lock pins."""
    return NotPulledError(
        f"what is pinned cannot be read: {str(error).splitlines()[0]}",
        where=NAME,
        hint=f"git checkout {NAME} (after a merge: keep one side), then dvc pull",
    )


def _unread(error: OSError | IrregularFileError) -> NotPulledError:
    reason, hint = why_unread(error)
    return NotPulledError(f"what is pinned cannot be read: {reason}", where=NAME, hint=hint)


def _recognised(data: bytes) -> dict[str, dict[str, Any]] | None:
    """Return every output by its path; None when the file is not as DVC writes it."""
    text = data.decode("utf-8", "replace")
    if not text.startswith(_HEAD):
        return None
    names: set[str] = set()
    found: dict[str, dict[str, Any]] = {}
    at = len(_HEAD)
    while at < len(text):
        stage = _STAGE.match(text, at)
        if stage is None or stage[1] in names:
            return None
        names.add(stage[1])
        for path, members in _OUTS.findall(stage[2] or ""):
            pairs = [line.strip().split(": ") for line in members.splitlines()]
            out: dict[str, Any] = dict(pairs)
            if len(out) < len(pairs) or not _COUNT.fullmatch(out.get("nfiles", "0")):
                return None
            found[path] = {**out, "nfiles": int(out.get("nfiles", "0"))}
        at = stage.end()
    return found


def _read(data: bytes) -> dict[str, dict[str, Any]]:
    from ruamel.yaml import YAML  # noqa: PLC0415  slow, and seldom needed
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        read = YAML(typ="safe").load(data)
        listed = [out for stage in read.get("stages", {}).values() for out in stage.get("outs", [])]
        return {str(out["path"]): dict(out) for out in listed}
    except (YAMLError, ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise unreadable(error) from None
