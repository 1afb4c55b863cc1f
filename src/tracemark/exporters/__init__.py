"""Training sets out of traces: pure functions from rows and parsed lines to bytes, counts and findings.

`select` is the strict filter that stands in front of every training set, `choice` takes from what passes it, `sft`
renders rows, `manifest` says what an export holds and why, `audit` recomputes it later.
"""
