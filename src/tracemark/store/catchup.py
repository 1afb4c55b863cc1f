"""Making the catalogue equal to the folder, both ways.

A crash, a pull, a checkout or another program may add data files and remove them. Whoever opens the store compares
names (nothing else: a name is the content) and enters or takes out the difference, one transaction a file.

Invariants:
- what the catalogue holds is read before the folder, so a file that another process commits meanwhile is never taken
  for one that has gone;
- a file that cannot be projected stays where it is, is reported, and is tried again at the next opening.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tracemark.durable import lock
from tracemark.errors import IntegrityError, LockedError
from tracemark.findings import Finding, finding
from tracemark.store.annotations import project_annotation, project_refused
from tracemark.store.catalogue import Catalogue, CatalogueError
from tracemark.store.layout import Layout
from tracemark.store.row import project_line
from tracemark.store.segment import Location, iterate

TEXT = "text"
"""Setting of the catalogue: `everything` when the search text is that of whole traces."""

EVERYTHING = "everything"
"""See `TEXT`."""


def enter(catalogue: Catalogue, layout: Layout, name: str) -> None:
    """Project the data file `name`, read from the folder.

    Raises:
        IntegrityError: when it is damaged or holds something else than its folder says.
        CatalogueError: when the catalogue cannot take it.
    """
    locations: list[Location] = []
    lines: list[Any] = []
    everything = catalogue.meta(TEXT) == EVERYTHING
    projections: dict[str, tuple[Callable[[bytes], Any], Callable[..., None]]] = {
        "segments": (partial(project_line, everything=everything), catalogue.add_traces),
        "annotations": (project_annotation, catalogue.add_annotations),
        "refused": (project_refused, catalogue.add_refused),
    }
    project, add = projections[name.partition("/")[0]]
    for location, line in iterate(layout.path(name)):
        locations.append(location)
        lines.append(project(line))
    add(name, lines, locations)


def attempt(name: str, project: Callable[[], None]) -> Finding | None:
    """Run a projection of the data file `name`; return a finding when it failed, since the file itself is safe."""
    try:
        project()
    except (IntegrityError, LockedError, CatalogueError) as error:
        return finding("stored-not-indexed", name, f"it is stored, and could not be indexed: {error}")
    return None


def catch_up(catalogue: Catalogue, layout: Layout) -> list[Finding]:
    """Make the catalogue equal to the folder; return a finding for each file that could not be projected."""
    if catalogue.files().keys() == set(layout.data_files()):
        return []
    problems = []
    with lock(layout.locks / "catch-up", blocking=True):
        entered = catalogue.files().keys()
        present = layout.data_files()
        for name in sorted(entered - set(present)):
            if not layout.path(name).exists():
                catalogue.remove(name)
        for name in present:
            if name not in entered:
                problem = attempt(name, partial(enter, catalogue, layout, name))
                problems += [problem] if problem else []
    return problems
