"""Where scipy is missing, what needs it says so, and what a gate needs works."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import UsageError
from tracemark.stats import posterior
from tracemark.stats.counts import Counts

WITHOUT_SCIPY = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"scipy", "numpy"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())

from tracemark.errors import UsageError
from tracemark.stats import bands, compare, cost, intervals, noise, passing
from tracemark.stats.counts import Counts

tasks = {"a": Counts(4, 2), "b": Counts(4, 3)}
compare.sign_test(3, 1), compare.mcnemar(3, 1), compare.probability_greater(*tasks.values())
compare.paired(tasks, tasks)
noise.noise_floor(tasks, 4), noise.repeated([tasks, tasks])
cost.cost_per_success([1.0], 1), cost.cost_per_reliable_task([1.0] * 8, tasks)
intervals.wilson(tasks["a"]), passing.aggregate(tasks, 2, passing.Measure.ALL_OF_K_POWER)
for needs in (bands.band, bands.in_goldilocks_zone, intervals.jeffreys):
    try:
        needs(tasks["a"])
    except UsageError as error:
        print(error, "|", error.hint)
"""


def test_without_scipy_gates_work_and_bands_say_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_SCIPY], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("need scipy, which is not installed | pip install scipy") for line in lines)


def test_importing_every_module_loads_no_scipy():
    code = (
        "import sys; from tracemark.stats import bands, compare, cost, intervals, noise, passing;"
        "print('scipy' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@given(st.integers(1, 50), st.floats(0, 1))
def test_a_success_makes_a_low_rate_less_likely(attempts, rate):
    below = [posterior.cumulative(Counts(attempts, successes), rate) for successes in range(attempts + 1)]
    assert all(later <= earlier + 1e-14 for earlier, later in pairwise(below))


def test_no_attempt_is_refused():
    for ask in (posterior.cumulative, posterior.quantile):
        with pytest.raises(UsageError, match="nothing was measured"):
            ask(Counts(0, 0), 0.5)
