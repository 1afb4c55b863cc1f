"""The tool schema of code that has none: made from the text of its signature and its docstring.

The text is parsed and nothing is imported or run, so a folder and a live object of the same text give one schema. What
the text does not say is not guessed: an annotation that is neither plain nor of `typing` gives no schema, and the
message says to write one.

| text | schema |
|---|---|
| `str`, `int`, `float`, `bool`, `None` | `string`, `integer`, `number`, `boolean`, `null` |
| `list[X]`, `Sequence[X]`, `Iterable[X]`, `tuple[X, ...]` | `array` with `items` |
| `set[X]`, `frozenset[X]` | `array` with `items`, `uniqueItems` |
| `dict[str, X]`, `Mapping[str, X]` | `object` with `additionalProperties` |
| `Literal[a, b]` | `enum` |
| `X or Y` in either spelling, `Optional[X]` | `anyOf` |
| `Annotated[X, "text", …]` | X with `description` |
| `Any`, `object`, no annotation | any value: `{}` |

A parameter without a default is `required`; a default that is a literal becomes `default`. The description is the
docstring up to its first section; those of parameters come from its section `Args:` or its lines `:param name:`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Any

from tracemark import digest
from tracemark.harness.definition import Definition, definition, is_static
from tracemark.harness.source import UnparsableError, parse

_PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_ARRAYS = {"list", "List", "Sequence", "Iterable", "Collection", "MutableSequence"}
_SETS = {"set", "Set", "frozenset", "FrozenSet", "AbstractSet"}
_OBJECTS = {"dict", "Dict", "Mapping", "MutableMapping"}
_ANY = {"Any", "object"}
_TYPING = {"typing", "typing_extensions", "collections.abc"}
_HEADINGS = (
    *("Args", "Arguments", "Parameters", "Returns", "Return", "Yields", "Yield", "Raises", "Raise", "Example"),
    *("Examples", "Note", "Notes", "Attributes", "Warning", "Warnings", "Todo", "References"),
)
_SECTION = re.compile(rf"(?:{'|'.join(_HEADINGS)}):\s*$")
_UNDERLINED = re.compile(r"-{3,}\s*$")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+):\s*(.*)")


class SignatureError(ValueError):
    """A signature from which no schema can be made; the message says what stands in the way."""


def schema_of(raw: bytes, attribute: str, name: str, bound: Collection[str] = ()) -> dict[str, Any]:
    """Return the tool schema of what an entry leads to: `name`, `description` where there is one, `parameters`.

    Args:
        raw: the bytes of the file in which it is defined.
        attribute: the entry's attribute: a function, a class (its `__init__` then), or `Class.method`.
        name: the tool's name.
        bound: parameters that the manifest binds, which the model does not see.

    Raises:
        SignatureError: when the text gives no schema.
    """
    try:
        body = parse(raw).body
    except UnparsableError as error:
        raise SignatureError(f"the file does not parse: {error}") from None
    found = definition(body, attribute)
    if isinstance(found, str):
        raise SignatureError(found)
    function = found
    if isinstance(found, ast.ClassDef):
        inner = definition(found.body, "__init__")
        if isinstance(inner, str | ast.ClassDef):
            raise SignatureError(f"the class {attribute!r} has no `__init__` of its own")
        function = inner
    assert not isinstance(function, ast.ClassDef)
    description, said = _docstring(found)
    if function is not found:
        said = {**said, **_docstring(function)[1]}
    is_method = function is not found or "." in attribute
    parameters = _Signature(body).parameters(function, said, is_method and not is_static(function), bound)
    return {"name": name, **({"description": description} if description else {}), "parameters": parameters}


class _Signature:
    """Reads the signatures of one file.

    Args:
        body: the statements of the file.
    """

    def __init__(self, body: list[ast.stmt]) -> None:
        self._origins = {"str", "int", "float", "bool", "list", "set", "frozenset", "dict", "tuple", "object"}
        self._names: dict[str, str] = {name: name for name in self._origins}
        self._modules: set[str] = set()
        for node in body:
            for name in _bound_by(node):
                # what the file gives the name of a plain type is none
                self._names.pop(name, None)
            if isinstance(node, ast.ImportFrom) and node.module in _TYPING and not node.level:
                self._names.update({alias.asname or alias.name: alias.name for alias in node.names})
            elif isinstance(node, ast.Import):
                self._modules.update(alias.asname or alias.name for alias in node.names if alias.name in _TYPING)

    def parameters(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, said: dict[str, str], skip: bool, bound: Collection[str]
    ) -> dict[str, Any]:
        """Return the schema of a function's parameters."""
        arguments = function.args
        for kind, argument in (("*", arguments.vararg), ("**", arguments.kwarg)):
            if argument is not None:
                raise SignatureError(f"`{kind}{argument.arg}` does not say which arguments there are")
        positional = arguments.posonlyargs + arguments.args
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        pairs = [*zip(positional, [*defaults, *arguments.defaults], strict=True)][int(skip) :]
        only = [one.arg for one in arguments.posonlyargs[int(skip) :] if one.arg not in bound]
        if only:
            raise SignatureError(f"`{only[0]}` cannot be given by its name, as a call of a tool gives it")
        properties: dict[str, Any] = {}
        required = []
        for argument, default in (*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
            if argument.arg in bound:
                continue
            schema = self._annotation(argument.annotation, argument.arg)
            if said.get(argument.arg):
                schema = {**schema, "description": said[argument.arg]}
            if default is None:
                required.append(argument.arg)
            else:
                schema = {**schema, **_default(default)}
            properties[argument.arg] = schema
        schema = {"type": "object", "properties": properties}
        return {**schema, "required": required} if required else schema

    def _annotation(self, node: ast.expr | None, parameter: str) -> dict[str, Any]:
        """Return the schema that an annotation stands for."""
        if node is None:
            return {}
        if isinstance(node, ast.Constant):
            if node.value is None:
                return {"type": "null"}
            if isinstance(node.value, str):
                return self._annotation(_expression(node.value, parameter), parameter)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return _any_of([self._annotation(side, parameter) for side in (node.left, node.right)])
        if isinstance(node, ast.Subscript):
            inside = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self._generic(node, self._name(node.value), inside, parameter)
        name = self._name(node)
        if name in _PLAIN:
            return {"type": _PLAIN[name]}
        if name in _ANY:
            return {}
        return self._generic(node, name, [], parameter)

    def _generic(self, node: ast.expr, name: str | None, inside: list[ast.expr], parameter: str) -> dict[str, Any]:
        """Return the schema of a type with types in it; of a bare one, of any value in it."""
        if name == "Literal" and inside:
            return _enum([_literal(item, parameter) for item in inside])
        if name == "Annotated" and inside:
            texts = [
                item.value for item in inside[1:] if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
            return self._annotation(inside[0], parameter) | ({"description": texts[0]} if texts else {})
        if name in ("tuple", "Tuple") and len(inside) == 2 and isinstance(inside[1], ast.Constant):
            inside = inside[:1] if inside[1].value is ... else inside
        elif name in ("tuple", "Tuple") and inside:
            raise _refused(node, parameter)
        schemas = [self._annotation(item, parameter) for item in inside]
        if name == "Union" and schemas:
            return _any_of(schemas)
        if name == "Optional" and len(schemas) == 1:
            return _any_of([*schemas, {"type": "null"}])
        if name in _OBJECTS and len(schemas) in (0, 2) and (not schemas or schemas[0] == {"type": "string"}):
            return {"type": "object", **({"additionalProperties": schemas[1]} if schemas and schemas[1] else {})}
        if len(schemas) <= 1 and (name in _ARRAYS | _SETS or name in ("tuple", "Tuple")):
            items = {"items": schemas[0]} if schemas and schemas[0] else {}
            return {"type": "array", **items, **({"uniqueItems": True} if name in _SETS else {})}
        raise _refused(node, parameter)

    def _name(self, node: ast.expr) -> str | None:
        """Return the name of `typing`, or of a built-in type, that an expression stands for; None when it is none."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in self._modules:
            return node.attr
        return None


def _bound_by(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module gives a value to, as far as it stands there itself."""
    if isinstance(node, Definition):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _refused(node: ast.expr, parameter: str) -> SignatureError:
    return SignatureError(f"no schema follows from the annotation `{ast.unparse(node)}` of `{parameter}`")


def _expression(text: str, parameter: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise SignatureError(f"no schema follows from the annotation {text!r} of `{parameter}`") from None


def _literal(node: ast.expr, parameter: str) -> Any:
    try:
        value = ast.literal_eval(node)
        digest.canonical(value)
    except (ValueError, TypeError, SyntaxError):
        raise _refused(node, parameter) from None
    return value


def _default(node: ast.expr) -> dict[str, Any]:
    """Return the member `default`; none where the default is no value that JSON has."""
    try:
        value = ast.literal_eval(node)
        digest.canonical(value)
    except (ValueError, TypeError, SyntaxError):
        return {}
    # a null says no more than that the argument may be left out, and a reduced schema holds none
    return {} if value is None or isinstance(value, tuple) else {"default": value}


def _enum(values: list[Any]) -> dict[str, Any]:
    kinds = {type(value) for value in values}
    types = {str: "string", int: "integer", bool: "boolean"}
    kind = types.get(kinds.pop()) if len(kinds) == 1 else None
    return {**({"type": kind} if kind else {}), "enum": values}


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of one of several types, those of a union within counting by themselves."""
    flat: list[dict[str, Any]] = []
    for schema in schemas:
        flat += schema["anyOf"] if set(schema) == {"anyOf"} else [schema]
    if {} in flat:
        return {}
    unique = [schema for index, schema in enumerate(flat) if schema not in flat[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _docstring(node: Definition) -> tuple[str, dict[str, str]]:
    """Return the description that a docstring gives, and those of parameters by name."""
    lines = (ast.get_docstring(node) or "").splitlines()
    described: list[str] = []
    said: dict[str, str] = {}
    section: str | None = None
    for index, line in enumerate(lines):
        if field := _FIELD.match(line):
            section, said[field[1]] = f":{field[1]}", field[2].strip()
        elif _SECTION.match(line) or (
            line in _HEADINGS and index + 1 < len(lines) and _UNDERLINED.match(lines[index + 1])
        ):
            section = line.strip().rstrip(":")
        elif re.match(r":\w+[^:]*:", line):
            section = ":"
        elif section is None:
            described.append(line)
        elif section[0] == ":" and len(section) > 1 and line[:1].isspace():
            said[section[1:]] = f"{said[section[1:]]} {line.strip()}".strip()
    said = {**_arguments(lines), **said}
    return "\n".join(described).strip(), said


def _arguments(lines: list[str]) -> dict[str, str]:
    """Return the descriptions below the heading `Args:`."""
    said: dict[str, str] = {}
    current: str | None = None
    indent: int | None = None
    inside = False
    for line in lines:
        if _SECTION.match(line):
            inside, current, indent = line.startswith(("Args", "Arguments", "Parameters")), None, None
        elif inside and line.strip():
            depth = len(line) - len(line.lstrip())
            if depth == 0:
                inside = False
                continue
            indent = depth if indent is None else indent
            found = _ARGUMENT.match(line.strip()) if depth <= indent else None
            if found:
                current, said[found[1]] = found[1], found[2].strip()
            elif current is not None:
                said[current] = f"{said[current]} {line.strip()}".strip()
    return said
