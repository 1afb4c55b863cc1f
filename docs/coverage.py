"""Write `docs/reference/coverage.md`: what becomes of the real trace files beside the checkout.

    python docs/coverage.py            write it
    python docs/coverage.py --check    end with 1 when it differs

Every file group is ingested by the verb that users run, and the page is made from
the reports, from what was stored, and from the collection's list of origins. A group is the files of one producer in
one folder. Where the collection is absent the script says so and ends with 0, because then nothing can be compared.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tracemark import digest
from tracemark.acts.corpus import open_store
from tracemark.acts.ingest import IngestOptions, IngestReport, ingest
from tracemark.errors import NothingReadableError
from tracemark.model.harness import COMPONENTS
from tracemark.model.stamp import evidence_of
from tracemark.store.segment import iterate
from tracemark.store.selection import Selection

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "coverage.md"
TRACES = ROOT.parent / "shared" / "traces"
PROVENANCE = TRACES / "PROVENANCE.tsv"
"""Where each file of the collection comes from, a line for each."""

_TEXT = """\
# Coverage

<!-- made by docs/coverage.py; edit the source instead -->

What becomes of the public trace files that this project is tested with. They are copies of files that public
repositories hold, collected beside this one in a folder for each format; they are no part of it, and where the
collection is not at hand, the tests that need it are skipped. Everything in the folders
{folders} was ingested in this order into one store, without a
claim about any harness. A group is the files of one producer (the owner of the repository that they come from) in one
folder.

## Where the files come from

Each at the commits named, as it was there, but for what the last column says.

{origins}
## What becomes of them

