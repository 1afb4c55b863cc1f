"""Write down what the importers make of the samples: `golden.json`, by which a change of a reading is noticed.

    python tests/importers/make_golden.py

A known record is imported again only where the version of its importer was raised. So this ends with 1 and writes
nothing while a sample is read differently under the same version. New samples may be added at any time, lines of them
at the end of a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracemark import digest
from tracemark.importers import detect, source
from tracemark.importers.base import Imported

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / "samples"
GOLDEN = HERE / "golden.json"

Readings = Mapping[str, Any]
"""Importer to `version` and `traces`: of each place the digests of `trajectory` (the trace's id), `run`, `outcome`."""


def readings() -> Readings:
    """Return what the importers make of the samples now.

    The stamp is left out: what is observed and believed of a harness is judged anew whenever it is asked for.
    """
    planned = source.plan([SAMPLES])
    assert not planned.refused, [refused.where for refused in planned.refused]
    found: dict[str, Any] = {}
    for item in (item for job in planned.jobs for item in source.read(job)):
        assert isinstance(item, Imported), item
        name = item.source["importer"]
        of_importer = found.setdefault(name, {"version": detect.importer(name).version, "traces": {}})
        of_importer["traces"][item.where] = {
            "trajectory": digest.sha256(item.trajectory_bytes),
            "run": digest.of(item.run),
            "outcome": digest.of(item.outcome),
        }
    return found


def unraised(golden: Readings, now: Readings) -> list[str]:
    """Return a sentence for each importer that reads a sample differently and still has the version that it had."""
    said = []
    for name, known in golden.items():
        other = [
            f"{where} ({', '.join(part for part in parts if new.get(part) != parts[part])})"
            for where, parts in known["traces"].items()
            if (new := now[name]["traces"].get(where, {})) != parts
        ]
        if other and now[name]["version"] == known["version"]:
            said.append(
                f"the importer {name} reads {len(other)} samples differently, first {other[0]}, and still has version"
                f" {known['version']!r}: raise it, so that known records are imported again, then run"
                " python tests/importers/make_golden.py"
            )
    return said


def main() -> None:
    """Write the file; end with 1 where an importer must get another version first."""
    now = readings()
    said = unraised(json.loads(GOLDEN.read_text(encoding="utf-8")), now) if GOLDEN.exists() else []
    if said:
        sys.exit("\n".join(said))
    GOLDEN.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
