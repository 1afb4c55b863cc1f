"""The importer of the page on adding one is run, and keeps the contract that the page names."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracemark.importers import detect
from tracemark.testing import ImporterContract

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "adding-an-importer.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SAMPLE,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
_LAWS = [name for name in dir(ImporterContract) if name.startswith("test_")]


@pytest.fixture
def quiz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImporterContract:
    """The contract over the page's importer and its one example."""
    module = ModuleType("quiz")
    monkeypatch.setitem(sys.modules, "quiz", module)
    exec(compile(PROGRAM, "quiz.py", "exec"), module.__dict__)
    importer = module.IMPORTER
    real = detect.importer
    monkeypatch.setattr(detect, "importer", lambda name: importer if name == "quiz" else real(name))
    monkeypatch.setattr(detect.IMPORTERS, "_plugins", {"quiz": ""})
    samples = tmp_path / "samples"
    samples.mkdir()
    (samples / "one.jsonl").write_text(SAMPLE + SAMPLE.replace("true", "false") + SAMPLE.replace(', "right": true', ""))
    members: dict[str, Any] = {"importer": importer, "samples": samples}
    made: ImporterContract = type("Quiz", (ImporterContract,), members)()
    return made


@pytest.mark.parametrize("law", _LAWS)
def test_the_importer_of_the_page_keeps_the_contract(quiz: ImporterContract, law: str) -> None:
    getattr(quiz, law)()


def test_it_reads_what_the_page_says(quiz: ImporterContract) -> None:
    first, second, third = quiz._traces()
    assert [one.outcome["status"] for one in (first, second, third)] == ["success", "failure", "unknown"]
    assert [step["message"] for step in first.trajectory["steps"]][2] == "Yellow"
    assert first.observed["prompt_templates"][0]["form"] == "rendered"
