"""Numbers about repeated attempts: pure functions from counts to figures, intervals, tests and costs.

Invariants:
- a function here takes values and returns values: it reads no store, no clock and no generator of random numbers, so
  the same counts always give the same figure;
- a figure that the counts do not support is withheld with the reason, never guessed, cut to fit or given as 0;
- of a figure that has two estimators, both have names and none is the default;
- what a gate asks (`passing`, `compare`, `noise`, `cost`) needs the standard library alone, and so does
  `intervals.wilson`. What asks a Beta distribution (`intervals.jeffreys`, `bands`, `posterior`) needs scipy, the extra
  `stats`, which is imported when first used. What no command asks is for evaluations of one's own.

Accuracy: a figure is a Python float. Where it is a quotient of whole numbers (pass@k, pass^k, the exact tests) it is
the float nearest to the true value; the others say how far they may be off.
"""
