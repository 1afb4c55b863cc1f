"""What accepting another half would do to the corpus: which successes still count, and what is to be collected.

Nothing is decided and nothing written: a corpus is looked at as it would be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tracemark.acts.corpus import Corpus, open_store
from tracemark.acts.export import look, require_accepted, terms_of
from tracemark.acts.planning import PlanOptions, planned
from tracemark.acts.rivals import rivals
from tracemark.errors import TracemarkError
from tracemark.exporters.choice import choose, surer
from tracemark.exporters.select import Reason
from tracemark.ledger.pair import label
from tracemark.words import numbered


@dataclass(frozen=True, slots=True)
class Consequences:
    """What a decision does to the training set."""

    successes_before: int
    """Successes that an SFT export may take under the pair before, limits of number aside."""
    successes_after: int
    """The same under the pair after."""
    kept: int
    """Successes that count under both."""
    rows_before: int
    """Rows that an SFT export would hold before."""
    rows_after: int
    """Rows that it would hold after."""
    minimum: int
    """Fewest rows for which an export is written."""
    planned_tasks: int | None
    """Tasks that `plan` lists after; None when it cannot plan."""
    planned_runs: int | None
    """Runs that it lists."""
    unplanned: str | None
    """Why it cannot plan; None when it can."""
    doubtful: int = 0
    """Recorded successes of another harness that do not show that it made them as the policy of exports asks, be they
    of evaluation tasks; training runs like them would be no rows. 0 where the harness stays."""
    surer: str | None = None
    """What to do about them; None when there are none."""

    def as_json(self) -> dict[str, Any]:
        """Return the members."""
        return {name: getattr(self, name) for name in self.__slots__}

    def words(self) -> list[str]:
        """Return what it comes to, a sentence a line."""
        rows = f"an export would hold {numbered(self.rows_after, 'row')}, {self.rows_before} before"
        said = [f"training set: {self._counted()}; {rows}"]
        if self.rows_after < self.minimum:
            said.append(f"export sft is refused until it has {numbered(self.minimum, 'row')}")
        if self.doubtful:
            weak = f"the evidence of {numbered(self.doubtful, 'success')} of the new harness is too weak for an export"
            said.append(f"{weak}, and so is that of runs made alike: {self.surer}")
        if self.unplanned is not None:
            said.append(f"what to collect is not known: {self.unplanned}")
        elif self.planned_runs:
            listed = f"{numbered(self.planned_runs, 'run')} of {numbered(self.planned_tasks or 0, 'task')}"
            said.append(f"tracemark plan lists {listed} to collect")
        else:
            said.append("tracemark plan lists nothing to collect")
        return said

    def _counted(self) -> str:
        """Return what becomes of the successes."""
        before, others = self.successes_before, self.successes_after - self.kept
        if not before:
            new = numbered(others, "success") if others else "no success"
            return f"an export can take {new} under the new pair, and could take none under the old"
        taken = "all" if self.kept == before else self.kept or "none"
        said = f"of {numbered(before, 'success')} that an export could take under the old pair it can take {taken}"
        more = f", and {numbered(others, 'other')}" if others else ""
        return f"{said} under the new one{more}"


def as_if(corpus: Corpus, pair: dict[str, Any]) -> Corpus:
    """Return a corpus as it would be if other halves were accepted.

    Args:
        corpus: the corpus.
        pair: by `harness` and `model` what would be accepted; a half that is absent stays.
    """
    other = Corpus(corpus.root)
    harness = pair.get("harness", corpus.decisions.harness)
    model = pair.get("model", corpus.decisions.model)
    # both are read once and kept, so what is put there is what every verb sees
    other.params = replace(corpus.params, accepted=replace(corpus.params.accepted, harness=harness, model=label(model)))
    other.decisions = replace(corpus.decisions, harness=harness, model=model)
    return other


def consequences(corpus: Corpus, pair: dict[str, Any]) -> Consequences:
    """Return what accepting other halves would do to the training set; see `as_if`.

    Raises:
        IntegrityError: when a trace that must be read is damaged.
    """
    after = as_if(corpus, pair)
    passed = {}
    rows = {}
    with open_store(corpus.root) as store:
        for name, one in (("before", corpus), ("after", after)):
            terms = terms_of(one)
            with store.workspace() as folder, store.unchanging():
                seen = look(store, one, terms, folder)
            passed[name] = {trace.id for trace in seen.judged.passed}
            rows[name] = len(choose(seen.judged, terms.caps).ids)
    doubtful = [one for one in seen.judged.missed if one.reason is Reason.EVIDENCE] if "harness" in pair else []
    tasks: int | None = None
    runs: int | None = None
    why = None
    try:
        plan = planned(after, PlanOptions())
        tasks, runs = len(plan.tasks), plan.runs
    except TracemarkError as error:
        # the decision stands all the same, and whoever plans is told
        why = error.message
    fitting = frozenset[str]().union(*(one.fitting for one in doubtful))
    return Consequences(
        successes_before=len(passed["before"]),
        successes_after=len(passed["after"]),
        kept=len(passed["before"] & passed["after"]),
        rows_before=rows["before"],
        rows_after=rows["after"],
        minimum=terms_of(corpus).caps.minimum,
        planned_tasks=tasks,
        planned_runs=runs,
        unplanned=why,
        doubtful=len(doubtful),
        surer=surer(None, fitting, terms, require_accepted(after), partial(rivals, after)) if doubtful else None,
    )
