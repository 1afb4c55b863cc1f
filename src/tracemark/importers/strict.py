"""Is it valid? A fast schema answers for what is ordinary, the models of `tracemark.model` for everything else."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from tracemark import model


def fast(document: dict[str, Any]) -> bool:
    """Return whether the fast schema accepts `document`; with a sound walk that means valid ATIF v1.8."""
    return _accepts("trajectory", document)


def faults(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the models find wrong with `document`, as pairs of place and reason; empty when it is valid."""
    # pydantic is slow to import, and an ordinary document never comes here
    from tracemark.model.trajectory import problems  # noqa: PLC0415

    return problems(document)


def worded(found: list[tuple[str, str]]) -> str:
    """Return one sentence for a list of faults: the first one, and how many more there are."""
    place, reason = found[0]
    return f"{place}: {reason}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")


def carried_faults(facts: object) -> list[tuple[str, str]]:
    """Return what keeps `facts` from being what an export writes into `extra.tracemark` (`model.carried`).

    Pairs of place and reason, as `faults` gives them; empty when they are valid.
    """
    if _accepts("carried", facts):
        return []
    from tracemark.model.carried import problems  # noqa: PLC0415 - as above: ordinary facts never come here

    return problems(facts)


def _accepts(name: str, value: object) -> bool:
    try:
        return bool(_schema(name).is_valid(value))
    except ValueError:
        # a lone surrogate in a member's name
        return False


@cache
def _schema(name: str) -> Any:
    schema = orjson.loads((Path(model.__file__).parent / f"{name}.schema.json").read_bytes())
    return jsonschema_rs.validator_for(schema)
