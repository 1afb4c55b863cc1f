"""Read the agent's reply: what it says, and after a line `call NAME` the arguments as one JSON object."""

from __future__ import annotations

import json
import re
from typing import Any

_CALL = re.compile(r"^call (\w+) (\{.*\})$", flags=re.MULTILINE)


def parse(text: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Return the message and the calls in order; no calls mean that the agent has finished."""
    calls = [(name, json.loads(arguments)) for name, arguments in _CALL.findall(text)]
    return _CALL.sub("", text).strip(), calls
