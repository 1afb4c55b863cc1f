"""Lazy tables from a name to the object that answers to it, open to entry points.

A table holds `"module:attribute"` strings, so that listing names imports nothing and using one imports just its module.
Third parties add to a table through an entry point of the table's group; a built-in name cannot be replaced that way.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tracemark.errors import UnknownNameError, UsageError


class Registry:
    """Names of one kind, loaded when asked for.

    Args:
        group: the entry point group that third parties use, such as `tracemark.importers`.
        builtin: our own names and their `"module:attribute"`.
        noun: what one of them is called in messages, such as `format`.
    """

    def __init__(self, group: str, builtin: Mapping[str, str], noun: str) -> None:
        self.group = group
        self.noun = noun
        self._builtin = dict(builtin)
        self._plugins: dict[str, str] | None = None

    def names(self) -> list[str]:
        """Return all names: ours in their order, then those of entry points, sorted."""
        return [*self._builtin, *sorted(self._entry_points())]

    def load(self, name: str) -> Any:
        """Return the object that `name` stands for.

        Raises:
            UnknownNameError: when there is no such name; the hint lists those that exist.
            UsageError: when an entry point names something that cannot be imported, whatever its module raises.
        """
        target = self._builtin.get(name) or self._entry_points().get(name)
        if target is None:
            raise UnknownNameError(f"unknown {self.noun} {name!r}", hint="one of: " + ", ".join(self.names()))
        module, _, attribute = target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except Exception as error:
            raise UsageError(
                f"{self.noun} {name!r} cannot be loaded: {type(error).__name__}: {error}",
                where=target,
                hint="mend, reinstall or uninstall the package that brings it",
            ) from error

    def _entry_points(self) -> dict[str, str]:
        if self._plugins is None:
            # importlib.metadata is slow to import, and most commands never look a plugin up
            from importlib.metadata import entry_points  # noqa: PLC0415

            found = {point.name: point.value for point in entry_points(group=self.group)}
            self._plugins = {name: value for name, value in found.items() if name not in self._builtin}
        return self._plugins
