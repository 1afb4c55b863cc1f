"""What people decide: an append-only ledger, the state that follows from it, and params.yaml beside it.

`entry` is one line, `chain` the file, `state` what the entries mean together. `params` holds what `params.yaml` says,
whose `accepted` repeats what the ledger decided, because that is what the pipeline reads; `params_file` reads and
writes it.
"""
