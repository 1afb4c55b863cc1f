"""A manifest that is written reads back as the same manifest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.harness.manifest import read
from tracemark.harness.manifest_text import write
from tracemark.model.harness import Manifest

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "true",
        "No",
        "null",
        "1e5",
        "2026-01-01",
        "a: b",
        "- a",
        "#",
        "a #b",
        "'",
        '"',
        "\\",
        "x\u2028y",
        "\ufeff",
        "~",
        "=",
        "<<",
    ]
)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.from_regex(r"[^\x00-\x20\x7f](?:[^\x00-\x1f\x7f]{0,8}[^\x00-\x20\x7f])?", fullmatch=True).filter(
    lambda name: not any(0xD800 <= ord(letter) < 0xE000 for letter in name)
)


@given(
    st.dictionaries(NAMES, st.dictionaries(TEXTS, VALUES, max_size=3), max_size=3), st.lists(TEXTS, max_size=3), TEXTS
)
def test_what_is_written_reads_back(tools, texts, variable):
    value = {
        "format": "tracemark/harness/1",
        "description": variable,
        "prompt_templates": [{"name": f"p{n}", "text": text, "role": "user"} for n, text in enumerate(texts)],
        "tool_bindings": {
            n: {"schema": {"name": n}, "parameters": given, "mutates": True} for n, given in tools.items()
        },
        "runtime": {"limits": {"stop_strings": texts}, "environment": {"A": variable}, "parser": "a.b:c"},
    }
    manifest = Manifest.model_validate(value)
    again = read(write(manifest)).manifest
    assert again is not None
    # an integer and a float, a truth value and a number stay apart
    assert digest.canonical(again.model_dump(mode="json")) == digest.canonical(manifest.model_dump(mode="json"))


def test_words_stand_as_words_and_defaults_are_left_out():
    manifest = Manifest.model_validate(
        {
            "format": "tracemark/harness/1",
            "name": "desk-2",
            "prompt_templates": [{"name": "system", "file": "prompts/system.txt", "syntax": "jinja", "role": "system"}],
            "tool_bindings": {"look": {"schema": "tools/look.json", "entry": "desk.tools:look"}},
            "runtime": {"limits": {"stop_strings": ["END OF", "yes"]}, "packages": {"numpy": "2.1"}},
        }
    )
    assert write(manifest).decode() == (
        "format: tracemark/harness/1\nname: desk-2\nprompt_templates:\n  - name: system\n"
        "    file: prompts/system.txt\n    syntax: jinja\n    options: {}\ntool_bindings:\n  look:\n"
        "    schema: tools/look.json\n    entry: desk.tools:look\nruntime:\n  limits:\n    stop_strings:\n"
        '      - "END OF"\n      - "yes"\n  packages:\n    numpy: "2.1"\n'
    )
