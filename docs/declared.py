"""What a source file declares and says of it, for the pages that are made from the source: fields, choices, texts."""

from __future__ import annotations

import ast
from itertools import pairwise


def fields_of(node: ast.ClassDef) -> list[tuple[str, str, str]]:
    """Return the fields of a class as (name, type, the text below)."""
    found = []
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                text = " ".join(str(following.value.value).split())
            found.append((statement.target.id, ast.unparse(statement.annotation), text))
    return found


def texts_below(node: ast.ClassDef) -> dict[str, str]:
    """Return the text below each assignment of a class, by name."""
    return {
        ast.unparse(one.targets[0]): str(text.value.value)
        for one, text in pairwise(node.body)
        if isinstance(one, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def paragraph(text: str) -> str:
    """Return the first paragraph of a text, on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def cell(text: str) -> str:
    """Return a text as the cell of a Markdown table."""
    return " ".join(text.split()).replace("|", r"\|")
