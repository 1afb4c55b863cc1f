"""An error line without what differs from run to run, so that the same failure reads the same everywhere.

Masked are texts in quotation marks, URLs, paths, UUIDs, times, hexadecimal digests and addresses, identifiers of
capitals and digits, and every other number. Colours are dropped, runs of white space become one blank, a row of like
masks becomes one.

Invariant: the time is linear in the length of the line. Each form begins only where a word begins, or ends with the
character that it looks for, so no text is read more than a few times; and of a very long line only the first
`LONGEST` characters count.
"""

from __future__ import annotations

import re

from tracemark.failures.text_form import uncoloured

LONGEST = 2_000
"""Characters of a line that count; the rest is cut off before anything else."""

LONGEST_MASKED = 400
"""Characters kept of the result."""

_DATE = r"(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"
_CLOCK = r"(?<![\d:.])\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm]\b)?(?![\d:])"
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
    ("hex", r"\b0x[0-9a-fA-F]+\b|(?<![\w])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}(?!\w)"),
    ("id", r"(?<![\w])(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,}(?!\w)"),
    ("n", r"\d+(?:[.,]\d+)*"),
)
_ANY = re.compile("|".join(f"(?P<{name}_{place}>{form})" for place, (name, form) in enumerate(_FORMS)))

_REPEATED = re.compile(r"(<\w{1,4}>)(?:[, ]{1,3}\1)+")


def mask(line: str) -> str:
    """Return `line` with all that differs from run to run masked, such as `<n>` for a number."""
    text = uncoloured(line[:LONGEST])
    return _REPEATED.sub(r"\1…", " ".join(_ANY.sub(_name, text).split()))[:LONGEST_MASKED]


def _name(match: re.Match[str]) -> str:
    return f"<{(match.lastgroup or '').partition('_')[0]}>"
