"""Which files an entry consists of: the file it names and every local module that file imports, directly or not.

Modules are looked up in the harness folder, then in `roots`, then in `packages`, by the rules of Python's import
system: a package or module of a place beats a namespace package, and a parent's `__init__` counts with its child. The
lookup reads folders and parses files; nothing is imported, so `find_spec`, which runs parents, is not used.

What the lookup cannot answer is a finding: two places that answer (`module-ambiguous`), and whatever could bring in
text that no import statement names (`closure-incomplete`). A file that does not parse is a problem, because what it
imports is then unknown and no fingerprint could be right.

Invariants:
- the result depends on the files' texts alone: not on the machine, the interpreter's packages, or the order of imports;
- cycles end, because each module is visited once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tracemark.findings import Finding, finding
from tracemark.harness.folder import Base, HarnessFolder, RefusedFileError, outside
from tracemark.harness.source import Import, Source, UnparsableError
from tracemark.harness.source import read as read_source
from tracemark.model.harness import MANIFEST_NAME

Name = tuple[str, ...]
"""A dotted name, as its pieces: a path to an entry may hold a dot within a piece."""

_HAZARD_HINT = "put what it reads or runs into a module that is imported by name, or a prompt; else it is not hashed"
_NAMELESS_HINT = (
    "move the code into a module with a name, as in `agent.py:run`; an `__init__.py` needs a folder around it"
)
_COMPILED = (".so", ".pyd", ".pyc")


class Module(NamedTuple):
    """One module found."""

    name: Name
    base: Base
    path: str
    """Path of its file in `base`."""
    is_package: bool


@dataclass(frozen=True)
class Closure:
    """The files of one entry."""

    modules: dict[str, str]
    """Key of each module's file by the module's dotted name, sorted; a parent without a file is a namespace package."""
    findings: tuple[Finding, ...] = ()
    """What is uncertain."""
    problems: tuple[Finding, ...] = ()
    """What makes a fingerprint impossible."""

    @property
    def incomplete(self) -> bool:
        """Whether the entry may depend on text that is not in `modules`."""
        return any(found.code == "closure-incomplete" for found in self.findings)


@dataclass
class _Lookup:
    """What a dotted name leads to."""

    modules: list[Module] = field(default_factory=list)
    """The module, and the packages above it that have a file."""
    complete: bool = False
    """Whether the whole name was found, be it as a namespace package."""
    local: bool = False
    """Whether its first piece is a module here."""
    package: bool = False
    """Whether what was found can have modules below it."""
    doubled: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of paths, relative to the harness folder, that both answer to a piece of the name."""


