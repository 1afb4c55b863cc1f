from __future__ import annotations

from pathlib import Path

import pytest

from tracemark.acts import traces
from tracemark.acts.traces import TraceFound
from tracemark.cli.main import run

SEARCHED = "the task, the first user message, the last message and the names of the tools"
ROW = {"trace_id": "a" * 64, "observed": {}, "status": "success"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (TraceFound((), (ROW, ROW), True, False), "2 shown, and there are more; --limit N shows so many\n"),
        (TraceFound((), (ROW,), False, False), ""),
        (
            TraceFound((), (), False, False),
            f"no traces: searched were {SEARCHED}; after `tracemark reindex --text` everything is searched\n",
        ),
        (TraceFound((), (), False, True), "no traces: the whole text of every trace was searched\n"),
    ],
)
@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_what_was_searched_and_what_is_not_shown_is_said(
    found: TraceFound,
    words: str,
    output: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(traces, "find", lambda *_: found)
    assert run(["--root", str(tmp_path), "traces", "find", "lamp", "--output", output]) == 0
    assert capsys.readouterr().err == words
