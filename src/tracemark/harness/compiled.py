"""Is a module that this process has loaded still what its file says?

A file can be edited after it was imported, and a name in a loaded module can be given something else. What then runs is
not what the file says, and a digest of the file would be a made-up one. So the file is compiled (never run), and what
it says is compared with what the module holds:

- functions and methods, whole: instructions, constants, names and lines, by the compiled code;
- names that are given a written-out value once, and defaults of parameters that are written out;
- what parameters and members are said to be, as far as it is a name, or a text that the interpreter keeps;
- docstrings of modules and classes, and the base classes of classes.

What a module computes when it is loaded is not compared: nobody can without running it again.
Names that it imports, and what was added to a module, class or function by others, are not compared either.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import sys
from abc import ABCMeta
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tracemark.harness.definition import Definition
from tracemark.harness.source import UnparsableError, parse

_CHANGING = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"),
    *("sort", "update", "difference_update", "intersection_update", "symmetric_difference_update"),
}
_PLAIN = (bool, bytes, dict, float, int, list, set, str, tuple, type(None))
_MISSING = object()


def difference(module: ModuleType, raw: bytes, path: str) -> str | None:
    """Return what in a loaded module is not what its file says, as the end of a sentence; None when nothing is.

    Args:
        module: the module.
        raw: the bytes of its file as they are now.
        path: the path of its file, links resolved.
    """
    try:
        body = parse(raw).body
        code = compile(raw, path, "exec", dont_inherit=True)
    except (UnparsableError, SyntaxError, ValueError, RecursionError) as error:
        return f"the file does not compile: {error}"
    comparison = _Comparison(body, code, path, vars(module))
    return next(comparison.differences(body, vars(module), ""), None)


def unwrapped(value: object) -> tuple[list[object], object]:
    """Return the wrappers around a function that say what they wrap, outermost first, and what is innermost."""
    layers: list[object] = []
    while "__wrapped__" in (held := _held(value)) and len(layers) < 100:
        layers.append(value)
        value = held["__wrapped__"]
    return layers, value


def _held(value: object) -> dict[str, Any]:
    # an object may answer for attributes in its own way; that is not to be run
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


class _Comparison:
    """One comparison of one module with its file."""

    def __init__(self, body: list[ast.stmt], code: CodeType, path: str, held: Mapping[str, Any]) -> None:
        self.path = path
        self.held = held
        self.bound = Counter(_bindings(body))
        self.module = body
        self.codes: dict[str, list[tuple[Any, ...]]] = {}
        for inner in _nested(code):
            self.codes.setdefault(inner.co_qualname, []).append(_content(inner))

    @cached_property
    def rebound(self) -> set[str]:
        """Names whose values the module's own code may change."""
        found: set[str] = set()
        for node in _nodes(self.module):
            if isinstance(node, ast.Global):
                found.update(node.names)
            elif isinstance(node, ast.Attribute | ast.Subscript) and _changes(node):
                found.add(ast.unparse(node.value))
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                found.add(ast.unparse(node))
        return found

    def differences(self, body: list[ast.stmt], held: Mapping[str, Any], inside: str) -> Iterator[str]:
        """Yield what differs between statements of a module or class and what it holds."""
        bound = Counter(_bindings(body))
        if "__doc__" not in bound and f"{inside}__doc__" not in self.rebound and _other_docstring(body, held, inside):
            yield f"the docstring of {f'`{inside[:-1]}`' if inside else 'the module'} is not what the file says by now"
        for node in body:
            if isinstance(node, Definition):
                if bound[node.name] == 1 and inside + node.name not in self.rebound:
                    yield from self._definition(node, held, inside)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                if isinstance(node, ast.AnnAssign) and self._is_said_otherwise(node, held, bound, inside):
                    yield f"`{inside}{ast.unparse(node.target)}` has another annotation than the file says"
                pairs = list(_pairs(node))
                names = {name for name, _ in pairs}
                # names that are given one value share it, and what is done to it by one of them
                if all(bound[name] == 1 and inside + name not in self.rebound for name in names):
                    for name, value in pairs:
                        yield from _value(value, name, held, inside)
        for name, value in held.items():
            for function in _functions(value):
                if self._is_here(function) and not self._is_known(function):
                    yield f"`{inside}{name}` is not what the file says by now"

    def _definition(self, node: Definition, held: Mapping[str, Any], inside: str) -> Iterator[str]:
        value = held.get(_mangled(node.name, inside), _MISSING)
        shown = f"`{inside}{node.name}`"
        if value is _MISSING:
            if not node.decorator_list:
                yield f"the file defines {shown}, and the module does not hold it"
        elif isinstance(node, ast.ClassDef):
            if isinstance(value, type) and value.__qualname__ == inside + node.name:
                yield from self._bases(node, value, held, shown)
                # a metaclass may make something of its own of what stands in the body
                body = node.body if type(value) in (type, ABCMeta) else []
                if node.decorator_list and _docstring(body) is not None:
                    # a decorator may write another one
                    body = body[1:]
                yield from self.differences(body, vars(value), f"{inside}{node.name}.")
            elif not node.decorator_list:
                yield f"{shown} is another class than the file defines"
        else:
            functions = list(_functions(value))
            if not node.decorator_list and not (functions and self._is_of(functions[0], inside + node.name)):
                yield f"{shown} was replaced by something else"
            for function in functions:
                if self._is_here(function) and _other_defaults(node, function):
                    yield f"{shown} has other defaults than the file says"
                if self._is_of(function, inside + node.name) and _other_annotations(
                    node, function, self._named(held), inside
                ):
                    yield f"{shown} has other annotations than the file says"

    def _bases(self, node: ast.ClassDef, value: type, held: Mapping[str, Any], shown: str) -> Iterator[str]:
        bases = [_resolved(base, held) for base in node.bases]
        if all(isinstance(base, type) for base in bases) and not node.decorator_list:
            expected = tuple(bases) or (object,)
            if expected != value.__bases__ and not node.keywords:
                yield f"{shown} has other base classes than the file says"

    def _is_said_otherwise(
        self, node: ast.AnnAssign, held: Mapping[str, Any], bound: Mapping[str, int], inside: str
    ) -> bool:
        kept = held.get("__annotations__")
        name = _mangled(ast.unparse(node.target), inside)
        if bound[ast.unparse(node.target)] != 1 or not isinstance(kept, dict) or name not in kept:
            return False
        return _is_other(node.annotation, kept[name], self._named(held))

    def _named(self, held: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what names stand for in annotations; None where a name may have stood for something else before."""
        doubtful = {name for name, count in self.bound.items() if count > 1 or hasattr(builtins, name)}
        return {**self.held, **dict.fromkeys(doubtful if held is self.held else {*doubtful, *held})}

    def _is_here(self, function: FunctionType) -> bool:
        return os.path.realpath(function.__code__.co_filename) == self.path

    def _is_of(self, function: FunctionType, qualified: str) -> bool:
        return self._is_here(function) and function.__code__.co_qualname == qualified

    def _is_known(self, function: FunctionType) -> bool:
        return _content(function.__code__) in self.codes.get(function.__code__.co_qualname, [])


def _nested(code: CodeType) -> Iterator[CodeType]:
    pending = [code]
    while pending:
        found = pending.pop()
        yield found
        pending += [constant for constant in found.co_consts if isinstance(constant, CodeType)]


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return what makes two pieces of compiled code equal, whatever file they say they come from."""
    constants = _constant(code.co_consts)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno)
    return (code.co_code, constants, names, counts, tuple(code.co_lines()))


