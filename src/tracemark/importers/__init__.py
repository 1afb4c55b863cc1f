"""Foreign bytes become traces: `source` finds records, `detect` recognises their format, one module reads each format."""
