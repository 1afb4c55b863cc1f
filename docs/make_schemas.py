"""Write the JSON Schemas that stand beside the models of `tracemark.model`, each made by its module's `fast_schema`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracemark.model import carried, trajectory

FOLDER = Path(__file__).parent.parent / "src/tracemark/model"
SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "carried.schema.json": carried.fast_schema,
    "trajectory.schema.json": trajectory.fast_schema,
}


def text(name: str) -> str:
    """Return the content of the file `name`."""
    return json.dumps(SCHEMAS[name](), indent=1) + "\n"


if __name__ == "__main__":
    for name in SCHEMAS:
        (FOLDER / name).write_text(text(name), encoding="utf-8")
