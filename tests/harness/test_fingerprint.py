"""What changes a fingerprint, and what does not."""

import importlib
import json
import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.harness.fingerprint import ALGORITHM, Sources, file_digest, identify, text_digest
from tracemark.model.harness import COMPONENTS, Manifest

EMPTY_LIST = digest.sha256(b"[]")
EMPTY_MAPPING = digest.sha256(b"{}")


def changed(desk, before):
    """Components that differ from `before`."""
    now = desk.load().identity.components
    return [component for component in COMPONENTS if now[component] != before.identity.components[component]]


def test_a_renamed_folder_keeps_the_fingerprint(desk):
    before = desk.fingerprint()
    desk.path = desk.path.rename(desk.path.parent / "renamed")
    assert desk.fingerprint() == before


def test_a_moved_checkout_keeps_the_fingerprint(desk, tmp_path):
    desk.write("../../lib/shared.py", "X = 1\n")
    desk.write("harness.yaml", (desk.path / "harness.yaml").read_text() + "roots: [../../lib]\n")
    desk.write("logic/helper.py", "import shared\n\n\ndef find(id): return shared.X\n")
    before = desk.fingerprint()
    (tmp_path / "elsewhere").mkdir()
    for folder in ("harness_versions", "lib"):
        shutil.move(tmp_path / folder, tmp_path / "elsewhere" / folder)
    desk.path = tmp_path / "elsewhere/harness_versions/desk"
    assert desk.fingerprint() == before


def test_name_and_description_do_not_count(desk):
    before = desk.fingerprint()
    desk.replace("harness.yaml", "name: desk\ndescription: A desk.\n", "")
    assert desk.fingerprint() == before


def test_times_and_modes_of_files_do_not_count(desk):
    before = desk.fingerprint()
    for path in desk.path.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert desk.fingerprint() == before


def test_line_ends_of_every_text_do_not_count(desk):
    before = desk.load().identity
    for path in desk.path.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert desk.load().identity == before


def test_the_order_of_keys_in_the_manifest_does_not_count(desk):
    before = desk.fingerprint()
    desk.replace(
        "harness.yaml", "{name: style, text: Be brief., role: user, ", "{role: user, text: Be brief., name: style, "
    )
    assert desk.fingerprint() == before


def test_the_order_of_tools_does_not_count(desk):
    before = desk.load()
    lines = (desk.path / "harness.yaml").read_text().splitlines(keepends=True)
    first, second = (next(line for line in lines if line.startswith(f"  {tool}:")) for tool in ("look_up", "refund"))
    desk.replace("harness.yaml", first + second, second + first)
    assert desk.load().identity == before.identity


def test_the_order_of_prompts_counts(desk):
    before = desk.load()
    lines = (desk.path / "harness.yaml").read_text().splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if "{name: system," in line)
    desk.write("harness.yaml", "".join([*lines[:at], lines[at + 2], *lines[at : at + 2], *lines[at + 3 :]]))
    assert changed(desk, before) == ["prompt_templates"]


def test_the_order_of_handlers_counts(desk):
    before = desk.load()
    lines = (desk.path / "harness.yaml").read_text().splitlines(keepends=True)
    first, second = (next(line for line in lines if f"{{name: {name}," in line) for name in ("cut", "redact"))
    desk.replace("harness.yaml", first + second, second + first)
    assert changed(desk, before) == ["observation_handlers"]


def test_a_default_written_out_changes_nothing(desk):
    before = desk.fingerprint()
    desk.replace("harness.yaml", "look_up: {schema", "look_up: {mutates: false, parameters: {}, schema")
    desk.replace("harness.yaml", "{name: style,", "{syntax: literal, variables: {}, name: style,")
    desk.replace("harness.yaml", "runtime:\n", "runtime:\n  offered: all\n")
    assert desk.fingerprint() == before


def test_a_prompt_in_a_file_equals_the_same_prompt_in_the_manifest(desk):
    before = desk.fingerprint()
    desk.write("prompts/style.md", "Be brief.")
    desk.replace("harness.yaml", "text: Be brief.", "file: prompts/style.md")
    assert desk.fingerprint() == before


def test_a_moved_prompt_file_keeps_the_fingerprint(desk):
    before = desk.fingerprint()
    (desk.path / "prompts/system.md").rename(desk.path / "system.txt")
    desk.replace("harness.yaml", "file: prompts/system.md", "file: system.txt")
    assert desk.fingerprint() == before


