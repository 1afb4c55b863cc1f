"""What only several traces together show: constants that vary, and token counts that betray what a trace hides.

`check` reads every trace anyway; a witness looks at each of them on the way, in whatever process reads it, and what the
processes saw is put together. It keeps a few digests for each constant and for each beginning of a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tracemark.acts.provenance import content_in
from tracemark.findings import Finding, finding
from tracemark.harness.constants import ConstantHoles, Constants
from tracemark.harness.usage import Usage, first_call
from tracemark.harness.version import Harness
from tracemark.model.stamp import fingerprint_of

_DIGITS = 12
_SHOWN = 20


class Witness:
    """Looks at traces, each in turn.

    Args:
        holes: the constants without a declared value of each harness that has such, by fingerprint.
    """

    def __init__(self, holes: Mapping[str, ConstantHoles]) -> None:
        self._holes = holes
        self._constants = Constants()
        self._usage = Usage()

    def fresh(self) -> Witness:
        """Return one that has seen nothing, to look at other traces."""
        return Witness(self._holes)

    def see(self, trace_id: str, line: Mapping[str, Any]) -> None:
        """Look at a stored trace; what is no trajectory shows nothing."""
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            self._look(trace_id, line)

    def _look(self, trace_id: str, line: Mapping[str, Any]) -> None:
        self._usage.add(first_call(line["trajectory"], line["run"]), trace_id)
        fingerprint = fingerprint_of(line["harness"])
        holes = self._holes.get(fingerprint) if fingerprint is not None else None
        if fingerprint is not None and holes:
            content = content_in(line)
            self._constants.add(fingerprint, trace_id, holes.values(content.messages, content.prompt_cut))

    def merge(self, other: Witness) -> None:
        """Take in what another one saw."""
        self._constants.merge(other._constants)
        self._usage.merge(other._usage)

    def findings(self, names: Mapping[str, str]) -> Iterator[Finding]:
        """Yield what the traces show together, at most some of each sort.

        Args:
            names: the label of each harness, by fingerprint.
        """
        varying = list(self._constants.varying())
        for fingerprint, template, variable, (one, other) in varying[:_SHOWN]:
            shown = " and ".join(f"{value.excerpt!r} in trace {value.trace[:_DIGITS]}" for value in (one, other))
            message = f"prompt {template!r} calls the variable {variable!r} constant, and it is {shown}"
            yield finding("constant-varies", f"harness {names.get(fingerprint, fingerprint)}", message)
        differing = list(self._usage.differing())
        for model, counts in differing[:_SHOWN]:
            where = ", ".join(count.trace[:_DIGITS] for count in counts)
            numbers = " and ".join(str(count.tokens) for count in counts)
            message = f"equal messages and tools in front of the first call of {model!r} counted {numbers} tokens"
            more = len(differing) - _SHOWN
            if more > 0 and counts is differing[_SHOWN - 1][1]:
                message += f"; so it is with {more} further beginnings"
            yield finding("usage-differs", f"traces {where}", message)


def witness_of(harnesses: Iterable[Harness]) -> Witness:
    """Return a witness that knows the constants of some harnesses."""
    holes = {harness.fingerprint: ConstantHoles(harness) for harness in harnesses}
    return Witness({fingerprint: own for fingerprint, own in holes.items() if own})
