"""The program on the page about the OpenAI SDK is run under the tutorial's harness, and what it leaves is read."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))
import openai_server as says

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILE = re.compile(r"^```[a-z]+ file=(harness_versions/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^`agent\.py`\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the tutorial's harness, as it is first written there, and the page's program."""
    for name, text in reversed(FILE.findall((DOCS / "tutorial.md").read_text(encoding="utf-8"))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (program,) = PROGRAM.findall((DOCS / "concepts" / "recording-openai.md").read_text(encoding="utf-8"))
    (tmp_path / "agent.py").write_text(program, encoding="utf-8")
    return tmp_path


def test_the_program_of_the_page_leaves_a_recorded_run(shop: Path) -> None:
    call = {"content": None, "tool_calls": [says.call("get_order", '{"order": "O-5"}')]}
    with says.serving(says.completion(call, "tool_calls"), says.completion({"content": "By post."})) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}
        subprocess.run([sys.executable, "agent.py"], cwd=shop, env=environment, check=True)
    (journal,) = (shop / "inbox" / "shop").glob("*.journal.jsonl")
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert {event["evidence"] for event in events if event["event"] == "evidence"} == {"recorded"}
    assert [event for event in events if event["event"] == "contradiction"] == []
    assert [event["step"]["message"] for event in events if event["event"] == "step"][-1] == "By post."
    known = {(event["component"], event["part"]) for event in events if event["event"] == "evidence"}
    parts = {(name, part) for name, each in events[0]["harness"]["components"].items() for part, _ in each["parts"]}
    assert known == parts
