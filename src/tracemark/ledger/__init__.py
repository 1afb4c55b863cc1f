"""What people and gates decide: an append-only ledger, the state that follows from it, and params.yaml beside it.

`entry` is one line, `chain` the file, `state` what the entries mean together; `params` reads `params.yaml`, whose
`accepted` repeats what the ledger decided, because that is what the pipeline reads.
"""
