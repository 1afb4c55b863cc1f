"""Observed groups, and which harnesses fit them, as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tracemark.cli.layout import brief, write_rows
from tracemark.findings import Report
from tracemark.hidden import visible
from tracemark.words import first_few, numbered

_SHOWN = 20
_DIGEST = 12
_PARTS = 4


def write_match(report: Report, stream: TextIO) -> None:
    """Write what `harness match` found: the harnesses that fit, those that are ruled out and by what, other groups."""
    found: dict[str, Any] = dict(report.as_json())
    stream.write(f"{brief(found['target'])}: {numbered(found['traces'], 'trace')}\n")
    stream.writelines(f"  {component}: {_parts(parts)}\n" for component, parts in found["known"].items())
    fitting = [row for row in found["harnesses"] if row["fits"]]
    stream.write("\nfits:\n")
    for row in fitting:
        stream.write(f"  {_named(row)}, {row['fits']} of {found['traces']}\n")
        agreeing = ", ".join(map(visible, row["corroborated"]))
        stream.write(f"    corroborated: {agreeing or 'nothing; it is only not ruled out'}\n")
    if not fitting:
        stream.write("  no known harness\n")
    _write_excluded([row for row in found["harnesses"] if row["excluded_by"]], stream)
    _write_groups(found["groups"], stream)


def write_harnesses(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    """Write the rows of `harness list`: the known harnesses, and behind them the observed groups."""
    declared = [row for row in rows if "fingerprint" in row]
    observed = [row for row in rows if "fingerprint" not in row]
    if declared:
        write_rows(declared, stream)
    if observed:
        stream.write(("\n" if declared else "") + "observed, of traces under no harness:\n")
        for row in observed[:_SHOWN]:
            stream.write(f"  {row['name']}  {numbered(row['traces'], 'trace')}, {visible(', '.join(row['formats']))}\n")
            about = {name: row[name] for name in ("agent", "domain", "label") if row.get(name)}
            told = "".join(f", {name} {visible(value)}" for name, value in about.items())
            stream.write(f"    first: trace {row['trace'][:_DIGEST]}{told}\n")
            stream.writelines(f"    {component}: {_parts(parts)}\n" for component, parts in row["known"].items())
            stream.writelines(f"    {component}: open, {why}\n" for component, why in row["open"].items())
        if len(observed) > _SHOWN:
            stream.write(f"  … and {len(observed) - _SHOWN} more groups; --output json lists all\n")
        stream.write("known versions are compared with one of these by: tracemark harness match OBSERVED\n")


def _write_excluded(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    if not rows:
        return
    stream.write("\nruled out:\n")
    for row in rows:
        stream.write(f"  {_named(row)}\n")
        for one in row["excluded_by"][:_SHOWN]:
            place = f"step {one['step']}: " if "step" in one else ""
            by = f"{one['component']}/{visible(one['part'])}"
            stream.write(f"    by {by} in {numbered(one['traces'], 'trace')}: {place}{visible(one['text'])}\n")
        if len(row["excluded_by"]) > _SHOWN:
            stream.write(f"    … and by {len(row['excluded_by']) - _SHOWN} more parts; --output json lists all\n")


def _write_groups(groups: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    if not groups:
        return
    stream.write("\nother observed groups:\n")
    others = [group for group in groups if group["parts"]]
    for group in others[:_SHOWN]:
        parts = first_few(map(visible, group["parts"]), _PARTS)
        stream.write(f"  {group['name']} ({numbered(group['traces'], 'trace')}): another harness, by {parts}\n")
    if len(others) > _SHOWN:
        stream.write(f"  … and {len(others) - _SHOWN} more; --output json lists all\n")
    if len(others) < len(groups):
        rest = numbered(len(groups) - len(others), "group")
        stream.write(f"  of {rest} it cannot be told: nothing that both show differs\n")


def _named(row: Mapping[str, Any]) -> str:
    return f"{visible(row['name'])} ({brief(row['fingerprint'])}, {visible(row['source'])})"


def _parts(parts: Mapping[str, str]) -> str:
    """Return parts in words, each with its form and the beginning of its digest; of many tools only how many."""
    if len(parts) > 4:
        forms = sorted({text.partition(" ")[0] for text in parts.values()})
        return f"{len(parts)} parts ({', '.join(forms)})"
    pairs = ((name, *text.partition(" ")[::2]) for name, text in parts.items())
    return ", ".join(f"{visible(name)} {form} {digest[:_DIGEST]}" for name, form, digest in pairs)