- *traces* were stored for the first time, *duplicates* were known from a file before, *strengthened* were known too and
  now have facts that the file before did not hold (a trial's `result.json`);
- *beside* are files that hold no trace and are read with those that do (settings, tables of contents);
- *repaired* traces were altered to fit ATIF v1.8, and name every change in `source.repairs`;
- *parts* are sub-agents' documents and continuations, which are no runs of their own.
"""
_FORMS = """\
## What the files show of their harness

For each component, over all traces of a group (duplicates included): how many traces show something of it, by form.
Nobody states a harness here, so there is no evidence for any component, and no fingerprint; what is shown groups
traces. `template` and `prefix` are equal exactly for one template, `schema` is a tool definition and `constant` a text
or setting that the source holds whole, `known-empty` an empty list of tools that the model was really sent. `rendered`
is a text with unknown values in it: equal ones prove sameness, different ones nothing; so it is with `substituted`, a
text out of which values of its own record were taken, until a second task gives the same. `transcript` is a text that
may not be all that was sent, and proves nothing.
"""
_DISTINCT = """\
## How many different harness parts that makes

Different observed digests per group, by form. What equal ones prove is said above; different `rendered` and
`substituted` ones may be of one part.
"""


class Group:
    """The files of one producer in one folder, and what became of them."""

    def __init__(self, folder: str, owner: str, paths: list[Path]) -> None:
        self.name = f"{folder}/{owner}"
        self.paths = paths
        self.files = sum(1 for path in paths for file in [path, *path.rglob("*")] if file.is_file())
        self.report: IngestReport | None = None
        self.refused: list[dict[str, Any]] = []
        self.lines: list[dict[str, Any]] = []

    def ingest(self, together: Path, alone: Path) -> None:
        """Ingest the group into the common store, and into one of its own."""
        before = refused(together)
        try:
            self.report = ingest(together, self.paths, IngestOptions())
            ingest(alone, self.paths, IngestOptions())
        except NothingReadableError:
            self.report = None
        self.refused = [record for record in refused(together) if record not in before]
        with open_store(alone, create=True) as store:
            self.lines = [digest.load_canonical(line) for _, line in store.lines(store.select(Selection()))]

    def count(self, member: str) -> int:
        """Return a count of the report; 0 where nothing could be read."""
        return 0 if self.report is None else int(getattr(self.report, member))

    def beside(self) -> int:
        """Return how many files hold no trace and are read with others."""
        return 0 if self.report is None else self.report.finding_counts.get("file-beside", 0)

    def repaired(self) -> int:
        """Return how many traces name repairs."""
        return sum("repairs" in line["source"] for line in self.lines)

    def parts(self) -> int:
        """Return how many traces are only parts of runs."""
        return sum("role" in line["run"] for line in self.lines)

    def observed(self, component: str) -> Iterator[list[dict[str, str]]]:
        """Yield what each trace shows of a component; an empty list where it shows nothing."""
        for line in self.lines:
            yield (line["harness"].get("observed") or {}).get(component, [])


def refused(root: Path) -> list[dict[str, Any]]:
    """Return the stored records that could not be read, in order of place."""
    with open_store(root, create=True) as store:
        paths = [store.layout.path(name) for name in store.layout.data_files() if name.startswith("refused/")]
    records = [digest.load_canonical(line) for path in paths for _, line in iterate(path)]
    return sorted(records, key=lambda record: str(record["where"]))


def folders() -> list[str]:
    """Return the folders of the collection, in the order in which they are ingested: that of their names."""
    return sorted(path.name for path in TRACES.iterdir() if path.is_dir())


def groups() -> Iterator[Group]:
    """Yield every group in order, not yet ingested."""
    for folder in folders():
        owners: dict[str, list[Path]] = {}
        for path in sorted((TRACES / folder).iterdir()):
            owners.setdefault(path.name.partition("__")[0], []).append(path)
        for owner, paths in owners.items():
            yield Group(folder, owner, paths)


def page(found: list[Group]) -> str:
    """Return the page."""
    named = ", ".join(f"`{folder}/`" for folder in folders())
    lines = [_TEXT.format(folders=named, origins="".join(_origins([group.name for group in found]))), "\n"]
    counted = ("ingested", "duplicates", "strengthened", "contested")
    rows: list[list[Any]] = [
        [
            f"`{group.name}`",
            group.files,
            *map(group.count, counted),
            _codes(group),
            group.beside(),
            group.repaired(),
            group.parts(),
        ]
        for group in found
    ]
    sums = [sum(row[column] for row in rows) for column in (1, 2, 3, 4, 5, 7, 8, 9)]
    sums.insert(5, sum(len(group.refused) for group in found))
    total = ["**all**", *(f"**{number}**" for number in sums)]
    header = [
        "files of",
        "files",
        "traces",
        "duplicates",
        "strengthened",
        "contested",
        "refused",
        "beside",
        "repaired",
        "parts",
    ]
    lines += _table(header, [*rows, total])
    reasons = [[f"`{r['where']}`", f"`{r['code']}`", str(r["message"])] for group in found for r in group.refused]
    if reasons:
        lines += ["\n## Why a record was refused\n\n", *_table(["place", "reason", "in words"], reasons)]
    lines += ["\n", _FORMS, "\n"]
    header = ["files of", "traces", *(f"`{component}`" for component in COMPONENTS), "evidence", "fingerprint"]
    lines += _table(header, [_forms(group) for group in found if group.lines])
    lines += ["\n", _DISTINCT, "\n"]
    lines += _table(header[:1] + header[2:-2], [_distinct(group) for group in found if group.lines])
    return "".join(lines)


def _origins(names: list[str]) -> Iterator[str]:
    """Yield the table of where the files of each group come from."""
    of: dict[str, list[dict[str, str]]] = {name: [] for name in names}
    with PROVENANCE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            folder, _, name = row["file"].partition("/")
            of.get(f"{folder}/{name.partition('__')[0]}", []).append(row)
    header = ["files of", "repository on GitHub", "commits", "what they are", "licence", "changed here"]
    yield from _table(header, [[f"`{name}`", *_origin(rows)] for name, rows in of.items()])


def _origin(rows: list[dict[str, str]]) -> list[str]:
    edited = Counter(row["edited"] for row in rows if row["edited"])
    return [
        ", ".join(sorted({f"[{row['repo']}](https://github.com/{row['repo']})" for row in rows})),
        ", ".join(sorted({f"`{row['commit'][:12]}`" for row in rows})),
        "; ".join(f"{kind}: {number}" for kind, number in sorted(Counter(row["nature"] for row in rows).items())),
        ", ".join(sorted({row["licence"] for row in rows})),
        "; ".join(f"{what} in {number}" for what, number in sorted(edited.items())) or "nothing",
    ]


def _codes(group: Group) -> str:
    codes = Counter(str(record["code"]) for record in group.refused)
    return ", ".join(f"{number} `{code}`" for code, number in sorted(codes.items())) or "0"


def _forms(group: Group) -> list[Any]:
    row: list[Any] = [f"`{group.name}`", len(group.lines)]
    for component in COMPONENTS:
        forms = Counter(", ".join(sorted({part["form"] for part in parts})) for parts in group.observed(component))
        shown = [f"{form} {number}" for form, number in sorted(forms.items()) if form]
        row.append(", ".join(shown) or "–")
    fingerprints = sum("fingerprint" in line["harness"].get("declared", {}) for line in group.lines)
    evidence = Counter(evidence_of(line["harness"]) for line in group.lines)
    row.append(", ".join(f"{name} {number}" for name, number in sorted(evidence.items())))
    return [*row, fingerprints or "–"]


def _distinct(group: Group) -> list[Any]:
    row: list[Any] = [f"`{group.name}`"]
    for component in COMPONENTS:
        seen = {(p["form"], p["digest"]) for parts in group.observed(component) for p in parts}
        forms = Counter(form for form, _ in seen)
        row.append(", ".join(f"{number} {form}" for form, number in sorted(forms.items())) or "–")
    return row


def _table(header: list[str], rows: list[list[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |\n"
    yield "|" + "---|" * len(header) + "\n"
    for row in rows:
        yield "| " + " | ".join(str(cell).replace("|", r"\|").replace("\n", " ") for cell in row) + " |\n"


def make() -> str:
    """Ingest everything and return the page."""
    found = list(groups())
    with TemporaryDirectory() as folder:
        for number, group in enumerate(found):
            group.ingest(Path(folder) / "together", Path(folder) / str(number))
    return page(found)


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it differs; return 1 when it does."""
    if not TRACES.is_dir():
        print("docs/reference/coverage.md: not compared, the collection of trace files is not beside the checkout")
        return 0
    text = make()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print("docs/reference/coverage.md: not current (python docs/coverage.py)")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print("docs/reference/coverage.md: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
