r"""The only hashing, and the one form in which JSON is written and hashed.

Canonical JSON has sorted keys, UTF-8, no spaces, and numbers, escapes and key order byte for byte as orjson writes them
(so `25` and `25.0` stay apart), extended to what orjson refuses: integers beyond 64 bits keep all digits, and a lone
surrogate is written as `\udxxx` in lower case. Ordered JSON differs from it in one thing: keys stand as they are given.

Invariants:
- two paths, one result: whatever orjson can write, the exact writer writes with the same bytes (a property test);
- reading loses nothing without saying so: integers of any size and lone surrogates are kept; a repeated key, a number
  that is not finite and an encoded surrogate are named in `Decoded.repairs`;
- a number with a fraction or an exponent is an IEEE double, as everywhere in the field.

`orjson.loads` turns an integer beyond 64 bits into a float and forgets repeated keys, both without an error. So a value
that it read is believed only when writing it again proves that nothing was lost: either the bytes are equal, or no run
of digits can be such an integer and the number of quotation marks is the same (a dropped key loses at least two).
Everything else is read by the standard library with a hook.
"""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path

import orjson

from tracemark import exact_json
from tracemark.exact_json import JSON as JSON  # noqa: PLC0414 - part of what this module offers
from tracemark.exact_json import MAX_DEPTH as MAX_DEPTH  # noqa: PLC0414 - part of what this module offers
from tracemark.exact_json import Decoded as Decoded  # noqa: PLC0414 - part of what this module offers
from tracemark.exact_json import NotJSONError as NotJSONError  # noqa: PLC0414 - part of what this module offers

FINGERPRINT_PREFIX = "tm1:"
"""What a fingerprint of algorithm `tracemark-harness/1` begins with."""

_ORDERED = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SORTED = _ORDERED | orjson.OPT_SORT_KEYS
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_NEAR = 64
_LARGE = 65_536
_ESCAPED_QUOTE = re.compile(rb"\\u0022")
_SPACE = b" \t\r\n"
_PRINTED = orjson.OPT_INDENT_2
# most of what is printed over lines is printed as orjson does, so that writing it again proves all at once
_PRINTED_BEGINNINGS = (b"{\n  ", b"[\n  ")


def canonical(value: JSON, *, finite: bool = False) -> bytes:
    """Return the canonical JSON of `value`.

    Args:
        value: a JSON value; may hold `orjson.Fragment` whose contents are canonical already.
        finite: whether it is known that every number is finite, as in all that `loads` gives; saves looking.

    Raises:
        TypeError: for a type that JSON has not.
        ValueError: for NaN or an infinity, which JSON has not either.
    """
    return _written(value, _SORTED, finite)


def ordered(value: JSON, *, finite: bool = False) -> bytes:
    """Return the JSON of `value`, written like canonical JSON but with the members in the order given.

    For texts in which the order is content, such as what a model is trained on; never for what is hashed as a value.

    Args:
        value: a JSON value; may hold `orjson.Fragment`.
        finite: as in `canonical`.

    Raises:
        TypeError: for a type that JSON has not.
        ValueError: for NaN or an infinity, which JSON has not either.
    """
    return _written(value, _ORDERED, finite)


def loads(raw: bytes) -> Decoded:
    """Read a JSON text and say what of it could not be kept.

    Args:
        raw: UTF-8 bytes of one JSON text; white space around it is allowed, a byte order mark is not.

    Raises:
        NotJSONError: when it is not JSON, not UTF-8, or nested deeper than `MAX_DEPTH`.
    """
    try:
        value = orjson.loads(raw)
        # refuses what is nested deeper than about 250 levels, so depth is looked at only in what was not written
        written = orjson.dumps(value, option=_PRINTED if raw.startswith(_PRINTED_BEGINNINGS) else None)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        decoded = exact_json.read(raw)
        if exact_json.is_too_deep(decoded.value):
            raise NotJSONError(exact_json.TOO_DEEP) from None
        return decoded
    if written == raw or written == raw.strip(_SPACE):
        return Decoded(value, ())
    if (
        raw.count(b'"') == written.count(b'"')
        and _ESCAPED_QUOTE.search(raw) is None
        and not _may_hold_large_integer(raw)
    ):
        return Decoded(value, ())
    return exact_json.read(raw)


def load_canonical(line: bytes) -> JSON:
    """Read back what `canonical` or `ordered` wrote, exactly; members keep their order.

    Raises:
        NotJSONError: when `line` is not JSON.
    """
    if not _may_hold_large_integer(line):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            pass
    return exact_json.read(line).value


def equal(one: JSON, other: JSON) -> bool:
    """Return whether two values are the same JSON: Python takes `true` for 1, and 25 for 25.0.

    Raises:
        TypeError: for a type that JSON has not.
        ValueError: for NaN or an infinity.
    """
    return canonical(one) == canonical(other)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def of(value: JSON) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, read in pieces.

    Raises:
        OSError: when the file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def md5(data: bytes) -> str:
    """Return the MD5 of bytes as hexadecimal text: the name that DVC gives to content, and nothing to rely on."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def md5_file(path: Path) -> str:
    """Return the MD5 of a file's bytes as hexadecimal text, reading it in pieces; see `md5`.

    Raises:
        OSError: when the file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def git_object_id(kind: str, data: bytes) -> str:
    """Return the id git gives an object of `kind` (`blob`, `tree`) with content `data`: SHA-1 after git's header."""
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


class Hasher:
    """A SHA-256 that is fed in pieces."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, data: bytes) -> None:
        """Add `data`."""
        self._hash.update(data)

    def hexdigest(self) -> str:
        """Return the digest of everything added so far, 64 hexadecimal digits."""
        return self._hash.hexdigest()


def is_fingerprint(text: str) -> bool:
    """Return whether `text` has the form of a fingerprint, `tm1:` and 64 lower-case hexadecimal digits."""
    return re.fullmatch(r"tm1:[0-9a-f]{64}", text) is not None


def _written(value: JSON, option: int, finite: bool = False) -> bytes:
    try:
        data = orjson.dumps(value, option=option)
    except orjson.JSONEncodeError:
        return exact_json.write(value, sort=bool(option & orjson.OPT_SORT_KEYS))
    # orjson writes NaN and infinities as null without an error; reading back and comparing is faster than looking at
    # every value, and says no where a look is needed. Of a long list it takes more than ten times the memory
    if not finite and b"null" in data and _has_null(data) and (len(data) > _LARGE or orjson.loads(data) != value):
        _refuse_not_finite(value)
    return data


def _has_null(data: bytes) -> bool:
    """Return whether a null may stand in `data` outside of texts."""
    return b":null" in data or b",null" in data or b"[null" in data or data == b"null"


def _may_hold_large_integer(raw: bytes) -> bool:
    """Return whether a run of digits in `raw` may be an integer beyond 64 bits; within a name or a hash it is none."""
    zeros = raw.translate(_DIGITS)
    at = zeros.find(_LONG_NUMBER)
    while at >= 0:
        # a number stands at the beginning, or behind a colon, a comma or a bracket
        before = zeros[max(0, at - _NEAR) : at].removesuffix(b"-").rstrip(_SPACE)[-1:]
        if not before or before in b":,[":
            return True
        at = zeros.find(_LONG_NUMBER, at + len(_LONG_NUMBER))
    return False


def _refuse_not_finite(value: JSON) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise ValueError(f"{item!r} is not a JSON number")
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
