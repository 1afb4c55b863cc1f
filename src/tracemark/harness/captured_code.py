"""Which entry a live function or class is, and whether that entry says everything about it.

An entry is a name that leads to a text. A live object is that entry when the name leads back to the very object, and
what runs is what the text says. Whatever else an object carries (bound arguments, captured values, state, another's
wrapper) is in no text, so such an object is *unrecorded*, with the reason; no digest is made up for it.

Nothing is imported here that the process has not imported itself, and nothing is called.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from tracemark.harness.compiled import difference, unwrapped
from tracemark.harness.definition import Definition, definition
from tracemark.harness.source import UnparsableError, parse

_INSTALLED = ("site-packages", "dist-packages")
_MAIN = "__main__"
_COMPILED = "it is compiled (built in, or a C extension), so there is no source of it"


class UnrecordedError(Exception):
    """A part that cannot be identified soundly; the message is the reason."""


@dataclass(frozen=True)
class Home:
    """The folder from which a module is imported."""

    folder: Path
    """Its path, links resolved."""
    only: str | None
    """The one top-level name that counts there, where other people's packages lie beside it; None for all."""


@dataclass(frozen=True)
class Located:
    """The entry that a live object is."""

    entry: str
    """`module:attribute`."""
    home: Home
    """Where its module is imported from."""
    code: tuple[str, ...] = ()
    """Paths of the files whose code runs when it is called: its own and those of its wrappers. Empty for what is named
    and not given."""
    main: ModuleType | None = None
    """The program's main module, when the object stands in it."""


def locate(value: object) -> Located:
    """Return the entry that a live function, class, or name of one is.

    Args:
        value: a function, a class, or an entry as text, `module:attribute`.

    Raises:
        UnrecordedError: when no entry says everything about it.
    """
    if isinstance(value, str):
        return _named(value)
    _require_kind(value)
    qualified = _qualified(value)
    # a method bound to a class is that class's, wherever the class has it from
    owner = value.__self__ if isinstance(value, MethodType) else value
    module = sys.modules.get(str(getattr(owner, "__module__", None)))
    if module is None:
        raise UnrecordedError(f"{qualified} stands in no module that is loaded")
    path = _source(module, qualified, value)
    if "<locals>" in qualified:
        raise UnrecordedError(_local(value, qualified))
    found: object = module
    for step in qualified.split("."):
        found = getattr(found, step, None)
    if found is not value and not (isinstance(value, MethodType) and found == value):
        raise UnrecordedError(f"`{module.__name__}.{qualified}` leads to something else than the object that was given")
    name, home = _module_home(module, path)
    code = _layers(value, qualified, path)
    return Located(f"{name}:{qualified}", home, code, module if module.__name__ == _MAIN else None)


def home_of(name: str | Path | ModuleType) -> Home:
    """Return where a first-party package is imported from, `only` being its name; nothing is imported for it.

    Raises:
        UnrecordedError: when there is no such package, or no source of it.
    """
    if isinstance(name, Path):
        if not name.is_dir():
            raise UnrecordedError(f"there is no folder {name.name!r}")
        folder = name.resolve()
        return Home(folder.parent, folder.name)
    top = (name.__name__ if isinstance(name, ModuleType) else name).partition(".")[0]
    loaded = sys.modules.get(top)
    spec = getattr(loaded, "__spec__", None)
    if spec is None:
        try:
            # the name has no dot, so nothing above it is imported
            spec = find_spec(top) if loaded is None else PathFinder.find_spec(top)
        except (ImportError, ValueError):
            spec = None
    if spec is None:
        raise UnrecordedError(f"there is no package {top!r}")
    if spec.submodule_search_locations:
        return Home(Path(next(iter(spec.submodule_search_locations))).resolve().parent, top)
    if not spec.has_location or not str(spec.origin).endswith(".py"):
        raise UnrecordedError(f"{top!r} has no source")
    return Home(Path(str(spec.origin)).resolve().parent, top)


