"""Is a document valid ATIF v1.8? The fast schema answers for ordinary documents, the models for all others."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from tracemark import model


def fast(document: dict[str, Any]) -> bool:
    """Return whether the fast schema accepts `document`; together with a sound walk that means it is valid."""
    try:
        return bool(_schema().is_valid(document))
    except ValueError:
        # a lone surrogate in a member's name
        return False


def faults(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the models find wrong with `document`, as pairs of place and reason; empty when it is valid."""
    # pydantic costs 50 ms to import, and an ordinary document never comes here
    from tracemark.model.trajectory import problems  # noqa: PLC0415

    return problems(document)


def worded(found: list[tuple[str, str]]) -> str:
    """Return one sentence for a list of faults: the first one, and how many more there are."""
    place, reason = found[0]
    return f"{place}: {reason}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")


@cache
def _schema() -> Any:
    schema = orjson.loads((Path(model.__file__).parent / "trajectory.schema.json").read_bytes())
    return jsonschema_rs.validator_for(schema)
