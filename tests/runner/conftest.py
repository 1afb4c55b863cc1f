"""A small harness on disk, for tests of what runs and records it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SYSTEM = "You answer for the desk. Look things up before you change anything.\nIt is {today}; write in full sentences."
TASK = "{% if urgent %}Hurry. {% endif %}{{ request }}"
TOOL = {
    "name": "get",
    "description": "Read.",
    "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
}

FILES = {
    "prompts/system.txt": SYSTEM,
    "prompts/task.jinja": TASK,
    "code/__init__.py": "",
    "code/tools.py": "from code.store import ROWS\n\ndef get(environment, key, limit):\n"
    "    return {'row': ROWS[key][:limit], 'on': environment}\n",
    "code/store.py": "ROWS = {'a': 'alpha', 'b': 'beta'}\n",
    "handler.py": "from code import store\n\ndef show(raw, mark):\n    return mark + raw['row']\n",
    "reply.py": "def parse(text):\n    return text.strip()\n",
}

MANIFEST: dict[str, Any] = {
    "format": "tracemark/harness/1",
    "name": "small",
    "prompt_templates": [
        {
            "name": "system",
            "file": "prompts/system.txt",
            "syntax": "format",
            "variables": {"today": "run"},
        },
        {
            "name": "task",
            "file": "prompts/task.jinja",
            "syntax": "jinja",
            "role": "user",
            "variables": {"request": "task", "urgent": "task"},
        },
    ],
    "tool_bindings": {"get": {"schema": TOOL, "entry": "code.tools:get", "parameters": {"limit": 3}}},
    "observation_handlers": [{"name": "show", "entry": "handler.py:show", "parameters": {"mark": "> "}}],
    "runtime": {"parser": "reply.py:parse", "limits": {"steps": 5}},
}

MakeHarness = Callable[..., Path]


@pytest.fixture
def make_harness(tmp_path: Path) -> MakeHarness:
    """Return a function that writes the harness, with other files or members, and returns its folder."""

    def make(name: str = "small", files: dict[str, str] | None = None, **members: Any) -> Path:
        folder = tmp_path / "harness_versions" / name
        for path, text in {**FILES, **(files or {})}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "harness.yaml").write_text(json.dumps({**MANIFEST, **members}))
        return folder

    return make
