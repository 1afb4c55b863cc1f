"""Lists in messages have one ending, and say how much is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracemark.words import first_few, numbered

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tracemark"
OWN = re.compile(r"""\(", …" if |\{', …' if |f" and \{len\(\w+(?:\[[^]]*\])?\) - _\w+\} more" if """)
"""How a message would end a list by itself."""


@pytest.mark.parametrize(
    ("count", "most", "said"),
    [
        (0, 2, ""),
        (1, 2, "0"),
        (2, 2, "0, 1"),
        (3, 2, "0, 1 and 1 more"),
        (9, 3, "0, 1, 2 and 6 more"),
        (2, 0, " and 2 more"),
    ],
)
def test_the_first_few_are_named_and_the_others_counted(count: int, most: int, said: str) -> None:
    assert first_few(map(str, range(count)), most) == said
    assert first_few(list(map(str, range(count))), most) == said


def test_one_is_singular() -> None:
    assert [numbered(number, "task") for number in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]


def test_no_module_ends_a_list_by_itself() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if path.name != "words.py" and OWN.search(path.read_text(encoding="utf-8"))
    }
    assert found == set()
