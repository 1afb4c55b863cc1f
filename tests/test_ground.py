"""Errors, the clock, findings and registries."""

from __future__ import annotations

import pickle
import re
import traceback
from dataclasses import dataclass

import pytest

from tracemark import errors
from tracemark.clock import FixedClock, SystemClock
from tracemark.errors import TracemarkError, UnknownNameError, UsageError
from tracemark.findings import CODES, Finding, Report, Severity, finding
from tracemark.registry import Registry


def every_error() -> list[type[TracemarkError]]:
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, TracemarkError)]


class TestErrors:
    def test_an_error_is_also_data(self):
        error = errors.NotPulledError("3 segments are missing", where="dvc.lock", hint="dvc pull")
        assert error.as_json() == {
            "error": "NotPulledError",
            "exit_code": 10,
            "message": "3 segments are missing",
            "where": "dvc.lock",
            "hint": "dvc pull",
        }

    def test_what_is_unknown_is_left_out(self):
        assert errors.LockedError("held").as_json().keys() == {"error", "exit_code", "message"}

    def test_a_traceback_says_where_and_what_next(self):
        error = UnknownNameError("no prompt 'sytem'", where="harness_versions/shop", hint="known: system")
        for one in (error, pickle.loads(pickle.dumps(error))):
            *_, said, where, hint = "".join(traceback.format_exception(one)).splitlines()
            assert said.endswith("UnknownNameError: no prompt 'sytem'")
            assert (where, hint) == ("at: harness_versions/shop", "hint: known: system")
        assert not hasattr(errors.LockedError("held"), "__notes__")

    def test_the_tree_in_the_docstring_is_the_tree(self):
        drawn = dict(re.findall(r"(\w+Error)\s+(\d+)  ", errors.__doc__ or ""))
        assert {name: int(code) for name, code in drawn.items()} == {c.__name__: c.exit_code for c in every_error()}

    def test_every_exit_code_has_one_meaning(self):
        meanings: dict[int, set[str]] = {}
        for error in every_error():
            meanings.setdefault(error.exit_code, set()).add(error.meaning)
        assert all(len(texts) == 1 for texts in meanings.values())


class TestClock:
    def test_a_fixed_clock_tells_the_same_each_time(self):
        assert [FixedClock().now(), FixedClock().now()] == ["2026-01-01T00:00:00Z"] * 2

    def test_a_fixed_clock_advances_by_its_step(self):
        clock = FixedClock("2026-03-01T23:59:30Z", step_seconds=45)
        assert [clock.now(), clock.now()] == ["2026-03-01T23:59:30Z", "2026-03-02T00:00:15Z"]

    def test_the_systems_clock_has_the_same_form(self):
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", SystemClock().now())


class TestFindings:
    def test_the_severity_and_the_hint_come_from_the_table(self):
        made = finding("journal-open", "inbox/a.jsonl", "still being written")
        assert made == Finding(
            "journal-open", Severity.WARNING, "inbox/a.jsonl", "still being written", CODES["journal-open"].hint
        )

    def test_an_unknown_code_is_a_mistake_of_ours(self):
        with pytest.raises(KeyError):
            finding("no-such-code", "x", "y")

    def test_every_code_says_what_it_means(self):
        assert all(code.meaning.endswith(".") for code in CODES.values())
        assert all(re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", name) for name in CODES)

    def test_only_errors_turn_an_answer_into_no(self):
        @dataclass(frozen=True)
        class Checked(Report):
            traces: int

        fine = Checked((finding("journal-open", "a", "b"),), 3)
        assert fine.exit_code == 0
        assert fine.as_json()["traces"] == 3
        assert list(fine.as_json()) == ["traces", "findings"]
        assert Checked((finding("stamp-contradicted", "a", "b"),), 3).exit_code == 1


class TestRegistry:
    def test_a_name_is_loaded_when_asked_for(self):
        assert Registry("tracemark.none", {"clock": "tracemark.clock:FixedClock"}, "thing").load("clock") is FixedClock

    def test_an_unknown_name_lists_the_known_ones(self):
        with pytest.raises(UnknownNameError) as caught:
            Registry("tracemark.none", {"a": "x:y", "b": "x:z"}, "thing").load("c")
        assert (caught.value.message, caught.value.hint) == ("unknown thing 'c'", "one of: a, b")

    def test_what_cannot_be_imported_is_said_so(self):
        with pytest.raises(UsageError, match="cannot be loaded"):
            Registry("tracemark.none", {"a": "tracemark.nowhere:x"}, "thing").load("a")

    def test_whatever_its_module_raises_is_no_bug_of_ours(self, tmp_path, monkeypatch):
        (tmp_path / "broken_importer.py").write_text("def x(:\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(UsageError) as caught:
            Registry("tracemark.none", {"a": "broken_importer:IMPORTER"}, "format").load("a")
        assert caught.value.message.startswith("format 'a' cannot be loaded: SyntaxError")
        assert caught.value.where == "broken_importer:IMPORTER"
        assert "uninstall the package" in caught.value.hint

    def test_entry_points_add_names_and_replace_none(self):
        registry = Registry("console_scripts", {"tracemark": "tracemark.clock:FixedClock"}, "thing")
        assert registry.names()[0] == "tracemark"
        assert "pytest" in registry.names()
        assert registry.load("tracemark") is FixedClock
