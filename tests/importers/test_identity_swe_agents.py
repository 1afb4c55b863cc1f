"""What real runs of mini-swe-agent and SWE-agent show of their harness: never one for two, and never two for one."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from ruamel.yaml import YAML

from tracemark.harness.loading import load
from tracemark.harness.match import Matcher
from tracemark.importers import source, swe_agent_config
from tracemark.importers.base import Imported

pytestmark = pytest.mark.shared_data

COMPONENTS = ("prompt_templates", "tool_bindings", "observation_handlers", "runtime")
PROVING = ("template", "constant", "schema")
PARALLEL = (
    "deepseek_bench1__django__django-15790",
    "deepseek_bench_dev__marshmallow-code__marshmallow-1359",
    "deepseek_lite_dev__sqlfluff__sqlfluff-1625",
)
SERIAL = (
    "deepseek_lite_dev_noparallel__pydicom__pydicom-1256",
    "deepseek_lite_dev_noparallel__pylint-dev__astroid-1978",
)
REPAIRED = "eval__example_trajectories__astropy__astropy-12907"
TASK = "marshmallow-code__marshmallow-1867"


class Runs:
    """The traces of one folder, by what their file is called."""

    def __init__(self, folder: Path) -> None:
        self.plan = source.plan([folder])
        self.traces: dict[str, Imported] = {}
        for item in (item for job in self.plan.jobs for item in source.read(job)):
            assert isinstance(item, Imported), item
            self.traces[item.source["label"].removeprefix("SWE-agent__")] = item

    def named(self, *words: str) -> Imported:
        """Return the only trace whose name holds all words."""
        [found] = [item for name, item in self.traces.items() if all(word in name for word in words)]
        return found


@pytest.fixture(scope="module")
def mini(shared_traces: Path) -> Runs:
    return Runs(shared_traces / "mini_swe_agent")


@pytest.fixture(scope="module")
def swe(shared_traces: Path) -> Runs:
    return Runs(shared_traces / "swe_agent")


def shown(item: Imported, component: str) -> list[tuple[str, str, str]]:
    return [(entry["part"], entry["form"], entry["digest"]) for entry in item.observed.get(component, [])]


def proved(item: Imported, component: str) -> dict[str, str]:
    return {part: value for part, form, value in shown(item, component) if form in PROVING}


def different(one: Imported, other: Imported) -> set[str]:
    """Return the components of which both show a part that is proved to be another one."""
    found = set()
    for component in COMPONENTS:
        here, there = proved(one, component), proved(other, component)
        if any(here[part] != there[part] for part in here.keys() & there.keys()):
            found.add(component)
    return found


def observations(item: Imported) -> list[tuple[Any, str]]:
    """Return of every observation with a raw output this, and the text that the model saw."""
    results = [result for step in item.trajectory["steps"] for result in step.get("observation", {}).get("results", [])]
    return [
        (result["extra"]["raw_output"], result["content"])
        for result in results
        if result.get("extra", {}).get("raw_output") is not None
    ]


# every file


def test_every_run_of_mini_swe_agent_is_read(mini: Runs) -> None:
    assert (len(mini.traces), list(mini.plan.refused), list(mini.plan.findings)) == (12, [], [])
    assert Counter(item.source["importer"] for item in mini.traces.values()) == {"mini-swe-agent": 12}
    assert Counter(item.outcome["status"] for item in mini.traces.values()) == {"unknown": 12}
    steps = [step for item in mini.traces.values() for step in item.trajectory["steps"]]
    calls = [call for step in steps for call in step.get("tool_calls", [])]
    results = [result for step in steps for result in step.get("observation", {}).get("results", [])]
    # every answer of a tool is linked; the others are those of text conversations, and each run ends by a call without
    assert (len(calls), sum("source_call_id" in result for result in results)) == (792, 782)
    assert all("original_role" in result["extra"] for result in results if "source_call_id" not in result)


def test_every_run_of_swe_agent_is_read(swe: Runs) -> None:
    assert (len(swe.traces), list(swe.plan.refused)) == (14, [])
    assert [found.code for found in swe.plan.findings] == ["file-beside"]
    assert Counter(item.source["importer"] for item in swe.traces.values()) == {"swe-agent": 14}
    assert Counter(item.outcome["status"] for item in swe.traces.values()) == {"unknown": 14}
    for item in swe.traces.values():
        assert {step["source"] for step in item.trajectory["steps"][:2]} == {"system", "user"}
        assert item.trajectory["agent"]["name"] == "swe-agent"


# observations


def test_every_observation_of_mini_swe_agent_is_rendered_again_from_its_raw_output(mini: Runs) -> None:
    jinja = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    same = 0
    for item in mini.traces.values():
        config = item.trajectory.get("extra", {}).get("info", {}).get("config", {})
        template = jinja.from_string(config.get("model", {}).get("observation_template", ""))
        for raw, seen in observations(item):
            assert template.render(raw) == seen
            same += 1
    assert same == 782


def test_every_observation_of_swe_agent_is_rendered_again_from_its_raw_output(swe: Runs) -> None:
    # most files hold no template, so the two that all of them follow are written out
    empty = "Your command ran successfully and did not produce any output."
    end = "(Open file: {open_file})\n(Current directory: {working_dir})\n"
    same = 0
    for item in swe.traces.values():
        for raw, seen in observations(item):
            variables = {"interactive_session": "", **raw, "observation": raw["observation"] or empty}
            forms = (end + "bash-$", end + "(Interactive session: {interactive_session})\nbash-$")
            assert seen in ["{observation}\n".format(**variables) + form.format(**variables) for form in forms]
            same += 1
    assert same == 131


def test_a_harness_that_declares_the_templates_of_a_run_is_corroborated_by_it(mini: Runs, tmp_path: Path) -> None:
    config = mini.named(PARALLEL[0]).trajectory["extra"]["info"]["config"]
    agent, template = config["agent"], config["model"]["observation_template"]
    declared = {
        "format": "tracemark/harness/1",
        "prompt_templates": [
            {"name": name, "text": agent[f"{name}_template"], "syntax": "jinja", "role": role, "variables": variables}
            for name, role, variables in (("system", "system", {}), ("instance", "user", {"task": "task"}))
        ],
        "observation_handlers": [{"name": "shell", "entry": "shell:show", "template": template}],
    }
    (tmp_path / "harness.yaml").write_text(json.dumps(declared), encoding="utf-8")
    (tmp_path / "shell.py").write_text("def show(output):\n    return output\n", encoding="utf-8")
    matcher = Matcher(load(tmp_path))
    for name in (*PARALLEL, *SERIAL, REPAIRED):
        evidence = matcher.judge(mini.named(name).content).evidence
        assert evidence["prompt_templates"] == {"system": "corroborated", "instance": "corroborated"}
        assert evidence["observation_handlers"] == {"shell": "corroborated"}


# settings


def test_the_settings_of_a_runtime_are_named_one_by_one(mini: Runs) -> None:
    of = {name: {part for part, _, _ in shown(mini.named(name), "runtime")} for name in (PARALLEL[0], REPAIRED)}
    assert of[PARALLEL[0]] == {
        "command_timeout",
        "cost_limit",
        "environment",
        "multimodal_regex",
        "parallel_tool_calls",
        "step_limit",
    }
    assert of[REPAIRED] - of[PARALLEL[0]] == {"patch_repair", "wall_time_limit_seconds"}


# configurations


def test_a_configuration_is_confirmed_by_its_messages_or_not_used_at_all(swe: Runs) -> None:
    contradicted = [item for item in swe.traces.values() if item.findings]
    for item in contradicted:
        assert [found.code for found in item.findings] == ["config-contradicted"]
        assert "at character" in item.findings[0].message
        assert "model" not in item.run
    confirmed = [item for item in swe.traces.values() if "tool_bindings" in item.observed]
    assert (len(contradicted), len(confirmed)) == (2, 4)


def test_the_settings_beside_an_old_run_are_of_a_later_program(shared_traces: Path, swe: Runs) -> None:
    """Why they are left out: in the one file of the kind, a misspelling that the model saw is corrected already."""
    text = (shared_traces / "swe_agent" / "SWE-agent__args.yaml").read_text(encoding="utf-8")
    config = YAML(typ="safe", pure=True).load(text)["agent"]["config"]
    history = [
        {"role": step["source"], "content": step["message"], "is_demo": step.get("is_copied_context")}
        for step in swe.named("pydicom-1458").trajectory["steps"][:3]
    ]
    judged = swe_agent_config.judged({"agent": {"templates": config, "tools": config}}, history)
    assert "recorded template of instance" in str(judged.contradiction)
    assert "succesfully" in str(judged.contradiction)


# the eight variants


def test_every_variant_differs_from_every_other_where_it_really_does(swe: Runs) -> None:
    names = [name for name in swe.traces if TASK in name]
    assert len(names) == 8
    for one, other in itertools.combinations(names, 2):
        first, second = swe.traces[one], swe.traces[other]
        prompts = [item.trajectory["steps"][0]["message"] for item in (first, second)]
        by_prompt = shown(first, "prompt_templates") != shown(second, "prompt_templates")
        # no digest says that two variants are one, and where their prompts differ, that is where it shows
        assert by_prompt == (prompts[0] != prompts[1])
        assert by_prompt or "tool_bindings" in different(first, second)


@pytest.mark.parametrize(
    ("one", "other", "components"),
    [
        ("function_calling__install", "function_calling_replace__install", {"tool_bindings"}),
        (
            "function_calling_replace__install",
            "function_calling_replace_from_source",
            {"prompt_templates", "tool_bindings", "observation_handlers"},
        ),
        (
            "function_calling__install",
            "function_calling_replace_from_source",
            {"prompt_templates", "tool_bindings", "observation_handlers"},
        ),
    ],
)
def test_variants_whose_configuration_counts_are_proved_to_differ(
    swe: Runs, one: str, other: str, components: set[str]
) -> None:
    assert different(swe.named(TASK, one), swe.named(TASK, other)) == components


def test_runs_that_no_model_made_are_no_demonstrations_to_learn_from(swe: Runs) -> None:
    replayed = {name for name, item in swe.traces.items() if item.run.get("demonstration")}
    assert {name for name in swe.traces if TASK in name} < replayed
    assert not any("gpt4" in name or "commit0" in name for name in replayed)
    [shortened] = [
        name
        for name, item in swe.traces.items()
        if any("prompt" in step.get("extra", {}) for step in item.trajectory["steps"])
    ]
    assert "function_calling_replace_from_source" in shortened