class ClosureReader:
    """Follows imports through a harness folder; keeps what it has read for the next entry.

    Args:
        folder: the folder, its bases added.
        packages: third-party modules that the manifest lists, by name.
        environment: variables that the manifest declares.
    """

    def __init__(self, folder: HarnessFolder, packages: Iterable[str], environment: Iterable[str]) -> None:
        self._folder = folder
        self._listed = {_plain(name) for name in packages}
        self._declared = frozenset(environment)
        self._sources: dict[str, Source | Finding] = {}
        self._lookups: dict[Name, _Lookup] = {}

    def read(self, entry: str) -> Closure:
        """Return the closure of an entry.

        Args:
            entry: `path/in/folder.py:attribute` or `package.module:attribute`.
        """
        start = self._start(entry)
        if isinstance(start, Finding):
            return Closure({}, problems=(start,))
        walk = _Walk(self, start)
        walk.run()
        modules = dict(sorted(walk.modules.items()))
        return Closure(modules, tuple(dict.fromkeys(walk.findings)), tuple(dict.fromkeys(walk.problems)))

    def key(self, module: Module) -> str:
        """Return the key of a module's file."""
        return self._folder.key(module.base, module.path)

    def source(self, module: Module) -> Source | Finding:
        """Return what a module's file imports and does, or the problem that prevents reading it."""
        key = self.key(module)
        if key not in self._sources:
            self._sources[key] = self._read_source(module, key)
        return self._sources[key]

    def is_third_party(self, top: str) -> bool:
        """Return whether a top-level name is neither of the standard library nor listed in the manifest."""
        return top not in sys.stdlib_module_names and _plain(top) not in self._listed

    def is_foreign(self, top: str) -> bool:
        """Return whether a top-level name is of the standard library or listed as third-party."""
        return top in sys.stdlib_module_names or _plain(top) in self._listed

    def is_declared(self, variable: str | None) -> bool:
        """Return whether the manifest declares an environment variable; None is an unknown one."""
        return variable in self._declared

    def lookup(self, name: Name) -> _Lookup:
        """Return what a dotted name leads to."""
        if name not in self._lookups:
            self._lookups[name] = self._look_up(name)
        return self._lookups[name]

    def _start(self, entry: str) -> Module | Finding:
        place = entry.partition(":")[0]
        if not place.endswith(".py") and "/" not in place:
            found = self.lookup(tuple(place.split(".")))
            if found.complete and found.modules and found.modules[-1].name == tuple(place.split(".")):
                return found.modules[-1]
            return finding("manifest-file-missing", MANIFEST_NAME, f"entry {entry!r}: there is no module {place!r}")
        if refused := outside(place):
            return finding("manifest-path-outside", MANIFEST_NAME, f"entry {entry!r}: {refused}")
        parts = [part for part in place.split("/") if part not in ("", ".")]
        if not place.endswith(".py"):
            return finding("manifest-invalid", MANIFEST_NAME, f"entry {entry!r}: the file is no Python file (.py)")
        name = _name_of(parts)
        if not all(name):
            message = f"entry {entry!r}: the file has no name to import it by"
            return finding("manifest-invalid", MANIFEST_NAME, message, _NAMELESS_HINT)
        return Module(name, self._folder.bases[0], "/".join(parts), parts[-1] == "__init__.py")

    def _read_source(self, module: Module, key: str) -> Source | Finding:
        try:
            raw = self._folder.read(module.base, module.path)
        except RefusedFileError as error:
            return error.problem
        if module.path.endswith(_COMPILED):
            return Source((), (), (), ())
        try:
            return read_source(raw)
        except UnparsableError as error:
            where = f"{key}:{error.line}" if error.line else key
            return finding("source-unparsable", where, f"{key!r} is no Python that this interpreter reads: {error}")

    def _look_up(self, name: Name) -> _Lookup:
        found = _Lookup()
        portions = [(base, "") for base in self._folder.bases if base.only in (None, name[0])]
        for depth in range(1, len(name) + 1):
            hits, namespaces = self._answers(portions, name[:depth])
            if hits:
                # one file may be reached by two bases; only two files are a doubt
                first, *others = dict.fromkeys(self._folder.shown(hit.base, hit.path) for hit in hits)
                found.doubled += [(first, other) for other in others]
                found.modules.append(hits[0])
                found.local = True
                portions = [(hits[0].base, hits[0].path.rpartition("/")[0])] if hits[0].is_package else []
            elif namespaces:
                portions = namespaces
            else:
                return found
        found.complete = bool(found.modules) or any(self._holds_python(portion) for portion in portions)
        found.local = found.local or found.complete
        found.package = bool(portions)
        return found

    def _answers(self, portions: list[tuple[Base, str]], name: Name) -> tuple[list[Module], list[tuple[Base, str]]]:
        """Return the modules and the namespace folders that answer to the last piece of `name`."""
        hits: list[Module] = []
        namespaces: list[tuple[Base, str]] = []
        last = name[-1]
        for base, folder in portions:
            path = f"{folder}/{last}" if folder else last
            if self._folder.is_file(base, f"{path}/__init__.py"):
                hits.append(Module(name, base, f"{path}/__init__.py", is_package=True))
            elif self._folder.is_folder(base, path):
                namespaces.append((base, path))
            if self._folder.is_file(base, f"{path}.py"):
                hits.append(Module(name, base, f"{path}.py", is_package=False))
            hits += [
                Module(name, base, f"{folder}/{other}" if folder else other, is_package=False)
                for other in sorted(self._folder.names(base, folder))
                if other.startswith(last + ".") and other.endswith(_COMPILED)
            ]
        return hits, namespaces

    def _holds_python(self, portion: tuple[Base, str]) -> bool:
        return any(name.endswith(".py") for name in self._folder.names(*portion))


