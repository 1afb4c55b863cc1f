"""Write `src/tracemark/model/trajectory.schema.json` from the models of `tracemark.model.trajectory`."""

import json
from pathlib import Path

from tracemark.model.trajectory import fast_schema

TARGET = Path(__file__).parent.parent / "src/tracemark/model/trajectory.schema.json"


def text() -> str:
    """Return the file's content."""
    return json.dumps(fast_schema(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
