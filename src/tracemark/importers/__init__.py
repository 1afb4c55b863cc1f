"""Foreign bytes become traces: `source` finds records, `detect` recognises formats, a module each reads one."""
