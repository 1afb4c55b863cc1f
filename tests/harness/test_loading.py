"""Loading a harness."""

import dataclasses
import os
import pickle
import re

import pytest

from tracemark.errors import ManifestError
from tracemark.harness import snapshot
from tracemark.harness.loading import examine, load
from tracemark.model.harness import COMPONENTS


def test_a_harness_holds_its_manifest_its_files_and_its_digests(desk):
    harness = desk.load()
    assert harness.name == "desk"
    assert harness.folder == desk.path
    assert re.fullmatch("tm1:[0-9a-f]{64}", harness.fingerprint)
    assert list(harness.identity.components) == list(COMPONENTS)
    assert {component: list(parts) for component, parts in harness.identity.parts.items()} == {
        "prompt_templates": ["system", "style"],
        "tool_bindings": ["look_up", "refund"],
        "observation_handlers": ["cut", "redact"],
        "runtime": ["parser", "limits", "environment", "packages"],
    }
    assert {key: (desk.path / key).read_bytes() for key in harness.files} == harness.files
    assert "harness.yaml" not in harness.files
    assert harness.modules["logic.base"] == "logic/base.py"
    assert harness.findings == ()
    assert harness.incomplete == {}


def test_a_harness_is_frozen_and_travels_between_processes(desk):
    harness = desk.load()
    with pytest.raises(dataclasses.FrozenInstanceError):
        harness.name = "x"
    assert pickle.loads(pickle.dumps(harness)) == harness


def test_texts_are_those_that_were_hashed(desk):
    desk.write("prompts/system.md", "You serve {shop} on {day}.\r\n")
    harness = desk.load()
    assert harness.prompt_text("system") == "You serve {shop} on {day}.\n"
    assert harness.prompt_text("style") == "Be brief."
    assert harness.tool_schema("refund") == {"name": "refund", "parameters": {"type": "object", "properties": {}}}
    for ask in (harness.prompt_text, harness.tool_schema, harness.text):
        with pytest.raises(KeyError):
            ask("nothing")


def test_an_edit_after_load_changes_nothing_that_was_loaded(desk):
    harness = desk.load()
    before = (harness.identity, dict(harness.files), snapshot.to_bytes(harness))
    desk.write("logic/base.py", "LIMIT = 1\n\n\nclass Base:\n    mark = ''\n")
    desk.write("prompts/system.md", "Other.")
    assert (harness.identity, dict(harness.files), snapshot.to_bytes(harness)) == before
    assert desk.fingerprint() != harness.fingerprint


def test_without_a_name_the_folder_names_the_harness(desk):
    desk.replace("harness.yaml", "name: desk\n", "")
    assert desk.load().name == "desk"
    link = desk.path.parent / "current"
    link.symlink_to(desk.path)
    assert load(link).name == "desk"
    assert load(link).identity == desk.load().identity


def test_a_folder_without_a_manifest_is_an_error_with_the_next_step(tmp_path):
    with pytest.raises(ManifestError) as caught:
        load(tmp_path / "none")
    assert caught.value.where == f"{tmp_path}/none/harness.yaml"
    assert "harness.yaml" in caught.value.hint


