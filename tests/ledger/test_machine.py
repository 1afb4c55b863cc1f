"""Two people read the ledger and add to it in any order: what holds is what the rule says of who had seen what."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tracemark.clock import FixedClock
from tracemark.ledger import chain
from tracemark.ledger.state import state

A, B = ("tm1:" + letter * 64 for letter in "ab")
T, U = "1" * 64, "2" * 64
SUBJECTS: dict[str, list[dict[str, Any]]] = {
    "accept": [{"harness": A}, {"harness": B}],
    "retract": [{"trace": T}, {"trace": U}],
    "reinstate": [{"trace": T}, {"trace": U}],
    "stamp": [{"trace": T, "fingerprint": A}, {"trace": T, "fingerprint": None}, {"trace": U, "fingerprint": B}],
}
ACTORS = st.sampled_from(["one", "other"])


@dataclass(frozen=True)
class Made:
    """A decision as people know it: what it says, and which decisions whoever made it had read."""

    number: int
    kind: str
    subject: dict[str, Any]
    seen: frozenset[int]


class LedgerMachine(RuleBasedStateMachine):
    """A ledger, what each of two people read of it last, and every decision with what its maker had read."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / chain.NAME
        self.made: list[Made] = []
        self.read = {"one": chain.Chain(), "other": chain.Chain()}
        self.known: dict[str, frozenset[int]] = {"one": frozenset(), "other": frozenset()}

    @rule(actor=ACTORS)
    def reads(self, actor: str) -> None:
        self.read[actor] = chain.read(self.path)
        self.known[actor] = frozenset(one.number for one in self.made)

    @rule(actor=ACTORS, kind=st.sampled_from(list(SUBJECTS)), which=st.integers(0, 2), count=st.integers(1, 2))
    def adds(self, actor: str, kind: str, which: int, count: int) -> None:
        subject = SUBJECTS[kind][which % len(SUBJECTS[kind])]
        seen, drafts = self.known[actor], []
        for _ in range(count):
            number = len(self.made)
            drafts.append(chain.Draft(kind, subject, f"decision {number}"))
            self.made.append(Made(number, kind, subject, seen))
            seen |= {number}
        chain.append_all(self.path, self.read[actor], drafts, FixedClock())

    @invariant()
    def an_entry_descends_from_what_its_maker_had_read_and_from_nothing_else(self) -> None:
        held = chain.read(self.path)
        numbers = [int(entry.decision.reason.removeprefix("decision ")) for entry in held.entries]
        past = held.ancestors()
        assert sorted(numbers) == [one.number for one in self.made]
        for entry, number in zip(held.entries, numbers, strict=True):
            bits = past[entry.digest]
            above = {other for position, other in enumerate(numbers) if bits >> position & 1}
            assert above == self.made[number].seen

    @invariant()
    def a_decision_is_replaced_only_by_one_that_had_seen_it(self) -> None:
        held = state(chain.read(self.path))
        accepted = self.latest("harness", [one for one in self.made if one.kind == "accept"])
        assert held.harness == (accepted.pop() if len(accepted) == 1 else None)
        conflicts = ["ledger-accept-conflict"] * (len(accepted) > 1)
        settled, divided = {}, {}
        for trace in (T, U):
            about = [one for one in self.made if one.kind == "stamp" and one.subject["trace"] == trace]
            values = self.latest("fingerprint", about)
            if len(values) == 1:
                settled[trace] = values.pop()
            elif values:
                divided[trace] = values
                conflicts.append("ledger-stamp-conflict")
        assert (held.stamps, held.divided) == (settled, divided)
        assert [found.code for found in held.conflicts] == conflicts

    @invariant()
    def a_retraction_stands_until_somebody_who_had_seen_it_lifts_it(self) -> None:
        standing = {
            bar.subject["trace"]
            for bar in self.made
            if bar.kind == "retract"
            and not any(
                lift.kind == "reinstate" and lift.subject == bar.subject and bar.number in lift.seen
                for lift in self.made
            )
        }
        assert set(state(chain.read(self.path)).retracted) == standing

    def latest(self, member: str, about: list[Made]) -> set[str | None]:
        """Return what those say that nobody who decided the same question had seen."""
        return {one.subject[member] for one in about if not any(one.number in other.seen for other in about)}

    def teardown(self) -> None:
        self.folder.cleanup()


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
