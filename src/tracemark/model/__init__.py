"""The values that are stored: frozen, compared by content, knowing nothing of files, clocks or identifiers.

One module per noun: `trajectory` (ATIF), `harness` (the manifest), `stamp` (what a trace says of its harness), `trace`
(one stored line), `annotation` (a later statement), `decision` (a ledger entry), `export` (a manifest of an export),
`gate` (what a gate found), `carried` (what an exported trajectory says of its stay in a store).
"""
