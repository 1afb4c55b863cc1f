"""JSON Schemas made of the models, which answer sooner than they do.

A fast schema is narrower than its model: what it accepts, the model accepts too (up to what a JSON Schema cannot say,
which the reader checks beside it); what it does not accept is judged by the model. `docs/make_schemas.py` writes each
one beside its model.
"""

from __future__ import annotations

from typing import Any


def made_of(schema: dict[str, Any], module: str) -> dict[str, Any]:
    """Return a model's JSON Schema without the words that judge nothing, and without definitions that nothing names.

    Args:
        schema: as pydantic gives it, already narrowed.
        module: file name of the model's module, for the reader of the schema.
    """
    bare = _without_words(schema)
    definitions = bare.get("$defs", {})
    while unnamed := [name for name in definitions if f"'#/$defs/{name}'" not in str(bare)]:
        for name in unnamed:
            del definitions[name]
    return {"$comment": f"made by docs/make_schemas.py from model/{module}; do not edit", **bare}


def _without_words(node: Any) -> Any:
    """Return a schema without titles, descriptions and defaults, which judge nothing."""
    if isinstance(node, list):
        return [_without_words(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: value for key, value in node.items() if key not in ("title", "description", "default")}
    if kept.get("additionalProperties") is True:
        del kept["additionalProperties"]
    choices = kept.get("anyOf")
    if isinstance(choices, list) and all(set(_without_words(choice)) == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {
        key: {name: _without_words(sub) for name, sub in value.items()}
        if key in ("properties", "$defs")
        else _without_words(value)
        for key, value in kept.items()
    }
