"""What a change of a harness's tool schemas does to tool calls that were made before it.

A call is judged by its tool's name and arguments against the definitions of two harnesses, the one that made it and the
one that is to take its place. JSON Schema decides, in the draft that a schema names, else in 2020-12. `format` is an
annotation, as it is to the providers; a tool without a schema takes any arguments.

Invariants:
- pure: no schema is fetched or read from a disk, whatever a `$ref` names; one that leads outside its own schema makes
  the schema unusable;
- a schema that is unusable, or arguments that no validator takes (lone surrogates, nesting without end, a pattern
  that backtracks for ever), decide nothing: such a call is undecided, and never counts as valid. So it is where
  references of a schema name each other so often that one value would be looked at without end (`looks`);
- what the schemas do not say is not said: a valid call may still be answered otherwise by changed code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

import jsonschema_rs

from tracemark.harness.diff import Difference
from tracemark.harness.looks import Looks

FAULTS = 20
"""At most so many faults of one call are named."""

_WHY = 160
"""At most so many characters say what is wrong."""

_LOOKS = 100_000
"""At most so many schemas may apply to one and the same value."""

_UNDECIDING = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
    jsonschema_rs.ValidationErrorKind.Referencing,
)
"""Errors of the validator itself, which say nothing of the arguments."""


class Verdict(StrEnum):
    """What becomes of a call, or of a trace by the worst of its calls, from the worst to the best."""

    STOPPED = "stopped"
    """It was valid under the old schemas and is not under the new ones."""
    UNDECIDED = "undecided"
    """A schema that must be asked, or the arguments, cannot be judged."""
    INVALID_BEFORE = "invalid-before"
    """It is invalid under the new schemas, and was under the old ones."""
    VALID = "valid"
    """It is valid under the new schemas."""


class Fault(NamedTuple):
    """One way in which a call does not fit a definition."""

    argument: str
    """JSON pointer into the arguments, also to one that is missing; empty for the arguments as a whole."""
    rule: str
    """The keyword of JSON Schema, `tool-unbound` where there is no such tool, or `no-object` where the model's
    arguments were no JSON object."""
    why: str
    """What is wrong, in words; may quote the trace."""


class Schemas:
    """The tool schemas of one harness, each compiled once.

    Args:
        definitions: the definitions as a request holds them, `{"type": "function", "function": {…}}`.
    """

    def __init__(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        self._validators: dict[str, tuple[jsonschema_rs.Validator, Looks] | None] = {}
        self.unusable: dict[str, str] = {}
        """Why a tool's schema decides nothing, by tool."""
        for definition in definitions:
            tool = definition["function"]
            try:
                parameters = tool.get("parameters")
                self._validators[tool["name"]] = None if parameters is None else _compiled(parameters)
            except (jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
                self.unusable[tool["name"]] = _cut(str(error).partition("\n")[0])

    def faults(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Fault, ...] | None:
        """Return what keeps a call from being valid, at most `FAULTS`; None when that cannot be said.

        Args:
            tool: the name of the tool that is called.
            arguments: the arguments as they are stored.
        """
        if len(arguments) == 1 and "_raw" in arguments:
            return (Fault("", "no-object", "the arguments that the model wrote are no JSON object"),)
        if tool in self.unusable:
            return None
        if tool not in self._validators:
            return (Fault("", "tool-unbound", f"there is no tool {tool!r}"),)
        compiled = self._validators[tool]
        if compiled is None:
            return ()
        validator, looks = compiled
        if looks.exceed(arguments):
            return None
        try:
            errors = list(islice(validator.iter_errors(arguments), FAULTS))
        except (ValueError, RecursionError, OverflowError):
            return None
        if any(isinstance(error.kind, _UNDECIDING) for error in errors):
            return None
        return tuple(sorted({fault for error in errors for fault in _faults(error)})[:FAULTS])


class Judged(NamedTuple):
    """One call and what becomes of it."""

    step: int
    """`step_id` of the step that makes it."""
    call: int
    """Its place among the calls of the step, from 1."""
    tool: str
    """The tool that it calls."""
    verdict: Verdict
    """What becomes of it."""
    faults: tuple[Fault, ...]
    """What is wrong with it under the new schemas; empty unless it stopped being valid."""


def judge(trajectory: Mapping[str, Any], old: Schemas | None, new: Schemas) -> Iterator[Judged]:
    """Yield every tool call of the agent itself, judged; those of embedded sub-agents are not its own.

    Args:
        trajectory: an ATIF document.
        old: the schemas under which the calls were made; None when nobody knows them.
        new: the schemas that are to take their place.
    """
    for step in trajectory["steps"]:
        for number, call in enumerate(step.get("tool_calls") or (), 1):
            name, arguments = call["function_name"], call["arguments"]
            now = new.faults(name, arguments)
            before = () if now == () else old.faults(name, arguments) if old is not None else None
            verdict = _verdict(before, now)
            yield Judged(step["step_id"], number, name, verdict, (now or ()) if verdict is Verdict.STOPPED else ())


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what becomes of a trace: the worst that becomes of one of its calls; valid for one without calls."""
    ranks = list(Verdict)
    return min(verdicts, key=ranks.index, default=Verdict.VALID)


@dataclass(frozen=True, slots=True)
class Change:
    """One part that differs between two harnesses, and what that means for traces of the first."""

    component: str
    """The component."""
    part: str
    """The part; empty for a change of order."""
    kind: str
    """`added`, `removed`, `changed` or `reordered`."""
    members: tuple[str, ...]
    """Members of the part that differ."""
    means: str
    """What a trace of the first shows, and what no schema proves."""


def changes(differences: Sequence[Difference]) -> list[Change]:
    """Return what each difference of two harnesses means for the stored traces of the first."""
    return [Change(d.component, d.part, d.kind.value, d.members, _meaning(d)) for d in differences]


_MEANINGS = {
    "prompt_templates": "traces show the messages of the old prompts, not those that the new ones would give",
    "observation_handlers": "traces show the observations of the old handlers, not those that the new ones would give",
    "runtime": "traces were made under the old parsers, limits and packages; what the new ones would do is not known",
}


def _meaning(found: Difference) -> str:
    if found.component != "tool_bindings":
        return _MEANINGS[found.component]
    if found.kind == "added":
        return "no trace was offered it"
    if found.kind == "removed":
        return "every call of it stops validating"
    told = []
    if "schema" in found.members:
        told.append("its calls are judged by the new schema; traces were offered the old definition")
    if set(found.members) - {"schema"}:
        told.append("what it would answer now is not known: traces show the answers of the old code")
    return "; ".join(told)


def _verdict(before: Sequence[Fault] | None, now: Sequence[Fault] | None) -> Verdict:
    if now is not None and not now:
        return Verdict.VALID
    if now is None or before is None:
        return Verdict.UNDECIDED
    return Verdict.INVALID_BEFORE if before else Verdict.STOPPED


def _compiled(schema: dict[str, Any]) -> tuple[jsonschema_rs.Validator, Looks]:
    validator = jsonschema_rs.validator_for(schema, retriever=_never, validate_formats=False)
    looks = Looks(schema, _LOOKS)
    if looks.exceed({}):
        raise ValueError(f"by its references more than {_LOOKS} schemas apply to one value")
    return validator, looks


def _never(uri: str) -> Any:
    raise ValueError(f"{uri} is outside of the schema, and nothing is fetched")


def _faults(error: jsonschema_rs.ValidationError) -> list[Fault]:
    pointer = "".join(f"/{_escaped(part)}" for part in error.instance_path)
    kind = error.kind
    match kind:
        case jsonschema_rs.ValidationErrorKind.Required():
            return [Fault(f"{pointer}/{_escaped(kind.property)}", kind.name, "it is required, and missing")]
        case (
            jsonschema_rs.ValidationErrorKind.AdditionalProperties()
            | jsonschema_rs.ValidationErrorKind.UnevaluatedProperties()
        ):
            return [Fault(f"{pointer}/{_escaped(name)}", kind.name, "no such argument") for name in kind.unexpected]
    return [Fault(pointer, kind.name, _cut(error.message))]


def _escaped(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _cut(text: str) -> str:
    return text if len(text) <= _WHY else text[:_WHY] + "…"