class _Walk:
    """One walk over the modules of one entry."""

    def __init__(self, reader: ClosureReader, start: Module) -> None:
        self.reader = reader
        self.start = start
        self.modules: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.problems: list[Finding] = []
        self.pending: list[Module] = []

    def run(self) -> None:
        self._add([self.start])
        if len(self.start.name) > 1:
            self._take(self.reader.lookup(self.start.name[:-1]))
        self._doubled(self.reader.lookup(self.start.name))
        while self.pending:
            module = self.pending.pop(0)
            source = self.reader.source(module)
            if isinstance(source, Finding):
                self.problems.append(source)
                continue
            key = self.reader.key(module)
            if module.path.endswith(_COMPILED):
                self._incomplete(key, "is compiled, so what it imports cannot be read")
            for hazard in source.hazards:
                self._incomplete(f"{key}:{hazard.line}", hazard.message, _HAZARD_HINT)
            for use in source.environment:
                if not self.reader.is_declared(use.name):
                    name = (
                        f"the environment variable {use.name}" if use.name else "environment variables it does not name"
                    )
                    hint = "declare it in `runtime.environment`" if use.name else None
                    self._incomplete(f"{key}:{use.line}", f"reads {name}", hint)
            for found in source.imports:
                self._follow(module, found, f"{key}:{found.line}")

    def _follow(self, module: Module, found: Import, where: str) -> None:
        target = found.module
        if found.level:
            package = module.name if module.is_package else module.name[:-1]
            if found.level - 1 > len(package):
                self._incomplete(where, "has a relative import that leaves the top-level package")
                return
            target = (*package[: len(package) - found.level + 1], *found.module)
        if not target:
            # `from . import x` in a file at the top: x stands beside it
            for name in found.names or ():
                self._module((name,), where, relative=True)
            return
        lookup = self._module(target, where, relative=found.level > 0)
        if lookup is None or not lookup.package:
            return
        for name in found.names or ():
            names = self._starred(lookup) if name == "*" else (name,)
            for below in names:
                child = self.reader.lookup((*target, below))
                if child.complete:
                    self._take(child)
                elif name != "*" and not (lookup.modules and lookup.modules[-1].name == target):
                    # a namespace package has nothing but modules
                    self._incomplete(where, f"imports `{'.'.join((*target, below))}`, which is not there")

    def _starred(self, lookup: _Lookup) -> tuple[str, ...]:
        source = self.reader.source(lookup.modules[-1]) if lookup.modules else None
        return source.exported if isinstance(source, Source) else ()

    def _module(self, name: Name, where: str, *, relative: bool) -> _Lookup | None:
        """Add the module `name`; return what it led to, or None when it is not here."""
        dotted = ".".join(name)
        lookup = self.reader.lookup(name)
        if lookup.complete:
            self._take(lookup)
            if not relative and self.reader.is_foreign(name[0]):
                message = f"`{name[0]}` is a module here and also one of the standard library or of `runtime.packages`"
                self.findings.append(finding("module-ambiguous", where, message))
            return lookup
        if lookup.local or relative:
            self._take(lookup)
            self._incomplete(where, f"imports `{dotted}`, which is not there", "correct the import, or add a root")
        elif self.reader.is_third_party(name[0]):
            hint = f"list `{name[0]}` with its version in `runtime.packages`, or add a root or package that holds it"
            self._incomplete(where, f"imports `{dotted}`, which is neither here nor listed", hint)
        return None

    def _take(self, lookup: _Lookup) -> None:
        self._add(lookup.modules)
        self._doubled(lookup)

    def _add(self, modules: Iterable[Module]) -> None:
        for module in modules:
            dotted = ".".join(module.name)
            if dotted not in self.modules:
                self.modules[dotted] = self.reader.key(module)
                self.pending.append(module)

    def _doubled(self, lookup: _Lookup) -> None:
        for first, other in lookup.doubled:
            message = f"{first!r} and {other!r} answer to the same import; the first is taken"
            self.findings.append(finding("module-ambiguous", first, message))

    def _incomplete(self, where: str, message: str, hint: str | None = None) -> None:
        self.findings.append(finding("closure-incomplete", where, message, hint))


def _plain(name: str) -> str:
    return name.partition(".")[0].lower().replace("-", "_")


def module_name(entry: str) -> str:
    """Return the dotted name under which an entry's module stands in its closure."""
    place = entry.partition(":")[0]
    parts = [part for part in place.split("/") if part not in ("", ".")]
    return ".".join(_name_of(parts)) if place.endswith(".py") else place


def _name_of(parts: list[str]) -> Name:
    """Return the dotted name of a file of the harness folder; a piece is empty where there is nothing to call it by."""
    *above, last = parts
    if last == "__init__.py":
        return tuple(above) or ("",)
    return (*above, last.removesuffix(".py"))
