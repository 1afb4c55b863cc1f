"""Making the catalogue equal to the folder, both ways.

A crash, a pull, a checkout or another program may add data files and remove them. Whoever opens the store compares
names (a name is the content, which is proved when a file is entered, and by `check`) and enters or takes out the
difference, one transaction a file.

Invariants:
- what the catalogue holds is read before the folder, so a file that another process commits meanwhile is never taken
  for one that has gone;
- a file that cannot be projected stays where it is, is reported, and is tried again at the next opening.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from tracemark.digest import Hasher
from tracemark.durable import lock
from tracemark.errors import IntegrityError, LockedError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import project_annotation, project_refused
from tracemark.store.catalogue import Catalogue, CatalogueError
from tracemark.store.layout import WHEN_WHOLE, Layout, content_of, located
from tracemark.store.row import project_line
from tracemark.store.searched import begin, searches_everything
from tracemark.store.segment import Location, iterate


def enter(catalogue: Catalogue, layout: Layout, name: str) -> None:
    """Project the data file `name`, read from the folder.

    Raises:
        IntegrityError: when it cannot be read, its bytes are not those of its name, or hold something else than its
            folder says.
        CatalogueError: when the catalogue cannot take it.
    """
    locations: list[Location] = []
    lines: list[Any] = []
    everything = searches_everything(catalogue)
    projections: dict[str, tuple[Callable[[bytes], Any], Callable[..., None]]] = {
        "segments": (partial(project_line, everything=everything), catalogue.add_traces),
        "annotations": (project_annotation, catalogue.add_annotations),
        "refused": (project_refused, catalogue.add_refused),
    }
    project, add = projections[name.partition("/")[0]]
    hasher = Hasher()
    for location, line in iterate(layout.path(name), hasher):
        locations.append(location)
        lines.append(project(line))
    if (found := hasher.hexdigest()) != content_of(name):
        raise IntegrityError(f"its bytes have the SHA-256 {found}", where=located(name), hint="tracemark check")
    add(name, lines, locations)


TOLERATED: tuple[type[Exception], ...] = (IntegrityError, LockedError, CatalogueError)
"""What may keep one file out of the catalogue and is no reason to stop: the next opening tries again."""


def attempt(
    name: str, project: Callable[[], None], tolerated: tuple[type[Exception], ...] = TOLERATED
) -> list[Finding]:
    """Run a projection of the data file `name`; return what kept it out, as findings: the file stays where it is."""
    try:
        project()
    except tolerated as error:
        hint = WHEN_WHOLE if isinstance(error, IntegrityError) else None
        found = [finding("stored-not-indexed", located(name), f"it is stored, and could not be indexed: {error}", hint)]
        # a lock or a full disk passes; a damaged file needs somebody, unless no answer rests on it
        if isinstance(error, IntegrityError) and not name.startswith(("refused/", "annotations/exports.")):
            found.insert(0, finding("file-damaged", located(name), str(error)))
        return found
    return []


def turn(layout: Layout) -> AbstractContextManager[None]:
    """Return a `with` block in which nobody else enters files that the catalogue lacks, or makes it anew.

    Who waits has no use for an end: the holder reads files, after a pull of a large corpus for many minutes, and until
    it has done so nothing can be answered.
    """
    return lock(layout.locks / "catch-up", blocking=True, longest=math.inf)


def catch_up(catalogue: Catalogue, layout: Layout, tolerated: tuple[type[Exception], ...] = TOLERATED) -> list[Finding]:
    """Make the catalogue equal to the folder; return findings of the files that could not be projected.

    Args:
        catalogue: the catalogue.
        layout: the corpus.
        tolerated: what becomes findings; anything else that keeps a file out is raised.
    """
    entered = catalogue.files().keys()
    if not entered:
        begin(catalogue, layout)
    if entered == set(layout.data_files()):
        return []
    problems = []
    with turn(layout):
        entered = catalogue.files().keys()
        present = layout.data_files()
        for name in sorted(entered - set(present)):
            if not layout.path(name).exists():
                catalogue.remove(name)
        for name in present:
            if name not in entered:
                problems += attempt(name, partial(enter, catalogue, layout, name), tolerated)
    return problems
