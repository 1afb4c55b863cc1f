"""Evaluation traces as the attempts that a gate compares.

Invariants:
- a trace's bytes are proved to give its id, and what the catalogue says of it is held against its line, before anything
  is believed;
- what was stated later of a run (its model, its grader, its outcome) counts as what its line says does;
- a cost that is not known is None, and never 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracemark import digest
from tracemark.exporters.evaluation import qualified
from tracemark.exporters.head import head_in, require_same
from tracemark.gates.cell import Attempt, Model
from tracemark.store.row import storable, trajectory_of
from tracemark.store.selection import State
from tracemark.store.state import join
from tracemark.store.store import Store

_DATE = re.compile(r"[-@:]?\d{4}-?\d{2}-?\d{2}")
_NAMED = ("name", "revision", "chat_template", "tokenizer", "server")


def attempts_of(store: Store, states: Iterable[State], same: Mapping[str, str]) -> Iterator[Attempt]:
    """Yield traces as attempts.

    Args:
        store: the open store.
        states: the traces as they stand, in the order in which the store gave them; each has a task.
        same: the fingerprint under which traces of a declared equivalent count; of others it is their own.

    Raises:
        IntegrityError: when a trace is damaged, or is not what its id, or the catalogue, says.
    """
    known = list(states)
    restated = {state.trace_id for state in known if state.restated}
    changed = restated | store.annotated([state.trace_id for state in known])
    said = store.statements(changed) if changed else {}
    store.require_true(restated)
    for state, line in store.lines(known):
        trace = state.trace_id
        require_same(line, trace, head_in(state))
        trajectory_of(line, trace)
        value = digest.load_canonical(line)
        run, outcome = value["run"], value["outcome"]
        if trace in said:
            joined = join(said[trace])
            run, outcome = joined.run, joined.outcome
        yield Attempt(
            trace=trace,
            task=str(qualified(state.row.task, state.row.domain)),
            attempt=state.row.attempt,
            status=state.row.status,
            grader=_grader(outcome),
            cost=cost_of(value["trajectory"]),
            evidence=state.row.evidence,
            model=model_of(run),
            shown=shown_otherwise(value["trajectory"], model_of(run).name),
            fingerprint=same.get(state.row.fingerprint or "", state.row.fingerprint),
        )


def model_of(run: Mapping[str, Any]) -> Model:
    """Return the model half of a run, with its sampling parameters as text; None in it is what nobody says.

    A seed among the parameters is the attempt's own and no part of a model: it says which draw is made, not of what.
    """
    said = run.get("model") or {}
    sampling = {name: value for name, value in (run.get("sampling") or {}).items() if name != "seed"}
    return Model(
        **{name: _text(said.get(name)) for name in _NAMED},
        sampling=digest.canonical(sampling).decode("utf-8") if sampling else None,
    )


def shown_otherwise(trajectory: Mapping[str, Any], name: str | None) -> str | None:
    """Return the model that the steps of a run name, where none names the one that is recorded; None elsewhere.

    A provider before the name (`openai/…`) and a date after it make no other name.

    Args:
        trajectory: the run.
        name: the model as it is recorded of the run.
    """
    steps = (step for step in trajectory.get("steps") or () if step.get("source") == "agent")
    named = {step.get("model_name") for step in steps} - {None, ""}
    if not named:
        named = {(trajectory.get("agent") or {}).get("model_name")} - {None, ""}
    if not named or name is None or any(_alike(one, name) for one in named):
        return None
    return str(min(named))


def _alike(one: str, other: str) -> bool:
    """Return whether two names are those of one model, of which one may name a provider before or a date behind."""
    short, long = sorted((name.rpartition("/")[2].casefold() for name in (one, other)), key=len)
    rest = long.removeprefix(short)
    return bool(short) and (not rest or (rest != long and _DATE.fullmatch(rest) is not None))


def cost_of(trajectory: Mapping[str, Any]) -> float | None:
    """Return what a run cost in US dollars: its own total, else the sum over its steps; None when it is not known.

    Steps without a call of a model cost nothing. One step whose cost is not known makes the whole unknown, and so does
    an embedded sub-agent of unknown cost.
    """
    total = (trajectory.get("final_metrics") or {}).get("total_cost_usd")
    if total is not None:
        return _number(total)
    costs = [
        _number((step.get("metrics") or {}).get("cost_usd"))
        for step in trajectory.get("steps") or ()
        if step.get("source") == "agent" and step.get("llm_call_count") != 0
    ]
    costs += [cost_of(one) for one in trajectory.get("subagent_trajectories") or ()]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _number(value: Any) -> float | None:
    """Return a cost as a number; None for what is none, or is beyond all that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: Any) -> str | None:
    """Return a text as the catalogue holds it, so that what is asked for by a name of there is the one of here."""
    return storable(value) if isinstance(value, str) else None


def _grader(outcome: Mapping[str, Any]) -> tuple[str, str | None] | None:
    grader = outcome.get("grader") or {}
    name = _text(grader.get("name"))
    return None if name is None else (name, _text(grader.get("version")))
