"""One module per command, named after its path: `tracemark harness list` is `harness_list.py`.

Each holds one function `command`, whose docstring is the help page and whose return value is the exit code. A module is
imported when its command is used, never before.
"""
