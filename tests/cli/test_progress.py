from __future__ import annotations

import io
import signal
import sys

import pytest

from tracemark.cli import progress


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
