"""Which format is this? Decided by content, never by a file's name.

Every importer says how sure it is; the surest one reads the file. Two that are equally sure are a tie, and then
somebody must say which one is meant: `--format`. An importer that is never as sure as the best so far is not asked.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tracemark.errors import UsageError
from tracemark.importers.base import Importer
from tracemark.importers.head import Head
from tracemark.registry import Registry

IMPORTERS = Registry(
    "tracemark.importers",
    {
        "journal": "tracemark.importers.journal:IMPORTER",
        "atif": "tracemark.importers.atif:IMPORTER",
        "openai-chat": "tracemark.importers.openai_chat:IMPORTER",
        "inspect": "tracemark.importers.inspect_ai:IMPORTER",
        "tau-bench": "tracemark.importers.tau_bench:IMPORTER",
        "tau2": "tracemark.importers.tau2:IMPORTER",
        "mini-swe-agent": "tracemark.importers.mini_swe_agent:IMPORTER",
        "swe-agent": "tracemark.importers.swe_agent:IMPORTER",
        "otel-genai": "tracemark.importers.otel:IMPORTER",
        "openhands": "tracemark.importers.openhands:IMPORTER",
        "claude-code": "tracemark.importers.claude_code:IMPORTER",
        "codex": "tracemark.importers.codex:IMPORTER",
        "verifiers": "tracemark.importers.verifiers:IMPORTER",
        "nemo-gym": "tracemark.importers.nemo_gym:IMPORTER",
        "thinkingbox": "tracemark.importers.thinkingbox:IMPORTER",
    },
    "format",
)
"""Every format by name."""


class Detection(NamedTuple):
    """Who reads a file."""

    importer: Importer | None
    """The surest importer; None when none knows the format, or when several are equally sure."""
    tie: tuple[str, ...] = ()
    """Names of the equally sure ones; empty when there is no tie."""


@cache
def importer(name: str) -> Importer:
    """Return the importer `name`.

    Raises:
        UnknownNameError: when there is none; the hint lists the names.
        UsageError: when a third party's cannot be loaded, or is no importer of that name.
    """
    found = IMPORTERS.load(name)
    if Importer not in type(found).__mro__:
        hint = "let it name an object, not a class, whose class derives from `tracemark.importers.base.Importer`"
        raise UsageError(f"format {name!r} cannot be used: its entry point names no importer", hint=hint)
    made: Importer = found
    if made.name != name:
        raise UsageError(
            f"format {name!r} cannot be used: its importer is called {made.name!r}",
            hint="give the entry point the importer's `name`",
        )
    return made


def detect(head: Head, name: str | None = None) -> Detection:
    """Return who reads a file that begins with `head`.

    Args:
        head: its beginning.
        name: the format that the user stated, which is then believed; None to look at the content.

    Raises:
        UnknownNameError: when there is no importer `name`.
    """
    if name is not None:
        return Detection(importer(name))
    best, surest = 1, []
    for known in IMPORTERS.names():
        asked = importer(known)
        score = asked.recognise(head) if asked.surest >= best else 0
        if score > best:
            best, surest = score, [known]
        elif score == best:
            surest.append(known)
    if len(surest) != 1:
        return Detection(None, tuple(surest))
    return Detection(importer(surest[0]))
