"""A small harness folder that tests change in one place each."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracemark.findings import Finding
from tracemark.harness.loading import examine, load
from tracemark.harness.match import Matcher
from tracemark.harness.version import Harness

MANIFEST = """\
format: tracemark/harness/1
name: desk
description: A desk.
prompt_templates:
  - {name: system, file: prompts/system.md, syntax: format, variables: {shop: constant, day: run},
     values: {shop: North}}
  - {name: style, text: Be brief., role: user, position: any}
tool_bindings:
  look_up: {schema: tools/look_up.json, entry: 'logic/tools.py:look_up'}
  refund: {schema: tools/refund.json, entry: 'logic/tools.py:refund', mutates: true, parameters: {limit: 50}}
observation_handlers:
  - {name: cut, entry: 'logic/handlers.py:Cut.apply', max_characters: 400}
  - {name: redact, entry: 'logic/handlers.py:redact'}
runtime:
  parser: logic/reply.py:parse
  limits: {steps: 30, stop_strings: [END]}
  environment: {DESK_MODE: strict}
  packages: {numpy: '2.1'}
"""

FILES = {
    "prompts/system.md": "You serve {shop} on {day}.\nBe exact.\n",
    "tools/look_up.json": json.dumps(
        {
            "name": "look_up",
            "description": "Find an order.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        }
    ),
    "tools/refund.json": json.dumps({"name": "refund", "parameters": {"type": "object", "properties": {}}}),
    "logic/tools.py": "from logic import helper\n\n\ndef look_up(id): return helper.find(id)\ndef refund(): return 1\n",
    "logic/helper.py": "def find(id): return id\n",
    "logic/handlers.py": "from logic.base import Base, LIMIT\n\n\nclass Cut(Base):\n"
    "    def apply(self, text): return text[:LIMIT]\n\n\ndef redact(text): return text\n",
    "logic/base.py": "LIMIT = 400\n\n\nclass Base:\n    mark = '…'\n",
    "logic/reply.py": "import json\nimport os\n\n\ndef parse(text): return json.loads(text) \\\n"
    "    if os.environ['DESK_MODE'] else 0\n",
}


class Folder:
    """A harness folder on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("harness.yaml", MANIFEST)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def remove(self, name: str) -> None:
        (self.path / name).unlink()

    def load(self) -> Harness:
        return load(self.path)

    def fingerprint(self) -> str:
        return self.load().fingerprint

    def problems(self) -> list[Finding]:
        return list(examine(self.path).problems)

    def codes(self) -> list[str]:
        """Codes of problems and findings, in order."""
        examined = examine(self.path)
        return [found.code for found in (*examined.problems, *examined.findings)]


@pytest.fixture(scope="session")
def make_desk() -> type[Folder]:
    """What writes the folder anew at a path."""
    return Folder


@pytest.fixture
def desk(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "harness_versions" / "desk")


@pytest.fixture
def other(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "harness_versions" / "other")


@pytest.fixture
def matcher(tmp_path: Path) -> Any:
    """Return a function that makes a matcher of a manifest's members."""

    def make(**members: Any) -> Matcher:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "code.py").write_text("def run(raw):\n    return raw\n")
        (folder / "bytes.txt").write_bytes(b"\xff\xfe")
        members = {"runtime": {"parser": "code.py:run"}, **members}
        (folder / "harness.yaml").write_text(json.dumps({"format": "tracemark/harness/1", **members}))
        return Matcher(load(folder))

    return make


class Lab:
    """Modules that this process has imported, and harness folders that declare what is in them.

    Args:
        path: an empty folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.src = path / "src"
        self.src.mkdir()

    def write(self, name: str, text: str, below: str = "src") -> Path:
        """Write a module's file."""
        path = self.path / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, name: str, text: str) -> ModuleType:
        """Write a module and import it."""
        self.write(name, text)
        importlib.invalidate_caches()
        return importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))

    def forget(self) -> None:
        """Take what was imported from here out of the process."""
        for name, module in list(sys.modules.items()):
            places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", [])]
            if any(place.startswith(f"{self.path}/") for place in places):
                del sys.modules[name]

    def declare(self, name: str = "declared", files: dict[str, str] | None = None, **members: Any) -> Harness:
        """Load a version that declares the members, `src` being a root of it."""
        folder = self.path / "versions" / name
        value = {"format": "tracemark/harness/1", "roots": ["../../src"], **members}
        # YAML knows no pairs of escapes, and no control characters that are not escaped
        text = re.sub("[\x7f-\uffff]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
        for path, content in {"harness.yaml": text, **(files or {})}.items():
            self.write(path, content, f"versions/{name}")
        return load(folder)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    made = Lab(tmp_path)
    # a byte-code file is found by the second of its source, and tests write a source twice within one
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(made.src))
    yield made
    made.forget()
