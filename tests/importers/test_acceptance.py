"""What must come out for real files whose harnesses are known: the cases S1 to S8.

The whole collection is ingested as a user would do it, without a word about any harness. What the store then says of
two traces is what `harness list` and `harness match` say.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.acts.conftest import Shop
from tracemark import digest
from tracemark.acts import health, matching, scaffold
from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.ingest import IngestOptions, IngestReport, ingest
from tracemark.acts.observed import groups
from tracemark.errors import ExportRefusedError
from tracemark.harness.declared import Comparison
from tracemark.harness.impact import Schemas
from tracemark.harness.observed import compare, name_of, shared
from tracemark.harness.tools import reduce_tool
from tracemark.importers.base import Imported, verbatim_digest
from tracemark.importers.source import plan, read
from tracemark.model.harness import COMPONENTS
from tracemark.store.selection import Selection

pytestmark = pytest.mark.shared_data

P, T, H, R = COMPONENTS
SAME, DIFFERENT, UNKNOWN = Comparison.SAME, Comparison.DIFFERENT, Comparison.UNKNOWN
TASK = "marshmallow-code__marshmallow-1867"
PLAIN = ("20260531-204930-608103", "20260601-023242-818996", "20260601-033142-413096")
CHANGED = "20260531-222346-104165"


@dataclass(frozen=True)
class Stored:
    """A trace as the store holds it."""

    id: str
    line: Mapping[str, Any]

    @property
    def observed(self) -> Mapping[str, list[dict[str, str]]]:
        return self.line["harness"].get("observed") or {}

    def shown(self, component: str) -> list[tuple[str, str, str]]:
        return [(one["part"], one["form"], one["digest"]) for one in self.observed.get(component, [])]

    def forms(self, component: str) -> list[str]:
        return [form for _, form, _ in self.shown(component)]

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        return [call for step in self.line["trajectory"]["steps"] for call in step.get("tool_calls", [])]


class Collection:
    """The real trace files in a store."""

    def __init__(self, root: Path, traces: Path) -> None:
        self.root, self.traces = root, traces
        self.report: IngestReport = ingest(root, [traces], IngestOptions())
        places: dict[str, list[str]] = defaultdict(list)
        for item in (item for job in plan([traces]).jobs for item in read(job)):
            if isinstance(item, Imported):
                places[digest.sha256(item.trajectory_bytes)].append(item.where)
        self.stored: dict[str, Stored] = {}
        with open_store(root) as store:
            self.groups = groups(Corpus(root), store)
            for state, line in store.lines(store.select(Selection())):
                found = Stored(state.trace_id, digest.load_canonical(line))
                self.stored |= dict.fromkeys(places[state.trace_id], found)

    def all(self, pattern: str) -> list[Stored]:
        """Return the traces of all places that match, in order of place."""
        return [found for where, found in sorted(self.stored.items()) if re.search(pattern, where)]

    def only(self, pattern: str) -> Stored:
        """Return the trace of the only place that matches."""
        [found] = self.all(pattern)
        return found

    def file(self, pattern: str) -> Path:
        [path] = (self.traces / pattern).parent.glob(Path(pattern).name)
        return path

    def say(self, one: Stored, other: Stored) -> dict[str, Comparison]:
        return compare(one.observed, other.observed, self.groups.confirmed)

    def group(self, trace: Stored) -> str:
        """Return the name of the group in which `harness list` counts a trace."""
        return self.groups.named(name_of(shared(trace.observed, self.groups.confirmed))).name

    def matched(self, trace: Stored) -> dict[str, tuple[str, list[str]]]:
        """Return what `harness match` says of a trace and each other group: the comparison, and where they differ."""
        rows = matching.match(self.root, trace.id).groups
        return {row["name"]: (row["comparison"], row["parts"]) for row in rows}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, shared_traces: Path) -> Collection:
    return Collection(tmp_path_factory.mktemp("real"), shared_traces)


def config_of(path: Path) -> dict[str, Any]:
    config = json.loads(path.read_text(encoding="utf-8"))["replay_config"]
    return json.loads(config) if isinstance(config, str) else config


def everywhere(answers: Iterable[Comparison]) -> Comparison:
    [one] = set(answers)
    return one


def test_nothing_in_the_collection_proves_a_whole_harness(real: Collection) -> None:
    assert real.report.harnesses == {"-": real.report.ingested + real.report.strengthened}
    assert not [found.id for found in real.stored.values() if "declared" in found.line["harness"]]


# S1


def test_s1_two_templates_under_one_label_are_two_and_a_summary_has_none(real: Collection) -> None:
    old = [real.only(f"^atif/open-thoughts__overflow-{name}") for name in ("0828__5TpEZS5", "9152__vWLVw6v")]
    start = "^atif/sachiny0106__terminus_2__hello-world-"
    endings = ("invalid-json.trajectory.json", r"context-summarization-linear-history.trajectory\.json")
    new = [real.only(start + ending) for ending in endings]
    summary = real.only(start + "context-summarization.trajectory.summarization-1-questions.json")
    agents = [one.line["trajectory"]["agent"] for one in (*old, *new)]
    assert {(one["name"], one["version"], one["extra"]["parser"]) for one in agents} == {
        ("terminus-2", "2.0.0", "json")
    }
    assert real.say(*old)[P] is real.say(*new)[P] is SAME
    assert {real.say(one, other)[P] for one in old for other in new} == {DIFFERENT}
    assert real.matched(old[0])[real.group(new[0])] == ("different", [f"{P}/first-user"])
    assert summary.shown(P) == []
    assert not any(name in one.observed for one in (*old, *new, summary) for name in (T, H))


# S2


def test_s2_a_hidden_prompt_is_neither_merged_nor_are_commits_told_apart(real: Collection) -> None:
    four = [real.only(f"^tau2/.*{name}.results.json") for name in (*PLAIN, CHANGED)]
    assert len({one.line["run"]["environment"]["git_commit"] for one in four}) == 4
    assert len({one.line["trajectory"]["extra"]["info"]["environment_info"]["policy"] for one in four}) == 1
    assert [one.observed for one in four] == [{}] * 4
    for one, other in combinations(four, 2):
        assert set(real.say(one, other).values()) == {UNKNOWN}
    note = real.file("tau2/*.prompt_variant.txt").read_text(encoding="utf-8")
    shown = {value for one in real.stored.values() for name in COMPONENTS for _, _, value in one.shown(name)}
    assert shown.isdisjoint({verbatim_digest(note), verbatim_digest(note.strip())})
    text = digest.canonical(note.strip())[1:-1]
    assert not any(text in digest.canonical(one.line) for one in four)


def test_s2_the_tokens_of_the_first_call_contradict_the_changed_run_alone(real: Collection) -> None:
    found = [one for one in health.check(real.root).findings if one.code == "usage-differs"]
    plain, changed = ([real.only(f"^tau2/.*{name}.results.json").id for name in names] for names in (PLAIN, [CHANGED]))
    [about] = [one for one in found if changed[0][:12] in f"{one.where} {one.message}"]
    assert "3319 and 3374 tokens" in about.message or "3374 and 3319 tokens" in about.message
    named = f"{about.where} {about.message}"
    assert any(trace[:12] in named for trace in plain)
    assert not any(trace[:12] in f"{one.where} {one.message}" for trace in plain for one in found if one is not about)


AIRLINE = """\
format: tracemark/harness/1
name: airline
prompt_templates:
  - {name: system, file: policy.md, syntax: literal}
