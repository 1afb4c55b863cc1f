"""Evaluation traces as the attempts that a gate compares.

Invariants:
- a trace's bytes are proved to give its id, and what the catalogue says of it is held against its line, before anything
  is believed;
- what was stated later of a run (its model, its grader, its outcome) counts as what its line says does;
- a run that used up a budget of its own failed, whoever calls that an error: were it made again as what the
  infrastructure ended is, an agent could try until it is quick enough;
- a cost that is not known is None, and never 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from tracemark import digest
from tracemark.errors import IntegrityError
from tracemark.exporters.evaluation import qualified
from tracemark.exporters.head import head_in, require_same
from tracemark.failures.budget import exhausted
from tracemark.gates.cell import Attempt, Model, Shown
from tracemark.importers.base import REWARD_RULES
from tracemark.store.row import storable, trajectory_of
from tracemark.store.selection import State
from tracemark.store.state import Statement, join
from tracemark.store.store import Store

_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}", re.ASCII)
_DATED = re.compile(rf"(?P<name>.+?)[-@:]?(?P<date>{_DAY.pattern})", re.ASCII | re.DOTALL)
_ROUNDED = 1.01
"""How many times its total the steps of a run may cost: recorders round each of them."""
_CENTS = -2
"""The coarsest decimal to which a recorder rounds a total; JSON keeps no zeros, so 0.1 may have been 0.10."""
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
        require_same(line, state.trace_id, head_in(state))
        trajectory_of(line, state.trace_id)
        try:
            one = _attempt(state, digest.load_canonical(line), said.get(state.trace_id), same)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # another program's line: what a trajectory holds is judged where it is read
            message = f"a line is not a trace: {type(error).__name__}: {error}"
            raise IntegrityError(message, where=state.trace_id, hint="tracemark check") from None
        yield one


def _attempt(
    state: State, value: Mapping[str, Any], said: Sequence[Statement] | None, same: Mapping[str, str]
) -> Attempt:
    run, outcome = value["run"], value["outcome"]
    if said is not None:
        joined = join(said)
        run, outcome = joined.run, joined.outcome
    model, status = model_of(run), state.row.status
    ended = status == "error" and exhausted(outcome.get("termination"))
    return Attempt(
        trace=state.trace_id,
        task=str(qualified(state.row.task, state.row.domain)),
        domain=state.row.domain or None,
        # an empty text says nothing
        attempt=None if state.row.attempt == "" else state.row.attempt,
        status="failure" if ended else status,
        grader=_grader(outcome),
        cost=cost_of(value["trajectory"]),
        evidence=state.row.evidence,
        model=model,
        shown=shown_otherwise(value["trajectory"], model),
        fingerprint=same.get(state.row.fingerprint or "", state.row.fingerprint),
        reward=_number(outcome.get("reward")) if outcome.get("rule") in REWARD_RULES else None,
        exhausted=ended,
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


def shown_otherwise(trajectory: Mapping[str, Any], recorded: Model) -> Shown | None:
    """Return which steps of a run name another model than is recorded; None when none does.

    Every step in which a model spoke counts, those of embedded agents too: one that agrees hides no other. A step that
    names no model is of its agent's. A provider before the name (`openai/…`), and a date or the recorded revision
    behind it, make no other name.

    Args:
        trajectory: the run.
        recorded: the model as it is recorded of the run.
    """
    if recorded.name is None:
        return None
    named: Counter[str | None] = Counter()
    waiting = [trajectory]
    while waiting:
        one = waiting.pop()
        waiting += one.get("subagent_trajectories") or ()
        usual = (one.get("agent") or {}).get("model_name")
        named.update(step.get("model_name") or usual or None for step in _spoken(one))
    others = {name: count for name, count in named.items() if name and not _alike(storable(name), recorded)}
    if not others:
        return None
    return Shown(sum(others.values()), named.total(), tuple(sorted(map(storable, others))))


def _spoken(trajectory: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a trajectory, without those of embedded agents, in which a model spoke."""
    for step in trajectory.get("steps") or ():
        if step.get("source") == "agent" and step.get("llm_call_count") != 0:
            yield step