def _constant(value: Any) -> Any:
    """Return what makes two constants equal: a set has no order, and `1`, `1.0` and `True` are three values."""
    if isinstance(value, CodeType):
        return _content(value)
    if isinstance(value, tuple | list):
        return (type(value).__name__, *map(_constant, value))
    if isinstance(value, set | frozenset):
        return (type(value).__name__, frozenset(map(_constant, value)))
    if isinstance(value, dict):
        return ("dict", *((_constant(key), _constant(inner)) for key, inner in value.items()))
    return (type(value).__name__, repr(value))


def _functions(value: object) -> Iterator[FunctionType]:
    """Yield the functions that a value in a module or a class is made of, without their wrappers."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    for one in (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value,):
        _, inner = unwrapped(one)
        if isinstance(inner, FunctionType):
            yield inner


def _other_docstring(body: list[ast.stmt], held: Mapping[str, Any], inside: str) -> bool:
    said, kept = _docstring(body), held.get("__doc__")
    # some classes without one are given one when they are made, and an interpreter may leave all of them out
    if sys.flags.optimize > 1 or (inside and said is None):
        return False
    return said != (inspect.cleandoc(kept) if isinstance(kept, str) else kept)


def _docstring(body: list[ast.stmt]) -> str | None:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return inspect.cleandoc(first.value.value)
    return None


def _mangled(name: str, inside: str) -> str:
    """Return under which name a class holds what its body names so."""
    owner = inside.rstrip(".").rpartition(".")[2].lstrip("_")
    return f"_{owner}{name}" if owner and name[:2] == "__" != name[-2:] else name


def _value(node: ast.expr, name: str, held: Mapping[str, Any], inside: str) -> Iterator[str]:
    """Yield that a name holds another value than the one that is written out for it."""
    expected = _written_out(node)
    if expected is _MISSING or expected in ([], {}, set()):
        # what begins empty is there to be filled
        return
    value = held.get(_mangled(name, inside), _MISSING)
    if inside and type(value) not in _PLAIN:
        # enumerations, models and slots make something of their own of it
        return
    if type(value) is not type(expected) or _constant(value) != _constant(expected):
        yield f"`{inside}{name}` is not what the file says by now"


def _written_out(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else _MISSING
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _MISSING


def _other_defaults(node: ast.FunctionDef | ast.AsyncFunctionDef, function: FunctionType) -> bool:
    given = function.__defaults__ or ()
    by_name = function.__kwdefaults__ or {}
    named = {
        arg.arg: default for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default
    }
    if len(given) != len(node.args.defaults) or by_name.keys() != named.keys():
        return True
    pairs = [*zip(node.args.defaults, given, strict=True), *((named[name], by_name[name]) for name in named)]
    written = [(_written_out(default), value) for default, value in pairs]
    return any(
        expected is not _MISSING and expected not in ([], {}, set()) and _constant(expected) != _constant(value)
        for expected, value in written
    )


def _other_annotations(
    node: ast.FunctionDef | ast.AsyncFunctionDef, function: FunctionType, held: Mapping[str, Any], inside: str
) -> bool:
    """Return whether parameters, or what is returned, are said to be something else than the file says."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    said = {_mangled(one.arg, inside): one.annotation for one in every if one is not None}
    expected = {name: written for name, written in {**said, "return": node.returns}.items() if written is not None}
    kept = function.__annotations__
    if node.decorator_list:
        # a decorator may leave some out, or add its own
        expected = {name: written for name, written in expected.items() if name in kept}
    elif expected.keys() != kept.keys():
        return True
    return any(_is_other(written, kept[name], held) for name, written in expected.items())


