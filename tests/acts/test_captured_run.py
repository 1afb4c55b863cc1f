"""From live objects to a stored trace: captured, recorded, ingested, exportable, frozen."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import tracemark
from tracemark.acts import ingest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.harness_freeze import freeze
from tracemark.errors import ManifestError
from tracemark.store.selection import Selection

from .conftest import CLOCK, PROMPT, Shop

TOOLS = '''
from code_of_the_user.rows import ROWS


def look(order: str):
    """Look an order up."""
    return ROWS[order]


def observe(raw, mark):
    return mark + raw
'''


@pytest.fixture
def tools(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(shop.root / "lib"))
    folder = shop.root / "lib" / "code_of_the_user"
    folder.mkdir(parents=True)
    (folder / "rows.py").write_text("ROWS = {'a': 'paid'}\n")
    (folder / "tools.py").write_text(TOOLS)
    yield importlib.import_module("code_of_the_user.tools")
    for name in [name for name in sys.modules if name.startswith("code_of_the_user")]:
        del sys.modules[name]


def capture(tools: Any) -> Any:
    return tracemark.capture(
        prompt_templates={"system": PROMPT},
        tool_bindings=[tools.look],
        observation_handlers={"observe": {"entry": tools.observe, "parameters": {"mark": "> "}}},
        name="from-code",
    )


def play(shop: Shop, harness: Any) -> str:
    inbox = shop.root / "inbox" / "live"
    with tracemark.record(harness, inbox, {"task": "c-1", "model": {"name": "m"}}, clock=CLOCK) as recorder:
        recorder.system(recorder.prompt("system").render())
        recorder.user("Look a up.")
        call = {"tool_call_id": "1", "function_name": "look", "arguments": {"order": "a"}}
        recorder.agent("", [call])
        seen = recorder.handler("observe")(recorder.tool("look")(order="a"))
        recorder.observation([{"source_call_id": "1", "content": seen}])
        recorder.agent("It is paid.")
        recorder.outcome("success")
        assert recorder.contradictions == ()
    return seen


def test_a_run_under_a_captured_harness_is_recorded_and_the_harness_can_be_frozen(shop: Shop, tools: Any) -> None:
    captured = capture(tools)
    assert play(shop, captured) == "> paid"
    taken = ingest.ingest(shop.root, [shop.root / "inbox" / "live"], ingest.IngestOptions())
    assert taken.exit_code == 0
    with open_store(shop.root) as store:
        (state,) = [one for one in store.select(Selection()) if one.row.task == "c-1"]
    assert state.row.fingerprint == captured.fingerprint
    known = Corpus(shop.root).resolve("from-code")
    assert (known.fingerprint, known.folder) == (captured.fingerprint, None)
    assert str(shop.root).encode() not in next(iter((shop.root / "inbox" / "live").glob("*.json"))).read_bytes()
    frozen = freeze(shop.root, str(captured.fingerprint), "from-code")
    assert frozen.fingerprint == captured.fingerprint
    # a run under the folder is a run under the same harness, by the same texts
    assert play(shop, shop.root / frozen.folder) == "> paid"


def test_every_part_of_such_a_run_is_recorded(shop: Shop, tools: Any) -> None:
    play(shop, capture(tools))
    (journal,) = [path for path in (shop.root / "inbox" / "live").iterdir() if "journal" in path.name]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    stated = {(line["component"], line["part"]): line["evidence"] for line in lines if line["event"] == "evidence"}
    places = [("prompt_templates", "system"), ("tool_bindings", "look"), ("observation_handlers", "observe")]
    assert stated == dict.fromkeys(places, "recorded")


def test_what_runs_is_what_was_captured_whatever_becomes_of_the_files(shop: Shop, tools: Any) -> None:
    captured = capture(tools)
    folder = shop.root / "lib" / "code_of_the_user"
    (folder / "rows.py").write_text("ROWS = {'a': 'lost'}\n")
    tools.ROWS["a"] = "stolen"
    assert play(shop, captured) == "> paid"


def test_a_capture_with_an_unrecorded_part_records_nothing(shop: Shop) -> None:
    captured = tracemark.capture(tool_bindings={"look": lambda order: order})
    with pytest.raises(ManifestError, match="a lambda has no name"):
        tracemark.record(captured, shop.root / "inbox" / "live")
