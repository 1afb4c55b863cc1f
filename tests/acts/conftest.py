"""Small corpora for tests of the verbs: two harness versions, runs whose content corroborates them, a fixed clock."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import tracemark
from tracemark import digest
from tracemark.acts import decisions, export, ingest, scaffold
from tracemark.acts.corpus import Corpus, open_store
from tracemark.clock import FixedClock
from tracemark.importers import atif_repair
from tracemark.importers.atif import AtifImporter
from tracemark.ledger import chain
from tracemark.store.draft import DraftWriter
from tracemark.store.row import project_line
from tracemark.store.selection import Selection

PROMPT = "You answer the customers of a shop. Look an order up before you change it, and say what you did. {extra}\n"
SCHEMA = {
    "name": "look",
    "description": "Look an order up.",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
}
MANIFEST = """\
format: tracemark/harness/1
name: {name}
prompt_templates:
  - {{name: system, file: system.txt, syntax: literal}}
tool_bindings:
  look: {{schema: look.json, entry: 'tools.py:look', mutates: false}}
observation_handlers:
  - {{name: observe, entry: 'observe.py:observe'}}
"""
OBSERVE = 'def observe(raw):\n    """Return what the model sees."""\n    return str(raw){extra}\n'
TOOLS = 'def look(order):\n    """Look an order up."""\n    return {"order": order, "status": "paid"}\n'
CLOCK = FixedClock("2026-01-31T12:00:00Z", 1)


def write_version(root: Path, name: str, extra: str = "", handler: str = "") -> Path:
    """Write a harness version; `extra` makes another prompt, `handler` another observation handler."""
    folder = root / "harness_versions" / name
    folder.mkdir(parents=True)
    (folder / "harness.yaml").write_text(MANIFEST.format(name=name))
    (folder / "system.txt").write_text(PROMPT.format(extra=extra))
    (folder / "look.json").write_text(json.dumps(SCHEMA))
    (folder / "observe.py").write_text(OBSERVE.format(extra=handler))
    (folder / "tools.py").write_text(TOOLS)
    return folder


def document(
    task: str | None,
    *,
    extra: str = "",
    reward: float | None = 1.0,
    calls: int = 2,
    said: str = "Done.",
    **run: Any,
) -> dict[str, Any]:
    """Return an ATIF run under the harness whose prompt has `extra`; `run` holds further run facts."""
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "system", "message": PROMPT.format(extra=extra)},
        {"step_id": 2, "source": "user", "message": f"Please see to {task}."},
    ]
    for number in range(calls):
        call = {"tool_call_id": f"c{number}", "function_name": "look", "arguments": {"order": f"o-{number}"}}
        result = {"source_call_id": f"c{number}", "content": "{'status': 'paid'}"}
        steps.append(
            {
                "step_id": len(steps) + 1,
                "source": "agent",
                "message": "",
                "tool_calls": [call],
                "observation": {"results": [result]},
            }
        )
    steps.append({"step_id": len(steps) + 1, "source": "agent", "message": said})
    status = "success" if reward == 1.0 else "failure"
    outcome = {} if reward is None else {"outcome": {"status": status, "reward": reward}}
    return {
        "schema_version": "ATIF-v1.6",
        "session_id": f"session-{task}-{run.get('domain', '')}-{run.get('attempt', 0)}",
        "agent": {"name": "desk", "version": "1", "tool_definitions": [{"type": "function", "function": SCHEMA}]},
        "steps": steps,
        "extra": {"tracemark": {"run": {**({"task": task} if task else {}), **run}, **outcome}},
    }


class Shop:
    """A corpus in a folder, and the verbs that tests need most."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ingest(self, documents: Iterable[dict[str, Any]], harness: str | None = "desk_a", name: str = "runs") -> Any:
        """Store runs, as claimed for `harness`."""
        path = self.root / "inbox" / f"{name}.jsonl"
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))
        return ingest.ingest(self.root, [path], ingest.IngestOptions(harness=harness))

    def record(self, task: str, harness: str = "desk_a") -> None:
        """Play and store one successful run with the recorder."""
        inbox = self.root / "inbox" / "recorded"
        with tracemark.record(
            harness=self.root / "harness_versions" / harness,
            inbox=inbox,
            run={"task": task, "attempt": 0, "model": {"name": "scripted"}},
            agent={"name": "desk", "version": "1"},
            clock=CLOCK,
        ) as rec:
            rec.tools()
            rec.system(rec.prompt("system").render())
            rec.user(f"Please see to {task}.")
            for number in range(2):
                call = {"tool_call_id": f"c{number}", "function_name": "look", "arguments": {"order": task}}
                rec.agent("", tool_calls=[call])
                seen = rec.handler("observe")(rec.tool("look")(order=task))
                rec.observation([{"source_call_id": f"c{number}", "content": seen}])
            rec.agent("Done.")
            rec.outcome(status="success", reward=1.0, grader={"name": "desk", "version": "1"})
        ingest.ingest(self.root, [inbox], ingest.IngestOptions())

    def read_anew(self, old: str, **facts: Any) -> str:
        """Store what a newer importer makes of the record of a trace, with more facts of the run; return its id."""
        with open_store(self.root) as store, store.workspace() as folder:
            line = digest.load_canonical(store.get(old))
            line["source"] |= {"importer_version": "99", "supersedes": [old]}
            line["run"] |= facts
            line["trajectory"]["notes"] = "as a newer importer reads it"
            again = digest.canonical(line)
            writer, projection = DraftWriter(folder, "again"), project_line(again)
            writer.add(again, projection)
            assert [store.commit_segment(draft) for draft in writer.close()] == [True]
        return projection.row.trace_id

    def accept(self, name: str = "desk_a", reason: str = "better") -> decisions.Accepted:
        return decisions.accept(self.root, name, reason, CLOCK)

    def enter(self, kind: str, subject: dict[str, Any], reason: str = "merged") -> str:
        """Enter a decision past the verbs, as a merge of branches brings one in; return its digest."""
        path = self.root / chain.NAME
        return chain.append(path, chain.read(path), chain.Draft(kind, subject, reason), CLOCK).digest

    def disagree(self, *harnesses: str) -> None:
        """Enter an acceptance of each harness on a branch of its own, and join the branches."""
        self.enter_beside("accept", *({"harness": self.fingerprint(name)} for name in harnesses))

    def enter_beside(self, kind: str, *subjects: dict[str, Any]) -> None:
        """Enter a decision about each subject on a branch of its own, and join the branches."""
        ledger = self.root / chain.NAME
        base = ledger.read_text()
        lines = []
        for subject in subjects:
            ledger.write_text(base)
            self.enter(kind, subject)
            lines.append(ledger.read_text().removeprefix(base))
        ledger.write_text(base + "".join(lines))

    def export(self, out: str = "exports/sft") -> export.ExportReport:
        return export.sft(self.root, self.root / out)

    def rows(self, out: str = "exports/sft") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / out / "sft.jsonl").read_text().splitlines()]

    def set(self, *changes: tuple[str, str]) -> None:
        """Replace texts of params.yaml."""
        path = self.root / "params.yaml"
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)

    def ids(self) -> dict[str, str]:
        """Return trace ids by task."""
        with open_store(self.root) as store:
            return {state.row.task or "": state.trace_id for state in store.select(Selection(superseded=True))}

    def fingerprint(self, name: str = "desk_a") -> str:
        return Corpus(self.root).resolve(name).fingerprint


