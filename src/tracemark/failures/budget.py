"""Whether a run says that it stopped at a budget of its own: of steps, turns, tokens, calls or money.

The router only sorts such runs, and may take any words of a budget for one. A gate decides by them, so here the whole
of what is said must be one of a few forms: what an error message says in passing, such as a parameter of a call, is
none. Time is no such budget, and neither is what others use up as well, as a provider's rate limit: a slow machine
exhausts the one and other users the other.
"""

from __future__ import annotations

import re

_LONGEST = 120
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_-]+")
_UNIT = (
    r"(?:steps?|turns?|iterations?|rounds?|actions?|tokens?|messages?|calls?|costs?|budget|context|prompt|output"
    r"|length)"
)
_REACHED = r"(?: (?:was |is |has been )?(?:reached|exceeded|exhausted|hit|used up)(?: error)?)?"
_COUNT = r"(?:[ :=]{1,2}\(?\d[\d,.]*\)?)?"
_FORMS = (
    rf"max(?:imum)?(?: number of)?(?: \w+){{0,2}} {_UNIT}(?: limit| length| window)?{_COUNT}{_REACHED}{_COUNT}",
    rf"(?:\w+ ){{0,2}}{_UNIT}(?: length| window)? (?:limits?|budget)(?: of \d[\d,.]*)?{_REACHED}{_COUNT}",
    rf"(?:\w+ ){{0,2}}{_UNIT}(?: length| window)? (?:reached|exceeded|exhausted)(?: error)?{_COUNT}",
    r"(?:agent |run |exit )?(?:limits? (?:reached|exceeded)|steps?|turns?|tokens?|messages?|costs?|context|length)",
    rf"too many(?: \w+)? {_UNIT}",
    r"(?:the )?prompt (?:is )?too long",
)
_SAID = re.compile(
    r"(?:(?:the )?(?:agent|run) )?(?:(?:has )?(?:reached|exceeded|hit|used up) (?:the |its )?)?"
    rf"(?:{'|'.join(_FORMS)})[.!]?",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:time|timed|timeout|rate|quota|requests?|connections?|concurrent|parallel|retry|retries|sandbox|server)\b",
    re.IGNORECASE,
)


def words_apart(text: str) -> str:
    """Return a text with the words of its names apart, such as those of `MaxTurnsExceeded` and `api-error`."""
    return _JOINT.sub(" ", text)


def exhausted(termination: str | None) -> bool:
    """Return whether a run is said to have stopped at a budget of its own.

    Args:
        termination: how the run stopped, as it was written; None when nobody says.
    """
    if not termination or len(termination) > _LONGEST:
        return False
    words = " ".join(words_apart(termination).split())
    return _SAID.fullmatch(words) is not None and _OTHERS.search(words) is None
