"""What traces without a harness show of one is counted by the catalogue, and goes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.store.check import check
from tracemark.store.layout import Layout
from tracemark.store.selection import Decisions
from tracemark.store.store import Store


def half(letter: str, form: str = "rendered", part: str = "system") -> dict[str, Any]:
    return {"prompt_templates": [{"part": part, "form": form, "digest": letter * 64}]}


def stamp(letter: str, form: str = "rendered") -> dict[str, Any]:
    return {"observed": half(letter, form)}


def text(value: dict[str, Any]) -> str:
    return digest.canonical(value).decode()


def counted(store: Store, *but: bytes) -> set[tuple[str, int, int]]:
    # what was stated since is joined when it is asked for
    store.applied(Decisions())
    return {(found.half, found.traces, found.tasks) for found in store.catalogue.foreign(but)}


def test_equal_halves_are_counted_together_by_format(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        a, b, c = (make.trace(number, stamp("a")) for number in (1, 2, 3))
        make.commit(store, a, b, make.trace(4, stamp("b")), make.trace(5))
        make.commit(store, make.trace(6, stamp("a"), source={"format": "other"}), c)
        found = {(one.half, one.format, one.traces, one.tasks) for one in store.catalogue.foreign(())}
        assert found == {
            (text(half("a")), "atif", 3, 3),
            (text(half("a")), "other", 1, 1),
            (text(half("b")), "atif", 1, 1),
            ("{}", "atif", 1, 1),
        }
        ids = sorted(bytes.fromhex(make.id_of(line)) for line in (a, b, c))
        first = {one.first for one in store.catalogue.foreign(()) if one.traces == 3}
        assert first == {ids[0]}
        each = list(store.catalogue.each_foreign(()))
        assert len(each) == 6
        assert {(identity, text(half("a")), "atif") for identity in ids} < set(each)


def test_traces_with_a_harness_and_parts_of_runs_are_not_among_them(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, {**make.stamp("a"), "observed": half("a")}))
        make.commit(store, make.trace(2, stamp("a"), run={"role": "subagent"}))
        assert counted(store) == set()


def test_a_trace_that_is_stamped_later_or_replaced_or_left_out_is_not_among_them(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        lines = [make.trace(number, stamp("a")) for number in (1, 2, 3, 4)]
        ids = [make.id_of(line) for line in lines]
        make.commit(store, *lines)
        store.commit_annotations("stamps", [make.annotation("stamps", ids[0], {"harness": make.stamp("b")})])
        make.commit(store, make.trace(5, stamp("c"), source={"supersedes": [ids[1]]}))
        assert counted(store) == {(text(half("a")), 2, 2), (text(half("c")), 1, 1)}
        assert counted(store, bytes.fromhex(ids[2])) == {(text(half("a")), 1, 1), (text(half("c")), 1, 1)}
        each = store.catalogue.each_foreign([bytes.fromhex(ids[2])])
        assert [identity for identity, said, _ in each if said == text(half("a"))] == [bytes.fromhex(ids[3])]


def test_a_text_is_confirmed_by_a_second_task_only(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, stamp("a")), make.trace(2, stamp("a", "substituted")))
        make.commit(store, make.trace(3, stamp("b")), make.trace(4, stamp("b"), run={"task": "t-3"}))
        untold = digest.load_canonical(make.trace(9, stamp("c")))
        del untold["run"]["task"]
        make.commit(store, digest.canonical(untold))
        make.commit(store, make.trace(5, stamp("c")), make.trace(6, stamp("c"), run={"task": "t-5"}))
        make.commit(store, make.trace(7, stamp("d", "template")), make.trace(8, stamp("d", "template")))
        assert store.catalogue.confirmed(()) == {("prompt_templates", "system", "a" * 64)}


def test_what_is_shown_goes_with_its_file_and_check_compares_it(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, stamp("a")))
        make.commit(store, make.trace(2, stamp("b")))
        assert check(Layout(root)).findings == ()
        [gone] = [
            name
            for name in store.catalogue.files()
            if any(row.task == "t-1" for row, _ in store.catalogue.traces_in(name))
        ]
        store.catalogue.remove(gone)
        assert counted(store) == {(text(half("b")), 1, 1)}
        store.catalogue._db.execute("UPDATE shown SET trace = x'00'")
    assert "catalogue-differs" in {found.code for found in check(Layout(root)).findings}


def test_two_copies_of_a_trace_are_one(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, stamp("a")))
        make.commit(store, make.trace(1, stamp("a")), make.trace(2, stamp("a")))
        assert counted(store) == {(text(half("a")), 2, 2)}


def test_what_is_shown_since_counts_beside_what_was_shown_first(make, root: Path) -> None:
    tools = {"tool_bindings": [{"part": "look", "form": "schema", "digest": "c" * 64}]}
    with Store.open(root, create=True) as store:
        first, second = make.trace(1, stamp("a")), make.trace(2, stamp("a"))
        make.commit(store, first, second)
        said = make.annotation("stamps", make.id_of(first), {"harness": {"observed": tools}})
        store.commit_annotations("stamps", [said])
        assert counted(store) == {(text(half("a") | tools), 1, 1), (text(half("a")), 1, 1)}
        each = {identity.hex(): said for identity, said, _ in store.catalogue.each_foreign(())}
        assert each == {make.id_of(first): text(half("a") | tools), make.id_of(second): text(half("a"))}
        assert store.catalogue.confirmed(()) == {("prompt_templates", "system", "a" * 64)}
        assert check(Layout(root)).findings == ()
        store.catalogue._db.execute("UPDATE restated SET shown = NULL")
    assert "catalogue-differs" in {found.code for found in check(Layout(root)).findings}


def test_a_trace_of_which_two_harnesses_are_stated_is_not_one_that_nobody_names(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        lines = [make.trace(number, stamp("a")) for number in (1, 2)]
        make.commit(store, *lines)
        stated = [make.annotation("stamps", make.id_of(lines[0]), {"harness": make.stamp(one)}) for one in "bc"]
        store.commit_annotations("stamps", stated)
        assert counted(store) == {(text(half("a")), 1, 1)}


def test_a_run_of_more_than_one_harness_is_not_among_those_of_one(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, {**stamp("a"), "mixed": True}), make.trace(2, stamp("a")))
        make.commit(store, known := make.trace(3, stamp("a")))
        store.commit_annotations("stamps", [make.annotation("stamps", make.id_of(known), {"harness": {"mixed": True}})])
        assert counted(store) == {(text(half("a")), 1, 1)}


def test_a_task_that_is_told_later_counts(make, root: Path) -> None:
    untold = digest.load_canonical(make.trace(2, stamp("a")))
    del untold["run"]["task"]
    line = digest.canonical(untold)
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, stamp("a")), line)
        store.commit_annotations("outcomes", [make.annotation("outcomes", make.id_of(line), {"run": {"task": "t-2"}})])
        assert counted(store) == {(text(half("a")), 2, 2)}
        assert store.catalogue.confirmed(()) == {("prompt_templates", "system", "a" * 64)}


def test_two_lines_of_a_trace_in_one_file_are_one(make, root: Path) -> None:
    with Store.open(root, create=True) as store:
        make.commit(store, make.trace(1, stamp("a")), make.trace(1, stamp("b")))
        [(shown, traces, tasks)] = counted(store)
        assert (traces, tasks) == (1, 1)
        assert digest.load_canonical(shown.encode())["prompt_templates"] == [
            *half("a")["prompt_templates"],
            *half("b")["prompt_templates"],
        ]
        assert check(Layout(root)).findings == ()


def test_the_work_of_counting_grows_with_the_traces_however_many_are_in_a_file(make, root: Path) -> None:
    def steps(name: str, number: int) -> int:
        done = 0

        def count() -> None:
            nonlocal done
            done += 1

        with Store.open(root / name, create=True) as store:
            make.commit(store, *(make.trace(one, stamp("a")) for one in range(number)))
            database = store.catalogue._db
            database.set_progress_handler(count, 100)
            asked = (store.catalogue.foreign(()), store.catalogue.confirmed(()), store.catalogue.each_foreign(()))
            assert all(map(list, asked))
            database.set_progress_handler(None, 0)
        return done

    assert steps("large", 400) < 6 * steps("small", 100)


def test_a_list_of_tools_is_kept_once_whatever_else_a_trace_shows(make, root: Path) -> None:
    tools = {"tool_bindings": [{"part": "look", "form": "schema", "digest": "c" * 64}]}
    with Store.open(root, create=True) as store:
        make.commit(store, *(make.trace(number, {"observed": half(f"{number}") | tools}) for number in range(5)))
        assert counted(store) == {(text(half(f"{number}") | tools), 1, 1) for number in range(5)}
        assert store.catalogue._one("SELECT count(*) FROM halves") == 6
        assert check(Layout(root)).findings == ()
