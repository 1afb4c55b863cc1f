"""What counts as the same program: syntax trees of modules, and every other text as it stands."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness import snapshot
from tracemark.harness.equivalence import Compared, compare, program
from tracemark.harness.fingerprint import Sources, identify
from tracemark.harness.version import Harness
from tracemark.model.harness import Manifest

TOOLS = 'from helpers import tidy\n\n\ndef look(order):\n    """Look an order up."""\n    return tidy(order)\n'
HELPERS = "LIMIT = 3\n\n\ndef tidy(text):\n    return text[:LIMIT]\n"
MANIFEST = {
    "format": "tracemark/harness/1",
    "name": "desk",
    "prompt_templates": [{"name": "system", "file": "system.txt"}],
    "tool_bindings": {"look": {"schema": "look.json", "entry": "tools.py:look"}},
    "observation_handlers": [
        {"name": "cut", "entry": "helpers.py:tidy"},
        {"name": "mask", "entry": "tools.py:look"},
    ],
    "runtime": {"limits": {"steps": 9}},
}
FILES = {
    "system.txt": b"# not a comment\nHelp.\n",
    "look.json": b'{"name": "look", "description": "Look.", "parameters": {"type": "object"}}',
    "tools.py": TOOLS.encode(),
    "helpers.py": HELPERS.encode(),
    "spare.py": b"x = 1\n",
}


def harness(changed: Mapping[str, bytes] = {}, **described: object) -> Harness:
    manifest = Manifest.model_validate({**MANIFEST, **described})
    files = {**FILES, **changed}
    closures = {
        "tools.py:look": {"tools": "tools.py", "helpers": "helpers.py"},
        "helpers.py:tidy": {"helpers": "helpers.py"},
    }
    sources = Sources(files, closures, {}, ("spare.py",))
    identity = identify(manifest, sources)
    return Harness("desk", None, manifest, files, closures, {}, ("spare.py",), identity)


def compared(path: str, old: str, new: str) -> Compared:
    text = FILES[path].decode()
    assert old in text
    return compare(harness(), harness({path: text.replace(old, new).encode()}))


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tools.py", "def look", "# looks an order up\ndef look"),
        ("tools.py", "    return tidy(order)", "    # shortened\n    return tidy(\n        order,\n    )"),
        ("helpers.py", "LIMIT = 3", "\n\nLIMIT  =  (3)"),
        ("helpers.py", "LIMIT = 3", "LIMIT = 0x3  # three"),
        ("helpers.py", "\n", "\r"),
    ],
)
def test_comments_and_layout_of_a_module_are_no_difference(path: str, old: str, new: str) -> None:
    found = compared(path, old, new)
    assert found.equal
    assert found.alike == (path,)
    assert harness().fingerprint != harness({path: FILES[path].decode().replace(old, new).encode()}).fingerprint


@pytest.mark.parametrize(
    ("path", "old", "new", "parts"),
    [
        ("helpers.py", "LIMIT = 3", "LIMIT = 4", {"look", "cut", "mask"}),
        ("helpers.py", "LIMIT = 3", "LIMIT = 3.0", {"look", "cut", "mask"}),
        ("helpers.py", "LIMIT = 3", "LIMIT = True", {"look", "cut", "mask"}),
        ("tools.py", "Look an order up.", "Look up an order.", {"look", "mask"}),
        ("tools.py", '    """Look', '    """  Look', {"look", "mask"}),
        ("tools.py", "return tidy(order)", "return tidy(order", {"look", "mask"}),
        ("system.txt", "# not a comment\n", "", {"system"}),
        ("look.json", "Look.", "Look it up.", {"look"}),
        ("spare.py", "x = 1", "x = 1  # one", {"unassigned"}),
    ],
)
def test_everything_else_is_a_difference_and_is_named(path: str, old: str, new: str, parts: set[str]) -> None:
    found = compared(path, old, new)
    assert not found.equal
    assert {one.part for one in found.differences} == parts
    assert found.alike == ()


def test_of_a_part_that_differs_only_the_texts_are_shown_that_do() -> None:
    changed = {"tools.py": TOOLS.replace("Look an", "Find an").encode(), "helpers.py": b"# cut\n" + HELPERS.encode()}
    found = compare(harness(), harness(changed))
    assert {one.part for one in found.differences} == {"look", "mask"}
    assert {text.path for one in found.differences for text in one.texts} == {"tools.py"}
    assert found.alike == ("helpers.py",)


def test_a_limit_a_parameter_and_the_order_of_handlers_count() -> None:
    limits = compare(harness(), harness(runtime={"limits": {"steps": 10}}))
    assert [(one.component, one.part) for one in limits.differences] == [("runtime", "limits")]
    turned = compare(harness(), harness(observation_handlers=MANIFEST["observation_handlers"][::-1]))  # type: ignore[index]
    assert [(one.component, one.kind) for one in turned.differences] == [("observation_handlers", "reordered")]


def test_a_label_is_no_difference_and_equal_harnesses_have_nothing_alike() -> None:
    assert compare(harness(), harness(name="other")) == Compared((), ())


def test_a_module_that_is_a_prompt_as_well_counts_for_its_text() -> None:
    prompts = [{"name": "system", "file": "helpers.py"}]
    changed = {"helpers.py": b"# cut\n" + HELPERS.encode()}
    found = compare(harness(prompt_templates=prompts), harness(changed, prompt_templates=prompts))
    assert {one.part for one in found.differences} == {"system", "look", "cut", "mask"}


def test_a_declared_encoding_counts_for_what_it_does_to_a_text() -> None:
    one = {"helpers.py": HELPERS.encode() + 'NAME = "é"\n'.encode()}
    other = {"helpers.py": b"# -*- coding: latin-1 -*-\n" + one["helpers.py"]}
    assert not compare(harness(one), harness(other)).equal


def test_code_of_which_no_tree_can_be_written_counts_for_its_text() -> None:
    deep, long = b"x = " + b"-" * 5000 + b"1\n", b"x = 0x" + b"f" * 5000 + b"\n"
    for raw in (b"def (", deep, long, b"x = '\xff'\n", b"x = 1\0"):
        same = compare(harness({"helpers.py": raw}), harness({"helpers.py": raw}))
        assert same.equal
        assert not compare(harness({"helpers.py": raw}), harness({"helpers.py": raw + b"# more"})).equal


def test_a_snapshot_compares_as_what_it_was_made_of() -> None:
    changed = harness({"tools.py": b"# looks\n" + TOOLS.encode()})
    assert compare(snapshot.read(snapshot.write(harness())), changed).equal


lines = st.lists(
    st.sampled_from(["# a", "", "x = 1", "x = 2", '"""d"""', "def f():", "    return x", "    # b"]), max_size=6
)


@given(lines, lines)
def test_it_is_symmetric_and_holds_of_equal_fingerprints(ours: list[str], theirs: list[str]) -> None:
    one, other = (harness({"helpers.py": "\n".join([*said, HELPERS]).encode()}) for said in (ours, theirs))
    assert compare(one, other).equal == compare(other, one).equal == (program(one) == program(other))
    assert compare(one, other).alike == compare(other, one).alike
    assert compare(one, dataclasses.replace(one, name="again")) == Compared((), ())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])), min_size=1))
def test_any_comment_leaves_the_program_as_it_was(comments: list[str]) -> None:
    said = "".join(f"#{comment}\n" for comment in comments) + "\n"
    if "coding" in said:
        return
    assert compare(harness(), harness({"helpers.py": said.encode() + HELPERS.encode()})).equal