@pytest.mark.parametrize(
    ("file", "old", "new", "components"),
    [
        ("prompts/system.md", "exact", "kind", ["prompt_templates"]),
        ("logic/helper.py", "return id", "return id + 1", ["tool_bindings"]),
        ("logic/base.py", "'…'", "'...'", ["observation_handlers"]),
        ("logic/base.py", "LIMIT = 400", "LIMIT = 500", ["observation_handlers"]),
        ("logic/handlers.py", "return text\n", "return text.strip()\n", ["observation_handlers"]),
        ("logic/reply.py", "json.loads(text)", "text", ["runtime"]),
        ("tools/look_up.json", "Find an order.", "Find orders.", ["tool_bindings"]),
        ("harness.yaml", "mutates: true", "mutates: false", ["tool_bindings"]),
        ("harness.yaml", "limit: 50", "limit: 51", ["tool_bindings"]),
        ("harness.yaml", "limit: 50", "limit: 50.0", ["tool_bindings"]),
        ("harness.yaml", "steps: 30", "steps: 31", ["runtime"]),
        ("harness.yaml", "[END]", "[STOP]", ["runtime"]),
        ("harness.yaml", "day: run", "day: task", ["prompt_templates"]),
        ("harness.yaml", "shop: North", "shop: South", ["prompt_templates"]),
        ("harness.yaml", "DESK_MODE: strict", "DESK_MODE: lax", ["runtime"]),
        ("harness.yaml", "numpy: '2.1'", "numpy: '2.2'", ["runtime"]),
        ("harness.yaml", "role: user", "role: system", ["prompt_templates"]),
        ("harness.yaml", "position: any", "position: first", ["prompt_templates"]),
        ("harness.yaml", "max_characters: 400", "max_characters: 401", ["observation_handlers"]),
        ("harness.yaml", "name: redact", "name: hide", ["observation_handlers"]),
        ("harness.yaml", "runtime:\n", "runtime:\n  offered: subset\n", ["runtime"]),
    ],
    ids=[
        "prompt", "helper", "base class", "constant", "handler", "parser", "schema", "mutates", "parameter",
        "a float is no integer", "limit", "stop string", "variable's kind", "variable's value", "environment",
        "package version", "role", "position", "cap", "a part's name", "offered",
    ],
)  # fmt: skip
def test_a_change_of_substance_changes_its_component_and_no_other(desk, file, old, new, components):
    before = desk.load()
    desk.replace(file, old, new)
    assert changed(desk, before) == components
    assert desk.fingerprint() != before.fingerprint


def test_a_comment_only_edit_changes_the_fingerprint(desk):
    before = desk.load()
    desk.replace("logic/helper.py", "return id", "return id  # as it is")
    assert changed(desk, before) == ["tool_bindings"]


def test_a_comment_in_the_manifest_changes_nothing(desk):
    before = desk.fingerprint()
    desk.replace("harness.yaml", "runtime:\n", "runtime:  # the rest\n")
    assert desk.fingerprint() == before


def test_a_renamed_module_changes_the_fingerprint(desk):
    before = desk.load()
    (desk.path / "logic/helper.py").rename(desk.path / "logic/finder.py")
    desk.replace("logic/tools.py", "from logic import helper", "from logic import finder as helper")
    assert changed(desk, before) == ["tool_bindings"]


def test_a_null_padded_schema_is_the_same_schema(desk):
    before = desk.fingerprint()
    schema = json.loads((desk.path / "tools/look_up.json").read_text())
    schema["strict"] = None
    schema["parameters"]["properties"]["id"]["enum"] = None
    desk.write("tools/look_up.json", json.dumps(schema, indent=2))
    assert desk.fingerprint() == before


def test_a_providers_wrapper_is_no_part_of_a_schema(desk):
    before = desk.fingerprint()
    schema = json.loads((desk.path / "tools/look_up.json").read_text())
    desk.write("tools/look_up.json", json.dumps({"type": "function", "function": schema}))
    assert desk.fingerprint() == before
    schema["input_schema"] = schema.pop("parameters")
    desk.write("tools/look_up.json", json.dumps(schema))
    assert desk.fingerprint() == before


def test_a_schema_in_the_manifest_equals_the_same_schema_in_a_file(desk):
    before = desk.fingerprint()
    desk.replace(
        "harness.yaml", "schema: tools/look_up.json", "schema: " + (desk.path / "tools/look_up.json").read_text()
    )
    desk.remove("tools/look_up.json")
    assert desk.fingerprint() == before


