"""What an importer wrote instead of what was said: no model saw or wrote it, so no model is to learn it.

Importers keep what they replace in the `extra` of the step, call or result that they change, and mark there what was
missing. Here those marks are read; which there are is in the modules `importers.conversation` and
`importers.atif_repair`, and two are of others: parts that a message had and ATIF has not (`other_parts`), and a call
that the model's server answered itself, with what no conversation holds (`results_missing`).

Invariants:
- beside calls nothing need be said, so a message that is null or missing there is the empty text that it is sent as;
- parts of a text keep their texts, so what else stood in them (`cache_control`) is no matter;
- what only names things (ids, times) is no text, and may be an importer's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracemark import digest
from tracemark.digest import JSON

_REPLACED = ("original_message", "original_content")
_MISSING = ("message_missing", "content_missing")
_PARTS = "other_parts"
_LEFT_OUT = frozenset(
    {
        "original_is_copied_context",
        "original_llm_call_count",
        "original_reasoning_content",
        "original_results",
        "original_tool_calls",
        _PARTS,
        "results_missing",
    }
)
_OBSERVATION = "observation_"
_NO_CALL = frozenset({"original_call", "original_function", "original_function_name", "original_name"})
_VERBATIM = ("arguments", "original_arguments")


def in_step(step: Mapping[str, JSON], results: Sequence[Mapping[str, JSON]]) -> bool:
    """Return whether the message of a step is an importer's, or something of the step could not be kept in its place.

    Args:
        step: the step.
        results: those of its observation.
    """
    extra = step.get("extra")
    if not isinstance(extra, dict):
        return False
    if _is_written(extra, step.get("message"), beside_calls=bool(step.get("tool_calls"))):
        return True
    if not results and any(name.startswith(_OBSERVATION) for name in extra):
        return True
    return not _LEFT_OUT.isdisjoint(extra) or not isinstance(extra.get("original_observation", ""), str)


def in_result(result: Mapping[str, JSON]) -> bool:
    """Return whether the content of a result is an importer's."""
    extra = result.get("extra")
    if not isinstance(extra, dict):
        return False
    return _PARTS in extra or _is_written(extra, result.get("content"), beside_calls=False)


def in_call(call: Mapping[str, JSON]) -> bool:
    """Return whether a call is not the one that was made: it was none, or its arguments could not be kept exactly."""
    extra = call.get("extra")
    if not isinstance(extra, dict):
        return not call["function_name"]
    if not call["function_name"] or not _NO_CALL.isdisjoint(extra):
        return True
    return any(name in extra and _is_inexact(extra[name]) for name in _VERBATIM)


def _is_written(extra: Mapping[str, JSON], said: JSON, *, beside_calls: bool) -> bool:
    for name in _REPLACED:
        if name in extra and (not beside_calls if extra[name] is None else isinstance(said, str)):
            return True
    return not beside_calls and any(name in extra for name in _MISSING)


def _is_inexact(text: JSON) -> bool:
    if not isinstance(text, str):
        return False
    try:
        return bool(digest.loads(text.encode("utf-8", "surrogatepass")).repairs)
    except digest.NotJSONError:
        # then it says nothing of the object that stands there
        return False
