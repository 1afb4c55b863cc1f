"""ATIF, versions 1.0 to 1.8: one document, an array of them, JSON lines, or the trajectories of a Harbor trial.

Keeps: everything the format has, in place; what it does not have (unknown members, values of the wrong kind) in the
`extra` of the same object, named in `source.repairs`. Run facts and outcome come from the root's `extra.tracemark` (an
export of ours), else from the Harbor trial around the document. What the document itself shows (a model's name, links
to others, text that is a rendering) holds where neither states it.
Drops: nothing of the document but the root's `extra.tracemark`, which becomes stamp, run and outcome of the trace, and
an `extra` that is empty without it (an export marks an original `{}` by `empty_extra`).
Invents: `schema_version` (always ATIF-v1.8); step ids where they are wrong; a `session_id` (the Harbor trial's id)
where there is none; a `trajectory_id` for embedded documents without one; `tool_call_id`s and agent labels where they
are missing. Each is named in `source.repairs`.

`extra.tracemark` holds `run`, `outcome`, `harness` (the stamp), `trajectory` (the id of the trace whose stamp it is),
`further` (statements that disagree with these), `decided` (the stamp is no statement, but what people decided where it
comes from), `original` (which member of `extra` stood in its place), `empty_extra` and `null_extra`,
all optional. A stamp that names another trajectory than the one read here, or none, keeps its digests, but its evidence
falls to `claimed`. A document that an export wrote and nobody changed gives its trace again as it was: nothing beside
it, and nothing that it shows, adds to what it carries.

Documents that belong together: a sub-agent's document in the same folder is embedded where the main one names it by
`trajectory_path`, and is not a trace of its own; found elsewhere or alone it has `run.role` subagent. A continuation is
a trace of its own with `run.role` continuation, linked by `run.continues` and `run.continued_by` (file names as the
producer wrote them). Neither is ever a demonstration. A document is a part when another one of the source names it, by
path (also in another folder, in an archive, or packed) or by trajectory id or session id (an element of an array, a
line, a file, in the folder of the other or below); when it is embedded in another; or when it says so itself:
`parent_session_id`, `summarization_index` or `continuation_index` in `agent.extra`, an agent whose name ends in
`-summarization-…`, steps with `is_copied_context`. A path without a folder in it that leads to no file counts as an id,
with and without `.json`. An archive stands for its files as they would lie when it was unpacked in its own folder.
Documents that name one another in a circle are parts of nothing, unless one outside of the circle names one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tracemark import digest
from tracemark.findings import finding
from tracemark.harness.match import Content
from tracemark.importers import atif_carried, atif_harbor, atif_join, atif_repair, content
from tracemark.importers.base import (
    Context,
    Document,
    Imported,
    Importer,
    Record,
    Refused,
    Unit,
    refuse,
    source_of,
)
from tracemark.importers.content import Walk, observed, walk
from tracemark.importers.documents import documents, elements
from tracemark.importers.guard import FAILED, guarded
from tracemark.importers.head import Head
from tracemark.importers.stated import fill_from_batch
from tracemark.importers.strict import fast, faults, worded

SUCCESS = (
    ("extra.tracemark.outcome", "as carried"),
    (
        "Harbor result.json: exception_info, or exception.txt",
        "error; a timeout of the agent that was graded: by reward",
    ),
    ("Harbor result.json: verifier_result", "by reward: success at ingest.success_reward, else failure"),
    ("Harbor result.json that cannot be used, or is of another trial", "unknown, with a finding"),
    ("none of these", "unknown"),
)
"""Which source verdict gives which status, in the order in which they are looked for."""

MEMBERS = (
    (
        "`extra.tracemark.run` of the root",
        "run; what is left out of it is taken from the document, nothing from a trial",
    ),
    ("`extra.tracemark.outcome` of the root", "outcome"),
    ("`extra.tracemark.harness`, `extra.tracemark.trajectory` of the root", "the stamp, and the trace that it is of"),
    ("`agent.model_name`", "run.model.name"),
    ("`continued_trajectory_ref`; what marks a part, see above", "links and run.role"),
    *atif_harbor.MEMBERS,
)
"""What gives run and outcome, beside the trajectory itself."""

TERMINUS = "terminus-2"
TERMINUS_CUT = "Task Description:"
"""What Terminus-2 writes between its prompt template and the task."""

_HEADER = "__header__"
_OPENING = re.compile(rb'\s*(?:\[\s*)?\{\s*"schema_version"\s*:\s*"ATIF-v')


class AtifImporter(Importer):
    """Reads ATIF."""

    name = "atif"
    version = "3"
    surest = 100
    shows = ("prompt_templates", "tool_bindings")

    def recognise(self, head: Head) -> int:
        """Return 100 for a stated ATIF version, 90 for an object with `agent` and `steps`, 80 for an event stream.

        An array is what its first element is.
        """
        if _OPENING.match(head.data):
            return 100
        members = head.members
        first = head.value[0] if isinstance(head.value, list) and head.value else head.value
        version = first.get("schema_version") if isinstance(first, dict) else None
        if _is_header(members) and "schema_version" in members:
            return 80
        if "steps" in members and isinstance(version, str) and version.upper().startswith("ATIF"):
            return 100
        if members.get("agent") == "{" and members.get("steps") == "[":
            return 90
        return 85 if b'"ATIF-v' in head.data[:400] and members.get("agent", "{") == "{" else 0

    def unit(self, head: Head) -> Unit:
        """Return `line` for JSON lines; an event stream (a header line, then a line a step) is one document."""
        return "line" if head.lines and not _is_header(head.members) else "document"

    def read(self, record: Record) -> Iterator[Imported | Refused]:
        """Yield the trace of each document in the record, marked when it is embedded in another."""
        if atif_join.is_embedded_elsewhere(self.trace, record):
            for trace in (self.trace(record, one) for one in documents(record) if isinstance(one, Document)):
                if isinstance(trace, Imported):
                    yield trace._replace(embedded=True)
                elif trace.code == FAILED:
                    yield trace
            return
        found = documents(record)
        for document in found:
            if isinstance(document, Refused):
                yield document
            elif _is_header(document.value):
                yield from self._stream(record, document, found)
            elif _is_array(document.value):
                for element in elements(record, document):
                    yield element if isinstance(element, Refused) else self.trace(record, element)
            else:
                yield self.trace(record, document)

    def trace(self, record: Record, document: Document, context: Context | None = None) -> Imported | Refused:
        """Return the trace of one document, or why there is none; `context` stands in for the record's own.

        A document that it fails on costs nothing beside it: neither the others of a record, nor what it embeds.
        """
        value = document.value
        if not isinstance(value, dict):
            return refuse("record-not-object", document, f"{_kind(value)} where a trajectory was expected")
        return guarded(self.name, document, lambda: self._trace(record, document, value, context or record.context))

    def _trace(self, record: Record, document: Document, value: dict[str, Any], context: Context) -> Imported | Refused:
        carried = atif_carried.take(value)
        whole = self._whole(record, document, value, carried)
        if whole is not None:
            return whole
        repairs = list(carried.repairs)
        fault = atif_repair.raise_version(value, repairs)
        if fault:
            return refuse("newer-format", document, fault)
        plain = fast(value)
        # the fast schema knows no reference to a sub-agent
        if not plain and context.refers and b"trajectory_path" in document.raw:
            repairs += atif_join.embed(value, context)
            plain = fast(value)
        walked = _judge(value, repairs, plain)
        if isinstance(walked, str):
            return refuse("not-atif", document, walked)
        trial = atif_harbor.facts(value, context)
        if trial.key is not None and value.get("session_id") is None:
            value["session_id"] = trial.key
            repairs.append("session_id missing: the trial's id")
        raw = digest.canonical(value, finite=True)
        links = atif_join.links_of(value, context, walked.copied)
        run, outcome, doubts = _facts(value, raw, links, (carried, trial))
        repairs += [*doubts, *(text for _, text in trial.doubts)]
        fill_from_batch(run, context.batch)
        stamp = carried.stamp_for(raw, repairs)
        return Imported(
            trajectory=value,
            trajectory_bytes=raw,
            run=run,
            outcome=outcome,
            source=source_of(self, record, document, repairs),
            stamp=stamp,
            content=walked.content,
            observed=observed(walked.content, main_agent=run.get("role") != "subagent"),
            where=document.where,
            findings=tuple(finding(code, document.where, text) for code, text in _doubts(carried, trial)),
            further=carried.further_lowered(),
        )

    def _whole(
        self, record: Record, document: Document, value: dict[str, Any], carried: atif_carried.Carried
    ) -> Imported | None:
        """Return the trace of a document that is just as an export wrote it; None for any other."""
        if carried.trajectory is None:
            return None
        raw = digest.canonical(value, finite=True)
        walked = _sound(value, fast(value)) if carried.is_whole(raw) else None
        if walked is None:
            return None
        run = dict(carried.run or {})
        fill_from_batch(run, record.context.batch)
        return Imported(
            trajectory=value,
            trajectory_bytes=raw,
            run=run,
            outcome=carried.outcome or {},
            source=source_of(self, record, document, []),
            stamp=carried.stamp,
            content=walked.content,
            observed={},
            where=document.where,
            further=carried.further,
            decided=carried.decided,
        )

    def _stream(
        self, record: Record, first: Document, steps: Iterator[Document | Refused]
    ) -> Iterator[Imported | Refused]:
        repairs = ["event stream: the header and its steps were put together", *first.repairs]
        header = {name: value for name, value in first.value.items() if name != _HEADER}
        if first.value[_HEADER] is not True:
            said = digest.canonical(first.value[_HEADER]).decode("utf-8", "replace")
            repairs.append(f"{_HEADER} {said[:40]} left out")
        header["steps"] = []
        for document in steps:
            if isinstance(document, Refused):
                yield document
            elif not isinstance(document.value, dict):
                yield refuse("record-not-object", document, f"{_kind(document.value)} in an event stream")
            else:
                header["steps"].append(document.value)
                repairs += document.repairs
        yield self.trace(record, Document(header, record.raw, record.where, tuple(repairs)))


def _facts(
    value: dict[str, Any], raw: bytes, links: dict[str, Any], found: tuple[atif_carried.Carried, atif_harbor.Facts]
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return run, outcome and repairs: what the document carried, else what its trial says.

    Facts that the document itself shows (a rendering, its links, the model that it names) hold where nobody states
    them. Facts that an export made of this very trajectory are whole: it had them before.
    """
    carried, trial = found
    whole = carried.run is not None and carried.trajectory is not None and carried.trajectory == digest.sha256(raw)
    if carried.run is None:
        run = {**trial.run, **links}
    else:
        run = {**({} if whole else atif_harbor.rendering(value)), **links, **carried.run}
    model = value["agent"].get("model_name")
    if model and not whole:
        run["model"] = {"name": model, **run.get("model", {})}
    doubts = []
    if run.get("rendered") is False and atif_harbor.has_synthetic_calls(value):
        run["rendered"] = True
        doubts.append("rendered is false, and the agent's calls are synthetic: counted as rendered")
    return run, carried.outcome or trial.outcome, doubts


