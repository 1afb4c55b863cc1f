"""A folder of everything: runs of every format, and damaged ones between them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from tests.importers.hostile_formats import FORMATS
from tests.importers.make_golden import SAMPLES
from tracemark import digest
from tracemark.acts import health
from tracemark.importers import source
from tracemark.importers.base import Imported, Refused

ANSI = "\x1b[31m"
DEEP = "[" * 10_000 + "]" * 10_000


def damaged(inbox: Path) -> None:
    """Write three files of each format: nested too deeply, cut in the agent's words, spoken by an unknown role."""
    for name, form in FORMATS.items():
        said = form.said(f'"{ANSI}Done."'.replace("\x1b", "\\u001b"))
        deep = form.files([form.run(1, [said], f'"note": {DEEP}')])
        cut = form.files([form.run(2, [said])])
        who = form.files([form.run(3, [said, form.spoken("\\u001b[31moracle")])])
        for what, files in (("deep", deep), ("cut", cut), ("who", who)):
            [(file, data)] = files.items()
            path = inbox / f"{name}{ANSI}" / what / file
            path.parent.mkdir(parents=True)
            path.write_bytes(data[: data.rindex(b"Done.")] if what == "cut" else data)


def expected(folder: Path) -> tuple[set[str], Counter[tuple[str, str]]]:
    """Return the ids of the traces that a folder holds, and code and place of what is refused."""
    plan = source.plan([folder])
    items = [*plan.refused, *(item for job in plan.jobs for item in source.read(job))]
    traces = [item for item in items if isinstance(item, Imported) and not item.embedded]
    refused = Counter((item.code, item.where) for item in items if isinstance(item, Refused))
    return {digest.sha256(item.trajectory_bytes) for item in traces}, refused


def test_a_mixture(tracemark) -> None:
    inbox = tracemark.inbox
    shutil.copytree(SAMPLES, inbox / "samples")
    sound, none = expected(inbox)
    damaged(inbox)
    traces, refused = expected(inbox)
    assert not none
    assert sound <= traces
    assert set(refused.values()) == {1}
    assert {where.partition(ANSI)[0] for _, where in refused} == set(FORMATS)

    done = tracemark.ingest()
    told = Counter((one["code"], one["where"]) for one in done.data["findings"] if one["severity"] == "error")
    assert (done.code, done.data["refused"], told) == (1, len(refused), refused)
    assert {row["trace_id"] for row in tracemark.traces()} == traces
    assert {found.code for found in health.check(tracemark.root).findings} <= {"contested"}

    again = tracemark.run("ingest", inbox)
    assert again.code == 1
    assert {row["trace_id"] for row in tracemark.traces()} == traces
    for shown in (again, tracemark.run("traces", "list"), tracemark.run("traces", "show", min(traces))):
        assert not [mark for mark in shown.words + shown.out.decode() if mark < " " and mark not in "\n\t"]