def test_bytecode_of_an_imported_module_does_not_count(desk, monkeypatch):
    before = desk.load()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(desk.path)
    desk.write("logic/__init__.py", "")
    with_init = desk.fingerprint()
    monkeypatch.delitem(sys.modules, "logic", raising=False)
    importlib.invalidate_caches()
    imported = importlib.import_module("logic.helper")
    for name in ("logic", "logic.helper"):
        monkeypatch.delitem(sys.modules, name)
    assert imported.find(7) == 7
    assert list((desk.path / "logic/__pycache__").glob("helper.*.pyc"))
    assert desk.fingerprint() == with_init != before.fingerprint


@pytest.mark.parametrize(
    "name",
    [
        ".DS_Store", "prompts/.DS_Store", "logic/tools.py~", "logic/.tools.py.swp", "#notes#", ".#lock", ".git/HEAD",
        "logic/__pycache__/x.pyc", ".mypy_cache/a/b.json",
    ],
)  # fmt: skip
def test_what_the_algorithm_ignores_does_not_count(desk, name):
    before = desk.load()
    desk.write(name, "noise")
    assert desk.load().identity == before.identity
    assert desk.load().findings == before.findings


def test_a_file_of_no_part_counts_into_runtime_as_unassigned(desk):
    before = desk.load()
    desk.write("notes/todo.md", "Later.")
    after = desk.load()
    assert changed(desk, before) == ["runtime"]
    assert set(after.identity.parts["runtime"]) - set(before.identity.parts["runtime"]) == {"unassigned"}
    assert [found.where for found in after.findings if found.code == "unassigned-file"] == ["notes/todo.md"]
    desk.write("notes/todo.md", "Sooner.")
    assert desk.fingerprint() != after.fingerprint


def test_an_ignored_file_does_not_count(desk):
    before = desk.load()
    desk.replace("harness.yaml", "runtime:\n", "ignore: [notes/, '*.log']\nruntime:\n")
    desk.write("notes/todo.md", "Later.")
    desk.write("logic/run.log", "…")
    assert desk.load().identity == before.identity


def test_an_ignored_file_of_the_closure_is_an_error(desk):
    desk.replace("harness.yaml", "runtime:\n", "ignore: [helper.py]\nruntime:\n")
    assert [(found.code, found.where) for found in desk.problems()] == [("ignored-file-used", "logic/helper.py")]


def test_an_ignored_prompt_is_an_error(desk):
    desk.replace("harness.yaml", "runtime:\n", "ignore: [prompts/]\nruntime:\n")
    assert [found.code for found in desk.problems()] == ["ignored-file-used"]


def test_bytes_that_are_no_text_are_told_from_text(desk):
    desk.write("logo.bin", b"\xff\xfe")
    before = desk.load()
    desk.write("logo.bin", b"\xff\xfd")
    assert changed(desk, before) == ["runtime"]
    assert file_digest(b"\xff\xfe") == "bytes:" + digest.sha256(b"\xff\xfe")
    assert file_digest(b"a\r\nb") == text_digest("a\nb") == digest.sha256(b"a\nb")
    assert file_digest(b"a\rb") == digest.sha256(b"a\rb")


def test_a_component_without_parts_is_vacuous():
    identity = identify(Manifest(format="tracemark/harness/1"), Sources({}))
    assert list(identity.components) == list(COMPONENTS)
    assert list(identity.components.values()) == [EMPTY_LIST, EMPTY_MAPPING, EMPTY_LIST, EMPTY_MAPPING]
    assert identity.parts == {component: {} for component in COMPONENTS}


def test_the_fingerprint_follows_from_the_components_by_hand(desk):
    identity = desk.load().identity
    whole = {"algorithm": ALGORITHM, "components": identity.components}
    assert identity.fingerprint == "tm1:" + digest.sha256(
        json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
    )
    prompts = [[name, value] for name, value in identity.parts["prompt_templates"].items()]
    assert [name for name, _ in prompts] == ["system", "style"]
    assert identity.components["prompt_templates"] == digest.of(prompts)
    assert identity.components["tool_bindings"] == digest.of(identity.parts["tool_bindings"])


def test_an_entry_follows_from_its_files_by_hand(desk):
    harness = desk.load()
    files = {name: digest.sha256((desk.path / name).read_bytes()) for name in ("logic/handlers.py", "logic/base.py")}
    entry = digest.of({"entry": "logic/handlers.py:redact", "files": files})
    assert harness.identity.parts["observation_handlers"]["redact"] == digest.of(
        {"name": "redact", "entry": entry, "parameters": {}}
    )


