"""A corpus of harness versions that differ in one prompt, documents made by either, and their ingestion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import health
from tracemark.acts.corpus import Corpus
from tracemark.acts.ingest import IngestOptions, IngestReport, ingest
from tracemark.harness import loading
from tracemark.harness.version import Harness
from tracemark.store.selection import Decisions, Selection, State
from tracemark.store.store import Store

PROMPTS = {
    "desk_a": "You answer the customers of a shop. Look an order up before you change it, and say what you did.\n",
    "desk_b": "You answer the customers of a shop. Change an order at once when it is asked for; say nothing else.\n",
    "desk_c": "You answer the customers of a library. Look a book up before you lend it, and say when it is due.\n",
}


class Desk:
    """A corpus with the harness versions of `PROMPTS`, and an inbox to write to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inbox = root / "inbox"
        self.inbox.mkdir(parents=True)
        for name, prompt in PROMPTS.items():
            self.version(name, prompt)

    def other(self, root: Path) -> Desk:
        """Return another corpus of the kind."""
        return Desk(root)

    def version(self, name: str, prompt: str, steps: int | None = None) -> Harness:
        """Write a harness version with one literal system prompt; a limit of steps is what no content shows."""
        place = self.root / "harness_versions" / name
        place.mkdir(parents=True)
        limit = "" if steps is None else f"runtime:\n  limits: {{steps: {steps}}}\n"
        (place / "harness.yaml").write_text(
            f"format: tracemark/harness/1\nname: {name}\n"
            f"prompt_templates:\n  - {{name: system, file: system.txt, syntax: literal, role: system}}\n{limit}"
        )
        (place / "system.txt").write_text(prompt)
        return loading.load(place)

    def sibling(self, name: str, steps: int) -> Harness:
        """Write a version that no content tells from desk_a."""
        return self.version(name, PROMPTS["desk_a"], steps)

    def harness(self, name: str) -> Harness:
        return Corpus(self.root).resolve(name)

    def fingerprint(self, name: str) -> str:
        return self.harness(name).fingerprint

    @staticmethod
    def document(task: str, by: str = "desk_a", **members: Any) -> dict[str, Any]:
        """Return an ATIF document whose content fits the harness `by` and no other."""
        return {
            "schema_version": "ATIF-v1.8",
            "session_id": f"session-{task}",
            "agent": {"name": "desk", "version": "1"},
            "steps": [
                {"step_id": 1, "source": "system", "message": PROMPTS[by]},
                {"step_id": 2, "source": "user", "message": f"Please see to {task}."},
                {"step_id": 3, "source": "agent", "message": "Done."},
            ],
            **members,
        }

    def carrying(self, task: str, by: str = "desk_a", **carried: Any) -> dict[str, Any]:
        """Return a document with `extra.tracemark`."""
        return self.document(task, by, extra={"tracemark": carried})

    def recorded(self, task: str, name: str, by: str = "desk_a", **stamp: Any) -> dict[str, Any]:
        """Return a document that carries the stamp of a run recorded under the harness `name`."""
        bare = self.root.parent / f"{task}.bare.json"
        bare.write_text(json.dumps(self.document(task, by)))
        scratch = self.root.parent / f"scratch-{len(list(self.root.parent.iterdir()))}"
        ingest(scratch, [bare], IngestOptions())
        with Store.open(scratch) as store:
            (state,) = store.select(Selection())
        identity = self.harness(name).identity
        components = {
            component: {
                "digest": value,
                "evidence": "recorded",
                "parts": {p: {"digest": d, "evidence": "recorded"} for p, d in identity.parts[component].items()},
            }
            for component, value in identity.components.items()
        }
        declared = {"name": name, "fingerprint": identity.fingerprint, "components": components}
        return self.carrying(task, by, harness={"declared": declared, **stamp}, trajectory=state.trace_id)

    def write(self, name: str, *documents: Mapping[str, Any]) -> Path:
        """Write documents to a JSONL file of the inbox."""
        return self.put(name, "".join(json.dumps(document) + "\n" for document in documents).encode())

    def put(self, name: str, data: bytes) -> Path:
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def ingest(self, *paths: Path, **options: Any) -> IngestReport:
        return ingest(self.root, paths or [self.inbox], IngestOptions(**options))

    def states(self, decisions: Decisions | None = None) -> dict[str, State]:
        """Return the present state of every trace, superseded ones included, by the task in its first message."""
        wanted = Selection(superseded=True)
        with Store.open(self.root) as store:
            states = list(store.select(wanted, decisions or Decisions()))
            return {_task(store, state): state for state in states}

    def ids(self, *, superseded: bool) -> list[str]:
        """Return the ids of all traces, superseded ones included or not."""
        with Store.open(self.root) as store:
            return [state.trace_id for state in store.select(Selection(superseded=superseded))]

    def state(self, task: str) -> State:
        return self.states()[task]

    def line(self, trace_id: str) -> dict[str, Any]:
        with Store.open(self.root) as store:
            return json.loads(store.get(trace_id))

    def counts(self) -> dict[str, int]:
        with Store.open(self.root) as store:
            return store.counts()

    def annotations(self, kind: str) -> list[dict[str, Any]]:
        with Store.open(self.root) as store:
            return [note.value for note in store.annotations(kind)]

    def refused(self) -> list[dict[str, Any]]:
        """Return the stored records that could not be read."""
        from tracemark.store.segment import iterate

        with Store.open(self.root) as store:
            paths = [store.layout.path(name) for name in store.layout.data_files() if name.startswith("refused/")]
        return [json.loads(line) for path in paths for _, line in iterate(path)]

    def everything(self) -> Mapping[str, Sequence[Any]]:
        """Return what the corpus holds, for comparing two of them."""
        with Store.open(self.root) as store:
            states = list(store.select(Selection(superseded=True)))
            return {
                "files": store.layout.data_files(),
                "snapshots": store.layout.snapshots(),
                "rows": [(state.row, state.conflicts, state.superseded_by) for state in states],
            }

    def check(self) -> None:
        # siblings and disputes are what some tests are about
        codes = {found.code for found in health.check(self.root).findings}
        assert codes <= {"siblings-alike", "contested"}


def _task(store: Store, state: State) -> str:
    steps = json.loads(store.get(state.trace_id))["trajectory"]["steps"]
    said = next(step["message"] for step in steps if step["source"] == "user")
    return str(said).removeprefix("Please see to ").removesuffix(".")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty corpus that knows three harness versions."""
    return Desk(tmp_path / "corpus")
