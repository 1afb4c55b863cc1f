"""Paired tests against published values and against counting every outcome; P(A > B) against its integral."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betainc, betaln

from tracemark.errors import UsageError
from tracemark.stats.compare import Paired, mcnemar, paired, probability_greater, sign_test
from tracemark.stats.counts import Counts

MOVED = st.integers(0, 300)
COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))).map(lambda pair: Counts(*pair))


class TestPaired:
    def test_scores_are_compared_and_not_successes(self):
        before = {"up": Counts(4, 1), "down": Counts(4, 2), "same": Counts(4, 2), "also up": Counts(4, 0)}
        after = {"up": Counts(2, 1), "down": Counts(20, 9), "same": Counts(6, 3), "also up": Counts(8, 1)}
        assert paired(before, after) == Paired(ups=("also up", "up"), downs=("down",))

    def test_equal_scores_of_different_attempts_are_equal_where_floats_are_not(self):
        big = 10**17
        assert paired({"t": Counts(3 * big, big)}, {"t": Counts(3, 1)}) == Paired((), ())
        assert paired({"t": Counts(3 * big, big + 1)}, {"t": Counts(3, 1)}) == Paired((), ("t",))

    def test_the_other_way_round_ups_are_downs(self):
        before, after = {"a": Counts(4, 1), "b": Counts(4, 3)}, {"a": Counts(4, 2), "b": Counts(4, 0)}
        assert paired(after, before) == Paired(*reversed(paired(before, after)))

    def test_other_tasks_are_refused_by_name(self):
        with pytest.raises(UsageError, match="2 are on one side alone") as refused:
            paired({"a": Counts(1, 1), "b": Counts(1, 1)}, {"a": Counts(1, 1), "c": Counts(1, 1)})
        assert refused.value.where == "task 'b'"

    def test_a_task_without_an_attempt_is_refused_by_name(self):
        with pytest.raises(UsageError, match="nothing was measured") as refused:
            paired({"a": Counts(1, 1)}, {"a": Counts(0, 0)})
        assert refused.value.where == "task 'a'"


class TestSignTest:
    @pytest.mark.parametrize(
        ("ups", "downs", "p"),
        [
            (1, 0, 0.5),
            (4, 0, 0.0625),
            (5, 0, 0.0312),
            (5, 1, 0.1094),
            (6, 1, 0.0625),
            (8, 0, 0.0039),
            (9, 3, 0.0730),
            (10, 4, 0.0898),
            (13, 5, 0.0481),
        ],
    )
    def test_it_gives_the_published_values(self, ups, downs, p):
        assert sign_test(ups, downs) == pytest.approx(p, abs=5.1e-5)

    @pytest.mark.parametrize(("ups", "downs"), list(product(range(5), repeat=2)))
    def test_it_is_the_share_of_all_outcomes_of_a_fair_coin(self, ups, downs):
        outcomes = [sum(tosses) for tosses in product((0, 1), repeat=ups + downs)]
        assert sign_test(ups, downs) == float(Fraction(sum(heads >= ups for heads in outcomes), len(outcomes)))

    def test_all_ties_are_no_evidence(self):
        assert sign_test(0, 0) == 1
        assert sign_test(0, 7) == 1

    @given(MOVED, MOVED)
    def test_the_two_sides_overlap_by_the_outcome_itself(self, ups, downs):
        both = sign_test(ups, downs) + sign_test(downs, ups)
        assert both == pytest.approx(1 + math.comb(ups + downs, ups) / 2 ** (ups + downs), rel=1e-14)

    @given(MOVED, MOVED)
    def test_one_more_up_is_more_evidence_and_one_more_down_less(self, ups, downs):
        assert sign_test(ups + 1, downs) <= sign_test(ups, downs) <= sign_test(ups, downs + 1)

    def test_thousands_of_tasks_do_not_overflow(self):
        assert sign_test(5000, 0) == 0
        assert sign_test(2500, 2500) == pytest.approx(0.5056, abs=1e-4)


class TestMcNemar:
    @given(MOVED, MOVED)
    def test_it_does_not_know_a_direction(self, ups, downs):
        assert mcnemar(ups, downs) == mcnemar(downs, ups)

    @given(MOVED, MOVED)
    def test_it_is_twice_the_smaller_side_and_at_most_one(self, ups, downs):
        assert mcnemar(ups, downs) == min(1, 2 * min(sign_test(ups, downs), sign_test(downs, ups)))

    def test_nothing_moved_and_even_moves_are_no_evidence(self):
        assert mcnemar(0, 0) == mcnemar(6, 6) == 1


@pytest.mark.parametrize("test", [sign_test, mcnemar])
def test_numbers_of_tasks_below_zero_are_refused(test):
    with pytest.raises(UsageError, match="cannot be numbers of tasks"):
        test(-1, 2)


class TestProbabilityGreater:
    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (Counts(8, 5), Counts(8, 3)),
            (Counts(4, 0), Counts(4, 4)),
            (Counts(20, 19), Counts(3, 3)),
            (Counts(102, 86), Counts(102, 82)),
            (Counts(0, 0), Counts(5, 1)),
            (Counts(500, 300), Counts(40, 20)),
            (Counts(60, 60), Counts(0, 0)),
        ],
    )
    def test_it_is_the_integral_over_both_posteriors(self, a, b):
        assert probability_greater(a, b) == pytest.approx(self.integral(a, b), abs=1e-9)

    @staticmethod
    def integral(a, b):
        won, lost = a.successes, a.attempts - a.successes
        scale = betaln(won + 0.5, lost + 0.5)

        def weight(angle):
            # with rate = sin² of the angle neither density has a pole
            sine, cosine = math.sin(angle), math.cos(angle)
            density = 2 * sine ** (2 * won) * cosine ** (2 * lost) * math.exp(-scale)
            return density * betainc(b.successes + 0.5, b.attempts - b.successes + 0.5, sine**2)

        mode = math.asin(math.sqrt(won / a.attempts)) if a.attempts else math.pi / 4
        return sum(quad(weight, *ends, epsabs=1e-12)[0] for ends in ((0, mode), (mode, math.pi / 2)))

    @given(COUNTS, COUNTS)
    def test_both_directions_sum_to_one(self, a, b):
        assert probability_greater(a, b) + probability_greater(b, a) == pytest.approx(1, abs=1e-12)

    @given(COUNTS, COUNTS)
    def test_a_success_raises_it_and_a_failure_lowers_it(self, a, b):
        here = probability_greater(a, b)
        assert probability_greater(Counts(a.attempts + 1, a.successes + 1), b) >= here - 1e-13
        assert probability_greater(Counts(a.attempts + 1, a.successes), b) <= here + 1e-13

    @given(COUNTS)
    def test_of_the_same_counts_it_is_a_half(self, counts):
        assert probability_greater(counts, counts) == pytest.approx(0.5, abs=1e-12)

    @pytest.mark.parametrize(
        ("a", "b", "value"),
        [
            (Counts(10_000, 10_000), Counts(10_000, 0), 1.0),
            (Counts(10_000, 0), Counts(10_000, 10_000), 0.0),
            (Counts(10_000, 5_000), Counts(10_000, 5_000), 0.5),
        ],
    )
    def test_ten_thousand_attempts_stay_exact(self, a, b, value):
        assert probability_greater(a, b) == pytest.approx(value, abs=1e-12)

    def test_counts_that_cannot_be_are_refused(self):
        with pytest.raises(UsageError, match="cannot be"):
            probability_greater(Counts(3, 1), Counts(3, 4))
