"""Runs whose client was listened to, from the first request to the training set."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark import digest
from tracemark.acts import ingest
from tracemark.acts.corpus import open_store
from tracemark.store.selection import Selection

sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))
import openai_server as says
from openai import OpenAI

CALLING = [
    says.completion({"content": None, "tool_calls": [says.call("look", '{"order":"o-1"}', each)]}, "tool_calls")
    for each in ("c-1", "c-2")
]
DONE = says.completion({"content": "Done."})


def play(shop: Any, *, prompt: str = "", later_tools: bool = False, bypass: bool = False, cut: bool = False) -> Any:
    """Run the loop of a program of somebody's own, and store what was recorded of it; return the stored line.

    Args:
        shop: the corpus.
        prompt: what the program adds to the prompt of its harness.
        later_tools: whether it offers another tool from its second request on.
        bypass: whether it answers calls by code of its own.
        cut: whether its later requests leave out what was said before.
    """
    harness = shop.root / "harness_versions" / "desk_a"
    inbox = shop.root / "inbox" / "listened"
    with (
        says.serving(*CALLING, DONE) as server,
        OpenAI(base_url=server.url, api_key="sk-none", max_retries=0) as given,
        tracemark.record(harness, inbox, run={"task": "t-9"}) as recorder,
    ):
        client, look, observe = recorder.openai(given), recorder.tool("look"), recorder.handler("observe")
        system = recorder.prompt("system").render() + prompt
        messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": "See to t-9."}]
        tools = recorder.tools()
        while True:
            reply = client.chat.completions.create(model="m", messages=messages, tools=tools, temperature=0)
            messages.append(reply.choices[0].message)
            if not messages[-1].tool_calls:
                break
            (call,) = messages[-1].tool_calls
            content = "made up" if bypass else observe(look(**json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
            if later_tools and len(tools) == 1:
                function = {"name": "drop", "parameters": {"type": "object", "properties": {}}}
                tools = [*tools, {"type": "function", "function": function}]
            if cut:
                messages = [messages[0], {"role": "user", "content": "Where were we?"}]
        recorder.outcome("success", reward=1.0)
    ingest.ingest(shop.root, [inbox], ingest.IngestOptions())
    with open_store(shop.root) as store:
        (found,) = [state.trace_id for state in store.select(Selection(tasks=("t-9",)))]
        return digest.load_canonical(store.get(found))


def evidence(line: Any) -> set[str]:
    components = line["harness"]["declared"]["components"]
    return {component.get("evidence") for component in components.values() if component.get("parts")}


def test_a_run_through_the_harness_is_recorded_and_trained_on(shop: Any) -> None:
    line = play(shop)
    assert line["harness"]["declared"]["fingerprint"] == shop.fingerprint()
    assert evidence(line) == {"recorded"}
    assert line["run"]["model"] == {"name": "m", "revision": says.ANSWERED}
    assert line["run"]["sampling"] == {"temperature": 0}
    shop.accept()
    shop.export()
    (row,) = [row for row in shop.rows() if row["tracemark_task"] == "t-9"]
    roles = ["system", "user", *["assistant", "tool"] * 2, "assistant"]
    assert [message["role"] for message in row["messages"]] == roles
    assert row["tracemark_model"] == f"m@{says.ANSWERED}"


def test_a_run_under_another_prompt_has_no_fingerprint(shop: Any) -> None:
    stamp = play(shop, prompt="Be brief.")["harness"]
    assert "fingerprint" not in stamp["declared"]
    assert [(each["component"], each["part"]) for each in stamp["contradictions"]] == [("prompt_templates", "system")]


def test_a_run_whose_tools_change_is_mixed_and_no_training_set_takes_it(shop: Any) -> None:
    line = play(shop, later_tools=True)
    assert line["harness"]["mixed"] is True
    assert [tool["function"]["name"] for tool in line["trajectory"]["agent"]["tool_definitions"]] == ["look"]
    shop.accept()
    assert shop.export().excluded["mixed"] == 1


def test_a_run_that_answers_by_code_of_its_own_is_claimed(shop: Any) -> None:
    line = play(shop, bypass=True)
    assert line["harness"]["declared"]["fingerprint"] == shop.fingerprint()
    components = line["harness"]["declared"]["components"]
    assert components["observation_handlers"]["evidence"] == "claimed"
    assert components["tool_bindings"]["evidence"] == "corroborated"


def test_a_run_whose_context_was_rewritten_is_contradicted(shop: Any) -> None:
    line = play(shop, cut=True)
    assert "context_manager" in {each["part"] for each in line["harness"]["contradictions"]}
    shop.accept()
    shop.export()
    assert "t-9" not in {row["tracemark_task"] for row in shop.rows()}


@pytest.mark.parametrize("member", ["authorization", "sk-none"])
def test_no_header_and_no_key_is_written(shop: Any, member: str) -> None:
    play(shop)
    (journal,) = (shop.root / "inbox" / "listened").glob("*.journal.jsonl")
    assert member not in journal.read_text().lower()
