"""A trace that was stored before anybody knew that it is a part of a run is called one as soon as that is known."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import Any

import pytest


def naming(made: dict[str, Any], member: str, name: str) -> dict[str, Any]:
    """Return a document that names another one as a sub-agent's, or as its continuation."""
    if member == "subagent":
        result = {"subagent_trajectory_ref": [{"trajectory_path": name}]}
        made["steps"].append({"step_id": 4, "source": "system", "message": "", "observation": {"results": [result]}})
        return made
    return {**made, "continued_trajectory_ref": name}


def packed(name: str, value: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, json.dumps(value))
    return buffer.getvalue()


@pytest.mark.parametrize("role", ["subagent", "continuation"])
@pytest.mark.parametrize("where", ["beside", "in a folder", "gz", "zip", "lines"])
def test_a_part_that_was_stored_first_is_called_one_when_the_run_that_names_it_comes(
    desk: Any, role: str, where: str
) -> None:
    child = desk.document("t-2", trajectory_id="child")
    name = {"in a folder": "sub/child.json", "gz": "child.json.gz", "zip": "all.zip", "lines": "all.jsonl"}.get(
        where, "child.json"
    )
    raw = json.dumps(child).encode()
    data = {"gz": gzip.compress(raw), "zip": packed("child.json", child), "lines": raw + b"\n" + raw}.get(where, raw)
    path = desk.put(name, data)
    assert desk.ingest(path).ingested == 1
    assert desk.state("t-2").row.role is None
    named = name if where in ("in a folder", "gz") else "child.json"
    desk.put("parent.json", json.dumps(naming(desk.document("t-1"), role, named)).encode())
    report = desk.ingest()
    assert (report.ingested, report.strengthened, report.contested) == (1, 1, 0)
    assert desk.state("t-2").row.role == role
    assert desk.state("t-1").row.role is None
    assert desk.annotations("outcomes")[0]["value"]["run"]["role"] == role
    again = desk.ingest()
    assert (again.ingested, again.strengthened) == (0, 0)
    desk.check()


def test_a_part_that_comes_with_its_run_is_stored_once_within_it(desk: Any) -> None:
    desk.put("child.json", json.dumps(desk.document("t-2")).encode())
    desk.put("parent.json", json.dumps(naming(desk.document("t-1"), "subagent", "child.json")).encode())
    report = desk.ingest()
    assert (report.ingested, report.duplicates) == (1, 0)
    assert list(desk.states()) == ["t-1"]
    assert desk.ingest().duplicates == 1
    desk.check()
