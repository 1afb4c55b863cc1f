"""A check beside other processes: what they store, or take away, at any moment of it is no difference."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tracemark import digest
from tracemark.store import check as checking
from tracemark.store.annotations import refused
from tracemark.store.catalogue import Reader
from tracemark.store.check import check
from tracemark.store.disputes import check_disputes
from tracemark.store.layout import Layout
from tracemark.store.selection import Decisions, Selection
from tracemark.store.store import Store

Change = Callable[[Path], None]

ASKED = ("version", "files", "damage", "traces_in", "statements_in", "links_in", "misplaced", "restatable", "restated")
LISTED = ("data_files", "snapshots", "strangers", "_entries")


def store(make, root: Path, letter: str, number: int) -> None:
    """Store one of everything that there is, all about a new trace and a new copy of an old one."""
    line = make.trace(number, make.stamp(letter))
    trace = make.id_of(line)
    with Store.open(root) as opened:
        opened.commit_harness(make.fingerprint(letter), {"fingerprint": make.fingerprint(letter)})
        stamp = make.annotation("stamps", trace, {"harness": make.stamp(letter)})
        opened.commit_annotations("stamps", [stamp])
        make.commit(opened, line, make.trace(2, make.stamp(letter)))
        opened.commit_annotations("labels", [make.annotation("labels", trace, {"n": number})])
        graded = make.annotation(
            "outcomes", make.id_of(make.trace(1)), {"outcome": {"status": "unknown", "reward": float(number)}}
        )
        opened.commit_annotations("outcomes", [graded])
        opened.commit_refused([refused("not-json", "a", letter, digest.sha256(b""), b"")])
        assert list(opened.select(Selection()))


@pytest.fixture(scope="module")
def pattern(make, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A filled store, and what may go of it: all that came last."""
    root = tmp_path_factory.mktemp("pattern") / "corpus"
    with Store.open(root, create=True) as opened:
        make.commit(opened, make.trace(1), make.trace(2))
    store(make, root, "a", 3)
    before = files(root)
    store(make, root, "c", 4)
    return root, files(root) - before


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in (root / "traces").rglob("*") if path.is_file()}


def snapshot_of(value) -> str:
    return value["fingerprint"]


