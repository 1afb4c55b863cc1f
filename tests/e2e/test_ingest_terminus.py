"""Terminus-2: one name, one version, one parser, and two prompts. Told apart by content, on real files.

The two templates are cut from the files themselves: the text in front of "Task Description:", which the format fixes.
Sub-agents' documents and the names that documents call each other by are those of the producer.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracemark import digest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest import IngestOptions, IngestReport, ingest
from tracemark.harness.match import fits
from tracemark.importers.atif import content_of
from tracemark.store.selection import Selection, State

pytestmark = pytest.mark.shared_data

CUT = "Task Description:"
EARLIER, LATER = "1d7a49f7cb", "c115067a87"
"""How the SHA-256 of the two prompts begin, as the reference on identity has them."""

OVERFLOW = "open-thoughts__*"
GOLDENS = ("sachiny0106__terminus_2__*", "Arize-ai__fixtures__harbor_terminus2_*")
BEFORE = "sachiny0106__terminus_2__hello-world-context-summarization-linear-history.trajectory.json"
AFTER = "sachiny0106__terminus_2__hello-world-context-summarization-linear-history.trajectory.cont-1.json"
QUESTIONS = "sachiny0106__terminus_2__hello-world-context-summarization.trajectory.summarization-1-questions.json"
ANSWERS = "sachiny0106__terminus_2__hello-world-context-summarization.trajectory.summarization-1-answers.json"


def prompt_of(path: Path) -> str:
    """Return the text in front of the task in a document's first message."""
    text: str = json.loads(path.read_bytes())["steps"][0]["message"]
    head, cut, _ = text.partition(CUT)
    assert cut
    return head


def is_sub_agent(path: Path) -> bool:
    return "summarization" in json.loads(path.read_bytes())["agent"]["name"]


@pytest.fixture(scope="session")
def documents(shared_traces: Path) -> dict[str, list[Path]]:
    """The files of the main agent by prompt, and those of its sub-agents."""
    folder = shared_traces / "atif"
    goldens = sorted(path for pattern in GOLDENS for path in folder.glob(pattern))
    return {
        EARLIER: sorted(folder.glob(OVERFLOW)),
        LATER: [path for path in goldens if not is_sub_agent(path)],
        "sub-agents": [path for path in goldens if is_sub_agent(path)],
    }


@pytest.fixture
def prompts(documents: dict[str, list[Path]]) -> dict[str, str]:
    """The two prompts by their digests' beginnings."""
    return {name: prompt_of(documents[name][0]) for name in (EARLIER, LATER)}


class Terminus:
    """A corpus to which Terminus-2 documents are brought."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def declare(self, prompts: dict[str, str]) -> None:
        """Write a harness version for each prompt: one template, no tools."""
        for name, prompt in prompts.items():
            folder = self.root / "harness_versions" / f"prompt-{name}"
            folder.mkdir(parents=True)
            (folder / "prompt.txt").write_bytes(prompt.encode())
            (folder / "harness.yaml").write_text(
                f"format: tracemark/harness/1\nname: terminus-{name}\nprompt_templates:\n"
                "  - {name: main, file: prompt.txt, syntax: literal, role: user, position: first}\n"
            )

    def ingest(self, *paths: Path, harness: str | None = None) -> IngestReport:
        return ingest(self.root, paths, IngestOptions(harness=harness))

    def states(self) -> dict[str, State]:
        with open_store(self.root) as store:
            return {state.row.label or "": state for state in store.select(Selection())}

    def line(self, label: str) -> dict[str, Any]:
        with open_store(self.root) as store:
            return json.loads(store.get(self.states()[label].trace_id))

    def observed(self) -> dict[str, str | None]:
        """Return the beginning of each document's observed prompt digest; None where there is none."""
        found = {}
        for label in self.states():
            seen = self.line(label)["harness"].get("observed", {}).get("prompt_templates")
            if seen is not None:
                assert [(part["part"], part["form"]) for part in seen] == [("first-user", "prefix")]
            found[label] = None if seen is None else seen[0]["digest"][:10]
        return found


@pytest.fixture
def terminus(tmp_path: Path) -> Terminus:
    return Terminus(tmp_path / "corpus")


def test_the_labels_of_both_are_equal_and_the_prompts_are_not(
    documents: dict[str, list[Path]], prompts: dict[str, str]
) -> None:
    main = [json.loads(path.read_bytes())["agent"] for name in (EARLIER, LATER) for path in documents[name]]
    assert {(agent["name"], agent["version"], agent["extra"]["parser"]) for agent in main} == {
        ("terminus-2", "2.0.0", "json")
    }
    assert {name: digest.sha256(prompt.encode())[:10] for name, prompt in prompts.items()} == {
        EARLIER: EARLIER, LATER: LATER,
    }  # fmt: skip


def test_without_declared_versions_there_are_exactly_two_observed_groups(
    terminus: Terminus, documents: dict[str, list[Path]]
) -> None:
    report = terminus.ingest(*(path for group in documents.values() for path in group))
    assert (report.refused, report.contradicted, report.contested, report.exit_code) == (0, 0, 0, 0)
    expected = {path.name: name for name in (EARLIER, LATER) for path in documents[name]}
    expected |= dict.fromkeys((path.name for path in documents["sub-agents"]), None)
    observed = terminus.observed()
    assert {label: value for label, value in observed.items() if value} == {
        label: value for label, value in expected.items() if value and label in observed
    }
    assert Counter(observed.values()).keys() == {EARLIER, LATER, None}
    assert len(observed) + report.duplicates == len(expected)


