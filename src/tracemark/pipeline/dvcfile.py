"""`dvc.yaml`, made from what a corpus holds.

Stages, in order: `harness` (one per harness version: its fingerprint and parts as a report), `play` (one per harness
version and domain that has a `play.py`: runs in the inbox), `ingest` (inbox to store); and, where there is a harness
version whose traces they could hold, `export-sft`, `failures` (the failure log), `gate-harness` and `gate-model` (one
per candidate that params.yaml names: the gate's report, as metrics), `gate-plots` (the data of the plots) and `plan`
(what to run next).

Invariants:
- a stage writes its outputs and nothing else, because DVC restores outputs and not side effects; so installing what a
  gate accepted is a command, and no stage;
- what a stage reads is among its dependencies: `ledger.jsonl`, `params.yaml` and the files that it names, so that a
  decision of people reruns what it decides, and the folders outside a harness version that its code imports from, as
  they are part of it;
- stores only grow: their folders are kept between runs (`persist`), and several stages write below `traces/`, each to
  folders of its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML

from tracemark import digest
from tracemark.acts.corpus import VERSIONS
from tracemark.acts.export import KIND
from tracemark.gates import plots
from tracemark.harness.known import versions
from tracemark.harness.loading import examine
from tracemark.ledger import params
from tracemark.ledger.params_file import read_params, sections
from tracemark.store.annotations import INGESTED

HEADER = """\
# Made by `tracemark pipeline dvcfile > dvc.yaml`, to be run again after a harness version, a domain or a candidate of a
# gate (params.yaml: gates.candidates) came or went; `tracemark pipeline dvcfile --check` compares.
"""
"""The first lines of the file."""

STORE_FOLDERS = (
    "traces/segments",
    "traces/harnesses",
    "traces/refused",
    *(f"traces/annotations/{kind}" for kind in INGESTED),
)
"""What `ingest` writes."""

EXPORTED = f"traces/annotations/{KIND}"
"""Where `export-sft` records what it took."""

GATES = "reports/gates"
"""Where gates write their reports."""

PLOTS = f"{GATES}/plots"
"""Where the data of the plots is written."""

_ANSWERED = "|| exit $(($?==1?0:$?))"
"""What follows a command of which 1 is an answer: it ends with 0 then, and otherwise as it ended."""


def render(root: Path) -> str:
    """Return the text of `dvc.yaml` for the corpus at `root`, which need not exist yet.

    Raises:
        ParamsError: when params.yaml, or the file of evaluation tasks that it names, cannot be read.
        OSError: when the folder of harness versions cannot be listed.
    """
    names = [folder.name for folder in versions(root / VERSIONS)]
    shared = _shared(root)
    file: dict[str, Any] = {"stages": {**_runs(root, names, shared), "ingest": _ingest(root, shared)}}
    if names:
        told = read_params(root / params.NAME)
        read = _read(shared, told)
        candidates = {half: _named(getattr(told.gates.candidates, half)) for half in ("harness", "model")}
        file["stages"] |= {
            "export-sft": _export(read),
            "failures": _failures(read, told),
            **_gates(read, candidates),
            "plan": _plan(read),
        }
        if any(candidates.values()):
            file["plots"] = list(_plots(candidates))
    yaml = YAML()
    yaml.default_flow_style = False
    # a line that is broken ends with a space
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump(file, text)
    return HEADER + text.getvalue()


def _runs(root: Path, names: list[str], shared: list[str]) -> dict[str, Any]:
    """Return the stages that come before the store: the reports of harness versions, and the runs under them."""
    if not names:
        return {}
    domains = sorted(path.parent.name for path in (root / "domains").glob("*/play.py"))
    stages: dict[str, Any] = {"harness": {"foreach": list(names), "do": _harness(shared)}}
    for domain in domains:
        name = "play" if len(domains) == 1 else f"play-{domain}"
        stages[name] = {"foreach": list(names), "do": _play(domain, domains, shared)}
    return stages


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


def _ingest(root: Path, shared: list[str]) -> dict[str, Any]:
    # DVC stops at a section that the file does not state, though it has its defaults; so the whole file is read then
    stated = "ingest" in sections(root / params.NAME)
    return {
        # 1 says that some records were refused or contradict their harness: that is reported, and what was refused is
        # stored; it must not keep the rest of the inbox out of the pipeline for ever
        "cmd": f"tracemark ingest inbox {_ANSWERED}",
        "deps": ["inbox", VERSIONS, *shared, *([] if stated else [params.NAME])],
        **({"params": ["ingest"]} if stated else {}),
        "outs": [_kept(path) for path in STORE_FOLDERS],
    }


def _read(shared: list[str], told: params.Params) -> list[str]:
    """Return what every stage behind `ingest` reads: the store, the harnesses and what people decided."""
    decided = ["ledger.jsonl", params.NAME, *([told.evaluation_file] if told.evaluation_file is not None else [])]
    return list(dict.fromkeys([*STORE_FOLDERS[:2], *STORE_FOLDERS[3:], VERSIONS, *shared, *decided]))


def _export(read: list[str]) -> dict[str, Any]:
    return {
        "cmd": "tracemark export sft --out exports/sft",
        # the manifest names params.yaml and harness_versions by content, so a change of either makes another manifest
        "deps": list(read),
        "outs": ["exports/sft", _kept(EXPORTED)],
    }


def _failures(read: list[str], told: params.Params) -> dict[str, Any]:
    own = told.failures.conditions
    return {
        "cmd": "tracemark failures export --out failures",
        "deps": list(dict.fromkeys([*read, *([own] if own is not None else [])])),
        "outs": ["failures"],
    }


def _named(candidates: Iterable[str]) -> dict[str, str]:
    """Return the candidates by names that can stand in the name of a stage and of a file."""
    found: dict[str, str] = {}
    # some filesystems take two names for one that differ in case alone
    taken = {""}
    for candidate in dict.fromkeys(candidates):
        key = re.sub("[^A-Za-z0-9_-]+", "-", candidate).strip("-")
        if key.lower() in taken:
            key = f"{key}-{digest.sha256(candidate.encode())[:8]}".strip("-")
        taken.add(key.lower())
        found[key] = candidate
    return found


def _gates(read: list[str], candidates: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    stages: dict[str, Any] = {}
    for half, found in candidates.items():
        if found:
            # a shell reads the name, and before it DVC, which would fill in `${…}`
            items = {key: shlex.quote(candidate).replace("${", r"\${") for key, candidate in found.items()}
            stages[f"gate-{half}"] = {"foreach": items, "do": _gate(half, read)}
    reports = [f"{GATES}/{half}-{key}.json" for half, found in candidates.items() for key in found]
    if reports:
        stages["gate-plots"] = {
            "cmd": f"tracemark pipeline plots {' '.join(reports)} --out {PLOTS}",
            "deps": reports,
            "outs": [
                {f"{PLOTS}/{name}.json": {"cache": False}} for name in (plots.RELIABILITY, plots.COST, plots.CHANGES)
            ],
        }
    return stages


def _gate(half: str, read: list[str]) -> dict[str, Any]:
    report = f"{GATES}/{half}-${{key}}.json"
    return {
        # 1 says that the candidate is rejected, which is an answer; a refusal stops the pipeline
        "cmd": f"tracemark gate {half} --candidate ${{item}} --out {report} {_ANSWERED}",
        # a gate makes sure that no task of the evaluation set is in a training export
        "deps": [*read, "exports/sft", EXPORTED],
        "metrics": [{report: {"cache": False}}],
    }


def _plan(read: list[str]) -> dict[str, Any]:
    plan = "reports/plan.jsonl"
    return {
        "cmd": f"tracemark plan --out {plan}",
        # what was exported is not run again
        "deps": [*read, EXPORTED],
        "outs": [{plan: {"cache": False}}],
    }


def _plots(candidates: Mapping[str, Iterable[str]]) -> Iterator[dict[str, Any]]:
    """Yield the plots: two for each half with candidates, as DVC tells only a few pairs apart, and one of all."""
    pass_all, cost, changes = (f"{PLOTS}/{name}.json" for name in (plots.RELIABILITY, plots.COST, plots.CHANGES))
    for half, found in candidates.items():
        pairs = [plots.ACCEPTED, *(f"{half}-{key}" for key in found)]
        if len(pairs) == 1:
            continue
        yield {
            f"pass^k against k: {half}": {
                "template": "simple",
                "x": "k",
                "y": {pass_all: list(pairs)},
                "y_label": "pass^k (combinations)",
            }
        }
        yield {
            f"cost against reliability: {half}": {
                "template": "scatter",
                "x": "cost_per_success",
                "x_label": "cost per success (US dollars)",
                "y": {cost: list(pairs)},
                "y_label": "pass^k for the greatest k (combinations)",
            }
        }
    yield {
        "fixes and breaks": {
            "template": "bar_horizontal",
            "x": "tasks",
            "x_label": "tasks whose score went up, and, below 0, down",
            "y": {changes: "gate"},
        }
    }