def test_one_error_names_every_problem(desk):
    desk.remove("prompts/system.md")
    desk.replace("harness.yaml", "logic/reply.py:parse", "logic/gone.py:parse")
    desk.write("tools/refund.json", "{")
    with pytest.raises(ManifestError) as caught:
        desk.load()
    assert caught.value.exit_code == 2
    assert caught.value.where == f"{desk.path}/harness.yaml:5:20"
    assert caught.value.message.startswith("3 problems\n")
    for place in (
        "harness.yaml:5:20: 'prompts/system.md'",
        "tools/refund.json: ",
        "harness.yaml:15:3: 'logic/gone.py'",
    ):
        assert place in caught.value.message


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret.md", "manifest-path-outside"),
        ("prompts/../../secret.md", "manifest-path-outside"),
        ("/etc/hostname", "manifest-path-outside"),
        ("~/secret.md", "manifest-path-outside"),
        ("..\\secret.md", "manifest-path-outside"),
        ("link.md", "manifest-path-outside"),
        ("loop.md", "manifest-file-missing"),
        ("gone.md", "manifest-file-missing"),
        ("prompts", "manifest-file-missing"),
        (".", "manifest-file-missing"),
        ("pipe", "manifest-file-missing"),
    ],
)
def test_a_path_that_is_no_file_of_the_folder_is_a_problem(desk, path, code):
    desk.write("../secret.md", "secret")
    (desk.path / "link.md").symlink_to("../secret.md")
    (desk.path / "loop.md").symlink_to("loop.md")
    os.mkfifo(desk.path / "pipe")
    desk.replace("harness.yaml", "runtime:\n", "ignore: [link.md, loop.md, pipe]\nruntime:\n")
    desk.replace("harness.yaml", "file: prompts/system.md", f"file: {path}")
    found = desk.problems()
    if path in ("link.md", "loop.md", "pipe"):
        assert [problem.code for problem in found] == ["ignored-file-used"]
        desk.replace("harness.yaml", "ignore: [link.md, loop.md, pipe]\n", "")
        found = [problem for problem in desk.problems() if problem.where.startswith("harness.yaml")]
    assert [(problem.code, problem.where) for problem in found] == [(code, "harness.yaml:5:20")]


def test_a_link_within_the_folder_is_a_file_like_any_other(desk):
    before = desk.fingerprint()
    (desk.path / "prompts/system.md").rename(desk.path / "prompts/base.md")
    (desk.path / "prompts/system.md").symlink_to("base.md")
    desk.replace("harness.yaml", "runtime:\n", "ignore: [base.md]\nruntime:\n")
    assert desk.fingerprint() == before


def test_an_unassigned_link_out_of_the_folder_is_a_problem(desk):
    desk.write("../secret.md", "secret")
    (desk.path / "notes.md").symlink_to("../secret.md")
    (desk.path / "more").symlink_to("..")
    assert [(found.code, found.where) for found in desk.problems()] == [
        ("folder-linked", "more"),
        ("manifest-path-outside", "notes.md"),
    ]


@pytest.mark.parametrize("member", ["roots", "packages"])
@pytest.mark.parametrize(
    ("path", "code"), [("/usr/lib", "manifest-path-outside"), ("../gone", "manifest-file-missing")]
)
def test_a_root_or_package_is_a_folder_given_relatively(desk, member, path, code):
    desk.write("harness.yaml", (desk.path / "harness.yaml").read_text() + f"{member}: [{path}]\n")
    assert [(found.code, found.where.split(":")[0]) for found in desk.problems()] == [(code, "harness.yaml")]


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "[]",
        '{"name": "other"}',
        '{"name": "refund", "name": "refund"}',
        '{"type": "web_search"}',
        "\xff",
        '{"name": 1}',
    ],
)
def test_a_schema_that_is_no_definition_of_its_tool_is_a_problem(desk, schema):
    desk.write("tools/refund.json", schema.encode("latin-1"))
    assert [(found.code, found.where) for found in desk.problems()] == [("schema-invalid", "tools/refund.json")]


def test_incomplete_names_the_parts_whose_closure_is_not_certain(desk):
    desk.replace("logic/helper.py", "return id", "return open(id)")
    desk.replace("logic/reply.py", "json.loads(text)", "eval(text)")
    harness = desk.load()
    assert harness.incomplete == {"tool_bindings": ("look_up", "refund"), "runtime": ("parser",)}
    assert [found.where for found in harness.findings] == ["logic/helper.py:1", "logic/reply.py:5"]
    assert {found.code for found in harness.findings} == {"closure-incomplete"}


def test_examine_reports_in_place_of_raising(desk):
    assert examine(desk.path).harness == desk.load()
    desk.remove("logic/reply.py")
    examined = examine(desk.path)
    assert examined.harness is None
    assert [found.code for found in examined.problems] == ["manifest-file-missing"]


def test_a_small_harness_loads_and_leaves_heavy_libraries_alone(desk):
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from tracemark.harness.loading import load; load(Path(sys.argv[1]));"
        "print([name for name in ('jinja2', 'jsonschema_rs', 'rich', 'sqlite_utils', 'dvc') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, desk.path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
