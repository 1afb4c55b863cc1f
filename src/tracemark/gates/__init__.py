"""Two gates guard the accepted pair: values in, values out; nothing here reads a store, a clock or a file.

`cell` is one pair's evaluation, `terms` what a gate is told, `refusal` why two cells cannot be compared, `compare` what
the comparison says under both policies, `attribution` which half brought what, `report` the stored form and its words,
`plan` what to run next.
"""
