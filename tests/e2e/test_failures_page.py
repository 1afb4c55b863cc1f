"""The page on failures says where the real trace files go now, and how often a reader agrees; and it would show."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "failures.py"
PAGE = ROOT / "docs" / "reference" / "failures.md"

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def failures() -> Iterator[ModuleType]:
    """The script as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield importlib.import_module("failures")


@pytest.fixture(scope="module")
def found(failures: ModuleType) -> Any:
    return failures.collect()


def agreement(text: str) -> tuple[int, int]:
    [(agreed, read)] = re.findall(r"agrees with (\d+) of (\d+) routings", text)
    return int(agreed), int(read)


def test_the_page_is_current_and_most_routings_are_as_a_reader_has_them() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = PAGE.read_text(encoding="utf-8")
    agreed, read = agreement(text)
    assert read >= 40
    assert agreed >= 0.85 * read
    [(others, as_read)] = re.findall(
        r"Of (\d+)\straces that none holds for,.*?reader agrees with (\d+)\.", text, re.DOTALL
    )
    assert len(re.findall(r"\| no \|$", text, re.MULTILINE)) == read - agreed + int(others) - int(as_read)


def test_without_its_exit_code_most_failed_calls_are_seen_and_few_others() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    [numbers] = re.findall(r"Of (\d+) calls with a code (\d+) failed .*? sees (\d+) of these, and takes (\d+) of", text)
    calls, failed, seen, false = map(int, numbers)
    assert calls > 500
    assert seen >= 0.95 * failed
    assert false <= 0.01 * calls


def test_the_traces_of_the_page_are_all_of_the_collection(failures: ModuleType, found: Any) -> None:
    text = failures.page(found, failures.readings())
    numbers = [int(cell) for cell in re.findall(r"^\| `[\w-]+` \|(?:[^|]+\|){2} (\d+) \|", text, re.MULTILINE)]
    assert sum(numbers) == int(re.findall(r"^(\d+) traces were routed", text, re.MULTILINE)[0]) > 500


def test_the_readings_are_spread_over_formats_and_conditions(failures: ModuleType, found: Any) -> None:
    read = [found[one.file, one.number] for one in failures.readings()]
    assert {trace.format for trace in read} == {trace.format for trace in found.values()}
    assert {trace.routing.condition for trace in read} == {trace.routing.condition for trace in found.values()}
    assert len({(one.file, one.number) for one in failures.readings()}) == len(read)


def test_a_reader_who_says_otherwise_is_counted(failures: ModuleType, found: Any) -> None:
    known = failures.readings()
    agreed, read = agreement(failures.page(found, known))
    for other in (known[0]._replace(condition="stopped-early"), known[0]._replace(step=1)):
        assert agreement(failures.page(found, [other, *known[1:]])) == (agreed - 1, read)


def test_a_reading_that_speaks_of_nothing_ends_the_script(
    failures: ModuleType, found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="no such trace"):
        failures.page(found, [failures.readings()[0]._replace(number=99)])
    odd = tmp_path / "read.toml"
    odd.write_text('[[read]]\nfile = "a"\nnumber = 0\ncondition = "tired"\nwhy = "it was late"\n')
    monkeypatch.setattr(failures, "READ", odd)
    with pytest.raises(SystemExit, match="no such condition"):
        failures.readings()
