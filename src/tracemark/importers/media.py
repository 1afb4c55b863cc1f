"""Images and sounds in messages, by the types that ATIF has."""

from __future__ import annotations

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Types of images that a part of a message may have."""

SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
"""Formats of sounds as chat APIs name them, each with its type."""

_DATA = "data:"


def image_type(path: str) -> str | None:
    """Return the type of an image by the beginning of its data, else by the end of its name; None when unknown."""
    if path.startswith(_DATA):
        kind = path[len(_DATA) : 40].partition(";")[0]
    else:
        _, dot, ending = path[-8:].rpartition(".")
        kind = f"image/{ending.lower()}" if dot else ""
    kind = "image/jpeg" if kind == "image/jpg" else kind
    return kind if kind in IMAGES else None
