"""Data files for `dvc plots`, made from the reports that the stages of the gates wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tracemark import digest
from tracemark.acts.export_place import require_elsewhere, require_replaceable
from tracemark.durable import is_there, read_regular, why_unread, write_atomic
from tracemark.errors import IrregularFileError, NewerFormatError, UsageError
from tracemark.findings import Report
from tracemark.gates import plots
from tracemark.model.faults import first
from tracemark.model.gate import FORMAT, GateReport

_FAMILY = "tracemark/gate/"
_EXAMPLE = "reports/gates/plots"
_MADE = "tracemark gate harness|model --out FILE writes one"


@dataclass(frozen=True)
class PlotReport(Report):
    """Which files were written."""

    reports: tuple[str, ...]
    """Names of the candidates whose reports were read."""
    files: tuple[str, ...]
    """The files, as the folder was given."""


def write(root: Path, reports: Sequence[Path], out: Path) -> PlotReport:
    """Write the rows of each plot as a JSON file.

    Args:
        root: the corpus.
        reports: reports of gates; a candidate is called by the name of its file, without its ending.
        out: the folder to write; earlier plots in it are replaced.

    Raises:
        UsageError: when a file is no report of a gate, when two have one name, or when they are of several accepted
            pairs; when `out` is no folder, lies where the corpus keeps what it reads, or holds other files in place of
            the plots.
        NewerFormatError: when another version wrote one.
    """
    require_elsewhere(root, out, _EXAMPLE)
    if is_there(out) and not out.is_dir():
        raise UsageError("not a folder", where=str(out), hint=f"name a new folder, such as {_EXAMPLE}")
    read: dict[str, GateReport] = {}
    for path in reports:
        if path.stem in read:
            raise UsageError(f"two reports are called {path.stem}", where=str(path), hint="name each once")
        read[path.stem] = _read(path)
    made = plots.plots(read)
    files = {out / f"{name}.json": rows for name, rows in made.items()}
    for path in files:
        require_replaceable(path, plots.is_plot, "plot", f"{_EXAMPLE}/{path.name}")
    for path, rows in files.items():
        write_atomic(path, digest.canonical(rows) + b"\n")
    return PlotReport((), tuple(read), tuple(map(str, files)))


def _read(path: Path) -> GateReport:
    try:
        value: Any = digest.loads(read_regular(path)).value
    except (OSError, IrregularFileError) as error:
        reason, hint = why_unread(error, missing=_MADE)
        raise UsageError(f"the report cannot be read: {reason}", where=str(path), hint=hint) from None
    except digest.NotJSONError as error:
        raise UsageError(f"no report of a gate: not a JSON value: {error}", where=str(path), hint=_MADE) from None
    named = value.get("format") if isinstance(value, dict) else None
    if isinstance(named, str) and named.startswith(_FAMILY) and named != FORMAT:
        raise NewerFormatError(f"written in format {named[:40]!r}", where=str(path), hint="update tracemark")
    try:
        return GateReport.model_validate(value)
    except ValidationError as error:
        place, reason = first(error, value)
        raise UsageError(f"no report of a gate: {place}: {reason}", where=str(path), hint=_MADE) from None
