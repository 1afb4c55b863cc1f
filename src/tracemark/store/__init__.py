"""The store: immutable segments of traces, annotations beside them, and a catalogue that can always be made again.

The folder `traces/` is the truth and `.tracemark/catalogue.db` its projection; `docs/format/store.md` is the normative
page. `store.Store` is the facade; the other modules each do one thing that it needs.
"""
