"""How often the scripted agent errs, as one table for each of its strengths.

The agent stands in for a model, so it comes in two strengths, as a model does before and after it was trained: `base`
and `tuned`. Both follow the same procedures and see the same; `tuned` errs less often, on every kind of occasion, and
knows nothing more. The numbers are made up; they say nothing of any model.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Habits:
    """Shares (0 to 1) of the occasions on which the agent errs in a certain way."""

    takes_first_address: float
    repeats_refused_call: float
    gives_up_on_customer: float
    writes_unread: float
    overlooks_refusal: float
    overlooks_advice: float
    skips_second_look: float
    writes_again: float
    wrong_amount: float
    drops_unit: float
    takes_last_listed: float
    answers_briefly: float
    skips_check: float


@dataclass(frozen=True, slots=True)
class Strength:
    """One strength of the agent: its habits where observations open with a status, and where they have none."""

    with_status: Habits
    without_status: Habits


BASE = Strength(
    # there is nothing to look at a second time
    with_status=Habits(
        takes_first_address=0.8,
        repeats_refused_call=0.35,
        gives_up_on_customer=0.4,
        writes_unread=0.6,
        overlooks_refusal=0.3,
        overlooks_advice=0.1,
        skips_second_look=0.0,
        writes_again=0.0,
        wrong_amount=0.1,
        drops_unit=0.2,
        takes_last_listed=0.4,
        answers_briefly=0.15,
        skips_check=0.2,
    ),
    # a refusal cannot be overlooked as such: it looks like any other sentence
    without_status=Habits(
        takes_first_address=0.8,
        repeats_refused_call=0.5,
        gives_up_on_customer=0.6,
        writes_unread=0.35,
        overlooks_refusal=0.0,
        overlooks_advice=0.1,
        skips_second_look=0.6,
        writes_again=0.55,
        wrong_amount=0.3,
        drops_unit=0.2,
        takes_last_listed=0.4,
        answers_briefly=0.15,
        skips_check=0.2,
    ),
)

TUNED = Strength(
    with_status=Habits(
        takes_first_address=0.5,
        repeats_refused_call=0.2,
        gives_up_on_customer=0.3,
        writes_unread=0.45,
        overlooks_refusal=0.2,
        overlooks_advice=0.05,
        skips_second_look=0.0,
        writes_again=0.0,
        wrong_amount=0.05,
        drops_unit=0.1,
        takes_last_listed=0.25,
        answers_briefly=0.07,
        skips_check=0.15,
    ),
    without_status=Habits(
        takes_first_address=0.5,
        repeats_refused_call=0.4,
        gives_up_on_customer=0.5,
        writes_unread=0.25,
        overlooks_refusal=0.0,
        overlooks_advice=0.05,
        skips_second_look=0.5,
        writes_again=0.45,
        wrong_amount=0.2,
        drops_unit=0.1,
        takes_last_listed=0.25,
        answers_briefly=0.07,
        skips_check=0.15,
    ),
)

STRENGTHS = {"base": BASE, "tuned": TUNED}
"""Every strength by the name that a run records as the model's revision."""
