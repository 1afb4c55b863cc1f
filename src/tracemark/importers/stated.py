"""What a `batch.yaml` states of a run, beside what the record of the run says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracemark.model.trace import model_label


def fill_from_batch(run: dict[str, Any], batch: Mapping[str, Any]) -> None:
    """Add to `run` the domain, split, note and model that `batch.yaml` states, where the record says nothing.

    Of a model of another name than the record's nothing is taken.
    """
    for name in ("domain", "split", "note"):
        if name in batch:
            run.setdefault(name, batch[name])
    stated = batch.get("model")
    if stated and not _names_another(run, batch):
        said = run.get("model", {})
        run["model"] = {**stated, **(said if names_model(run) else {k: v for k, v in said.items() if k != "name"})}


def overruled(run: Mapping[str, Any], batch: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a `batch.yaml` states and a record says otherwise: the member, what is stated, what the record says.

    Args:
        run: the facts of the run, with what the batch adds to them.
        batch: what the `batch.yaml` states.
    """
    for name in ("domain", "split"):
        if name in batch and run.get(name, batch[name]) != batch[name]:
            yield name, batch[name], run[name]
    stated, said = batch.get("model") or {}, run.get("model") or {}
    if _names_another(run, batch):
        there, here = (model_label(model["name"], model.get("revision")) for model in (stated, said))
        if there != here:
            yield "model", there, here
        return
    for name, member in stated.items():
        if said.get(name, member) != member:
            yield f"model.{name}", member, said[name]


def names_model(facts: Mapping[str, Any]) -> bool:
    """Return whether run facts, or what a `batch.yaml` states, name a model: its revision alone is no name."""
    model = facts.get("model")
    name = model.get("name") if isinstance(model, Mapping) else None
    return isinstance(name, str) and bool(name)


def _names_another(run: Mapping[str, Any], batch: Mapping[str, Any]) -> bool:
    both = names_model(run) and names_model(batch)
    return both and bool(run["model"]["name"] != batch["model"]["name"])