def _doubts(carried: atif_carried.Carried, trial: atif_harbor.Facts) -> Iterator[tuple[str, str]]:
    """Yield code and words of what the document carries, or its trial says, and is not used."""
    if carried.fault is not None:
        yield "carried-invalid", carried.fault
    yield from trial.doubts
    conflict = None if carried.outcome is None else atif_harbor.conflict(carried.outcome, trial.outcome)
    if conflict is not None:
        yield "verdict-conflict", conflict


def _judge(value: dict[str, Any], repairs: list[str], plain: bool) -> Walk | str:
    """Return the walk over a document that is valid, or was made so; the reason when it cannot be."""
    walked = _sound(value, plain)
    if walked is not None:
        return walked
    repairs += atif_repair.repair(value)
    left = faults(value)
    return worded(left) if left else _walk(value)


def _sound(value: dict[str, Any], plain: bool) -> Walk | None:
    """Return the walk over a document that is valid as it is, which the fast schema says or the models; else None."""
    if plain:
        walked = _walk(value)
        if walked.sound:
            return walked
    return None if faults(value) else _walk(value)


def _walk(value: dict[str, Any]) -> Walk:
    return walk(value, prompt_cut=_cut_of(value))


def content_of(trajectory: dict[str, Any]) -> Content:
    """Return what harnesses are compared with, of a stored trajectory."""
    return content.content_of(trajectory, prompt_cut=_cut_of(trajectory))


def _cut_of(trajectory: dict[str, Any]) -> str | None:
    return TERMINUS_CUT if trajectory["agent"]["name"] == TERMINUS else None


def _is_header(value: object) -> bool:
    """Return whether an object, or the names of its members, begins an event stream: its steps stand behind it."""
    return isinstance(value, Mapping) and _HEADER in value and "steps" not in value


def _is_array(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _kind(value: object) -> str:
    return {list: "an array", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")


IMPORTER = AtifImporter()
"""The importer, as the registry names it."""
