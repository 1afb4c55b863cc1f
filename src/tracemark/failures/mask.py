"""An error line without what differs from run to run, so that the same failure reads the same everywhere.

Masked are texts in quotation marks, URLs, paths, UUIDs, times, mail and IPv6 addresses, hexadecimal digests and
addresses, identifiers of capitals and digits or of letters and digits mixed, and every other number with its sign and
exponent. Names of words, such as a user's or a table's without quotation marks, are not: nothing tells them from what
the error says. Colours are dropped, runs of white space become one blank, a row of like
masks becomes one.

Invariant: the time is linear in the length of the line. Each form begins only where a word begins, or ends with the
character that it looks for, so no text is read more than a few times; and of a very long line only the first
`LONGEST` characters count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tracemark.failures.text_form import LONGEST_LINE, uncoloured

LONGEST = LONGEST_LINE
"""Characters of a line that count; the rest is cut off before anything else."""

LONGEST_MASKED = 400
"""Characters kept of the result."""

_DATE = r"(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"
_CLOCK = r"(?<![\d:.])\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm]\b)?(?![\d:])"
_GROUP = r"[0-9a-fA-F]{1,4}"
_ADDRESS = (
    rf"(?<![\w:.])(?:{_GROUP}(?::{_GROUP}){{7}}"
    rf"|(?=[a-fA-F:]{{0,40}}\d)(?:{_GROUP}(?::{_GROUP}){{0,6}})?::(?:{_GROUP}(?::{_GROUP}){{0,6}})?)"
    r"(?:\.\d{1,3}){0,3}(?:%\w{1,16})?(?![\w:])"
)
_MAIL = r"(?<![\w.@+/\\-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.[A-Za-z]{2,24}(?![\w/\\@-])"
_CARD = r"(?<![\w:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![\w:])"
_AFTER = "|".join(rf"(?<={word} )" for word in ("commit", "revision", "object", "tree", "blob", "sha", "hash"))
# `utf8`, `Float64Index` and `v1beta1` are names; a letter that stands alone, or between digits, is in an id
_NAME = r"(?>[A-Z]*[a-z]{2,}|[A-Z]{2,}|\d+|v(?=\d))++(?![A-Za-z0-9])"
_FORMS = (
    ("text", r"\"[^\"]*\"|`[^`]*`|(?<![\w)\]>])'[^']*'(?!\w)|‘[^’]*’|“[^”]*”"),
    ("url", r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s\"'<>]+"),
    (
        "uuid",
        r"(?<![0-9A-Za-z-])[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![0-9A-Za-z])",
    ),
    ("time", _DATE),
    ("time", _CLOCK),
    ("path", r"(?<![\w.@~+/\\<>-])(?:[A-Za-z]:)?[\w.@~+-]*[/\\][\w.@~+/\\-]*(?<![.])"),
    (
        "path",
        r"(?<![\w.-])[\w-]+\.(?:py|js|ts|json|toml|ya?ml|txt|md|sh|c|h|cpp|rs|go|java|csv|xml|html|cfg|ini|log)\b",
    ),
    ("hex", r"\b0x[0-9a-fA-F]+\b|(?<!\w)(?=[0-9a-f]{7})(?:(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}|[a-f]{8,})(?!\w)"),
    ("hex", rf"(?<= )(?=[0-9a-f]{{7,64}}(?!\w))(?:{_AFTER})[0-9a-f]{{7,64}}"),
    ("id", r"(?<![\w])(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,}(?!\w)"),
    ("id", rf"(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])(?!{_NAME})[A-Za-z0-9]{{6,}}(?![A-Za-z0-9])"),
    ("n", r"(?:(?<![\w)\]>.+-])[+-])?(?:(?<![\w.])\.)?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+(?!\w))?"),
)
_ADDRESSES = (("hex", _CARD), ("ip", _ADDRESS), ("mail", _MAIL))
"""Looked for only in a line with the signs that they have."""


def _any(forms: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}_{place}>{form})" for place, (name, form) in enumerate(forms)))


_FEW, _ANY = _any(_FORMS), _any([*_FORMS[:3], *_ADDRESSES, *_FORMS[3:]])

_REPEATED = re.compile(r"(<\w{1,4}>)(?:[, ]{1,3}\1)+")


def mask(line: str) -> str:
    """Return `line` with all that differs from run to run masked, such as `<n>` for a number."""
    text = uncoloured(line[:LONGEST])
    forms = _ANY if "@" in text or text.count(":") > 1 else _FEW
    return _REPEATED.sub(r"\1…", " ".join(forms.sub(_name, text).split()))[:LONGEST_MASKED]


def _name(match: re.Match[str]) -> str:
    return f"<{(match.lastgroup or '').partition('_')[0]}>"
