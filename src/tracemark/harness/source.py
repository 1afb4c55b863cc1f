"""What one Python file imports and what it does that no reader of imports can follow.

The text is parsed and never imported, compiled or run. Every import statement counts, wherever it stands: in a
function, under a condition, under `TYPE_CHECKING`. What makes a file depend on more than its imports is noted as a
*hazard*: dynamic imports, executed text, files opened, the environment read. The net is wide on purpose: a hazard too
many costs a declaration, one too few would be a fingerprint that misses a change.

Names are followed through import aliases (`from os import environ as e`), not through assignments or `getattr`; whoever
hides an import on purpose can, and the threat page says so.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

OPENERS = (
    "bz2.BZ2File",
    "fileinput.FileInput",
    "fileinput.input",
    "gzip.GzipFile",
    "io.FileIO",
    "io.open_code",
    "linecache.getline",
    "linecache.getlines",
    "logging.config.fileConfig",
    "lzma.LZMAFile",
    "shelve.DbfilenameShelf",
    "sqlite3.Connection",
    "sqlite3.connect",
    "tarfile.TarFile",
    "xml.dom.minidom.parse",
    "xml.etree.ElementTree.iterparse",
    "xml.etree.ElementTree.parse",
    "xml.sax.parse",
    "zipfile.Path",
    "zipfile.PyZipFile",
    "zipfile.ZipFile",
)
"""What opens a file that it is given the name of, besides `open` and every attribute `open`."""

_DYNAMIC_MODULES = {"importlib", "runpy", "pkgutil", "zipimport", "imp", "ctypes"}
_OPENS = "opens files, which may be data files"
_RESTORES = "restores objects, which imports what the data names"
_HAZARDS = {
    "builtins": "reaches built-in functions by a name of its own",
    "__builtins__": "reaches built-in functions by a name of its own",
    "exec": "executes text with exec()",
    "eval": "executes text with eval()",
    "compile": "compiles text with compile()",
    "__import__": "imports with __import__()",
    "__loader__": "uses its own loader",
    "__spec__": "uses its own import specification",
    "__path__": "uses the search path of its package",
    "__file__": "uses __file__, by which it can reach data files",
    "sys.path": "uses sys.path, which changes what is imported",
    "sys.modules": "uses sys.modules, which changes what is imported",
    "sys.meta_path": "uses sys.meta_path, which changes what is imported",
    "sys.path_hooks": "uses sys.path_hooks, which changes what is imported",
    "sys.executable": "uses sys.executable, by which it can run other files",
    **dict.fromkeys(("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.load", "marshal.loads"), _RESTORES),
    **dict.fromkeys(("open", *OPENERS), _OPENS),
}
"""What each name is a hazard for: built-in, or by the module that it stands in."""

_OF_ANY_MODULE = {"__builtins__", "__file__", "__import__", "__loader__", "__path__", "__spec__"}
_READING_METHODS = {"read_text", "read_bytes"}
_ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
_STARTS = ("subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn", "asyncio.create_subprocess")
"""How the names of functions begin that start another program."""

_SCRIPT = re.compile(
    r"\.(?:py|pyz|sh|bash|pl|rb|js|mjs|ts)(?![\w.])|(?:^|[\s/])(?:python|node|ruby|perl|sh|bash)[0-9.]*\s+[^-\s]"
)


class UnparsableError(Exception):
    """Bytes that are no Python of the running interpreter.

    Args:
        message: what is wrong.
        line: where, counted from 1; None when unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Import(NamedTuple):
    """One import of one module."""

    line: int
    """Where it stands, counted from 1."""
    level: int
    """Leading dots; 0 for an absolute import."""
    module: tuple[str, ...]
    """The dotted name after the dots, empty for `from . import x`."""
    names: tuple[str, ...] | None
    """What is taken from it, `*` included; None for a plain `import`."""


class Hazard(NamedTuple):
    """One thing that makes the closure incomplete."""

    line: int
    """Where it stands, counted from 1."""
    message: str
    """What the code does, as the end of a sentence about the file."""


class EnvironmentRead(NamedTuple):
    """One use of the process's environment."""

    line: int
    """Where it stands, counted from 1."""
    name: str | None
    """The variable; None when the code does not say which."""


@dataclass(frozen=True, slots=True)
class Source:
    """What was read from one file."""

    imports: tuple[Import, ...]
    """Every import statement, a module each."""
    hazards: tuple[Hazard, ...]
    """Everything that the imports do not show, apart from the environment."""
    environment: tuple[EnvironmentRead, ...]
    """Every use of the environment."""
    exported: tuple[str, ...]
    """Texts in assignments to `__all__`, which `from package import *` imports where they are modules."""


def parse(raw: bytes) -> ast.Module:
    """Parse the bytes of a Python file, by its own encoding declaration.

    Raises:
        UnparsableError: when it is no Python.
    """
    try:
        with warnings.catch_warnings():
            # an odd escape in somebody's string is no business of a reader of imports
            warnings.simplefilter("ignore")
            return ast.parse(raw)
    except SyntaxError as error:
        raise UnparsableError(error.msg, error.lineno) from None
    except (ValueError, RecursionError, MemoryError, UnicodeError, LookupError) as error:
        raise UnparsableError(str(error) or type(error).__name__) from None


@lru_cache(maxsize=512)
def read(raw: bytes) -> Source:
    """Read what the bytes of a Python file import and do; equal bytes are read once.

    Raises:
        UnparsableError: when it is no Python.
    """
    reader = _Reader()
    nodes = list(ast.walk(parse(raw)))
    for node in nodes:
        reader.note_import(node)
    for node in nodes:
        reader.note_use(node)
    return Source(
        tuple(sorted(reader.imports, key=lambda found: found.line)),
        tuple(sorted(set(reader.hazards))),
        tuple(sorted(set(reader.environment), key=lambda found: (found.line, found.name or ""))),
        tuple(reader.exported),
    )