"""


@pytest.mark.parametrize(("claimed", "reason"), [(None, "no-fingerprint"), ("airline", "evidence")])
def test_s2_no_run_is_exported_on_the_strength_of_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared_traces: Path,
    claimed: str | None,
    reason: str,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    scaffold.init(tmp_path)
    shop = Shop(tmp_path)
    files = [next((shared_traces / "tau2").glob(f"*{name}.results.json")) for name in (*PLAIN, CHANGED)]
    folder = tmp_path / "harness_versions" / "airline"
    folder.mkdir()
    policy = json.loads(files[0].read_text(encoding="utf-8"))["info"]["environment_info"]["policy"]
    folder.joinpath("policy.md").write_text(policy, encoding="utf-8")
    folder.joinpath("harness.yaml").write_text(AIRLINE, encoding="utf-8")
    assert ingest(tmp_path, files, IngestOptions(harness=claimed)).ingested == 4
    shop.accept("airline")
    shop.set(("minimum: 20", "minimum: 1"))
    with pytest.raises(ExportRefusedError) as refused:
        shop.export()
    assert f"left out: {reason} 4" in refused.value.message


# S3


def test_s3_one_program_of_three_runtimes(real: Collection) -> None:
    start = "^mini_swe_agent/SWE-agent__"
    parallel = [
        real.only(start + name)
        for name in (
            "deepseek_bench1__django__django-15790",
            "deepseek_bench_dev__marshmallow-code__marshmallow-1359",
            "deepseek_lite_dev__sqlfluff__sqlfluff-1625",
        )
    ]
    names = ("pydicom__pydicom-1256", "pylint-dev__astroid-1978")
    serial = [real.only(f"{start}deepseek_lite_dev_noparallel__{name}") for name in names]
    repaired = real.only(start + "eval__example_trajectories__astropy__astropy-12907")
    six = [*parallel, *serial, repaired]
    for one, other in combinations(six, 2):
        assert real.say(one, other)[P] is real.say(one, other)[H] is SAME
    assert {form for one in six for form in one.forms(P)} == {"template"}
    assert not any(one.shown(T) for one in six)
    assert {real.say(one, other)[R] for one in parallel for other in serial} == {DIFFERENT}
    runtimes = [{digest.of(one.shown(R)) for one in some} for some in (parallel, serial, [repaired])]
    assert [len(some) for some in runtimes] == [1, 1, 1]
    assert len(set.union(*runtimes)) == len({real.group(one) for one in six}) == 3
    assert real.matched(parallel[0])[real.group(serial[0])] == ("different", [f"{R}/parallel_tool_calls"])
    assert real.matched(parallel[0])[real.group(repaired)] == ("unknown", [])
    assert "patch_repair" in {part for part, _, _ in repaired.shown(R)}
    parts = {part for one in six for name in COMPONENTS for part, _, _ in one.shown(name)}
    assert not [part for part in parts if re.search("pull_timeout|image|model|class|agent_type", part)]


# S4


def schema_of_edit(config: Mapping[str, Any]) -> Schemas:
    """Return the schema of the tool `edit` as its documentation in the recorded configuration has it."""
    text = re.split(r"\n\n(?=\w+:\n)", config["agent"]["tools"]["command_docs"].partition("\nedit:\n")[2])[0]
    arguments = re.findall(r"^    - ([\w-]+) \((\w+)\) \[(\w+)\]", text.partition("  arguments:\n")[2], re.MULTILINE)
    parameters = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind, _ in arguments},
        "required": [name for name, _, needed in arguments if needed == "required"],
        "additionalProperties": False,
    }
    return Schemas([{"type": "function", "function": {"name": "edit", "parameters": parameters}}])


def test_s4_equal_prompts_and_handlers_with_other_tools_are_two_harnesses(real: Collection) -> None:
    names = [f"{TASK}__{name}__install-1_" for name in ("function_calling", "function_calling_replace")]
    one, other = (real.only(name) for name in names)
    assert one.line["trajectory"]["steps"][0]["message"] == other.line["trajectory"]["steps"][0]["message"]
    said = real.say(one, other)
    assert (said[P], said[T], said[H]) == (SAME, DIFFERENT, SAME)
    assert "different" in {said for said, parts in real.matched(one).values() if f"{T}/bundles" in parts}
    schemas = [schema_of_edit(config_of(real.file(f"swe_agent/*{name}*"))) for name in names]
    for trace, own, foreign in ((one, *schemas), (other, *reversed(schemas))):
        edits = [call["arguments"] for call in trace.calls if call["function_name"] == "edit"]
        assert edits
        assert not any(own.faults("edit", arguments) for arguments in edits)
        assert all(foreign.faults("edit", arguments) for arguments in edits)


# S5


def test_s5_a_configuration_that_the_messages_contradict_is_not_used(real: Collection) -> None:
    grafted = [real.only(f"{TASK}__{name}_sys-env_window100") for name in ("default", "xml")]
    third = real.only(f"{TASK}__function_calling__install-1_")
    doubted = [found.where for found in real.report.findings if found.code == "config-contradicted"]
    assert len(doubted) == 2
    assert all(any(name in where for where in doubted) for name in ("default_sys-env", "xml_sys-env"))
    for one in grafted:
        # the file holds one all the same, with tools, handlers and settings
        assert set(one.observed) == {P}
        assert set(one.forms(P)) == {"rendered"}
        assert real.say(one, third)[T] is not SAME
    assert grafted[0].shown(P) != grafted[1].shown(P)
    assert real.say(*grafted)[P] is not SAME
    assert third.shown(T)


# S6


def test_s6_calls_of_the_provider_and_calls_in_the_text_are_two_and_a_bare_list_is_neither(real: Collection) -> None:
    start = "^openai_chat/OpenHands__"
    first, second = (real.only(f"{start}llm-logs__.*{name}") for name in ("1757015025.972", "1757015036.544"))
    third = real.only(start + "nonfncall-llm-logs__.*1757015054.055")
    fourth = real.only(start + "llm_data__nonfncall-llm-message")
    assert (real.say(first, second)[P], real.say(first, second)[T]) == (SAME, SAME)
    said = real.say(first, third)
    assert (said[T], said[R]) == (SAME, DIFFERENT)
    assert said[P] is not SAME
    assert first.shown(P) != third.shown(P)
    assert "different" in {said for said, parts in real.matched(first).values() if f"{R}/function_calling" in parts}
    assert T not in fourth.observed
    # as it is stored its system message is that of the first, and what was sent was not
    assert fourth.shown(P)[0][2] == first.shown(P)[0][2]
    assert set(real.say(first, fourth).values()) == {UNKNOWN}
    assert set(real.say(real.only(start + "llm_data__fncall-llm-message"), fourth).values()) == {UNKNOWN}


# S7


def test_s7_one_task_over_models_versions_and_commits_is_one_harness_and_a_grader_is_no_agent(real: Collection) -> None:
    popularity = [
        real.all(f"^inspect/.*{name}")
        for name in (
            "2025-02-11T15-17.*popularity.*eval/",
            "2025-02-11T15-18.*popularity.*eval/",
            r"log_read_sample\.json",
            "2025-05-12.*popularity.*json",
            "recorder.*2025-09-23.*popularity.*eval/",
        )
    ]
    first = [some[0] for some in popularity]
    for one, other in combinations(first, 2):
        assert (real.say(one, other)[P], real.say(one, other)[T]) == (SAME, SAME)
    assert {form for one in first for form in one.forms(T)} == {"known-empty"}
    assert len({one.line["run"]["model"]["name"] for one in first}) == 2
    assert len({one.line["run"]["environment"]["revision"]["commit"] for one in first}) == 4
    guide = real.all("^inspect/.*security-guide.*eval/")
    assert len(guide) == 16
    assert everywhere(real.say(*two)[P] for two in combinations(guide, 2)) is SAME
    assert everywhere(real.say(one, first[0])[P] for one in guide) is DIFFERENT
    assert not any("mixed" in one.line["harness"] for one in (*guide, *(one for some in popularity for one in some)))
    assert "comparing a submitted answer" not in json.dumps([one.line["trajectory"] for one in guide])


# S8


def test_s8_the_tools_are_those_of_the_request_and_the_policy_is_no_part_of_the_prompt(real: Collection) -> None:
    rows = real.all("^nemo_gym/.*conversational_tool_use_simulation.*:[1-5]$")
    raw = [
        json.loads(line)
        for line in real.file("nemo_gym/*conversational_tool_use*").read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) == len(raw) == 5
    for one, row in zip(rows, raw, strict=True):
        for tools in (row["responses_create_params"]["tools"], row["response"]["tools"]):
            reduced = {tool["name"]: digest.of(reduce_tool(tool)) for tool in tools}
            assert {part: value for part, _, value in one.shown(T)} == reduced
    said = {two: real.say(rows[two[0]], rows[two[1]]) for two in combinations(range(5), 2)}
    assert {two for two, answers in said.items() if answers[T] is DIFFERENT} == {two for two in said if 2 in two}
    assert {answers[T] for two, answers in said.items() if 2 not in two} == {SAME}
    assert {answers[P] for answers in said.values()} == {SAME}
    assert Counter(form for one in rows for form in one.forms(P)) == {"substituted": 5}


# beside the cases


def test_a_list_of_tools_that_a_table_padded_with_null_is_the_clean_one(real: Collection, tmp_path: Path) -> None:
    path = real.file("verifiers/*mcp-env*.results.jsonl")
    row = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    padded = json.dumps(row["info"]["oai_tools"])
    assert ": null" in padded
    row["info"]["oai_tools"] = json.loads(
        padded, object_hook=lambda found: {k: v for k, v in found.items() if v is not None}
    )
    row["example_id"] = 77
    tmp_path.joinpath("clean.results.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    [clean] = [item for job in plan([tmp_path]).jobs for item in read(job)]
    assert isinstance(clean, Imported)
    for stored in real.all("^verifiers/.*mcp-env"):
        assert compare(stored.observed, clean.observed, ())[T] is SAME


@pytest.mark.parametrize(
    ("pattern", "commit"),
    [
        (f"tau2/*{PLAIN[0]}.results.json", "30f3987"),
        ("inspect/*test_logs__2025-05-12*popularity.json", "e9a9d7161"),
    ],
)
def test_another_commit_alone_makes_no_other_harness(
    real: Collection, tmp_path: Path, pattern: str, commit: str
) -> None:
    path = real.file(pattern)
    text = path.read_text(encoding="utf-8")
    assert commit in text
    tmp_path.joinpath(path.name).write_text(text.replace(commit, "0123abc"), encoding="utf-8")
    again = [item for job in plan([tmp_path]).jobs for item in read(job)]
    stored = real.all(f"^{path.parent.name}/{re.escape(path.name)}")
    assert len(again) == len(stored) > 0
    for one, other in zip(again, stored, strict=True):
        assert isinstance(one, Imported)
        assert "0123abc" in one.run["environment"].get("git_commit", str(one.run["environment"]))
        assert one.observed == other.observed
