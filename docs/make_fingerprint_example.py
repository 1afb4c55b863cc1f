"""Print the worked example of `docs/format/fingerprint.md`, computed by the program itself.

    make_fingerprint_example.py            print the section
    make_fingerprint_example.py --write    put it into the page, between its two markers

The example is a harness folder written to a temporary place. What the section shows as hashed is what the algorithm
hashed, and `tests/harness/test_fingerprint_page.py` computes it once more with nothing but `hashlib` and `json`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.harness.fingerprint import ALGORITHM, file_digest, members
from tracemark.harness.loading import load
from tracemark.harness.version import Harness
from tracemark.model.harness import COMPONENTS

PAGE = Path(__file__).parent / "format" / "fingerprint.md"
BEGIN, END = "<!-- worked example: begin -->", "<!-- worked example: end -->"

FILES = {
    "harness.yaml": """\
format: tracemark/harness/1
name: counter
prompt_templates:
  - {name: system, file: prompts/system.md, syntax: format, variables: {shop: constant}, values: {shop: North}}
tool_bindings:
  stock: {schema: tools/stock.json, entry: 'desk/tools.py:stock'}
observation_handlers:
  - {name: cut, entry: 'desk/cut.py:cut', max_characters: 80}
runtime:
  limits: {steps: 12}
""",
    "prompts/system.md": "You work at the counter of {shop}.\n",
    "tools/stock.json": '{"type": "function", "function": {"name": "stock", "strict": null,\n'
    ' "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}}\n',
    "desk/tools.py": "from . import shelf\n\n\ndef stock(item):\n    return shelf.ITEMS.get(item, 0)\n",
    "desk/shelf.py": 'ITEMS = {"lamp": 3}\n',
    "desk/cut.py": "def cut(text):\n    return text[:80]\n",
    "notes.md": "Order more lamps.\n",
}


def section() -> str:
    """Return the section: the files, what is hashed at each step, and the digests."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "counter"
        for name, text in FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return "\n".join(_lines(load(folder)))


def _lines(harness: Harness) -> list[str]:
    identity = harness.identity
    lines = ["A harness of seven files, the manifest among them:", ""]
    for name, text in FILES.items():
        lines += [f"`{name}`", "```", text.removesuffix("\n"), "```"]
    lines += ["", "**1. Files.** Each is read once; its digest is the sha256 of its text.", "", "```"]
    lines += [f"{file_digest(raw)}  {key}" for key, raw in harness.files.items()]
    lines += ["```", "", "**2. Entries.** The name of the entry, and the files that it reaches.", ""]
    for entry, modules in harness.closures.items():
        files = {key: file_digest(harness.files[key]) for key in modules.values()}
        lines += _hashed(f"entry {entry}", {"entry": entry, "files": files})
    lines += ["", "**3. Tool schemas**, reduced.", ""]
    for name in harness.manifest.tool_bindings:
        lines += _hashed(f"schema {name}", harness.tool_schema(name))
    lines += ["", "**4. Parts.** The members of the manifest with their defaults, files replaced by digests.", ""]
    described = members(harness.manifest, harness.sources)
    for component in COMPONENTS:
        for part, value in described[component].items():
            lines += _hashed(f"{component} {part}", value)
    lines += ["", "**5. Components.** A list where order counts, a mapping where it does not.", ""]
    for component in COMPONENTS:
        parts: Any = identity.parts[component]
        if component in ("prompt_templates", "observation_handlers"):
            parts = [[name, value] for name, value in parts.items()]
        lines += _hashed(component, parts)
    lines += ["", "**6. The fingerprint**, with the algorithm's name inside.", ""]
    lines += _hashed("fingerprint", {"algorithm": ALGORITHM, "components": identity.components})
    return [*lines, "", f"So the fingerprint is `{identity.fingerprint}`."]


def _hashed(name: str, value: Any) -> list[str]:
    raw = digest.canonical(value)
    return [f"`{name}`", "```", raw.decode("utf-8"), f"sha256 {digest.sha256(raw)}", "```"]


def page(text: str) -> str:
    """Return the page `text` with the section between its markers made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{section()}\n{END}{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(section())