def test_each_main_document_is_corroborated_by_exactly_one_declared_version_and_contradicted_by_the_other(
    terminus: Terminus, documents: dict[str, list[Path]], prompts: dict[str, str]
) -> None:
    terminus.declare(prompts)
    for mine, other in ((EARLIER, LATER), (LATER, EARLIER)):
        right = terminus.ingest(*documents[mine], harness=f"terminus-{mine}")
        assert (right.contradicted, right.exit_code) == (0, 0)
        assert right.evidence == {"corroborated": right.ingested}
        wrong = terminus.ingest(*documents[mine], harness=f"terminus-{other}")
        assert (wrong.contradicted, wrong.claims_dropped, wrong.exit_code) == (0, len(documents[mine]), 0)
        assert wrong.contested == wrong.strengthened == 0
    by_name = {harness.name: harness.fingerprint for harness in Corpus(terminus.root).harnesses}
    states = terminus.states()
    for name in (EARLIER, LATER):
        for path in documents[name]:
            if path.name in states:
                row = states[path.name].row
                assert (row.fingerprint, row.corroborated) == (by_name[f"terminus-{name}"], 1)


def test_a_wrong_claim_first_leaves_no_fingerprint_and_the_right_one_then_gives_it(
    terminus: Terminus, documents: dict[str, list[Path]], prompts: dict[str, str]
) -> None:
    terminus.declare(prompts)
    wrong = terminus.ingest(*documents[EARLIER], harness=f"terminus-{LATER}")
    assert wrong.contradicted == wrong.ingested == len(documents[EARLIER])
    assert {state.row.fingerprint for state in terminus.states().values()} == {None}
    right = terminus.ingest(*documents[EARLIER], harness=f"terminus-{EARLIER}")
    assert (right.strengthened, right.contested) == (len(documents[EARLIER]), 0)
    assert {state.row.harness for state in terminus.states().values()} == {f"terminus-{EARLIER}"}


def test_without_a_claim_exactly_one_declared_version_fits_each(
    terminus: Terminus, documents: dict[str, list[Path]], prompts: dict[str, str]
) -> None:
    terminus.declare(prompts)
    terminus.ingest(*documents[EARLIER], *documents[LATER])
    corpus = Corpus(terminus.root)
    names = {harness.fingerprint: harness.name for harness in corpus.harnesses}
    group = {path.name: name for name in (EARLIER, LATER) for path in documents[name]}
    for label in terminus.states():
        content = content_of(terminus.line(label)["trajectory"])
        assert [names[one] for one in fits(corpus.matchers.values(), content)] == [f"terminus-{group[label]}"]


def test_sub_agents_documents_are_recognised_and_refute_nobody(
    terminus: Terminus, documents: dict[str, list[Path]], prompts: dict[str, str]
) -> None:
    terminus.declare(prompts)
    report = terminus.ingest(*documents["sub-agents"], harness=f"terminus-{EARLIER}")
    assert (report.contradicted, report.exit_code) == (0, 0)
    states = terminus.states().values()
    assert {state.row.role for state in states} == {"subagent"}
    assert {state.row.evidence for state in states} == {"claimed"}
    assert set(terminus.observed().values()) == {None}


def test_the_document_of_questions_holds_no_prompt_of_the_main_agent(terminus: Terminus, shared_traces: Path) -> None:
    terminus.ingest(shared_traces / "atif" / QUESTIONS)
    assert terminus.observed() == {QUESTIONS: None}


def test_documents_under_their_own_names_are_joined(
    terminus: Terminus, shared_traces: Path, prompts: dict[str, str]
) -> None:
    names = {
        BEFORE: "trajectory.json",
        AFTER: "trajectory.cont-1.json",
        QUESTIONS: "trajectory.summarization-1-questions.json",
        ANSWERS: "trajectory.summarization-1-answers.json",
    }
    inbox = terminus.root / "inbox"
    inbox.mkdir()
    for source, name in names.items():
        shutil.copyfile(shared_traces / "atif" / source, inbox / name)
    terminus.declare(prompts)
    report = terminus.ingest(inbox, harness=f"terminus-{LATER}")
    assert (report.ingested, report.refused, report.contradicted) == (2, 0, 0)

    main, continuation = terminus.line("trajectory.json"), terminus.line("trajectory.cont-1.json")
    assert main["run"]["continued_by"] == "trajectory.cont-1.json"
    assert continuation["run"]["continues"] == "trajectory.json"
    assert continuation["run"]["role"] == "continuation"
    assert "role" not in main["run"]
    children = main["trajectory"]["subagent_trajectories"]
    assert [child["agent"]["name"].rpartition("-")[2] for child in children] == ["questions", "answers"]
    embedded = [repair for repair in main["source"]["repairs"] if repair.endswith("embedded")]
    assert len(embedded) == 2
    assert {state.row.corroborated for state in terminus.states().values()} == {1}
    again = terminus.ingest(inbox, harness=f"terminus-{LATER}")
    assert (again.duplicates, again.ingested) == (2, 0)


@pytest.mark.parametrize("alone", ["trajectory.cont-1.json", "trajectory.summarization-1-questions.json"])
def test_a_part_that_is_ingested_alone_says_which_part_it_is(
    terminus: Terminus, shared_traces: Path, alone: str
) -> None:
    source = AFTER if "cont" in alone else QUESTIONS
    path = terminus.root / alone
    shutil.copyfile(shared_traces / "atif" / source, path)
    terminus.ingest(path)
    assert terminus.line(alone)["run"]["role"] == ("continuation" if "cont" in alone else "subagent")
