"""JSON Schemas made of the models, which answer sooner than they do.

A fast schema is narrower than its model: what it accepts, the model accepts too (up to what a JSON Schema cannot say,
which the reader checks beside it); what it does not accept is judged by the model. `docs/make_schemas.py` writes each
one beside its model.

They are of draft 4, the last one to which `1.0` is no integer: as little as it is to the models. To which in turn an
integer beyond a double is no number, so numbers have limits.
"""

from __future__ import annotations

from typing import Any

_LARGEST = 2**53

DRAFT = "http://json-schema.org/draft-04/schema#"
"""The version of JSON Schema in which fast schemas are written."""


def made_of(schema: dict[str, Any], module: str) -> dict[str, Any]:
    """Return a model's JSON Schema without the words that judge nothing, and without definitions that nothing names.

    Args:
        schema: as pydantic gives it, already narrowed.
        module: file name of the model's module, for the reader of the schema.
    """
    bare = _limited(_without_words(schema))
    definitions = bare.get("$defs", {})
    while unnamed := [name for name in definitions if f"'#/$defs/{name}'" not in str(bare)]:
        for name in unnamed:
            del definitions[name]
    comment = f"made by docs/make_schemas.py from model/{module}; do not edit"
    return {"$schema": DRAFT, "$comment": comment, **bare}


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
    if "const" in kept:
        # draft 4 has no other word for it
        kept["enum"] = [kept.pop("const")]
    return {
        key: {name: _without_words(sub) for name, sub in value.items()}
        if key in ("properties", "$defs")
        else _without_words(value)
        for key, value in kept.items()
    }


def _limited(node: Any) -> Any:
    """Return a schema in which every number has limits, where it has none of its own.

    They lie far within a double, and are integers: those are compared in a fraction of the time that doubles take.
    """
    if isinstance(node, list):
        return [_limited(item) for item in node]
    if not isinstance(node, dict):
        return node
    limited = {key: _limited(value) for key, value in node.items()}
    kinds = node.get("type")
    if kinds == "number" or (isinstance(kinds, list) and "number" in kinds):
        return {"minimum": -_LARGEST, "maximum": _LARGEST, **limited}
    return limited
