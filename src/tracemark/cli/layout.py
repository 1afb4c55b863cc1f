"""Reports as text for people.

A report's members decide its layout: plain values are a list of `label value`, a list of objects is a table, a mapping
is a section. On a terminal rich draws the tables and folds long text; elsewhere columns are padded with spaces, a row a
line. A digest in a table is its first twelve digits, which name it in every command; nothing else is shortened here
(stored traces have a table of their own, `trace_table`). A table that a terminal is too narrow for becomes one block
per row, and so does one with a member that is a text of many lines by design; a line break in any other member is shown
as an escape.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TextIO

from tracemark.cli.text import to_json, width
from tracemark.hidden import visible, visible_block

Row = Mapping[str, Any]
_GAP = "  "
_NOTHING = "-"
_WORDS = 24
"""The least width, in columns, in which text that may be folded is still readable."""
_DIGEST = re.compile(r"((?:tm1:)?[0-9a-f]{12})[0-9a-f]{52}")
_TEXTS = frozenset({"diff"})
"""Members of rows that are texts of many lines."""
_LINE = 60
"""The greatest width of a list that stands on one line."""


def write_report(members: Row, stream: TextIO, sections: Collection[str] | None = None) -> None:
    """Write a report's members to `stream`, in their order, values before sections.

    Args:
        members: what to write.
        stream: where to.
        sections: the members that are sections, whatever they hold, so that every report of a kind has one layout;
            None leaves it to each member's value.
    """
    apart = {name for name, value in members.items() if (_is_section(value) if sections is None else name in sections)}
    plain = {name: value for name, value in members.items() if name not in apart}
    _write_pairs([(label(name), value) for name, value in plain.items()], stream)
    for index, name in enumerate(name for name in members if name in apart):
        if plain or index:
            stream.write("\n")
        _write_section(label(name), members[name], stream)


def write_rows(rows: Sequence[Row], stream: TextIO) -> None:
    """Write objects as a table with a column per member; columns that are empty in every row are left out."""
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if _is_used(name, rows)]
    if any(row.get(name) for row in rows for name in _TEXTS):
        _write_blocks(rows, stream)
        return
    cells = [[brief(cell(row.get(name))) for name in columns] for row in rows]
    header = [label(name) for name in columns]
    if not stream.isatty():
        write_padded([header, *cells], stream)
    elif _fits([header, *cells]):
        _write_rich(header, cells, stream)
    else:
        _write_blocks(rows, stream)


def label(name: str) -> str:
    """Return a member's name as a reader sees it."""
    return visible(name.replace("_", " "))


def cell(value: Any) -> str:
    """Return a member's value on one line; the empty text for None."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return visible(value)
        case Mapping() if not any(_is_nested(item) for item in value.values()):
            return ", ".join(f"{visible(str(key))}={cell(item)}" for key, item in value.items())
        case list() | tuple() if not any(_is_nested(item) for item in value):
            return ", ".join(cell(item) for item in value)
        case Mapping() | list() | tuple():
            return to_json(value).decode()
    return visible(str(value))


def agent_in_words(agent: Mapping[str, Any]) -> str:
    """Return the labels `name` and `version` of an agent as one text."""
    return " ".join(str(agent[name]) for name in ("name", "version") if agent.get(name))


def brief(text: str) -> str:
    """Return `text`; of a digest the first twelve digits, which name it in every command."""
    digest = _DIGEST.fullmatch(text)
    return digest[1] if digest else text


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _is_section(value: Any) -> bool:
    match value:
        case Mapping():
            return bool(value)
        case list() | tuple():
            return any(isinstance(item, Mapping) for item in value) or width(cell(value)) > _LINE
        case str():
            return "\n" in value
    return False


def _is_used(name: str, rows: Sequence[Row]) -> bool:
    return any(row.get(name) not in (None, "", [], (), {}) for row in rows)


def _write_section(title: str, value: Any, stream: TextIO) -> None:
    stream.write(f"{title}:\n")
    if not value:
        stream.write(f"{_GAP}none\n")
    elif isinstance(value, str):
        _write_text(value, stream)
    elif not isinstance(value, Mapping):
        if all(isinstance(item, Mapping) for item in value):
            write_rows(value, stream)
        else:
            stream.writelines(f"{_GAP}{cell(item)}\n" for item in value)
    elif _are_rows(value):
        write_rows([{"name": name, **item} for name, item in value.items()], stream)
    else:
        _write_pairs(list(_flat(value)), stream, indent=_GAP)


def _are_rows(value: Row) -> bool:
    """Return whether the members of a mapping are several objects of one kind, easier to read as a table."""
    items = [item for item in value.values() if isinstance(item, Mapping)]
    return len(items) == len(value) > 1 and len({tuple(item) for item in items}) == 1 and "name" not in items[0]


def _flat(value: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        path = f"{prefix}{visible(str(name))}"
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{path} / ")
        else:
            yield path, item


def _write_pairs(pairs: Sequence[tuple[str, Any]], stream: TextIO, indent: str = "") -> None:
    widest = max((width(name) for name, _ in pairs), default=0)
    stream.writelines(
        f"{indent}{name}{' ' * (widest - width(name))}{_GAP}{cell(value) or _NOTHING}\n" for name, value in pairs
    )


def write_padded(lines: Sequence[Sequence[str]], stream: TextIO) -> None:
    """Write lines of cells to `stream`, each column as wide as its widest cell."""
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = [text + " " * (size - width(text)) for text, size in zip(line, widths, strict=True)]
        stream.write(_GAP.join(padded).rstrip() + "\n")


def _write_blocks(rows: Sequence[Row], stream: TextIO) -> None:
    for index, row in enumerate(rows):
        if index:
            stream.write("\n")
        texts = {name: value for name, value in row.items() if name in _TEXTS and isinstance(value, str) and value}
        _write_pairs([(label(name), row[name]) for name in row if name not in texts and _is_used(name, [row])], stream)
        for value in texts.values():
            _write_text(value, stream)


def _write_text(value: str, stream: TextIO) -> None:
    stream.writelines(f"{_GAP}{line}".rstrip() + "\n" for line in visible_block(value).rstrip("\n").split("\n"))


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _least(column: Sequence[str]) -> int:
    # a value without spaces (an id, a digest, a name) is never folded, so that it can be copied
    return max((width(text) if " " not in text else min(width(text), _WORDS) for text in column), default=0)


def _fits(cells: Sequence[Sequence[str]]) -> bool:
    return sum(_least(column) + len(_GAP) for column in zip(*cells, strict=True)) <= _columns()


def _write_rich(header: Sequence[str], cells: Sequence[Sequence[str]], stream: TextIO) -> None:
    # rich is slow to import, and only a terminal needs it
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold")
    for name, column in zip(header, zip(*cells, strict=True), strict=True):
        table.add_column(Text(name), overflow="fold", min_width=_least([name, *column]))
    for row in cells:
        table.add_row(*map(Text, row))
    Console(file=stream, width=_columns(), highlight=False).print(table)
