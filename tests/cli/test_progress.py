from __future__ import annotations

import io
import logging
import signal
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tracemark.cli import progress
from tracemark.cli.main import run
from tracemark.errors import NegativeAnswerError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_shows_a_sign_of_life_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_FIRST", 0.01)
    before = signal.getsignal(signal.SIGALRM)
    with progress.working("ingest"):
        while "ingest" not in stream.getvalue():
            signal.sigtimedwait([], 0.01)
    assert stream.getvalue().endswith("\r\x1b[K")
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_is_logged_meanwhile_gets_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.working("ingest"):
        logging.getLogger("tracemark").warning("waiting for a lock")
    logging.getLogger("tracemark").warning("afterwards")
    assert stream.getvalue() == "\r\x1b[Kwaiting for a lock\n"


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.working("ingest"):
        pass
    assert stream.getvalue() == ""


def test_without_a_terminal_no_timer_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.working("ingest"):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert sys.stderr.getvalue() == ""


def test_the_timer_ends_with_the_work_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ValueError, match="no"), progress.working("ingest"):
        raise ValueError("no")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("audit.audit", "audit shop"),
        ("accepted_pair.accept_model", "model accept m --reason better"),
        ("accepted_pair.rollback", "gate rollback --to previous --reason worse"),
        ("evaluation_freeze.freeze", "gate freeze --reason new"),
        ("failure_export.export", "failures export --out out"),
        ("failure_log.list_", "failures list"),
        ("failure_log.show", "failures show aaaaaa"),
        ("gate_log.gate_log", "gate log"),
        ("gating.gate_attribute", "gate attribute --harness shop --model m"),
        ("gating.gate_harness", "gate harness --candidate shop"),
        ("gating.gate_model", "gate model --candidate m"),
        ("installing.install_model", "gate model --candidate m --install --reason better"),
        ("interchange.atif", "export atif --out out"),
        ("matching.match", "harness match aaaaaa"),
        ("planning.plan", "plan --out plan.jsonl"),
        ("decisions.accept", "harness accept shop --reason better"),
        ("decisions.reinstate", "reinstate aaaaaa --reason wrong"),
        ("decisions.retract", "retract aaaaaa --reason wrong"),
        ("decisions.stamp", "stamp aaaaaa --harness shop --reason seen"),
        ("export.sft", "export sft --out out"),
        ("harness_freeze.freeze", "harness freeze shop --as other"),
        ("harnesses.check", "harness check"),
        ("harnesses.diff", "harness diff one two"),
        ("harnesses.list_", "harness list"),
        ("harnesses.show", "harness show shop"),
        ("health.check", "check"),
        ("health.reindex", "reindex"),
        ("ingest.ingest", "ingest inbox"),
        ("scaffold.init", "init"),
        ("traces.find", "traces find lamp"),
        ("traces.list_", "traces list"),
        ("traces.listing", "traces list --output jsonl"),
        ("traces.raw", "traces show aaaaaa --raw"),
        ("traces.show", "traces show aaaaaa"),
    ],
)
def test_whatever_may_take_long_shows_a_sign_of_life(
    act: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    timers = []

    def work(*_: object, **__: object) -> None:
        timers.append(signal.getitimer(signal.ITIMER_REAL)[0])
        raise NegativeAnswerError("enough is seen")

    module, name = act.split(".")
    monkeypatch.setattr(import_module(f"tracemark.acts.{module}"), name, work)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run(["--root", str(tmp_path), *words.split()]) == 1
    assert len(timers) == 1
    assert timers[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
