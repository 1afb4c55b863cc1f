"""One agent name, one version, one parser, and two prompts: told apart by content, on documents made here.

The same as `test_ingest_terminus` asserts of real files, so that it is asserted where those are absent as well.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

PROMPTS = {
    "short": "You work in a terminal. Answer with one JSON object that holds your analysis, a plan and commands.\n\n",
    "long": "You work in a terminal. Answer with one JSON object that holds your analysis, a plan and commands.\n"
    "Wait for a prompt before you type, and never ask the user for help while a command is running.\n\n",
}
TASKS = ("Count the lines of a file.", "Find the largest file.", "Rename every log.")


def document(prompt: str, task: str, name: str = "terminus-2") -> dict[str, Any]:
    message = f"{prompt}Task Description:\n{task}"
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": task,
        "agent": {"name": name, "version": "2.0.0", "model_name": "m", "extra": {"parser": "json"}},
        "steps": [
            {"step_id": 1, "source": "user", "message": message},
            {"step_id": 2, "source": "agent", "message": '{"analysis": "done", "plan": "none", "commands": []}'},
        ],
    }


@pytest.fixture
def corpus(tracemark: Any) -> Any:
    for name, prompt in PROMPTS.items():
        folder = tracemark.root / "harness_versions" / name
        folder.mkdir(parents=True)
        (folder / "prompt.txt").write_text(prompt)
        (folder / "harness.yaml").write_text(
            f"format: tracemark/harness/1\nname: {name}\nprompt_templates:\n"
            "  - {name: main, file: prompt.txt, syntax: literal, role: user, position: first}\n"
        )
        (tracemark.root / f"{name}.jsonl").write_text(
            "".join(json.dumps(document(prompt, f"{name}: {task}")) + "\n" for task in TASKS)
        )
    return tracemark


@pytest.mark.parametrize(("mine", "other"), [("short", "long"), ("long", "short")])
def test_each_is_corroborated_by_exactly_one_version_and_contradicted_by_the_other(
    corpus: Any, mine: str, other: str
) -> None:
    wrong = corpus.ingest(corpus.root / f"{mine}.jsonl", "--harness", other).data
    assert (wrong["ingested"], wrong["contradicted"], wrong["harnesses"]) == (3, 3, {"-": 3})
    right = corpus.ingest(corpus.root / f"{mine}.jsonl", "--harness", mine).data
    assert (right["strengthened"], right["contested"], right["contradicted"]) == (3, 0, 0)
    assert (right["harnesses"], right["evidence"]) == ({mine: 3}, {"corroborated": 3})


def test_without_any_declared_version_they_form_exactly_two_groups(tracemark: Any) -> None:
    for name, prompt in PROMPTS.items():
        lines = [json.dumps(document(prompt, f"{name}: {task}")) for task in TASKS]
        (tracemark.inbox / f"{name}.jsonl").write_text("\n".join(lines))
    assert tracemark.ingest().data["ingested"] == 6
    groups: dict[str, set[str]] = {}
    for row in tracemark.traces():
        line = tracemark.line(row["trace_id"])
        (seen,) = line["harness"]["observed"]["prompt_templates"]
        assert (seen["part"], seen["form"]) == ("first-user", "prefix")
        groups.setdefault(seen["digest"], set()).add(line["trajectory"]["session_id"].split(":")[0])
    assert sorted(map(sorted, groups.values())) == [["long"], ["short"]]


def test_a_sub_agents_document_shows_no_prompt_and_refutes_nobody(corpus: Any) -> None:
    name = "terminus-2-summarization-questions"
    path = corpus.root / "part.json"
    path.write_text(json.dumps(document("You are picking up work.\n\n", "Ask what is missing.", name)))
    report = corpus.ingest(path, "--harness", "long").data
    assert (report["ingested"], report["contradicted"]) == (1, 0)
    (row,) = corpus.traces()
    line = corpus.line(row["trace_id"])
    assert line["run"]["role"] == "subagent"
    assert "prompt_templates" not in line["harness"].get("observed", {})
