"""Failed runs as evidence: what failed first and stayed so, whose fault it is, and which failures recur.

Pure: values in, values out. Nothing here reads a store, writes a file or prints.
"""
