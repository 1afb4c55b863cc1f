"""The command line: the only part of tracemark that prints, asks or exits.

A command parses its arguments, calls one act, and shows the act's report; everything else is in the frame around it:
`table` knows the commands before any is loaded, `app` makes the tree from it, `main` turns errors into words, data and
exit codes, `output` shows reports, and `text` makes what a trace may hide visible.
"""
