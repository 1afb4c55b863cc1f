"""Makes small, valid traces and annotations for the tests of the store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.store.draft import DraftWriter, SegmentDraft
from tracemark.store.layout import Layout
from tracemark.store.row import project_line
from tracemark.store.store import Store

COMPONENTS = ("prompt_templates", "tool_bindings", "observation_handlers", "runtime")


class Maker:
    """Small valid values of everything that is stored."""

    @staticmethod
    def fingerprint(letter: str) -> str:
        return "tm1:" + letter * 64

    def stamp(self, letter: str | None, evidence: str = "corroborated") -> dict[str, Any]:
        if letter is None:
            return {}
        part = {"digest": letter * 64, "evidence": evidence}
        component = {"digest": letter * 64, "evidence": evidence, "parts": {"only": part}}
        return {
            "declared": {
                "name": f"h-{letter}",
                "fingerprint": self.fingerprint(letter),
                "components": dict.fromkeys(COMPONENTS, component),
            }
        }

    def trace(self, number: int, harness: dict[str, Any] | None = None, **head: Any) -> bytes:
        """Return a stored line; traces of one number have one trajectory and so one id."""
        call = {"tool_call_id": "c1", "function_name": "look_up", "arguments": {"order": number}}
        steps = [
            {"step_id": 1, "source": "user", "message": f"Where is order {number}?"},
            {"step_id": 2, "source": "agent", "message": "", "tool_calls": [call]},
            {"step_id": 3, "source": "agent", "message": f"Order {number} is on its way."},
        ]
        return digest.canonical(
            {
                "format": "tracemark/trace/1",
                "harness": harness or {},
                "outcome": head.pop("outcome", {"status": "unknown"}),
                "run": {"task": f"t-{number}"} | head.pop("run", {}),
                "source": {
                    "format": "atif",
                    "label": "runs.jsonl",
                    "raw": digest.sha256(str(number).encode()),
                    "importer": "atif",
                    "importer_version": "1",
                }
                | head.pop("source", {}),
                "trajectory": {"schema_version": "ATIF-v1.8", "steps": steps} | head.pop("trajectory", {}),
            }
        )

    @staticmethod
    def id_of(line: bytes) -> str:
        return project_line(line).row.trace_id

    @staticmethod
    def annotation(
        kind: str, trace: str | None, value: dict[str, Any], supersedes: Iterable[str] = ()
    ) -> dict[str, Any]:
        if kind.startswith("exports."):
            value = {"fingerprint": "tm1:" + "a" * 64, "manifest": "b" * 64, "policy": "unique", **value}
        made: dict[str, Any] = {
            "format": "tracemark/annotation/1",
            "kind": kind,
            "tool": {"name": "test", "version": "1"},
            "value": value,
        }
        if trace is not None:
            made["trace"] = trace
        if supersedes:
            made["supersedes"] = list(supersedes)
        return made

    @staticmethod
    def drafts(folder: Path, lines: Iterable[bytes], stem: str = "0") -> list[SegmentDraft]:
        writer = DraftWriter(folder, stem)
        for line in lines:
            writer.add(line, project_line(line))
        return writer.close()

    def commit(self, store: Store, *lines: bytes) -> list[bool]:
        with store.workspace() as folder:
            return [store.commit_segment(draft) for draft in self.drafts(folder, lines)]


@pytest.fixture(scope="session")
def make() -> Maker:
    return Maker()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "corpus"


@pytest.fixture
def layout(root: Path) -> Layout:
    return Layout(root)
