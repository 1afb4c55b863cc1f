"""Small documents, and short ways from bytes to what an importer makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.importers import source
from tracemark.importers.base import Imported, Limits, Record, Refused
from tracemark.model.stamp import Stamp
from tracemark.model.trace import Outcome, Run, Source
from tracemark.model.trajectory import problems


class Read:
    """Everything that one plan gave."""

    def __init__(self, plan: source.Plan) -> None:
        self.plan = plan
        self.items = [item for job in plan.jobs for item in source.read(job)]
        self.traces = [item for item in self.items if isinstance(item, Imported) and not item.embedded]
        self.refused = [*plan.refused, *(item for item in self.items if isinstance(item, Refused))]

    @property
    def codes(self) -> list[str]:
        return [item.code for item in self.refused]

    @property
    def only(self) -> Imported:
        assert not self.refused, self.refused
        assert len(self.traces) == 1
        return self.traces[0]


class Inbox:
    """A folder of files to ingest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, content: Any) -> Path:
        """Write bytes and texts as they are, anything else as JSON; return the path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, *names: str, format: str | None = None, **limits: Any) -> Read:  # noqa: A002
        """Read the files named, or the whole folder."""
        paths = [self.path / name for name in names] or [self.path]
        return Read(source.plan(paths, format=format, limits=Limits(**limits)))


Document = dict[str, Any]


def record_of(value: Any, where: str, **members: Any) -> Record:
    """Return a record of a file: bytes as they are, anything else as JSON."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Record(raw, where.partition("#")[0].partition(":")[0], where, **members)


def require_valid(item: Imported | Refused) -> Imported:
    """Return what must be a trace: every value is valid, and the bytes are the trajectory's canonical ones."""
    assert isinstance(item, Imported), item
    assert problems(item.trajectory) == []
    assert item.trajectory_bytes == digest.canonical(item.trajectory)
    Run.model_validate(item.run)
    Outcome.model_validate(item.outcome)
    Source.model_validate(item.source)
    Stamp.model_validate({"observed": item.observed})
    return item


def steps_of(item: Imported) -> list[dict[str, Any]]:
    """Return the steps of a trace."""
    found: list[dict[str, Any]] = item.trajectory["steps"]
    return found


def repairs_of(item: Imported) -> str:
    """Return what was altered on the way, as one text."""
    return "; ".join(item.source.get("repairs", []))


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def document() -> Callable[..., Document]:
    """Return a function that makes an ordinary ATIF document, with other members where stated."""

    def make(number: int = 1, **members: Any) -> Document:
        call = {"tool_call_id": "c1", "function_name": "look_up", "arguments": {"order": number}}
        made = {
            "schema_version": "ATIF-v1.8",
            "session_id": f"s-{number}",
            "agent": {"name": "desk", "version": "1", "model_name": "m"},
            "steps": [
                {"step_id": 1, "source": "system", "message": "Be exact."},
                {"step_id": 2, "source": "user", "message": "Where is it?", "timestamp": "2026-01-31T12:00:00Z"},
                {
                    "step_id": 3,
                    "source": "agent",
                    "message": "",
                    "tool_calls": [call],
                    "observation": {"results": [{"source_call_id": "c1", "content": "on its way"}]},
                    "metrics": {"prompt_tokens": 12, "completion_tokens": 3, "cost_usd": 0.5},
                },
            ],
        }
        return {**made, **members}

    return make