@pytest.fixture(scope="session")
def _pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pattern") / "corpus"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(root))
        patch.setattr("sys.executable", str(root / "python"))
        scaffold.init(root)
    write_version(root, "desk_a")
    write_version(root, "desk_b", extra="Be brief.")
    shop = Shop(root)
    shop.set(("minimum: 20", "minimum: 1"))
    shop.ingest([document(f"t-{number}") for number in range(3)])
    shop.ingest([document(f"u-{number}", extra="Be brief.") for number in range(2)], "desk_b", "others")
    return root


@pytest.fixture
def shop(_pattern: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A corpus, no repository, with three successes of desk_a and two of desk_b; none is accepted yet."""
    root = tmp_path / "corpus"
    shutil.copytree(_pattern, root)
    monkeypatch.chdir(root)
    return Shop(root)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the importer one of the version that is given, which reads every document a little differently.

    Documents that differ in their notes alone are one trace to it, unless it is to keep them.
    """
    raised = atif_repair.raise_version

    def read_as(version: str, *, notes: bool = False) -> None:
        def reading(document: dict[str, Any], repairs: list[str]) -> Any:
            result = raised(document, repairs)
            kept = document.get("notes", "") if notes else ""
            document["notes"] = f"as version {version} read it{kept}"
            return result

        monkeypatch.setenv("TRACEMARK_WORKERS", "1")
        monkeypatch.setattr(AtifImporter, "version", version)
        monkeypatch.setattr(atif_repair, "raise_version", reading)

    return read_as


@pytest.fixture(scope="session")
def _measured(_pattern: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("measured") / "corpus"
    shutil.copytree(_pattern, root)
    from .evaluated import measured

    measured(root)
    return root


@pytest.fixture
def bench(_measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A corpus in which pairs were evaluated, see `evaluated.measured`."""
    from .evaluated import Bench

    root = tmp_path / "corpus"
    shutil.copytree(_measured, root)
    monkeypatch.chdir(root)
    return Bench(root)


@pytest.fixture
def failures(shop: Shop) -> Shop:
    """A corpus whose runs failed in every way that the log tells apart."""
    # that module is made of what this one defines
    from .failed_runs import shop_of_failures

    return shop_of_failures(shop)
