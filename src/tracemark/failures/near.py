"""Clusters that say nearly the same: by the likeness of their masked lines, whatever the harness or the tool.

A cluster is exact, so a changed wording, or another harness, makes another one. This is how the same trouble is found
again. The likeness is that of rapidfuzz's `ratio`: from 0 to 100, how much of both lines is common.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple

from tracemark.errors import not_installed
from tracemark.failures.cluster import Cluster

LEAST = 60.0
"""Least likeness of lines that are called similar."""


class Near(NamedTuple):
    """A cluster with a line like another one's."""

    cluster: Cluster
    """The cluster."""
    similarity: float
    """From 0 to 100; 100 for equal lines."""


def near(clusters: Iterable[Cluster], line: str, but: str) -> list[Near]:
    """Return the clusters whose masked lines are like `line`, the most alike first and those of one likeness by id.

    Clusters without a line are left out: that two conditions have one name says nothing of what went wrong.

    Args:
        clusters: where to look.
        line: a masked line.
        but: the id of the cluster that is asked about and is no answer.

    Raises:
        UsageError: when rapidfuzz is not installed.
    """
    ratio = fuzz().ratio
    found = [
        Near(cluster, score)
        for cluster in clusters
        if cluster.has_line and (score := round(ratio(line, cluster.masked), 1)) >= LEAST and cluster.id != but
    ]
    return sorted(found, key=lambda one: (-one.similarity, one.cluster.id))


def fuzz() -> Any:
    """Return the module that compares texts; to be asked before anything that takes time.

    Raises:
        UsageError: when rapidfuzz is not installed.
    """
    try:
        return import_module("rapidfuzz.fuzz")
    except ModuleNotFoundError as error:
        raise not_installed("comparisons of lines", "rapidfuzz") from error