def _alike(name: str, recorded: Model) -> bool:
    """Return whether a name may be that of a recorded model: its own, its label, or it with a date.

    Of two names one may have a provider before it, and two dates differ as two revisions do.
    """
    own, said = (recorded.name or "").casefold(), name.casefold()
    revision = (recorded.revision or "").casefold()
    if any(_is_end(said, one) for one in (own, f"{own}@{revision}")):
        return True
    if (dated := _DATED.fullmatch(own)) is not None and _is_end(said, dated["name"]):
        return True
    dated = _DATED.fullmatch(said)
    if dated is None or not _is_end(dated["name"], own):
        return False
    # a revision that is no date says nothing of when
    return _DAY.fullmatch(revision) is None or _digits(revision) == _digits(dated["date"])


def _is_end(one: str, other: str) -> bool:
    """Return whether two names are the same, or one is the other with a provider before it."""
    short, long = sorted((one, other), key=len)
    return bool(short) and (short == long or long.endswith(f"/{short}"))


def _digits(date: str) -> str:
    return date.replace("-", "")


def cost_of(trajectory: Mapping[str, Any]) -> float | None:
    """Return what a run cost in US dollars: its own total, else the sum over its steps; None when it is not known.

    Steps without a call of a model cost nothing. One step whose cost is not known makes the whole unknown, and so does
    an embedded sub-agent of unknown cost, or a total that is less than what the steps cost, as 0 is less than anything.
    Where a cost is below 0, that is returned, since no sum with it means anything.
    """
    stated = (trajectory.get("final_metrics") or {}).get("total_cost_usd")
    if stated is not None:
        total = _number(stated)
        return None if total is not None and total >= 0 and _least(trajectory) > _most(total) else total
    embedded = [cost_of(one) for one in trajectory.get("subagent_trajectories") or ()]
    costs = [*map(_cost_of_step, _spoken(trajectory)), *embedded]
    known = [cost for cost in costs if cost is not None]
    if known and min(known) < 0:
        return min(known)
    return sum(known) if known and len(known) == len(costs) else None


def _least(trajectory: Mapping[str, Any]) -> float:
    """Return what the steps of a run cost at least, those of embedded agents and their totals included.

    What is not known counts as nothing, and what is below 0 takes nothing away.
    """
    own = [_cost_of_step(step) for step in _spoken(trajectory) if not step.get("is_copied_context")]
    least = sum(max(cost, 0.0) for cost in own if cost is not None)
    for one in trajectory.get("subagent_trajectories") or ():
        stated = _number((one.get("final_metrics") or {}).get("total_cost_usd"))
        least += max(_least(one), stated or 0.0)
    return least


def _most(total: float) -> float:
    """Return the most that the steps of a run can cost whose total was rounded; nothing where it is 0."""
    if total == 0:
        return 0.0
    exponent = Decimal(str(total)).as_tuple().exponent
    assert isinstance(exponent, int)
    return total * _ROUNDED + 0.5 * 10.0 ** min(exponent, _CENTS)


def _cost_of_step(step: Mapping[str, Any]) -> float | None:
    return _number((step.get("metrics") or {}).get("cost_usd"))


def _number(value: Any) -> float | None:
    """Return a cost as a number; None for what is none, or is beyond all that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: Any) -> str | None:
    """Return a text as the catalogue holds it, so that what is asked for by a name of there is the one of here.

    An empty one says nothing.
    """
    return storable(value) if isinstance(value, str) and value else None


def _grader(outcome: Mapping[str, Any]) -> tuple[str, str | None] | None:
    grader = outcome.get("grader") or {}
    name = _text(grader.get("name"))
    return None if name is None else (name, _text(grader.get("version")))
