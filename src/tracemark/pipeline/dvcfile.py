"""`dvc.yaml`, made from what a corpus holds.

Stages, in order: `harness` (one per harness version: its fingerprint and parts as a report), `play` (one per harness
version and domain that has a `play.py`: runs in the inbox), `ingest` (inbox to store), `export-sft` (where there is a
harness version whose traces it could hold).

Invariants:
- a stage writes its outputs and nothing else, because DVC restores outputs and not side effects;
- what a stage reads is among its dependencies: `ledger.jsonl`, `params.yaml` and the file of evaluation tasks that it
  names, so that a decision of people reruns what it decides, and the folders outside a harness version that its code
  imports from, as they are part of it;
- stores only grow: their folders are kept between runs (`persist`), and several stages write below `traces/`, each to
  folders of its own.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML

from tracemark.acts.corpus import VERSIONS
from tracemark.harness.known import versions
from tracemark.harness.loading import examine
from tracemark.ledger import params
from tracemark.ledger.params_file import read_params
from tracemark.store.annotations import INGESTED

HEADER = """\
# Made by `tracemark pipeline dvcfile > dvc.yaml`, to be run again after a harness version or a domain came or went;
# `tracemark pipeline dvcfile --check` compares.
"""
"""The first lines of the file."""

STORE_FOLDERS = (
    "traces/segments",
    "traces/harnesses",
    "traces/refused",
    *(f"traces/annotations/{kind}" for kind in INGESTED),
)
"""What `ingest` writes."""


def render(root: Path) -> str:
    """Return the text of `dvc.yaml` for the corpus at `root`, which need not exist yet.

    Raises:
        ParamsError: when params.yaml, or the file of evaluation tasks that it names, cannot be read.
        OSError: when the folder of harness versions cannot be listed.
    """
    names = [folder.name for folder in versions(root / VERSIONS)]
    domains = sorted(path.parent.name for path in (root / "domains").glob("*/play.py"))
    shared = _shared(root)
    stages: dict[str, Any] = {}
    if names:
        stages["harness"] = {"foreach": list(names), "do": _harness(shared)}
    for domain in domains if names else ():
        name = "play" if len(domains) == 1 else f"play-{domain}"
        stages[name] = {"foreach": list(names), "do": _play(domain, domains, shared)}
    stages["ingest"] = _ingest(shared)
    if names:
        stages["export-sft"] = _export(shared, read_params(root / params.NAME).evaluation_file)
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump({"stages": stages}, text)
    return HEADER + text.getvalue()


def _shared(root: Path) -> list[str]:
    """Return the folders of the corpus, outside `harness_versions/`, that harness versions import from."""
    top = root.resolve()
    found = set()
    for version in versions(root / VERSIONS):
        harness = examine(version).harness
        for place in (*harness.manifest.roots, *harness.manifest.packages) if harness is not None else ():
            folder = (version / place).resolve()
            if folder.is_relative_to(top / VERSIONS) or not folder.is_relative_to(top) or folder == top:
                continue
            found.add(folder.relative_to(top).as_posix())
    return sorted(found)


def _kept(path: str) -> dict[str, Any]:
    return {path: {"persist": True}}


def _harness(shared: list[str]) -> dict[str, Any]:
    report = "reports/harness/${item}.json"
    return {
        "cmd": f"mkdir -p reports/harness && tracemark harness show ${{item}} --output json > {report}",
        "deps": [f"{VERSIONS}/${{item}}", *shared],
        "outs": [{report: {"cache": False}}],
    }


def _play(domain: str, domains: list[str], shared: list[str]) -> dict[str, Any]:
    played = f"domains/{domain}"
    within = any(PurePosixPath(played).is_relative_to(folder) for folder in shared)
    inbox = "inbox/${item}" if len(domains) == 1 else f"inbox/{domain}-${{item}}"
    return {
        "cmd": f"python {played}/play.py --harness {VERSIONS}/${{item}} --inbox {inbox}",
        "deps": [*([] if within else [played]), *shared, f"{VERSIONS}/${{item}}"],
        "outs": [inbox],
    }


def _ingest(shared: list[str]) -> dict[str, Any]:
    return {
        # 1 says that some records were refused or contradict their harness: that is reported, and what was refused is
        # stored; it must not keep the rest of the inbox out of the pipeline for ever
        "cmd": "tracemark ingest inbox || [ $? -eq 1 ]",
        "deps": ["inbox", VERSIONS, *shared],
        "params": ["ingest"],
        "outs": [_kept(path) for path in STORE_FOLDERS],
    }


def _export(shared: list[str], tasks: str | None) -> dict[str, Any]:
    decided = ["ledger.jsonl", "params.yaml", *([tasks] if tasks is not None else [])]
    return {
        "cmd": "tracemark export sft --out exports/sft",
        # the manifest names params.yaml and harness_versions by content, so a change of either makes another manifest
        "deps": list(dict.fromkeys([*STORE_FOLDERS[:2], *STORE_FOLDERS[3:], VERSIONS, *shared, *decided])),
        "outs": ["exports/sft", _kept("traces/annotations/exports.sft")],
    }
