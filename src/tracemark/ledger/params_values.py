"""Values of `params.yaml`: what each kind of them must be, and what it becomes.

A check takes a value as YAML gave it and returns what `Params` holds, or raises `UnusableError` with what was expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from tracemark.digest import is_fingerprint
from tracemark.ledger.params import Policy

Check = Callable[[Any], Any]
"""Turns a value into what `Params` holds, or raises `UnusableError` with what was expected."""


_GREATEST = 2**63 - 1
"""The greatest number: sizes and counts beyond it are none that any system has."""

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]")
"""What nobody sees in an id and no id means: control characters, line ends, a byte order mark within a text."""


class UnusableError(Exception):
    """A value is not what was expected."""


def shown(value: Any) -> str:
    """Return a value as a message shows it."""
    if isinstance(value, int) and value.bit_length() > _GREATEST.bit_length():
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def fingerprint(value: Any) -> str | None:
    """Return a fingerprint, or None."""
    if value is not None and not (isinstance(value, str) and is_fingerprint(value)):
        raise UnusableError("expected a fingerprint (tm1: and 64 hexadecimal digits) or null")
    return value


def text(value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise UnusableError("expected a text (in quotes, where it looks like a number)")
    return str(value)


def optional_text(value: Any) -> str | None:
    """Return a text that is not empty, or None."""
    return None if value is None else text(value)


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list):
        raise UnusableError("expected a list of texts")
    return tuple(text(item) for item in value)


def task_id(text: str) -> str:
    """Return a task id as traces name tasks: with white space around it or what no one sees in it, it is none's."""
    task = text.strip()
    if not task or _UNSEEN.search(task):
        raise UnusableError("expected the id of a task, without control characters")
    return task


def task_ids(value: Any) -> tuple[str, ...] | PurePosixPath:
    """Return task ids, or the file of the corpus that lists them."""
    if isinstance(value, list):
        return task_list(value)
    if not isinstance(value, dict) or list(value) != ["file"]:
        raise UnusableError("expected a list of task ids, or {file: PATH}")
    file = PurePosixPath(text(value["file"]))
    if file.is_absolute() or ".." in file.parts:
        raise UnusableError("expected a path inside the corpus")
    return file


def task_list(value: Any) -> tuple[str, ...]:
    """Return a list of task ids."""
    return tuple(map(task_id, texts(value)))


def _whole(value: Any, least: int, otherwise: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UnusableError(f"expected a whole number from {least}{otherwise}")
    if value > _GREATEST:
        raise UnusableError(f"expected a whole number from {least} to {_GREATEST}{otherwise}")
    return int(value)


def count(value: Any) -> int:
    """Return a whole number from 0."""
    return _whole(value, 0)


def size(value: Any) -> int:
    """Return a whole number from 1."""
    return _whole(value, 1)


def limit(value: Any) -> int | None:
    """Return a whole number from 1, or None for no limit."""
    return None if value is None else _whole(value, 1, ", or null for no limit")


def number(value: Any) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnusableError("expected a number")
    # the order spares the conversion of a whole number that no float can hold
    if abs(value) > _GREATEST or not math.isfinite(value):
        raise UnusableError(f"expected a number from -{_GREATEST} to {_GREATEST}")
    return float(value)


def fewest_and_most(value: Any) -> tuple[int, int] | None:
    """Return a range, or None for no limit."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or count(value[0]) > count(value[1]):
        raise UnusableError("expected [FEWEST, MOST], or null for no limit")
    return int(value[0]), int(value[1])


def one_of(*choices: str) -> Check:
    """Return a check for one of some texts."""

    def check(value: Any) -> str:
        if value not in choices:
            raise UnusableError(f"expected one of {', '.join(choices)}")
        return str(value)

    return check


def policy(value: Any) -> Policy:
    """Return a policy of evidence."""
    return Policy(one_of(*Policy)(value))


def yes_or_no(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise UnusableError("expected true or false")
    return value


def share(value: Any) -> float:
    """Return a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise UnusableError("expected a share, a number from 0 to 1")
    return float(value)


def shares(value: Any) -> Mapping[str, float]:
    """Return shares by class; together they are at most the whole."""
    if not isinstance(value, dict):
        raise UnusableError("expected a mapping of classes to shares, DOMAIN/KIND: SHARE")
    found = {task_id(text(name)): share(part) for name, part in value.items()}
    # a sum of shares such as 0.1 is not exact
    if math.fsum(found.values()) > 1 + 1e-9:
        raise UnusableError("expected shares that are at most 1 together")
    return found


def optional_path(value: Any) -> str | None:
    """Return a path inside the corpus, or None."""
    if value is None:
        return None
    path = PurePosixPath(text(value))
    if path.is_absolute() or ".." in path.parts:
        raise UnusableError("expected a path inside the corpus, or null")
    return path.as_posix()
