"""The verbs: the only layer that reads the store, computes with it and writes to it.

An act is a function of the corpus's root and its own arguments. It returns a `findings.Report` and raises a
`TracemarkError` when it cannot go on; it never prints, asks or exits. The command line and the pipeline call acts and
nothing below them. One module per verb, or per noun where the verbs share it.
"""
