"""Write a manifest as the text of a `harness.yaml` that reads back as the same manifest.

Only what the reader of manifests knows is written: block mappings and lists, words that no YAML takes for anything but
text, and every other text in quotation marks with JSON's escapes. Members at their defaults are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tracemark import digest
from tracemark.model.harness import Manifest

_WORD = re.compile(r"[A-Za-z_][\w./-]*(?::[A-Za-z_][\w./-]*)*", re.ASCII)
_NO_TEXT = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_UNSAFE = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


def write(manifest: Manifest) -> bytes:
    """Return the text of a `harness.yaml`, UTF-8.

    Raises:
        UnicodeEncodeError: when a text holds half of a surrogate pair, which no manifest may.
    """
    value = {"format": manifest.format, **manifest.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
    return "".join(f"{line}\n" for line in _mapping(value)).encode("utf-8")


def _mapping(value: dict[str, Any]) -> Iterator[str]:
    for key, inner in value.items():
        yield from _placed(f"{_text(key)}:", inner)


def _placed(head: str, value: Any) -> Iterator[str]:
    """Yield the lines of a value behind what it belongs to."""
    if isinstance(value, dict) and value:
        yield head
        yield from (f"  {line}" for line in _mapping(value))
    elif isinstance(value, list) and value:
        yield head
        for inner in value:
            lines = list(_item(inner))
            yield f"  - {lines[0]}"
            yield from (f"    {line}" for line in lines[1:])
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield from _mapping(value)
    elif isinstance(value, list) and value:
        for inner in value:
            lines = list(_item(inner))
            yield f"- {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    return _text(value) if isinstance(value, str) else digest.canonical(value).decode()


def _text(text: str) -> str:
    if _WORD.fullmatch(text) and text.lower() not in _NO_TEXT:
        return text
    # line ends of any kind within quotation marks would be folded
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))
