"""Where in the text of a Python file an attribute is defined.

The text is parsed and never run, so what it defines is told as far as it says so itself: a `def` or `class` in the
body of the module or of a class, be it under a condition. Two of them for one name leave it open which one counts, and
that is an answer too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
"""A statement that gives code a name."""


def definition(body: list[ast.stmt], attribute: str) -> Definition | str:
    """Return the one statement that defines a dotted attribute, or why there is no one statement, in words.

    Args:
        body: the statements of a module.
        attribute: `function`, `Class` or `Class.method`.
    """
    *above, last = attribute.split(".")
    for name in above:
        found = _only(body, name)
        if isinstance(found, str):
            return found
        if not isinstance(found, ast.ClassDef):
            return f"`{name}` is no class"
        body = found.body
    return _only(body, last)


def is_static(node: Definition) -> bool:
    """Return whether a method is a static one, by its decorators."""
    return any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)


def _only(body: list[ast.stmt], name: str) -> Definition | str:
    found = [node for node in _definitions(body) if node.name == name and not _is_overload(node)]
    if len(found) == 1:
        return found[0]
    return f"the file defines `{name}` more than once" if found else f"the file has no `def` or `class` of `{name}`"


def _definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    """Yield every definition in a body, under conditions too; what stands in another definition is that one's."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, Definition):
            yield node
        elif not isinstance(node, ast.Lambda):
            pending += reversed(list(ast.iter_child_nodes(node)))


def _is_overload(node: Definition) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)
