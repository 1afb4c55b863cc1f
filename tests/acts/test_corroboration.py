"""Corroboration as a user meets it: the audit shows what contradicts, component by component, and what agrees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracemark.acts import audit, health, ingest
from tracemark.acts.corpus import Corpus, open_store
from tracemark.store.selection import Selection

from .conftest import Shop, document, write_version

BREAKS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], tuple[str, int | None]]] = {
    "prompt_templates": (
        "",
        lambda made: made["steps"][0].update(message="You are somebody else."),
        ("system", 1),
    ),
    "tool_bindings": (
        "",
        lambda made: made["steps"][2]["tool_calls"][0].update(function_name="refund"),
        ("refund", 3),
    ),
    "observation_handlers": (
        ", template: '<seen>{{ output }}</seen>'",
        lambda made: made["steps"][3]["observation"]["results"][0].update(content="seen", extra={"raw_output": "raw"}),
        ("observe", 4),
    ),
    "runtime": ("", lambda made: made, ("limits", 5)),
}


@pytest.mark.parametrize("component", BREAKS)
def test_the_audit_of_a_trace_shows_the_contradiction_of_each_component_with_step_and_text(
    shop: Shop, component: str
) -> None:
    handler, change, (part, step) = BREAKS[component]
    manifest = write_version(shop.root, "strict") / "harness.yaml"
    manifest.write_text(
        manifest.read_text().replace("observe.py:observe'", f"observe.py:observe'{handler}")
        + f"runtime: {{limits: {{steps: {2 if component == 'runtime' else 3}}}}}\n"
    )
    made = document("broken")
    change(made)
    report = shop.ingest([made], "strict", "broken")
    assert (report.contradicted, report.exit_code) == (1, 1)
    shown = audit.audit(shop.root, shop.ids()["broken"])
    assert isinstance(shown, audit.TraceAudit)
    (place,) = shown.contradictions
    assert (place["harness"], place["component"], place["part"], place["step"]) == ("strict", component, part, step)
    assert place["text"]
    assert shown.fingerprint is None
    assert Corpus(shop.root).resolve("strict").fingerprint not in shown.fits


def test_a_handler_that_gives_every_observation_again_is_corroborated_in_stamp_and_audit(shop: Shop) -> None:
    manifest = write_version(shop.root, "framed") / "harness.yaml"
    framed = "observe.py:observe', template: '<seen>{{ output }}</seen>'"
    manifest.write_text(manifest.read_text().replace("observe.py:observe'", framed))
    made = document("framed")
    for step in made["steps"][2:4]:
        step["observation"]["results"][0].update(content="<seen>raw</seen>", extra={"raw_output": "raw"})
    shop.ingest([made], "framed", "framed")
    shown = audit.audit(shop.root, shop.ids()["framed"])
    assert isinstance(shown, audit.TraceAudit)
    evidence = {name: component["evidence"] for name, component in shown.components.items()}
    assert evidence["observation_handlers"] == "corroborated"
    assert {Corpus(shop.root).by_fingerprint[one].name for one in shown.fits} == {"desk_a", "framed"}


def framed(shop: Shop, name: str, template: str) -> None:
    """Write a version that is desk_a but for a handler of which the manifest says what it makes of a raw output."""
    manifest = write_version(shop.root, name, handler=f" + {name!r}") / "harness.yaml"
    manifest.write_text(manifest.read_text().replace("observe'", f"observe', template: '{template}'"))


def with_raw(task: str, raw: str | None, text: str) -> dict[str, Any]:
    made = document(task)
    for step in made["steps"][2:4]:
        step["observation"]["results"][0].update(content=text, extra={"raw_output": raw})
    return made


def test_raw_output_tells_siblings_apart_that_differ_in_a_handler_alone(shop: Shop) -> None:
    framed(shop, "round", "({{ output }})")
    framed(shop, "square", "[{{ output }}]")
    shop.ingest([with_raw("told", "raw", "[raw]"), with_raw("silent", None, "[raw]")], "square", "square")
    shown = {task: audit.audit(shop.root, shop.ids()[task]) for task in ("told", "silent")}
    fitting = {task: {one.labels[key] for key in one.fits} for task, one in shown.items()}  # type: ignore[union-attr]
    assert "round" in fitting["silent"]
    assert "round" not in fitting["told"]


def settings(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(path.read_bytes())["info"]["config"]
    return config


def declare(root: Path, config: dict[str, Any]) -> None:
    """Write the harness version that a recorded configuration describes, as far as traces can show it."""
    templates = [("system", "system", {}), ("instance", "user", {"task": "task"})]
    prompts = [
        {
            "name": name,
            "text": config["agent"][f"{name}_template"],
            "syntax": "jinja",
            "role": role,
            "variables": declared,
        }
        for name, role, declared in templates
    ]
    handler = {"name": "frame", "entry": "frame.py:frame", "template": config["model"]["observation_template"]}
    members = {
        "format": "tracemark/harness/1",
        "prompt_templates": prompts,
        "observation_handlers": [handler],
        "runtime": {"limits": {"steps": config["agent"]["step_limit"]}},
    }
    folder = root / "harness_versions" / "mini"
    folder.mkdir(parents=True)
    (folder / "harness.yaml").write_text(json.dumps(members))
    (folder / "frame.py").write_text("def frame(raw):\n    return raw\n")


RUNS = [
    "deepseek_bench1__django__django-15790",
    "deepseek_bench_dev__marshmallow-code__marshmallow-1359",
    "deepseek_lite_dev__sqlfluff__sqlfluff-1625",
    "deepseek_lite_dev_noparallel__pydicom__pydicom-1256",
    "deepseek_lite_dev_noparallel__pylint-dev__astroid-1978",
    "eval__example_trajectories__astropy__astropy-12907",
]


@pytest.mark.shared_data
def test_the_declared_handler_of_mini_swe_agent_is_corroborated_by_runs_of_other_runtimes(
    shop: Shop, shared_traces: Path
) -> None:
    paths = [shared_traces / "mini_swe_agent" / f"SWE-agent__{name}.traj.json" for name in RUNS]
    declare(shop.root, settings(paths[0]))
    report = ingest.ingest(shop.root, paths, ingest.IngestOptions(harness="mini"))
    assert (report.ingested, report.contradicted) == (6, 0)
    own = Corpus(shop.root).resolve("mini").fingerprint
    with open_store(shop.root) as store:
        ids = [state.trace_id for state in store.select(Selection(fingerprints=frozenset({own})))]
    for trace_id in ids:
        shown = audit.audit(shop.root, trace_id)
        assert isinstance(shown, audit.TraceAudit)
        evidence = {name: component["evidence"] for name, component in shown.components.items()}
        assert evidence["prompt_templates"] == evidence["observation_handlers"] == "corroborated"


@pytest.mark.shared_data
def test_a_handler_that_frames_one_character_otherwise_is_contradicted_by_every_run(
    shop: Shop, shared_traces: Path
) -> None:
    paths = [shared_traces / "mini_swe_agent" / f"SWE-agent__{name}.traj.json" for name in RUNS]
    config = settings(paths[0])
    template = config["model"]["observation_template"]
    config["model"]["observation_template"] = template.replace("-}}\n</output>", "}}\n</output>")
    assert config["model"]["observation_template"] != template
    declare(shop.root, config)
    report = ingest.ingest(shop.root, paths, ingest.IngestOptions(harness="mini"))
    assert (report.ingested, report.contradicted) == (6, 6)


@pytest.mark.shared_data
def test_the_hidden_prompt_of_a_tau2_run_is_found_among_all_of_them(shop: Shop, shared_traces: Path) -> None:
    paths = sorted((shared_traces / "tau2").glob("yoheinakajima__*.results.json"))
    ingest.ingest(shop.root, paths, ingest.IngestOptions())
    differing = [found for found in health.check(shop.root).findings if found.code == "usage-differs"]
    assert len(differing) == 1
    assert "3319" in differing[0].message
    assert "3374" in differing[0].message
