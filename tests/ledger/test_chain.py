"""The ledger file: what is added stays, what is wrong is found, and git may merge it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.clock import FixedClock
from tracemark.durable import lock
from tracemark.errors import IrregularFileError, LedgerChainError, LockedError, NewerFormatError, UsageError
from tracemark.ledger import chain
from tracemark.ledger.entry import Entry
from tracemark.model.decision import Kind

A = "tm1:" + "a" * 64
B = "tm1:" + "b" * 64


def accept(path: Path, fingerprint: str = A, reason: str = "it solves more", seen: chain.Chain | None = None) -> Entry:
    """Accept on the ledger as it stands, or as `seen`."""
    draft = chain.Draft("accept", {"harness": fingerprint}, reason)
    return chain.append(path, chain.read(path) if seen is None else seen, draft, FixedClock())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def codes(path: Path) -> list[str]:
    return [finding.code for finding in chain.verify(path)]


def test_a_missing_file_is_an_empty_ledger(ledger: Path) -> None:
    assert chain.read(ledger) == chain.Chain()
    assert chain.verify(ledger) == ()


def test_an_empty_file_is_an_empty_ledger(ledger: Path) -> None:
    ledger.touch()
    assert chain.read(ledger) == chain.Chain()


def test_what_is_appended_is_read_back(ledger: Path) -> None:
    entry = accept(ledger)
    assert chain.read(ledger) == chain.Chain((entry,), (entry.digest,))
    assert entry.decision.parents == []
    assert entry.decision.time == "2026-01-01T00:00:00Z"


def test_each_entry_names_the_one_before_as_its_parent(ledger: Path) -> None:
    first, second, third = accept(ledger), accept(ledger, B), accept(ledger)
    assert second.decision.parents == [first.digest]
    assert third.decision.parents == [second.digest]
    assert chain.read(ledger).heads == (third.digest,)


def stamps(count: int) -> list[chain.Draft]:
    subjects = [{"trace": f"{number:064x}", "fingerprint": None} for number in range(count)]
    return [chain.Draft("stamp", subject, "why") for subject in subjects]


def test_entries_that_are_added_together_are_what_one_after_the_other_is(ledger: Path, tmp_path: Path) -> None:
    accept(ledger)
    single = tmp_path / "single.jsonl"
    single.write_bytes(ledger.read_bytes())
    assert chain.append_all(ledger, chain.read(ledger), [], FixedClock()) == []
    added = chain.append_all(ledger, chain.read(ledger), stamps(3), FixedClock())
    assert added == [chain.append(single, chain.read(single), draft, FixedClock()) for draft in stamps(3)]
    assert ledger.read_bytes() == single.read_bytes()
    assert chain.read(ledger).heads == (added[-1].digest,)


def test_of_entries_that_are_added_together_none_is_when_one_is_none(ledger: Path) -> None:
    accept(ledger)
    before = ledger.read_bytes()
    for wrong in (chain.Draft("stamp", {"trace": "no id"}, "why"), replace(stamps(1)[0], reason=" ")):
        with pytest.raises(UsageError):
            chain.append_all(ledger, chain.read(ledger), [*stamps(2), wrong], FixedClock())
    assert ledger.read_bytes() == before


def test_a_line_of_a_ledger_is_validated_once(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain.append_all(ledger, chain.read(ledger), stamps(50), FixedClock())
    seen = chain.read(ledger)
    decoded: list[bytes] = []
    decode = chain.decode
    monkeypatch.setattr(chain, "decode", lambda line: decoded.append(line) or decode(line))
    chain.append_all(ledger, seen, stamps(20), FixedClock())
    accept(ledger)
    assert len(decoded) == 20
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([lines[0].replace(b"why", b"how"), *lines[1:]]))
    assert "ledger-line-edited" in codes(ledger)


def test_an_append_adds_one_line_and_changes_none(ledger: Path) -> None:
    accept(ledger)
    before = ledger.read_bytes()
    accept(ledger, B)
    after = ledger.read_bytes()
    assert after.startswith(before)
    assert after[len(before) :].count(b"\n") == 1
    assert after.endswith(b"\n")


def test_a_lines_digest_is_that_of_its_other_members(ledger: Path) -> None:
    entry = accept(ledger)
    members = digest.load_canonical(ledger.read_bytes())
    assert members.pop("digest") == entry.digest == digest.of(members)


def test_evidence_is_kept_and_left_out_when_there_is_none(ledger: Path) -> None:
    accept(ledger)
    draft = chain.Draft("accept", {"harness": B}, "gate", {"report": {"won": 7, "lost": None}})
    chain.append(ledger, chain.read(ledger), draft, FixedClock())
    lines = ledger.read_bytes().splitlines()
    assert b"evidence" not in lines[0]
    assert b'"evidence":{"report":{"lost":null,"won":7}}' in lines[1]
    assert chain.verify(ledger) == ()


@pytest.mark.parametrize(
    ("kind", "subject", "reason"),
    [
        ("accept", {"harness": A}, ""),
        ("accept", {"harness": A}, " \t"),
        ("accept", {"harness": "h1"}, "why"),
        ("accept", {"harness": A, "colour": "red"}, "why"),
        ("retract", {"trace": "abc"}, "why"),
        ("equivalent", {"fingerprints": [A]}, "why"),
        ("Accept", {"harness": A}, "why"),
        ("accept", {"harness": A}, "\ud800"),
    ],
)
def test_what_is_no_entry_is_not_added(ledger: Path, kind: str, subject: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError):
        chain.append(ledger, chain.Chain(), chain.Draft(kind, subject, reason), FixedClock())
    assert not ledger.exists()


def test_a_kind_of_a_later_version_is_chained(ledger: Path) -> None:
    chain.append(ledger, chain.Chain(), chain.Draft("promote", {"anything": [1, None]}, "why"), FixedClock())
    assert chain.verify(ledger) == ()
    assert accept(ledger).decision.parents == [chain.read(ledger).entries[0].digest]


def test_lines_that_came_twice_count_once(ledger: Path) -> None:
    accept(ledger)
    accept(ledger, B)
    read = chain.read(ledger)
    ledger.write_bytes(ledger.read_bytes() * 2)
    assert chain.read(ledger) == read


def test_blank_lines_and_windows_line_ends_change_nothing(ledger: Path) -> None:
    accept(ledger)
    read = chain.read(ledger)
    ledger.write_bytes(b"\n" + ledger.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    assert chain.read(ledger) == read


def test_a_conflict_marker_is_an_error_with_the_way_out(ledger: Path) -> None:
    accept(ledger)
    ours = ledger.read_bytes()
    ledger.write_bytes(b"<<<<<<< HEAD\n" + ours + b"=======\n>>>>>>> other\n")
    with pytest.raises(LedgerChainError) as caught:
        chain.read(ledger)
    assert caught.value.where == "ledger.jsonl:1"
    assert "merge=union" in str(caught.value.hint)
    assert codes(ledger) == ["ledger-conflict-marker"] * 3


@pytest.mark.parametrize("line", [0, 1, 2])
def test_an_edited_line_is_found_even_when_it_is_the_newest(ledger: Path, line: int) -> None:
    for fingerprint in (A, B, A):
        accept(ledger, fingerprint)
    lines = ledger.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"it solves more", b"it solves less")
    ledger.write_bytes(b"".join(lines))
    with pytest.raises(LedgerChainError) as caught:
        chain.read(ledger)
    assert caught.value.where == f"ledger.jsonl:{line + 1}"
    assert caught.value.exit_code == 31
    assert codes(ledger)[0] == "ledger-line-edited"


def test_a_line_edited_together_with_its_digest_leaves_its_child_without_a_parent(ledger: Path) -> None:
    accept(ledger)
    child = accept(ledger, B)
    lines = ledger.read_bytes().splitlines(keepends=True)
    members = digest.load_canonical(lines[0]) | {"reason": "forged"}
    del members["digest"]
    lines[0] = digest.canonical(members | {"digest": digest.of(members)}) + b"\n"
    ledger.write_bytes(b"".join(lines))
    with pytest.raises(LedgerChainError) as caught:
        chain.read(ledger)
    assert child.digest[:12] in str(caught.value.where)


def test_a_removed_line_is_found(ledger: Path) -> None:
    first = accept(ledger)
    accept(ledger, B)
    ledger.write_bytes(ledger.read_bytes().splitlines(keepends=True)[1])
    (problem,) = chain.verify(ledger)
    assert problem.code == "ledger-parent-missing"
    assert first.digest[:12] in problem.message


@pytest.mark.parametrize("line", [b"42", b"{}", b'{"format":"other/1"}', b"not json", b"\xff", b'{"a":1'])
def test_a_line_that_is_no_entry_is_named(ledger: Path, line: bytes) -> None:
    accept(ledger)
    ledger.write_bytes(ledger.read_bytes() + line + b"\n")
    (problem,) = chain.verify(ledger)
    assert (problem.code, problem.where) == ("ledger-line-unreadable", "ledger.jsonl:2")


def test_an_entry_of_a_newer_version_is_told_apart_from_a_broken_one(ledger: Path) -> None:
    ledger.write_bytes(b'{"format":"tracemark/ledger/2"}\n')
    assert codes(ledger) == ["ledger-newer-format"]
    with pytest.raises(NewerFormatError, match="'tracemark/ledger/2'"):
        chain.read(ledger)
    with pytest.raises(NewerFormatError):
        accept(ledger, seen=chain.Chain())
    assert ledger.read_bytes() == b'{"format":"tracemark/ledger/2"}\n'


def test_a_half_written_last_line_is_reported_and_nothing_is_appended_to_it(ledger: Path) -> None:
    accept(ledger)
    whole = ledger.read_bytes()
    accept(ledger, B)
    torn = ledger.read_bytes()[:-20]
    for cut in (torn, whole + b"{"):
        ledger.write_bytes(cut)
        assert codes(ledger) == ["ledger-torn-line"]
        for seen in (None, chain.Chain()):
            with pytest.raises(LedgerChainError, match="half-written"):
                accept(ledger, seen=seen)
        assert ledger.read_bytes() == cut


def test_nothing_that_is_decided_makes_no_ledger(ledger: Path) -> None:
    assert chain.append_all(ledger, chain.Chain(), [], FixedClock()) == []
    assert not ledger.exists()


def test_of_several_decisions_each_needs_a_reason(ledger: Path) -> None:
    drafts = [replace(draft, reason=reason) for draft, reason in zip(stamps(2), ("why", " "), strict=True)]
    with pytest.raises(UsageError, match="needs a reason"):
        chain.append_all(ledger, chain.Chain(), drafts, FixedClock())
    assert not ledger.exists()


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "||||||| base", "=======", ">>>>>>> other"])
def test_every_marker_of_a_conflict_is_named_as_one(ledger: Path, marker: str) -> None:
    accept(ledger)
    ledger.write_bytes(ledger.read_bytes() + f"{marker}\n".encode())
    assert codes(ledger) == ["ledger-conflict-marker"]


def test_a_ledger_is_usable_once_the_half_written_line_is_taken_out(ledger: Path) -> None:
    first = accept(ledger)
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + b'{"format":')
    assert codes(ledger) == ["ledger-torn-line"]
    ledger.write_bytes(whole)
    assert accept(ledger, B).decision.parents == [first.digest]


def test_a_whole_last_line_without_its_newline_counts_and_the_next_begins_on_its_own_line(ledger: Path) -> None:
    first = accept(ledger)
    ledger.write_bytes(ledger.read_bytes().rstrip(b"\n"))
    assert chain.read(ledger).heads == (first.digest,)
    second = accept(ledger, B)
    assert second.decision.parents == [first.digest]
    assert len(ledger.read_bytes().splitlines()) == 2
    assert chain.verify(ledger) == ()


def test_a_line_that_is_being_written_is_not_called_torn(ledger: Path) -> None:
    accept(ledger)
    ledger.write_bytes(ledger.read_bytes() + b"{")
    with lock(ledger.parent / ".tracemark" / "ledger.lock"), pytest.raises(LockedError):
        chain.read(ledger)


def test_a_kill_after_the_append_leaves_a_ledger_that_holds_it(ledger: Path) -> None:
    code = (
        "from pathlib import Path; from tracemark.clock import FixedClock; from tracemark.ledger import chain;"
        f"draft = chain.Draft('accept', {{'harness': {A!r}}}, 'why');"
        f"chain.append(Path({str(ledger)!r}), chain.Chain(), draft, FixedClock())"
    )
    environment = {**os.environ, "TRACEMARK_CRASH_AT": "ledger-written"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == -9
    assert len(chain.read(ledger).entries) == 1
    assert accept(ledger, B).decision.parents == [chain.read(ledger).entries[0].digest]


def test_an_entry_is_synced_whole_before_it_is_acknowledged_and_so_is_the_name_of_a_new_ledger(
    ledger: Path, disk
) -> None:
    accept(ledger)
    private = ledger.parent / ".tracemark"
    made = [("make", str(private)), ("sync", str(ledger.parent))]
    assert disk.calls == [*made, ("sync", str(ledger)), ("sync", str(ledger.parent))]
    assert disk.synced[str(ledger)] == ledger.stat().st_size
    disk.calls.clear()
    accept(ledger, B)
    assert disk.calls == [("sync", str(ledger))]
    assert disk.synced[str(ledger)] == ledger.stat().st_size


@pytest.mark.parametrize("failing", ["ledger.jsonl", "corpus"])
def test_an_entry_whose_sync_failed_is_not_acknowledged_nor_synced_again(tmp_path: Path, disk, failing: str) -> None:
    ledger = tmp_path / "corpus" / "ledger.jsonl"
    (ledger.parent / ".tracemark").mkdir(parents=True)
    disk.failing[failing] = 1
    with pytest.raises(OSError, match="the sync failed"):
        accept(ledger)
    assert disk.asked[str(ledger if failing == "ledger.jsonl" else ledger.parent)] == 1
    assert disk.asked[str(ledger)] == 1
    assert chain.read(ledger) == chain.Chain()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes, so that a write takes a part, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize("earlier", [0, 1])
def test_a_ledger_for_which_there_is_no_room_stays_as_it_was_and_the_decision_can_be_made_again(
    ledger: Path, earlier: int, room: int
) -> None:
    for _ in range(earlier):
        accept(ledger)
    whole = ledger.read_bytes() if earlier else b""
    with room_for(len(whole) + room), pytest.raises(OSError, match=r"No space left|File too large"):
        accept(ledger, B)
    assert ledger.read_bytes() == whole
    entry = accept(ledger, B)
    assert chain.read(ledger).heads == (entry.digest,)
    assert len(chain.read(ledger).entries) == earlier + 1


def test_a_line_whose_sync_failed_is_no_decision(ledger: Path, disk) -> None:
    accept(ledger)
    whole = ledger.read_bytes()
    disk.failing["ledger.jsonl"] = 1
    with pytest.raises(OSError, match="the sync failed"):
        accept(ledger, B)
    assert ledger.read_bytes() == whole


def test_a_link_out_of_the_corpus_is_not_written_through(tmp_path: Path) -> None:
    outside, ledger = tmp_path / "outside.jsonl", tmp_path / "corpus" / "ledger.jsonl"
    outside.touch()
    ledger.parent.mkdir()
    ledger.symlink_to(outside)
    assert chain.read(ledger) == chain.Chain()
    with pytest.raises(IrregularFileError, match="leads out of the corpus") as refused:
        accept(ledger)
    assert str(tmp_path) not in str(refused.value)
    assert outside.read_bytes() == b""


def test_a_link_within_the_corpus_stays_one_and_what_it_leads_to_is_written(ledger: Path) -> None:
    (ledger.parent / "config").mkdir()
    ledger.symlink_to("config/ledger.jsonl")
    (ledger.parent / "config" / "ledger.jsonl").touch()
    entry = accept(ledger)
    assert ledger.is_symlink()
    assert chain.read(ledger).heads == (entry.digest,)


# --- added beside each other


def test_what_came_in_since_the_ledger_was_read_stands_beside_the_entry(ledger: Path) -> None:
    common = accept(ledger)
    seen = chain.read(ledger)
    quicker = accept(ledger, A, "quicker")
    slower = accept(ledger, B, "slower", seen)
    assert slower.decision.parents == quicker.decision.parents == [common.digest]
    both = chain.read(ledger)
    assert both.heads == tuple(sorted([quicker.digest, slower.digest]))
    assert accept(ledger, A, "settled").decision.parents == list(both.heads)


def test_one_who_saw_an_empty_ledger_descends_from_nothing(ledger: Path) -> None:
    first = accept(ledger)
    beside = accept(ledger, B, seen=chain.Chain())
    assert beside.decision.parents == []
    assert chain.read(ledger).heads == tuple(sorted([first.digest, beside.digest]))


def test_entries_that_are_added_together_stand_together_beside_what_nobody_had_seen(ledger: Path) -> None:
    seen = chain.read(ledger)
    beside = accept(ledger)
    added = chain.append_all(ledger, seen, stamps(3), FixedClock())
    assert [entry.decision.parents for entry in added] == [[], *([entry.digest] for entry in added[:-1])]
    assert chain.read(ledger).heads == tuple(sorted([beside.digest, added[-1].digest]))


def test_two_who_say_the_same_in_the_same_words_at_the_same_time_make_one_entry(ledger: Path) -> None:
    seen = chain.read(ledger)
    assert accept(ledger, seen=seen) == accept(ledger, seen=seen)
    assert len(chain.read(ledger).entries) == 1


def test_nothing_is_added_where_what_was_seen_is_gone(ledger: Path) -> None:
    accept(ledger)
    kept = ledger.read_bytes()
    gone = accept(ledger, B)
    seen = chain.read(ledger)
    ledger.write_bytes(kept)
    with pytest.raises(LedgerChainError, match=gone.digest[:12]) as caught:
        accept(ledger, seen=seen)
    assert (caught.value.where, caught.value.hint) == ("ledger.jsonl", "decide again")
    assert ledger.read_bytes() == kept


def test_a_line_that_was_being_written_when_it_was_read_is_read_again(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(ledger)
    accept(ledger, B)
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:-20])
    is_locked = chain.is_locked

    def ended(path: Path) -> bool:
        ledger.write_bytes(whole)
        return is_locked(path)

    monkeypatch.setattr(chain, "is_locked", ended)
    assert len(chain.read(ledger).entries) == 2


APPENDED = 25


def append_some(path: Path, barrier: Any, name: int) -> None:
    barrier.wait()
    number = 0
    while number < APPENDED:
        try:
            seen = chain.read(path)
        except LockedError:
            continue
        entry = accept(path, reason=f"process {name}, entry {number}", seen=seen)
        assert entry.decision.parents == list(seen.heads)
        number += 1


def test_of_processes_that_add_at_once_each_descends_from_what_it_had_read(ledger: Path) -> None:
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(4)
    processes = [fork.Process(target=append_some, args=(ledger, barrier, name)) for name in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert chain.verify(ledger) == ()
    read = chain.read(ledger)
    said = {entry.decision.reason: index for index, entry in enumerate(read.entries)}
    past = read.ancestors()
    for name in range(4):
        own = [said.pop(f"process {name}, entry {number}") for number in range(APPENDED)]
        assert all(past[read.entries[later].digest] >> earlier & 1 for earlier, later in pairwise(own))
    assert said == {}


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_the_order_of_lines_means_nothing(
    tmp_path_factory: pytest.TempPathFactory, order: random.Random, count: int
) -> None:
    path = tmp_path_factory.mktemp("order") / "ledger.jsonl"
    for number in range(count):
        accept(path, reason=f"reason {number}")
    read = chain.read(path)
    lines = path.read_bytes().splitlines(keepends=True)
    order.shuffle(lines)
    path.write_bytes(b"".join(lines))
    assert chain.read(path) == read


# --- merged by git --------------------------------------------------------------------------------------------------


def _env() -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "author",
        "GIT_AUTHOR_EMAIL": "author@example.invalid",
        "GIT_COMMITTER_NAME": "author",
        "GIT_COMMITTER_EMAIL": "author@example.invalid",
    }


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, env=_env(), check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitattributes").write_text("ledger.jsonl merge=union\n")
    (tmp_path / ".gitignore").write_text(".tracemark/\n")
    (tmp_path / "ledger.jsonl").touch()
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


@pytest.mark.parametrize("common", [0, 1, 3])
def test_two_branches_that_both_appended_merge_and_are_both_parents_of_the_next(repository: Path, common: int) -> None:
    ledger = repository / "ledger.jsonl"
    for number in range(common):
        accept(ledger, reason=f"common {number}")
        commit(repository)
    git(repository, "checkout", "-q", "-b", "other")
    theirs = [accept(ledger, A, "theirs 1"), accept(ledger, A, "theirs 2")]
    commit(repository)
    git(repository, "checkout", "-q", "main")
    ours = accept(ledger, B, "ours")
    commit(repository)
    git(repository, "merge", "-q", "-m", "merge", "other")

    merged = chain.read(ledger)
    assert len(merged.entries) == common + 3
    assert merged.heads == tuple(sorted([theirs[1].digest, ours.digest]))
    settled = accept(ledger, A, "settled")
    assert settled.decision.parents == list(merged.heads)
    assert chain.read(ledger).heads == (settled.digest,)


def test_the_same_entry_taken_over_by_both_branches_counts_once(repository: Path) -> None:
    ledger = repository / "ledger.jsonl"
    git(repository, "checkout", "-q", "-b", "other")
    entry = accept(ledger)
    line = ledger.read_bytes()
    accept(ledger, B, "more")
    commit(repository)
    git(repository, "checkout", "-q", "main")
    ledger.write_bytes(line)
    accept(ledger, A, "else")
    commit(repository)
    git(repository, "merge", "-q", "-m", "merge", "other")
    assert [e.digest for e in chain.read(ledger).entries].count(entry.digest) == 1
    assert len(chain.read(ledger).heads) == 2


def test_without_the_union_driver_the_merge_stops_and_the_markers_are_found(repository: Path) -> None:
    ledger = repository / "ledger.jsonl"
    (repository / ".gitattributes").unlink()
    commit(repository)
    git(repository, "checkout", "-q", "-b", "other")
    accept(ledger, A)
    commit(repository)
    git(repository, "checkout", "-q", "main")
    accept(ledger, B)
    commit(repository)
    merge = subprocess.run(["git", "merge", "other"], cwd=repository, env=_env(), check=False, capture_output=True)
    assert merge.returncode != 0
    assert set(codes(ledger)) == {"ledger-conflict-marker"}


def test_a_ledger_that_is_no_file_is_named_and_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    os.mkfifo(path)
    (found,) = chain.verify(path)
    assert (found.code, found.message) == ("ledger-unreadable", "it cannot be read: it is a pipe, no file")
    with pytest.raises(UsageError, match="a pipe"):
        chain.read(path)
    path.unlink()
    path.mkdir()
    assert [one.code for one in chain.verify(path)] == ["ledger-unreadable"]


def test_a_ledger_that_nobody_may_read_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"
    path.touch()
    monkeypatch.setattr(Path, "read_bytes", refused)
    (found,) = chain.verify(path)
    assert (found.message, found.hint) == ("it cannot be read: Permission denied", "check its permissions")


def refused(path: Path) -> bytes:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def test_a_reason_that_is_no_text_is_named_in_words(tmp_path: Path) -> None:
    draft = chain.Draft("retract", {"trace": "ab" * 32}, "why \udcff")
    with pytest.raises(UsageError, match="not UTF-8") as caught:
        chain.append(tmp_path / "ledger.jsonl", chain.Chain(), draft, FixedClock("2026-01-31T12:00:00Z"))
    assert caught.value.where == "--reason"


def test_a_kind_is_named_by_its_word(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        chain.append(tmp_path / "ledger.jsonl", chain.Chain(), chain.Draft(Kind.RETRACT, {}, "why"), FixedClock())
    assert caught.value.where == "kind 'retract'"
