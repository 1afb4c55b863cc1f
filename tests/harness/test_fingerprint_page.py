"""The normative page: its example is what the program computes, and what anybody computes by hand."""

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracemark.findings import CODES
from tracemark.harness import source
from tracemark.harness.folder import IGNORED
from tracemark.model.harness import Manifest, Runtime, known_keys

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "format/fingerprint.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_fingerprint_example", DOCS / "make_fingerprint_example.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def plain_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_the_example_of_the_page_is_what_the_program_computes(script):
    assert script.page(PAGE) == PAGE


def test_the_script_prints_the_section():
    done = subprocess.run(
        [sys.executable, DOCS / "make_fingerprint_example.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in PAGE


def test_every_digest_of_the_example_is_the_sha256_of_the_line_above_it():
    shown = re.findall(r"```\n(.+)\nsha256 ([0-9a-f]{64})\n```", PAGE)
    assert len(shown) == 13
    assert [sha256(text) for text, _ in shown] == [digest for _, digest in shown]
    assert all(plain_json(json.loads(text)) == text for text, _ in shown)


def test_the_example_can_be_computed_without_the_program(script):
    files = {name: sha256(text) for name, text in script.FILES.items()}

    def entry(name, *paths):
        return sha256(plain_json({"entry": name, "files": {path: files[path] for path in paths}}))

    schema = {"name": "stock", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}
    prompt = {
        "name": "system", "text": files["prompts/system.md"], "syntax": "format", "role": "system", "position": "first",
        "variables": {"shop": "constant"}, "values": {"shop": "North"},
    }  # fmt: skip
    tool = {
        "schema": sha256(plain_json(schema)),
        "entry": entry("desk/tools.py:stock", "desk/tools.py", "desk/shelf.py"),
        "mutates": False,
        "parameters": {},
    }
    handler = {"name": "cut", "entry": entry("desk/cut.py:cut", "desk/cut.py"), "parameters": {}, "max_characters": 80}
    runtime = {"limits": {"steps": 12}, "unassigned": {"notes.md": files["notes.md"]}}
    components = {
        "prompt_templates": [["system", sha256(plain_json(prompt))]],
        "tool_bindings": {"stock": sha256(plain_json(tool))},
        "observation_handlers": [["cut", sha256(plain_json(handler))]],
        "runtime": {part: sha256(plain_json(value)) for part, value in runtime.items()},
    }
    digests = {component: sha256(plain_json(parts)) for component, parts in components.items()}
    whole = sha256(plain_json({"algorithm": "tracemark-harness/1", "components": digests}))
    assert f"So the fingerprint is `tm1:{whole}`." in PAGE


def test_the_page_names_every_member_of_a_manifest():
    places = [(), ("prompt_templates", 0), ("tool_bindings", "x"), ("observation_handlers", 0), ("runtime",)]
    places += [("prompt_templates", 0, "options"), ("runtime", "limits"), ("runtime", "parser")]
    members = {key for place in places for key in known_keys(place)}
    assert set(known_keys(())) == set(Manifest.model_fields)
    assert sorted(member for member in members if f"`{member}`" not in PAGE and f"{{{member}," not in PAGE) == []


def test_the_page_names_every_part_of_the_runtime_and_every_code_it_speaks_of():
    assert [part for part in (*Runtime.model_fields, "unassigned") if f"`{part}`" not in PAGE] == []
    codes = set(re.findall(r"`((?:closure|module|source|ignored|unassigned|manifest)-[a-z-]+)`", PAGE))
    assert codes <= set(CODES)
    rows = re.findall(r"^\| `([a-z-]+)` \| (error|warning|info) \|", PAGE, re.MULTILINE)
    assert len(rows) == 5
    assert [(code, CODES[code].severity.value) for code, _ in rows] == rows


def test_the_page_names_everything_that_the_algorithm_ignores():
    named = PAGE.replace("`#*#`", "`[#]*[#]`").replace("`.#*`", "`.[#]*`")
    assert [pattern for pattern in IGNORED if f"`{pattern}`" not in named] == []


def test_the_page_names_every_opener():
    paragraph = PAGE[PAGE.index("The openers are") :].split("\n\n")[0]
    assert [name for name in source.OPENERS if f"{name.rpartition('.')[2]}`" not in paragraph] == []
    assert [name for name in source.OPENERS if name.partition(".")[0] not in paragraph] == []
