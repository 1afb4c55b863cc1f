"""A command whose lock another process holds waits for it, says so, and ends: it never hangs without a word."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracemark import durable

from .conftest import Tracemark
from .test_ingest_same_label import PROMPTS, document

HOLDER = """
import sys
from pathlib import Path
from tracemark import durable
with durable.lock(Path(sys.argv[1])):
    print(1, flush=True)
    input()
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Have another process hold a lock for the time of a `with` block."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield
        child.kill()


@pytest.fixture
def corpus(tracemark: Tracemark) -> Tracemark:
    """A corpus with one trace of one harness version."""
    folder = tracemark.root / "harness_versions" / "short"
    folder.mkdir(parents=True)
    (folder / "prompt.txt").write_text(PROMPTS["short"])
    (folder / "harness.yaml").write_text(
        "format: tracemark/harness/1\nname: short\nprompt_templates:\n"
        "  - {name: main, file: prompt.txt, syntax: literal, role: user, position: first}\n"
    )
    fill(tracemark, "first")
    assert tracemark.ingest().code == 0
    assert tracemark.run("init", tracemark.root).code == 0
    return tracemark


def fill(corpus: Tracemark, task: str) -> None:
    """Put one more run into the inbox."""
    (corpus.inbox / f"{task}.json").write_text(json.dumps(document(PROMPTS["short"], task)))


def ingest_more(corpus: Tracemark) -> list[str]:
    fill(corpus, "second")
    return ["ingest", str(corpus.inbox)]


def accept(_: Tracemark) -> list[str]:
    return ["harness", "accept", "short", "--reason", "better"]


def retract(corpus: Tracemark) -> list[str]:
    return ["retract", corpus.traces()[0]["trace_id"], "--reason", "a customer asked for it"]


def list_without_a_catalogue(corpus: Tracemark) -> list[str]:
    (corpus.root / ".tracemark" / "catalogue.db").unlink()
    return ["traces", "list"]


def reindex(_: Tracemark) -> list[str]:
    return ["reindex"]


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("tmp.lock", ingest_more),
        ("ledger.lock", accept),
        ("decisions.lock", retract),
        ("locks/catalogue", list_without_a_catalogue),
        ("locks/catch-up", reindex),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_waits_says_so_and_ends_with_11(
    corpus: Tracemark, monkeypatch: pytest.MonkeyPatch, lock: str, command: Callable[[Tracemark], list[str]]
) -> None:
    monkeypatch.setenv(durable.LOCK_WAIT, "1.5")
    words = command(corpus)
    name = f".tracemark/{lock}"
    with held(corpus.root / ".tracemark" / lock):
        done = corpus.run(*words, "--output", "json")
    assert (done.code, done.data["error"], done.data["where"]) == (11, "LockedError", name)
    assert done.data["hint"].startswith("wait until it has ended, then run the command again")
    assert done.words.count(f"waiting for {name}, which another process holds") == 1
    assert corpus.run(*words).code == 0


def test_an_ingest_takes_turns_with_one_that_is_still_at_work(
    corpus: Tracemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(durable.LOCK_WAIT, "1.5")
    words = ingest_more(corpus)
    # what an ingest holds from its beginning to its end
    with durable.temporary_folder(corpus.root / ".tracemark" / "tmp"):
        done = corpus.run(*words)
    assert (done.code, done.words) == (0, "")
