"""The store driven by random steps, against a dict that knows no files, frames or SQL."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tracemark import digest
from tracemark.store.check import check
from tracemark.store.row import project_line
from tracemark.store.selection import Selection
from tracemark.store.store import Store

NUMBERS = st.integers(0, 5)
STATUSES = st.sampled_from(["success", "failure", "unknown"])
EVERYTHING = Selection(superseded=True)


class StoreMachine(RuleBasedStateMachine):
    """`present` and `away` map a file's name to the records in it: (trace id, digest, status, superseded digests)."""

    make = None

    @initialize()
    def open_a_new_store(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="tracemark-machine-"))
        self.present: dict[str, list[tuple[str, str, str, frozenset[str]]]] = {}
        self.away: dict[str, list[tuple[str, str, str, frozenset[str]]]] = {}
        self.lines: dict[str, set[bytes]] = {}
        self.store = Store.open(self.root / "corpus", create=True)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            findings = check(self.store.layout).findings
            assert {finding.code for finding in findings} <= {"annotation-dangling"}
            shutil.rmtree(self.root)

    def _path(self, name: str) -> Path:
        return self.root / "corpus/traces" / name

    def _learn(self, records: list[tuple[str, str, str, frozenset[str]]]) -> None:
        new = set(self.store.layout.data_files()) - self.present.keys()
        assert len(new) <= 1
        for name in new:
            # what comes back under the same name is the same
            self.away.pop(name, None)
            self.present[name] = records

    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=4), status=STATUSES)
    def add_traces(self, numbers: list[int], status: str) -> None:
        lines = [self.make.trace(number, outcome={"status": status}) for number in numbers]
        records = []
        for line in lines:
            row = project_line(line).row
            records.append((row.trace_id, row.head_digest, status, frozenset()))
            self.lines.setdefault(row.trace_id, set()).add(line)
        self.make.commit(self.store, *lines)
        self._learn(records)

    @rule(number=NUMBERS, status=STATUSES, data=st.data())
    def annotate(self, number: int, status: str, data) -> None:
        trace = self.make.id_of(self.make.trace(number))
        said = sorted({r[1] for records in self.present.values() for r in records if r[0] == trace})
        old = data.draw(st.sets(st.sampled_from(said), max_size=2)) if said else set()
        note = self.make.annotation("outcomes", trace, {"outcome": {"status": status}}, sorted(old))
        known = any(r[1] == digest.of(note) for records in self.present.values() for r in records)
        assert self.store.commit_annotations("outcomes", [note]) == (not known)
        if not known:
            self._learn([(trace, digest.of(note), status, frozenset(old))])

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def check_out_a_revision_without_a_file(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.present)))
        self.away[name] = self.present.pop(name)
        (self.root / "away").mkdir(exist_ok=True)
        shutil.move(self._path(name), self.root / "away" / name.replace("/", "+"))
        self.reopen()

    @precondition(lambda self: self.away)
    @rule(data=st.data())
    def check_out_a_revision_with_it(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.away)))
        self.present[name] = self.away.pop(name)
        shutil.move(self.root / "away" / name.replace("/", "+"), self._path(name))
        self.reopen()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store.open(self.root / "corpus")
        assert self.store.findings == []

    @rule()
    def reindex(self) -> None:
        self.store.reindex()

    @rule(number=NUMBERS)
    def find(self, number: int) -> None:
        trace = self.make.id_of(self.make.trace(number))
        assert self.store.find(f"t-{number}") == ([trace] if trace in self._traces() else [])

    def _traces(self) -> dict[str, str]:
        """Return trace id to the digest of its first statement."""
        first: dict[str, str] = {}
        for name in sorted(self.present):
            if name.startswith("segments/"):
                for trace, head, _, _ in self.present[name]:
                    first.setdefault(trace, head)
        return first

    def _statuses(self, trace: str) -> set[str]:
        records = [record for found in self.present.values() for record in found if record[0] == trace]
        replaced = frozenset().union(*(record[3] for record in records))
        return {status for _, name, status, _ in records if name not in replaced} - {"unknown"}

    @invariant()
    def the_store_says_what_the_dict_says(self) -> None:
        if not hasattr(self, "store"):
            return
        first = self._traces()
        states = {state.trace_id: state for state in self.store.select(EVERYTHING)}
        assert {trace: state.row.head_digest for trace, state in states.items()} == first
        for trace, state in states.items():
            known = self._statuses(trace)
            assert state.contested == (len(known) > 1)
            assert state.row.status == (known.pop() if len(known) == 1 else "unknown")
        assert self.store.counts()["traces"] == len(first)
        assert self.store.lookup(self.lines).keys() == first.keys()
        for trace in first:
            assert self.store.get(trace) in self.lines[trace]


def test_the_store_is_a_dict_that_survives_everything(make) -> None:
    class Machine(StoreMachine):
        pass

    Machine.make = make
    run_state_machine_as_test(Machine, settings=settings(max_examples=20, stateful_step_count=20, deadline=None))
