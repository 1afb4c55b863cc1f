"""Which known harnesses fit traces, many traces after each other.

Traces of equal stamps show the same tools and the same system prompts, for a stamp holds the digests of both. So a
harness that those alone exclude for one trace is excluded for all of them, and most siblings are: they differ in what
the model is shown first. What is left may be excluded by the rest of a trace, which takes reading it whole. A
sub-agent's document is compared with nothing, so a stamp that it shares with other traces excludes nothing for it.

Invariants:
- `of` is exact, whatever was seen before;
- `at_most` holds every harness that `of` would give for the same line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracemark import digest
from tracemark.harness.match import Content, Matcher, fits
from tracemark.importers.content import observed as content_observed

_OUTCOME = b',"outcome":'
_SUBAGENT = b'"role":"subagent"'
_MOST = 256
_LONGEST = 262_144


class Fitting:
    """Answers which known harnesses fit a trace.

    Args:
        matchers: one for each known harness.
    """

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        self._matchers = matchers
        self._by_stamp: dict[bytes, list[str]] = {}

    def of(self, line: bytes, content: Content) -> list[str]:
        """Return the fingerprints that the content of a stored trace does not exclude, sorted.

        Args:
            line: the trace's line.
            content: what harnesses are compared with.
        """
        stamp = _stamp_in(line)
        if stamp not in self._by_stamp and len(self._by_stamp) < _MOST and len(stamp) <= _LONGEST:
            self._by_stamp[stamp] = fits(self._matchers, _common(stamp, content))
        return fits(self._matchers, content)

    def at_most(self, line: bytes) -> list[str] | None:
        """Return the fingerprints that the stamp of a stored trace leaves open.

        None when no such stamp was seen, and when the line may be that of a sub-agent's document.
        """
        if _SUBAGENT in line:
            return None
        return self._by_stamp.get(_stamp_in(line))


def _texts(prompts: list[dict[str, str]]) -> list[tuple[str, str]] | None:
    """Return the parts and digests of messages that stand whole in a trace; None where one was taken apart."""
    if any(entry["form"] not in ("rendered", "transcript") for entry in prompts):
        return None
    return [(entry["part"], entry["digest"]) for entry in prompts]


def _stamp_in(line: bytes) -> bytes:
    """Return the beginning of a stored line up to its outcome: its format and its stamp."""
    return line[: line.find(_OUTCOME)]


def _common(beginning: bytes, content: Content) -> Content:
    """Return what all traces whose lines begin so have in common with one whose content is given."""
    try:
        stamped: dict[str, Any] = digest.load_canonical(beginning + b"}")["harness"].get("observed") or {}
    except digest.NotJSONError:
        # a part of that name cut the stamp short, so nothing is known to be common
        return Content()
    # what an importer recovered in another way says less of what was sent
    shown = content_observed(content)
    prompts = stamped.get("prompt_templates") or []
    common = Content(recorded=content.recorded)
    texts = _texts(prompts)
    if texts is not None and texts == _texts(shown.get("prompt_templates") or []):
        common.messages = [message for message in content.messages if message[0] == "system" and message[1]]
    tools = stamped.get("tool_bindings") or []
    if tools == shown.get("tool_bindings") and any(entry["form"] == "schema" for entry in tools):
        common.tools, common.tools_key = content.tools, content.tools_key
    return common