def _is_other(written: ast.expr, kept: object, held: Mapping[str, Any]) -> bool:
    if isinstance(written, ast.Constant) and written.value == kept:
        return False
    if isinstance(kept, str):
        # a text that the interpreter made of the annotation, in its own way
        try:
            return ast.dump(ast.parse(kept, mode="eval").body) != ast.dump(written)
        except (SyntaxError, ValueError, RecursionError):
            return False
    if not (kept is None or isinstance(kept, type)):
        # what is more than a name, or was made of one
        return False
    if isinstance(written, ast.Constant):
        return not (written.value is None and kept is type(None))
    found = _resolved(written, held)
    return isinstance(found, type) and found is not kept


def _pairs(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that an assignment gives a value, and the value as it is written."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    pending = [(target, node.value) for target in targets if node.value is not None]
    while pending:
        target, value = pending.pop(0)
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            starred = any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
            pending += [] if starred else list(zip(target.elts, value.elts, strict=False))


def _bindings(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements bind or delete, a name as often as it is; those within definitions are theirs."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, Definition):
            yield node.name
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            # it stands for two: what is added to is no longer what was written out
            yield node.target.id
        pending += ast.iter_child_nodes(node)


def _changes(node: ast.Attribute | ast.Subscript) -> bool:
    return node.attr in _CHANGING if isinstance(node, ast.Attribute) else not isinstance(node.ctx, ast.Load)


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)


def _resolved(node: ast.expr, held: Mapping[str, Any]) -> object:
    """Return what a dotted name leads to in a module, or `_MISSING`; built-in names are found too."""
    if isinstance(node, ast.Attribute):
        return getattr(_resolved(node.value, held), node.attr, _MISSING)
    if isinstance(node, ast.Name):
        found = held.get(node.id, _MISSING)
        given = held.get("__builtins__", {})
        table = given if isinstance(given, dict) else vars(given)
        return table.get(node.id, _MISSING) if found is _MISSING else found
    return _MISSING
