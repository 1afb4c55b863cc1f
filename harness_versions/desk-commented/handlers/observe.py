"""Show a tool's result as one JSON object that opens with its status, and with the code and details of a refusal."""

from __future__ import annotations

import json
from typing import Any


def observe(raw: dict[str, Any]) -> str:
    """Return `{"status": "ok", …}` with the record, or `{"status": "error", "code": …}` with message and details."""
    if raw["ok"]:
        shown = {"status": "ok", "record": raw["record"]}
    else:
        shown = {"status": "error", "code": raw["code"], "message": raw["message"], "details": raw["details"]}
    # names and addresses keep their letters
    return json.dumps(shown, ensure_ascii=False)
