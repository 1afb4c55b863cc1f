"""What a run would cost: tokens counted from its texts, priced by a tariff that is stated here.

The scripted agent costs nothing. So that runs can be compared by cost as those of a model are, each reply is billed as
a model's would be: everything said so far, and the definitions of the tools, is read anew for every reply. A token is
four characters, rounded up text by text; the prices are made up. Both strengths have the same tariff.
"""

from __future__ import annotations

from collections.abc import Iterable

CHARACTERS_PER_TOKEN = 4
NANODOLLARS_PER_PROMPT_TOKEN = 250
NANODOLLARS_PER_COMPLETION_TOKEN = 1250
_NANODOLLARS_PER_DOLLAR = 1_000_000_000


def tokens(text: str) -> int:
    """Return how many tokens a text counts as; an empty text counts as none."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def bill(read: Iterable[str], written: str) -> dict[str, int | float]:
    """Return what one reply costs, as the metrics of its step.

    Args:
        read: the texts that stood before the reply, the definitions of the tools among them.
        written: the reply, with its call.
    """
    prompt, completion = sum(map(tokens, read)), tokens(written)
    # whole nanodollars until the last division, so that no order of sums shows in the result
    price = prompt * NANODOLLARS_PER_PROMPT_TOKEN + completion * NANODOLLARS_PER_COMPLETION_TOKEN
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cost_usd": price / _NANODOLLARS_PER_DOLLAR,
    }
