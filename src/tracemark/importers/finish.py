"""The end of every import: the trajectory is walked, judged valid, and becomes a trace.

An importer fills a `Draft`; what is the same for all formats happens here once: facts of the batch, validation (fast
schema and models), canonical bytes, what the content shows, and the trace's source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracemark import digest
from tracemark.findings import Finding, finding
from tracemark.importers.base import (
    Document,
    Imported,
    Importer,
    Record,
    Refused,
    refuse,
    source_of,
)
from tracemark.importers.content import observed, walk
from tracemark.importers.conversation import NotMessagesError, UnknownRoleError
from tracemark.importers.stated import fill_from_batch, names_model
from tracemark.importers.strict import fast, faults, worded

UNFIT = "record-unfit"
"""Code of the refusal of a record that has not the shape of its format."""

CHANGES = 20
"""So many places where another harness took over are named; of further ones only how many there are."""


class UnfitError(ValueError):
    """A record has not the shape of its format; the message says what is missing, in one sentence."""


class NewerError(ValueError):
    """A version of a format that is not known; the message says which."""


@dataclass(slots=True)
class Draft:
    """What an importer made of one run."""

    trajectory: dict[str, Any]
    """The ATIF v1.8 document."""
    run: dict[str, Any]
    """The run facts."""
    outcome: dict[str, Any]
    """The outcome, at least its `status`."""
    repairs: list[str] = field(default_factory=list)
    """What was altered on the way, one short text each."""
    observed: dict[str, list[dict[str, str]]] | None = None
    """What was recovered, by component (`recovery`). A component that is here replaces what the walk would show of it,
    an empty list says that nothing can be said of it; None leaves all to the walk."""
    tools_known_empty: bool = False
    """Whether the record is the request itself, and offers no tools."""
    prompt_cut: str | None = None
    """The separator that the format fixes between the prompt template and the task; None when it fixes none."""
    findings: list[Finding] = field(default_factory=list)
    """What was seen and not understood."""
    model_place: str | None = None
    """Where the record and what stands beside it would say which model ran, in words, to be told where neither they nor
    `batch.yaml` does; None where it has no such place, or its absence has been told."""
    mixed: list[str] = field(default_factory=list)
    """Where another harness was at work than before, in words with the step; empty for a run of one harness. Of many
    the first `CHANGES` reach the trace, and how many follow."""


def drafted(importer: Importer, record: Record, document: Document, draft: Callable[[], Draft]) -> Imported | Refused:
    """Return the trace of the draft that an importer makes of a document, or the refusal of what is none of its format.

    Args:
        importer: who reads it.
        record: where it came from.
        document: the JSON value that it is read from.
        draft: makes the draft; raises `UnknownRoleError`, `NotMessagesError`, `NewerError` or `UnfitError` where it
            cannot.
    """
    try:
        made = draft()
    except UnknownRoleError as error:
        return refuse("unknown-role", document, str(error))
    except NewerError as error:
        return refuse("newer-format", document, str(error))
    except (NotMessagesError, UnfitError) as error:
        return refuse(UNFIT, document, str(error))
    return finish(importer, record, document, made)


def finish(importer: Importer, record: Record, document: Document, draft: Draft) -> Imported | Refused:
    """Return the trace of a draft, or the refusal of one that is no valid trajectory.

    Args:
        importer: who read it.
        record: where it came from.
        document: the JSON value that it was read from; its bytes are the trace's raw record.
        draft: what was made of it.
    """
    trajectory = draft.trajectory
    fill_from_batch(draft.run, record.context.batch)
    if draft.model_place is not None and not names_model(draft.run):
        message = f"the model is named neither by {draft.model_place} nor by a batch.yaml; unknown: model"
        draft.findings.append(finding("header-missing", document.where, message))
    walked = walk(trajectory, prompt_cut=draft.prompt_cut, tools_known_empty=draft.tools_known_empty)
    if not (walked.sound and fast(trajectory)):
        found = faults(trajectory)
        if found:
            return refuse(UNFIT, document, worded(found))
    shown = observed(walked.content, main_agent=draft.run.get("role") != "subagent")
    if draft.observed is not None:
        shown = {name: entries for name, entries in {**shown, **draft.observed}.items() if entries}
    return Imported(
        trajectory=trajectory,
        trajectory_bytes=digest.canonical(trajectory, finite=True),
        run=draft.run,
        outcome=draft.outcome,
        source=source_of(importer, record, document, draft.repairs),
        stamp=None,
        content=walked.content,
        observed=shown,
        where=document.where,
        findings=tuple(draft.findings),
        mixed=_shortened(draft.mixed),
    )


def _shortened(changes: Sequence[str]) -> tuple[str, ...]:
    if len(changes) <= CHANGES:
        return tuple(changes)
    return (*changes[:CHANGES], f"and {len(changes) - CHANGES} more changes")
