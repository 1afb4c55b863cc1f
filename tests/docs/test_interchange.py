"""The way to grade foreign traces that the page on interchange shows is run, and strengthens what it grades."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from tracemark.acts import ingest, interchange, scaffold
from tracemark.acts.corpus import open_store
from tracemark.store.selection import Selection

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "interchange.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_a_round_trip_adds_verdicts_to_known_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scaffold.init(tmp_path)
    runs = [[{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": "yes"}] for n in range(3)]
    lines: list[dict[str, object]] = [{"messages": run} for run in runs]
    # of another scale, so that it is no verdict
    lines[2]["reward"] = 8.07
    Path("inbox/runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert ingest.ingest(tmp_path, [Path("inbox")], ingest.IngestOptions()).ingested == 3
    interchange.atif(tmp_path, Path("handed"), interchange.InterchangeOptions())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(PROGRAM, {"grade": lambda steps: float(steps[0]["message"] == "1?")})
    Path("graded.jsonl").write_text(printed.getvalue())
    report = ingest.ingest(tmp_path, [Path("graded.jsonl")], ingest.IngestOptions())
    assert (report.strengthened, report.ingested, report.contested) == (3, 0, 0)
    with open_store(tmp_path) as store:
        statuses = sorted(state.row.status for state in store.select(Selection()))
    assert statuses == ["failure", "failure", "success"]