class Meanwhile:
    """Counts the steps of a check, and lets something happen at one of them, as another process would do it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], at: int) -> None:
        self.steps = 0
        self.step = ""
        self._act, self._at, self._busy = act, at, False
        for owner, names in ((Reader, ASKED), (Layout, LISTED), (checking, ("examine", "_snapshots"))):
            for name in names:
                monkeypatch.setattr(owner, name, self._wrapped(name, getattr(owner, name)))

    def _wrapped(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments, **options):
            self._pass(name)
            return function(*arguments, **options)

        return called

    def _pass(self, step: str) -> None:
        if self._busy:
            return
        if self.steps == self._at:
            self._busy, self.step = True, step
            self._act()
            self._busy = False
        self.steps += 1


def steps_of(monkeypatch: pytest.MonkeyPatch, pattern: Path, folder: Path, act: Change) -> Iterator[tuple[str, Path]]:
    """Yield each step of a check, with a store in which `act` will happen at that step of the next check."""
    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    for number in itertools.count():
        root = folder / str(number)
        shutil.copytree(pattern, root)
        with monkeypatch.context() as watched:
            meanwhile = Meanwhile(watched, lambda root=root: act(root), number)
            yield str(number), root
        if not meanwhile.step:
            assert meanwhile.steps > 30
            return
        shutil.rmtree(root)


def take_away(root: Path, names: set[str]) -> None:
    for name in names:
        (root / name).unlink()


def test_what_is_stored_meanwhile_is_no_difference(make, pattern, tmp_path: Path, monkeypatch) -> None:
    def act(root: Path) -> None:
        store(make, root, "b", 5)

    for step, root in steps_of(monkeypatch, pattern[0], tmp_path, act):
        assert (step, check(Layout(root), snapshot_of).findings) == (step, ())


def test_what_goes_meanwhile_is_no_difference(pattern, tmp_path: Path, monkeypatch) -> None:
    def act(root: Path) -> None:
        take_away(root, pattern[1])
        with Store.open(root) as opened:
            assert list(opened.select(Selection()))

    for step, root in steps_of(monkeypatch, pattern[0], tmp_path, act):
        assert (step, check(Layout(root), snapshot_of).findings) == (step, ())


def test_what_goes_while_nobody_opens_the_store_is_in_the_catalogue_alone_and_not_damaged(
    pattern, tmp_path: Path, monkeypatch
) -> None:
    data = {name for name in pattern[1] if name.endswith(".zst")}
    seen = set()
    for step, root in steps_of(monkeypatch, pattern[0], tmp_path, lambda root: take_away(root, pattern[1])):
        found = check(Layout(root), snapshot_of).findings
        assert {(one.code, one.message) for one in found} <= {
            ("catalogue-differs", "the catalogue holds it, and it is not stored")
        }, step
        assert {one.where for one in found} <= data
        seen.add(len(found))
    assert {0, len(data)} <= seen


def test_what_goes_after_it_was_listed_is_not_counted(pattern, tmp_path: Path, monkeypatch) -> None:
    root, without = tmp_path / "corpus", tmp_path / "without"
    for folder in (root, without):
        shutil.copytree(pattern[0], folder)
    take_away(without, pattern[1])
    listed = Layout.data_files

    def then_gone(layout: Layout, *arguments):
        monkeypatch.setattr(Layout, "data_files", listed)
        names = listed(layout, *arguments)
        take_away(root, pattern[1])
        return names

    monkeypatch.setattr(Layout, "data_files", then_gone)
    assert check(Layout(root), snapshot_of).counts == check(Layout(without), snapshot_of).counts


def test_what_differs_is_named_also_beside_what_is_stored_meanwhile(make, pattern, tmp_path: Path, monkeypatch) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(pattern[0], root)
    lost = min(name for name in pattern[1] if "/refused/" in name)
    (root / lost).unlink()
    kept = next((root / "traces" / "segments").glob("fingerprint=none/*"))
    with Store.open(root) as opened:
        opened.catalogue.remove(kept.relative_to(root / "traces").as_posix())
    shutil.copytree(pattern[0] / "traces" / "refused", root / "traces" / "refused", dirs_exist_ok=True)
    asked = Layout.data_files

    def listed(layout: Layout, *arguments):
        monkeypatch.setattr(Layout, "data_files", asked)
        with Store.open(tmp_path / "other", create=True) as other:
            make.commit(other, make.trace(9))
        for path in (tmp_path / "other" / "traces" / "segments").rglob("*.zst"):
            shutil.copy(path, kept.parent)
        return asked(layout, *arguments)

    monkeypatch.setattr(Layout, "data_files", listed)
    found = {(one.code, one.where.rpartition("/")[2]) for one in check(Layout(root), snapshot_of).findings}
    new = next((tmp_path / "other" / "traces" / "segments").rglob("*.zst"))
    assert found == {("stored-not-indexed", name) for name in (kept.name, new.name, Path(lost).name)}


def test_all_that_is_asked_about_disputes_is_of_one_moment(make, pattern, tmp_path: Path, monkeypatch) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(pattern[0], root)
    trace = make.id_of(make.trace(3))
    asked = Reader.stale

    def meanwhile(reader: Reader, limit: int) -> list[bytes]:
        monkeypatch.setattr(Reader, "stale", asked)
        answer = asked(reader, limit)
        with Store.open(root) as other:
            graded = [
                make.annotation("outcomes", trace, {"outcome": {"status": "unknown", "reward": n / 4}}) for n in (1, 2)
            ]
            other.commit_annotations("outcomes", graded)
            assert list(other.select(Selection()))
        return answer

    monkeypatch.setattr(Reader, "stale", meanwhile)
    (before,), (after,) = (check_disputes(Layout(root), Decisions()) for _ in range(2))
    assert "statements about 2 traces disagree" in before.message
    assert "statements about 3 traces disagree" in after.message
