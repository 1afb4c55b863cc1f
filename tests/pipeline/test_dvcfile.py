"""The pipeline's file: which stages a corpus has, what each reads, and that nothing is written twice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tracemark.errors import ParamsError
from tracemark.pipeline import dvcfile

ROOT = Path(__file__).resolve().parents[2]


def version(root: Path, name: str, more: str = "") -> None:
    folder = root / "harness_versions" / name
    folder.mkdir(parents=True)
    (folder / "harness.yaml").write_text(f"format: tracemark/harness/1\nname: {name}\n{more}")


def domain(root: Path, name: str) -> None:
    (root / "domains" / name).mkdir(parents=True)
    (root / "domains" / name / "play.py").write_text("")


def stages(root: Path) -> dict[str, Any]:
    read: dict[str, Any] = YAML(typ="safe").load(dvcfile.render(root))["stages"]
    return read


def expanded(root: Path) -> dict[str, dict[str, Any]]:
    """Return the stages as DVC sees them, one for each item."""
    found = {}
    for name, stage in stages(root).items():
        items = stage.get("foreach", [""])
        for key in items:
            value = items[key] if isinstance(items, dict) else key
            body = json.dumps(stage.get("do", stage))
            body = body.replace("${item}", json.dumps(value)[1:-1]).replace("${key}", key)
            found[f"{name}@{key}" if key else name] = json.loads(body)
    return found


def outs(stage: dict[str, Any]) -> list[str]:
    written = [*stage.get("outs", []), *stage.get("metrics", [])]
    return [out if isinstance(out, str) else next(iter(out)) for out in written]


def candidates(root: Path, harness: list[str], model: list[str]) -> None:
    (root / "params.yaml").write_text(json.dumps({"gates": {"candidates": {"harness": harness, "model": model}}}))


def test_the_file_of_this_repository_is_current() -> None:
    assert (ROOT / "dvc.yaml").read_text() == dvcfile.render(ROOT)


def test_a_corpus_that_is_still_empty_can_ingest(tmp_path: Path) -> None:
    assert list(stages(tmp_path)) == ["ingest"]
    assert list(stages(tmp_path / "nowhere")) == ["ingest"]


def test_a_harness_version_brings_its_report_and_an_export(tmp_path: Path) -> None:
    version(tmp_path, "b")
    version(tmp_path, "a")
    found = stages(tmp_path)
    assert list(found) == ["harness", "ingest", "export-sft", "failures", "plan"]
    assert found["harness"]["foreach"] == ["a", "b"]


def test_a_link_out_of_the_folder_of_versions_is_no_version_here_either(tmp_path: Path) -> None:
    version(tmp_path, "a")
    version(tmp_path / "outside", "b")
    for name, target in (("away", tmp_path / "outside" / "harness_versions" / "b"), ("near", Path("a"))):
        (tmp_path / "harness_versions" / name).symlink_to(target)
    (tmp_path / "harness_versions" / "empty").mkdir()
    assert stages(tmp_path)["harness"]["foreach"] == ["a", "near"]


def test_every_version_plays_in_every_domain_into_an_inbox_of_its_own(tmp_path: Path) -> None:
    version(tmp_path, "a")
    version(tmp_path, "b")
    domain(tmp_path, "shop")
    assert {"play@a", "play@b"} <= expanded(tmp_path).keys()
    domain(tmp_path, "trains")
    played = {name: outs(stage) for name, stage in expanded(tmp_path).items() if name.startswith("play")}
    assert played.keys() == {"play-shop@a", "play-shop@b", "play-trains@a", "play-trains@b"}
    assert len({out for written in played.values() for out in written}) == 4


@pytest.mark.parametrize("root", [ROOT, None])
def test_no_two_stages_write_to_one_place(root: Path | None, tmp_path: Path) -> None:
    if root is None:
        root = tmp_path
        version(root, "a")
        domain(root, "shop")
        candidates(root, ["a", "b"], ["m@1", "m@2"])
    written = [out for stage in expanded(root).values() for out in outs(stage)]
    for one in written:
        assert [other for other in written if Path(other).is_relative_to(one)] == [one]


def test_stores_only_grow_and_reports_stay_in_git() -> None:
    kept = {
        next(iter(out)): next(iter(out.values()))
        for stage in expanded(ROOT).values()
        for out in [*stage.get("outs", []), *stage.get("metrics", [])]
        if isinstance(out, dict)
    }
    assert all(settings == {"persist": True} for out, settings in kept.items() if out.startswith("traces/"))
    assert all(settings == {"cache": False} for out, settings in kept.items() if out.startswith("reports/"))


def test_a_decision_or_a_parameter_reruns_what_it_decides(tmp_path: Path) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, ["a"], ["m@2"])
    read = {"ledger.jsonl", "params.yaml", "traces/segments", "traces/annotations/stamps", "harness_versions"}
    found = expanded(tmp_path)
    decided = {"export-sft", "failures", "gate-harness@a", "gate-model@m-2", "plan"}
    assert {name for name, stage in found.items() if read <= set(stage["deps"])} == decided


def test_what_was_exported_reruns_the_plan_and_the_gates_and_not_the_failure_log(tmp_path: Path) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, ["a"], [])
    record = "traces/annotations/exports.sft"
    found = expanded(tmp_path)
    assert record in outs(found["export-sft"])
    assert {name for name, stage in found.items() if record in stage["deps"]} == {"gate-harness@a", "plan"}


def test_the_file_of_evaluation_tasks_reruns_what_keeps_them_apart_and_nothing_else(tmp_path: Path) -> None:
    version(tmp_path, "a")
    before = expanded(tmp_path)
    (tmp_path / "eval.txt").write_text("t-1\n")
    (tmp_path / "params.yaml").write_text("evaluation: {tasks: {file: ./eval.txt}}\n")
    after = expanded(tmp_path)
    assert after["export-sft"]["deps"] == [*before["export-sft"]["deps"], "eval.txt"]
    assert {name for name in after if after[name] != before[name]} == {"export-sft", "failures", "plan"}


@pytest.mark.parametrize(("told", "stated"), [("", False), ("plan:\n", False), ("ingest:\n", True)])
def test_parameters_of_ingest_that_the_file_does_not_state_are_read_with_the_whole_file(
    told: str, stated: bool, tmp_path: Path
) -> None:
    (tmp_path / "params.yaml").write_text(told)
    ingest = stages(tmp_path)["ingest"]
    assert (ingest.get("params"), "params.yaml" in ingest["deps"]) == (["ingest"] if stated else None, not stated)


def test_conditions_of_ones_own_rerun_the_failure_log_and_nothing_else(tmp_path: Path) -> None:
    version(tmp_path, "a")
    before = expanded(tmp_path)
    (tmp_path / "params.yaml").write_text("failures: {conditions: ours.toml}\n")
    after = expanded(tmp_path)
    assert after["failures"]["deps"] == [*before["failures"]["deps"], "ours.toml"]
    assert {name for name in after if after[name] != before[name]} == {"failures"}


def test_every_candidate_has_a_gate_whose_report_is_a_metric(tmp_path: Path) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, ["b", "tm1:0af0"], ["org/m@step 2"])
    found = {name: stage for name, stage in expanded(tmp_path).items() if name.startswith("gate-")}
    assert found.keys() == {"gate-harness@b", "gate-harness@tm1-0af0", "gate-model@org-m-step-2", "gate-plots"}
    assert found["gate-model@org-m-step-2"]["cmd"] == (
        "tracemark gate model --candidate 'org/m@step 2' --out reports/gates/model-org-m-step-2.json"
        " || exit $(($?==1?0:$?))"
    )
    reports = {name: outs(stage)[0] for name, stage in found.items() if name != "gate-plots"}
    assert len(set(reports.values())) == 3
    assert sorted(found["gate-plots"]["deps"]) == sorted(reports.values())
    assert all(stage["metrics"] == [{reports[name]: {"cache": False}}] for name, stage in found.items() if "@" in name)


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (1, 0), (2, 2), (40, 40), (130, 130)])
def test_a_stage_ends_as_its_command_did_but_where_1_is_an_answer(tmp_path: Path, ended: int, code: int) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, ["b"], ["m"])
    stub = tmp_path / "bin" / "tracemark"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\nexit {ended}\n")
    stub.chmod(0o755)
    found = expanded(tmp_path)
    for name in ("ingest", "gate-harness@b", "gate-model@m"):
        command = ["/bin/sh", "-c", found[name]["cmd"]]
        assert subprocess.run(command, env={"PATH": str(stub.parent)}, check=False).returncode == code


def test_candidates_that_look_alike_in_a_file_name_have_files_of_their_own(tmp_path: Path) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, [], ["m@1", "m:1", "@", "m@1", "M@1"])
    found = [name for name in expanded(tmp_path) if name.startswith("gate-model")]
    assert len({name.lower() for name in found}) == 4
    assert found[0] == "gate-model@m-1"


def test_without_candidates_there_is_no_gate_and_no_plot(tmp_path: Path) -> None:
    version(tmp_path, "a")
    assert "plots" not in YAML(typ="safe").load(dvcfile.render(tmp_path))
    assert [name for name in stages(tmp_path) if name.startswith("gate")] == []
    empty = tmp_path / "empty"
    empty.mkdir()
    candidates(empty, ["a"], [])
    assert list(stages(empty)) == ["ingest"]


def test_a_plot_draws_what_a_stage_writes(tmp_path: Path) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, ["b"], ["m@2"])
    drawn = YAML(typ="safe").load(dvcfile.render(tmp_path))["plots"]
    names = [name for plot in drawn for name in plot]
    files = [(file, columns) for plot in drawn for entry in plot.values() for file, columns in entry["y"].items()]
    assert {file for file, _ in files} == set(outs(expanded(tmp_path)["gate-plots"]))
    assert names == [
        "pass^k against k: harness",
        "cost against reliability: harness",
        "pass^k against k: model",
        "cost against reliability: model",
        "fixes and breaks",
    ]
    assert [columns for _, columns in files] == [
        *[["accepted", "harness-b"]] * 2,
        *[["accepted", "model-m-2"]] * 2,
        "gate",
    ]


def test_installing_is_no_stage(tmp_path: Path) -> None:
    version(tmp_path, "a")
    candidates(tmp_path, ["b"], ["m@2"])
    assert "--install" not in dvcfile.render(tmp_path)


@pytest.mark.parametrize("file", ["ledger.jsonl", "params.yaml"])
def test_nothing_is_read_twice_by_one_stage(tmp_path: Path, file: str) -> None:
    version(tmp_path, "a")
    (tmp_path / "ledger.jsonl").write_text("")
    (tmp_path / "params.yaml").write_text(f"evaluation: {{tasks: {{file: {file}}}}}\n")
    deps = expanded(tmp_path)["export-sft"]["deps"]
    assert sorted(deps) == sorted(set(deps))


def test_a_file_of_evaluation_tasks_that_is_not_there_is_no_dependency_but_an_error(tmp_path: Path) -> None:
    version(tmp_path, "a")
    (tmp_path / "params.yaml").write_text("evaluation: {tasks: {file: eval.txt}}\n")
    with pytest.raises(ParamsError, match=r"eval\.txt"):
        dvcfile.render(tmp_path)


def test_no_stage_writes_what_people_write() -> None:
    written = [out for stage in expanded(ROOT).values() for out in outs(stage)]
    assert not [
        out
        for out in written
        if out.partition("/")[0] in ("ledger.jsonl", "params.yaml", "dvc.yaml", "harness_versions")
    ]


def test_folders_that_a_version_imports_from_are_read_by_every_stage_that_reads_harnesses(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "__init__.py").write_text("")
    version(tmp_path, "a", "roots: [../../lib]\n")
    version(tmp_path, "b", "packages: [../../agent]\n")
    candidates(tmp_path, ["b"], ["m@2"])
    for name, stage in expanded(tmp_path).items():
        if name == "gate-plots":
            continue
        assert {"lib", "agent"} <= set(stage["deps"]), name


def test_a_folder_outside_the_corpus_cannot_be_a_dependency(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    version(tmp_path / "corpus", "a", "roots: [../../../lib]\n")
    assert expanded(tmp_path / "corpus")["harness@a"]["deps"] == ["harness_versions/a"]


def test_a_version_that_cannot_be_read_is_a_stage_whose_report_says_so(tmp_path: Path) -> None:
    version(tmp_path, "a", "nonsense: 1\n")
    assert "harness@a" in expanded(tmp_path)
