"""Where the files of a source stand, as paths by which documents may name them, however they are packed.

A packed file stands there without the ending of its packing. A file in an archive has two places: one in the archive,
which is a folder then, and one beside the archive, where it would be unpacked.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tracemark.importers.records import Piece

_PACKED = (".gz", ".zst", ".bz2", ".xz")


def file_of(piece: Piece) -> str:
    """Return what tells the file of a piece from all others of the source."""
    return f"{piece.path}/{piece.member}" if piece.member else piece.path


def place_of(piece: Piece) -> str:
    """Return where a piece stands; one in an archive, within it."""
    return _bare(file_of(piece))


def unpacked_place(piece: Piece) -> str:
    """Return where a piece would stand when the archive that it is in was unpacked; of any other, where it stands."""
    if not piece.member:
        return place_of(piece)
    return _bare(posixpath.normpath(posixpath.join(posixpath.dirname(piece.path), piece.member)))


def folder_of(piece: Piece) -> str:
    """Return the folder of a piece, as if it was unpacked."""
    return posixpath.dirname(unpacked_place(piece))


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and those above it."""
    yield folder
    while (above := posixpath.dirname(folder)) != folder:
        folder = above
        yield folder


def targets(piece: Piece, path: str) -> tuple[str, str]:
    """Return the places that a document of a piece means by a path: in its archive, and when that was unpacked.

    For a piece that is in no archive both are the same. One that is out of what was given, or the piece's own, is
    empty.
    """
    root = piece.root or posixpath.dirname(piece.path)
    unpacked = _within(root, unpacked_place(piece), path)
    return (_within(piece.path, place_of(piece), path) if piece.member else unpacked), unpacked


def names_of(path: str) -> list[str]:
    """Return the ids that a path may be: without a folder in it, a file's name with and without its ending."""
    name = _bare(posixpath.normpath(path))
    return [] if "/" in name else [one for one in dict.fromkeys((name, name.removesuffix(".json"))) if one]


def _bare(path: str) -> str:
    """Return a path without the ending of a packing."""
    for end in _PACKED:
        path = path.removesuffix(end)
    return path


def _within(root: str, place: str, path: str) -> str:
    target = _bare(posixpath.normpath(posixpath.join(posixpath.dirname(place), path)))
    inside = not path.startswith("/") and target.startswith(root.rstrip("/") + "/") and target != place
    return target if inside else ""