def differs(dotted: str, path: Path, raw: bytes, main: Located) -> str | None:
    """Return why the module that this process has loaded under a name is not the file of an entry; None when it is.

    Args:
        dotted: the module's name.
        path: the file that the name leads to.
        raw: its bytes.
        main: the entry.
    """
    module = sys.modules.get(dotted)
    if main.main is not None and dotted == main.entry.partition(":")[0]:
        module = main.main
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return None
    if os.path.realpath(file) != os.path.realpath(path):
        return f"`{dotted}` was imported from another file than the one that is found for it"
    found = difference(module, raw, os.path.realpath(path))
    return f"`{dotted}` differs from its file: {found}" if found else None


def running() -> dict[str, int]:
    """Return the modules that are being loaded at this moment: path of the file to the line that runs."""
    found: dict[str, int] = {}
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the one way to the frames above
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            found.setdefault(os.path.realpath(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back
    return found


def guarded(raw: bytes, line: int) -> bool:
    """Return whether a line of a file runs only where the file is the program itself."""
    try:
        body = parse(raw).body
    except UnparsableError:
        return False
    return any(
        isinstance(node, ast.If)
        and ast.unparse(node.test).replace("'", '"') in ('__name__ == "__main__"', '"__main__" == __name__')
        and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
        for node in body
    )


def _require_kind(value: object) -> None:
    """Make sure that a value is a function, a class, or a method bound to a class.

    Raises:
        UnrecordedError: for anything else that can be called, with the reason.
    """
    if isinstance(value, functools.partial):
        raise UnrecordedError(
            "a functools.partial holds arguments that no source states; give the function as `entry`, and the"
            " arguments as `parameters`"
        )
    if isinstance(value, MethodType) and not isinstance(value.__self__, type):
        raise UnrecordedError(
            f"a method bound to an object of {_type(value.__self__)}, whose state no source states; give a function,"
            " or the class's own method"
        )
    if isinstance(value, BuiltinFunctionType):
        raise UnrecordedError(_COMPILED)
    if not isinstance(value, FunctionType | MethodType | type):
        if unwrapped(value)[0]:
            raise UnrecordedError(
                f"it is wrapped by an object of {_type(value)}, which holds state; give the function without it"
            )
        if getattr(type(value), "__module__", "") == "builtins" or not callable(value):
            raise UnrecordedError(f"it is an object of {_type(value)}, and no function or class with a source")
        raise UnrecordedError(
            f"it is an object of {_type(value)} that can be called, whose state no source states; give a function or a"
            " class"
        )
    if getattr(value, "__name__", "") == "<lambda>":
        raise UnrecordedError("a lambda has no name that leads to it; write it as a function with `def`, in a module")


def _type(value: object) -> str:
    return f"`{type(value).__module__}.{type(value).__qualname__}`"


def _qualified(value: Any) -> str:
    if isinstance(value, MethodType):
        return f"{value.__self__.__qualname__}.{value.__name__}"  # type: ignore[attr-defined]
    return str(value.__qualname__)


def _local(value: object, qualified: str) -> str:
    """Return why what is defined within a function is no entry."""
    code = getattr(value, "__code__", None)
    outer = qualified.rpartition(".<locals>")[0]
    if isinstance(code, CodeType) and code.co_freevars:
        held = ", ".join(code.co_freevars)
        return f"it is defined within `{outer}` and closes over values ({held}) that no source states"
    return f"it is defined within `{outer}`, so no name leads to it; define it in the module itself"


def _source(module: ModuleType, qualified: str, value: object) -> Path:
    """Return the path of a module's source.

    Raises:
        UnrecordedError: when it has none, or none any more.
    """
    code = getattr(unwrapped(value)[1], "__code__", None)
    origin = code.co_filename if isinstance(code, CodeType) else ""
    file = getattr(module, "__file__", None)
    if not origin and module.__name__ != _MAIN and not str(file).endswith(".py"):
        raise UnrecordedError(_COMPILED)
    if origin.startswith("<") or "ipykernel" in origin or file is None:
        where = "at a prompt" if module.__name__ == _MAIN or origin in ("<stdin>", "<string>") else "without a file"
        raise UnrecordedError(f"`{qualified}` was made {where}, so no file holds its source; put it into a module")
    if not file.endswith(".py"):
        raise UnrecordedError(f"`{module.__name__}` was not loaded from a .py file, so there is no source of it")
    path = Path(os.path.realpath(file))
    if not path.is_file():
        raise UnrecordedError(f"the source of `{module.__name__}` is gone")
    return path


def _module_home(module: ModuleType, path: Path) -> tuple[str, Home]:
    """Return the name under which a module is imported, and the folder that it is imported from.

    Raises:
        UnrecordedError: when its file does not lie where its name says, or it is of the standard library.
    """
    spec = getattr(module, "__spec__", None)
    name = module.__name__
    if name == _MAIN:
        name = spec.name if spec is not None else path.stem
    parts = name.split(".")
    expected = [*parts, "__init__.py"] if path.name == "__init__.py" else [*parts[:-1], f"{parts[-1]}.py"]
    if list(path.parts[-len(expected) :]) != expected:
        raise UnrecordedError(f"`{name}` was not loaded from the place that its name says, so no import leads to it")
    folder = Path(*path.parts[: -len(expected)])
    if parts[0] in sys.stdlib_module_names and folder == Path(sysconfig.get_paths()["stdlib"]).resolve():
        raise UnrecordedError(f"`{name}` is of the standard library; give a function of yours that calls it")
    return name, _home(folder, parts[0])


def _home(folder: Path, top: str) -> Home:
    paths = sysconfig.get_paths()
    installed = {Path(paths[kind]).resolve() for kind in ("purelib", "platlib")}
    return Home(folder, top if folder in installed or folder.name in _INSTALLED else None)


def _layers(value: object, qualified: str, path: Path) -> tuple[str, ...]:
    """Return the files whose code runs when a function is called, its wrappers' first.

    Raises:
        UnrecordedError: when the source does not say what wraps it, or a wrapper has no source.
    """
    function = value.__func__ if isinstance(value, MethodType) else value
    layers, inner = unwrapped(function)
    if isinstance(value, MethodType) and isinstance(inner, FunctionType):
        # a class may have its method from a base class, which may stand in another file
        qualified, path = inner.__qualname__, Path(os.path.realpath(inner.__code__.co_filename))
    node = _defined(path, qualified)
    if isinstance(node, str):
        raise UnrecordedError(node)
    if isinstance(value, type):
        return (str(path),)
    files = []
    for layer in (*layers, inner):
        if not isinstance(layer, FunctionType):
            raise UnrecordedError(f"it is wrapped by an object of {_type(layer)}, which holds state")
        files.append(os.path.realpath(layer.__code__.co_filename))
    if files[-1] != str(path):
        raise UnrecordedError("its code comes from another file than its module's")
    wrapping = [one for one in node.decorator_list if ast.unparse(one) not in ("classmethod", "staticmethod")]
    if len(layers) > len(wrapping):
        raise UnrecordedError("it was wrapped again after its module was loaded")
    return tuple(files)


def _defined(path: Path, qualified: str) -> Definition | str:
    try:
        return definition(parse(path.read_bytes()).body, qualified)
    except (OSError, UnparsableError) as error:
        return f"its source cannot be read: {error}"


def _named(entry: str) -> Located:
    """Return an entry that is given as text, which stands for what its module's text says and for no live object."""
    place, _, attribute = entry.partition(":")
    if not attribute or "/" in place or place.endswith(".py"):
        raise UnrecordedError(f"{entry!r} is no entry of the form `package.module:attribute`")
    home = home_of(place)
    return Located(entry, _home(home.folder, str(home.only)))


def ordered(homes: Iterable[Home]) -> list[Home]:
    """Return the folders that modules are imported from, each once, in the order in which Python looks them up."""
    known = list(dict.fromkeys(homes))
    order = [os.path.realpath(path or os.getcwd()) for path in sys.path]  # noqa: PTH109 - "" stands for it in sys.path
    return sorted(known, key=lambda home: order.index(str(home.folder)) if str(home.folder) in order else len(order))