def test_two_harnesses_that_differ_nowhere_are_one(desk, other):
    assert desk.load().identity == other.load().identity


def test_a_static_include_counts(desk):
    desk.replace("harness.yaml", "text: Be brief.", "text: '{% include \"prompts/rules.j2\" %}', syntax: jinja")
    desk.write("prompts/rules.j2", "{% import 'prompts/macros.j2' as m %}Rule one.")
    desk.write("prompts/macros.j2", "{% macro bold(x) %}*{{ x }}*{% endmacro %}")
    before = desk.load()
    assert before.includes == {("prompt_templates", "style"): ("prompts/macros.j2", "prompts/rules.j2")}
    assert before.unassigned == ()
    desk.replace("prompts/macros.j2", "*{{", "**{{")
    assert changed(desk, before) == ["prompt_templates"]


def test_the_options_of_a_jinja_environment_count(desk):
    desk.replace("harness.yaml", "text: Be brief.", "text: 'Be {{ tone }}.', variables: {tone: run}, syntax: jinja")
    before = desk.load()
    desk.replace("harness.yaml", "syntax: jinja", "syntax: jinja, options: {trim_blocks: false}")
    assert desk.load().identity == before.identity
    desk.replace("harness.yaml", "trim_blocks: false", "trim_blocks: true")
    assert changed(desk, before) == ["prompt_templates"]


def test_a_dynamic_include_is_a_finding(desk):
    desk.replace("harness.yaml", "text: Be brief.", "text: '{% include page %}', syntax: jinja")
    harness = desk.load()
    assert [found.code for found in harness.findings] == ["closure-incomplete"]
    assert harness.incomplete == {"prompt_templates": ("style",)}


def test_a_missing_include_is_an_error_unless_it_may_be_missing(desk):
    desk.replace("harness.yaml", "text: Be brief.", "text: '{% include \"no.j2\" ignore missing %}', syntax: jinja")
    before = desk.load()
    desk.write("no.j2", "Now it is there.")
    assert changed(desk, before) == ["prompt_templates"]
    desk.remove("no.j2")
    desk.replace("harness.yaml", " ignore missing", "")
    assert [found.code for found in desk.problems()] == ["manifest-file-missing"]


def test_a_file_of_the_folder_cannot_pass_for_one_outside(desk):
    desk.write("root:logic/x.py", "")
    assert [(found.code, found.where) for found in desk.problems()] == [("name-reserved", "root:logic/x.py")]


names = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)


@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_a_text_has_one_digest_for_both_line_ends(text):
    unix = text.replace("\r\n", "\n")
    assert text_digest(unix.replace("\n", "\r\n")) == text_digest(unix)


@given(raw=st.binary(max_size=40), more=st.binary(max_size=40))
def test_different_bytes_have_one_digest_only_when_they_differ_in_line_ends(raw, more):
    same = raw.replace(b"\r\n", b"\n") == more.replace(b"\r\n", b"\n")
    assert (file_digest(raw) == file_digest(more)) == (raw == more or (same and file_digest(raw)[0:6] != "bytes:"))


tools = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.fixed_dictionaries({"mutates": st.booleans(), "parameters": st.dictionaries(names, st.integers(), max_size=2)}),
    max_size=4,
)


@given(tools, st.randoms(use_true_random=False))
def test_any_order_of_tools_gives_one_identity(bound: dict, rng: random.Random):
    def identity(order: list[str]):
        bindings = {name: {"schema": {"name": name}, **bound[name]} for name in order}
        return identify(
            Manifest.model_validate({"format": "tracemark/harness/1", "tool_bindings": bindings}), Sources({})
        )

    shuffled = sorted(bound)
    rng.shuffle(shuffled)
    assert identity(shuffled) == identity(sorted(bound))


def test_the_real_harnesses_of_this_repository_do_not_depend_on_where_they_stand(tmp_path):
    root = Path(__file__).resolve().parents[2]
    from tracemark.harness.loading import load

    versions = sorted(path.parent for path in (root / "harness_versions").glob("*/harness.yaml"))
    shutil.copytree(root / "domains", tmp_path / "domains", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root / "harness_versions", tmp_path / "harness_versions")
    assert [load(path).identity for path in versions] == [
        load(tmp_path / "harness_versions" / path.name).identity for path in versions
    ]
