"""`dvc.yaml`, made from what a corpus holds.

Stages, in order: `harness` (one per harness version: its fingerprint and parts as a report), `play` (one per harness
version and domain that has a `play.py`: runs in the inbox), `ingest` (inbox to store), `export-sft`.

Invariants:
- a stage writes its outputs and nothing else, because DVC restores outputs and not side effects;
- what a stage reads is among its dependencies, `ledger.jsonl` and `params.yaml` included, so that a decision of people
  reruns what it decides;
- stores only grow: their folders are kept between runs (`persist`), and several stages write below `traces/`, each to
  folders of its own.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HEADER = "# Made by `tracemark pipeline dvcfile > dvc.yaml`; CI compares.\n"
"""The first line of the file."""

STORE_FOLDERS = (
    "traces/segments",
    "traces/harnesses",
    "traces/refused",
    "traces/annotations/stamps",
    "traces/annotations/outcomes",
)
"""What `ingest` writes."""


def render(root: Path) -> str:
    """Return the text of `dvc.yaml` for the corpus at `root`."""
    versions = sorted(path.parent.name for path in (root / "harness_versions").glob("*/harness.yaml"))
    domains = sorted(path.parent.name for path in (root / "domains").glob("*/play.py"))
    stages: dict[str, Any] = {}
    if versions:
        stages["harness"] = {"foreach": list(versions), "do": _harness(root)}
    for domain in domains if versions else ():
        name = "play" if len(domains) == 1 else f"play-{domain}"
        stages[name] = {"foreach": list(versions), "do": _play(domain)}
    stages["ingest"] = _ingest()
    stages["export-sft"] = _export()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump({"stages": stages}, text)
    return HEADER + text.getvalue()


def _kept(path: str) -> dict[str, Any]:
    return {path: {"persist": True}}


def _harness(root: Path) -> dict[str, Any]:
    report = "reports/harness/${item}.json"
    return {
        "cmd": f"mkdir -p reports/harness && tracemark harness show ${{item}} --output json > {report}",
        "deps": ["harness_versions/${item}", *(["domains"] if (root / "domains").is_dir() else [])],
        "outs": [{report: {"cache": False}}],
    }


def _play(domain: str) -> dict[str, Any]:
    return {
        "cmd": f"python domains/{domain}/play.py --harness harness_versions/${{item}} --inbox inbox/${{item}}",
        "deps": [f"domains/{domain}", "harness_versions/${item}"],
        "outs": ["inbox/${item}"],
    }


def _ingest() -> dict[str, Any]:
    return {
        "cmd": "tracemark ingest inbox",
        "deps": ["inbox", "harness_versions"],
        "params": ["ingest"],
        "outs": [_kept(path) for path in STORE_FOLDERS],
    }


def _export() -> dict[str, Any]:
    return {
        "cmd": "tracemark export sft --out exports/sft",
        # the manifest names params.yaml and harness_versions by content, so a change of either makes another manifest
        "deps": [*STORE_FOLDERS[:2], *STORE_FOLDERS[3:], "harness_versions", "ledger.jsonl", "params.yaml"],
        "outs": ["exports/sft", _kept("traces/annotations/exports.sft")],
    }