@dataclass
class _Reader:
    """Collects over the nodes of one file; a parent comes before its children."""

    imports: list[Import] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    environment: list[EnvironmentRead] = field(default_factory=list)
    exported: list[str] = field(default_factory=list)
    aliases: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    explained: set[int] = field(default_factory=set)
    types: set[int] = field(default_factory=set)

    def note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append(Import(node.lineno, 0, tuple(alias.name.split(".")), None))
                self._note_module(node.lineno, alias.name)
                top = alias.name.partition(".")[0]
                self.aliases[alias.asname or top].add(alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            self.imports.append(Import(node.lineno, node.level, module, tuple(alias.name for alias in node.names)))
            if node.level == 0 and node.module:
                self._note_module(node.lineno, node.module)
                for alias in node.names:
                    self.aliases[alias.asname or alias.name].add(f"{node.module}.{alias.name}")
                    if alias.name == "*":
                        self._alias_all(node.module)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._note_exported(node)

    def note_use(self, node: ast.AST) -> None:
        if isinstance(node, ast.Subscript):
            self._note_variable(node, node.value, node.slice)
        elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
            self._note_variable(node, node.comparators[0], node.left)
        elif isinstance(node, ast.Call):
            self._note_call(node)
        elif isinstance(node, ast.Name | ast.Attribute):
            self._note_name(node)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            self._note_type(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._note_type(node.returns)

    def _note_module(self, line: int, name: str) -> None:
        top = name.partition(".")[0]
        if top in _DYNAMIC_MODULES:
            self.hazards.append(Hazard(line, f"uses `{top}`, which imports or reads what no import statement names"))
        elif top in _HAZARDS:
            self.hazards.append(Hazard(line, _HAZARDS[top]))

    def _alias_all(self, module: str) -> None:
        """Note the names that `from module import *` brings, as far as they matter here."""
        for watched in (*_HAZARDS, *_ENVIRONMENT):
            if watched.startswith(module + "."):
                self.aliases[watched.removeprefix(module + ".")].add(watched)

    def _note_exported(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            constants = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant))
            self.exported += [value for value in constants if isinstance(value, str)]

    def _note_call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr == "read" and node.args and self._imports_configparser():
                self.hazards.append(Hazard(node.lineno, "reads a file with .read()"))
            elif function.attr in {"get", "pop", "setdefault"} and node.args:
                self._note_variable(node, function.value, node.args[0])
                return
        origins = self._origins(function)
        if node.args and origins & {"os.getenv", "os.getenvb"}:
            self._note_variable(node, function, node.args[0])
        if any(origin.startswith(_STARTS) for origin in origins) and _names_script(node):
            self.hazards.append(Hazard(node.lineno, "runs a file of code as a program"))

    def _note_type(self, annotation: ast.expr | None) -> None:
        """Note that what stands here is named as a type, and so opens nothing."""
        parts = list(ast.walk(annotation)) if annotation is not None else []
        if not any(isinstance(part, ast.Call) for part in parts):
            self.types.update(map(id, parts))

    def _note_variable(self, node: ast.expr, environment: ast.expr, name: ast.expr) -> None:
        """Note that the variable `name` is read, where `environment` is the process's environment."""
        if self._origins(environment) & _ENVIRONMENT and isinstance(name, ast.Constant):
            value = name.value.decode("utf-8", "replace") if isinstance(name.value, bytes) else name.value
            if isinstance(value, str):
                self.environment.append(EnvironmentRead(node.lineno, value))
                self.explained.update(id(part) for part in ast.walk(environment))

    def _note_name(self, node: ast.Name | ast.Attribute) -> None:
        if id(node) in self.explained:
            return
        origins = self._origins(node)
        for origin in sorted(origins):
            if origin in _ENVIRONMENT:
                self.environment.append(EnvironmentRead(node.lineno, None))
            elif origin in _HAZARDS and not (_HAZARDS[origin] is _OPENS and id(node) in self.types):
                self.hazards.append(Hazard(node.lineno, _HAZARDS[origin]))
            elif origin.endswith(".open"):
                self.hazards.append(Hazard(node.lineno, _OPENS))
        if isinstance(node, ast.Attribute):
            self._note_attribute(node)
        elif not origins and node.id in _HAZARDS:
            self.hazards.append(Hazard(node.lineno, _HAZARDS[node.id]))

    def _note_attribute(self, node: ast.Attribute) -> None:
        """Note an attribute that is a hazard of whatever object it is taken."""
        if not isinstance(node.ctx, ast.Load):
            return
        if node.attr in _OF_ANY_MODULE:
            self.hazards.append(Hazard(node.lineno, _HAZARDS[node.attr]))
        elif node.attr in _READING_METHODS:
            self.hazards.append(Hazard(node.lineno, f"reads a file with .{node.attr}()"))
        elif node.attr == "open" and not _is_self(node.value):
            self.hazards.append(Hazard(node.lineno, _OPENS))

    def _imports_configparser(self) -> bool:
        return any(found.module == ("configparser",) for found in self.imports)

    def _origins(self, node: ast.expr) -> set[str]:
        """Return the dotted names that an expression can stand for by the file's imports; empty when it is none."""
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return set()
        return {".".join([origin, *reversed(rest)]) for origin in self.aliases.get(node.id, ())}


def _names_script(call: ast.Call) -> bool:
    """Return whether the arguments of a call hold, written out, the name of a file of code."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    constants = (part.value for value in values for part in ast.walk(value) if isinstance(part, ast.Constant))
    return any(isinstance(value, str) and _SCRIPT.search(value) for value in constants)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}
