"""What a model is called in one text, `NAME` or `NAME@REVISION`, taken apart."""

from __future__ import annotations


def parted(label: str) -> tuple[str, str | None]:
    """Return the name and the revision that a label means by itself; None for a label without a revision.

    A name may hold an `@`, so the revision begins behind the last one, and neither of the two is empty.
    """
    name, at, revision = label.rpartition("@")
    return (name, revision) if at and name and revision else (label, None)
