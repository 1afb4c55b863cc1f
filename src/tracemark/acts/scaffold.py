"""`init`: make a corpus repository, without asking anything.

Works in a new or an existing folder, in a git repository or outside one, with DVC installed or not.

Invariants:
- what is already there is kept as it is; lists of patterns (`.gitignore` and its like) get the lines that they lack;
- nothing is made in a folder whose `params.yaml` or ledger tracemark could not use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tracemark.acts.corpus import VERSIONS, Corpus
from tracemark.acts.ingest import INBOX
from tracemark.durable import make_folder, read_regular, sync_folder, write_atomic
from tracemark.errors import UsageError
from tracemark.findings import Report
from tracemark.harness.folder import IGNORED
from tracemark.store.layout import Layout
from tracemark.store.store import Store

FOLDERS = (VERSIONS, INBOX, "domains")
"""Folders that stages depend on, kept in git by an empty `.gitkeep`."""

PARAMS = """\
# The accepted pair. `tracemark harness accept`, `tracemark model accept` and the gates write it, after the ledger.
accepted:
  harness: null
  model: null

ingest:
  success_reward: 1.0      # reward at which a run without a verdict of its own counts as success
  max_record: 67108864     # bytes; a larger record is refused
  max_expanded: 1073741824 # bytes to which one compressed file may expand
  inbox: partial           # complete: the inbox holds every raw run, so the store can be made again from it

# Tasks kept for evaluation; never in a training export. A list of ids, or `{file: PATH}`.
evaluation:
  tasks: []
  attempts: 4              # attempts at each task that a gate asks for

export:
  evidence: unique         # recorded | unique | claimed
  models: []               # empty: every model
  sft:
    per_task: 1            # null: no limit
    total: 100             # null: no limit
    minimum: 20            # with fewer rows the export is refused
    tool_calls: [2, 60]    # null: no limit

gates:
  policy: significant      # significant | cotrace
  infrastructure_errors: 0 # largest share of attempts that the infrastructure ended and nobody re-ran
  keep: []                 # tasks of which no score may go down
  pass_all_not_lower: false
  cost_not_above: false
  fresh: false             # true: the evaluation that installed the incumbent does not do
  candidates:              # what the pipeline has gates judge
    harness: []
    model: []

failures:
  conditions: null         # a file with conditions of your own

plan:
  attempts: 4              # attempts that a task gets before it is given up
  quotas: {}               # wanted share of each class, DOMAIN/KIND: SHARE
  runs: null               # most runs that one plan lists
"""
"""The `params.yaml` of a new corpus: every parameter with its default."""

PATTERNS = {
    ".gitignore": "/.tracemark/\n__pycache__/\n",
    # exactly what no harness counts as its file, so that DVC sees a change of a harness when there is one and only then
    ".dvcignore": "".join(f"{pattern}\n" for pattern in (*IGNORED, ".tracemark/")),
    ".gitattributes": "ledger.jsonl merge=union\n",
}
"""Lists of patterns by file; a file that is there already gets the lines that it lacks."""

OUTPUTS = """\
/traces/segments/
/traces/harnesses/
/traces/refused/
/traces/annotations/
/exports/
/failures/
/dvc_plots/
"""
"""Lines of `.gitignore` in a DVC project: what stages write is DVC's, which refuses to take over what git tracks; and
the pictures of `dvc plots`."""


@dataclass(frozen=True)
class InitReport(Report):
    """What `init` made."""

    root: str
    """The corpus's folder as it was given."""
    created: tuple[str, ...]
    """Files and folders that tracemark made and that were not there before, relative to the corpus."""
    extended: tuple[str, ...]
    """Lists of patterns that were there before and lacked lines, which they have now."""
    git: bool
    """Whether the folder is in a git repository now."""
    dvc: bool
    """Whether the folder is a DVC project now."""


def init(folder: Path, more: Mapping[str, Callable[[], str]] | None = None) -> InitReport:
    """Make `folder` a corpus repository.

    Args:
        folder: a new folder, an empty one, or one to which a corpus is added.
        more: what gives the text of further files to begin with, by name, such as `dvc.yaml`; called when
            `params.yaml` is there, of which their text may depend. None for no further file.

    Raises:
        UsageError: when `folder` is a file.
        ParamsError: when a `params.yaml` is there that tracemark cannot use.
        LedgerChainError: when a `ledger.jsonl` is there that is no ledger.
        NewerFormatError: when a newer tracemark made the corpus that is there.
        OSError: when it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("not a folder", where=str(folder), hint="name a folder: a new, an empty or an existing one")
    _require_usable(folder)
    make_folder(folder)
    present = {name for name in PATTERNS if (folder / name).exists()}
    git = _git(folder)
    dvc = _dvc(folder, git=git)
    created = [f"{name}/" for name in FOLDERS if _begin(folder / name / ".gitkeep", folder / name)]
    first: dict[str, Callable[[], str]] = {"params.yaml": lambda: PARAMS, "ledger.jsonl": lambda: ""}
    for name, text in (first | dict(more or {})).items():
        if _begin(folder / name, folder / name, text()):
            created.append(name)
    patterns = {**PATTERNS, ".gitignore": PATTERNS[".gitignore"] + (OUTPUTS if dvc else "")}
    changed = [name for name, text in patterns.items() if _complete(folder / name, text)]
    created += [name for name in changed if name not in present]
    if not Layout(folder).is_begun():
        created.append("traces/STORE")
    Store.open(folder, create=True).close()
    extended = tuple(name for name in changed if name in present)
    return InitReport((), str(folder), tuple(created), extended, git, dvc)


def _require_usable(folder: Path) -> None:
    """Make sure that parameters, ledger and store that are there already are such as tracemark reads."""
    corpus = Corpus(folder)
    _ = corpus.params, corpus.chain
    if Layout(folder).is_begun():
        Layout(folder).require()


def _begin(path: Path, place: Path, text: str = "") -> bool:
    """Write `text` to `path` unless something is at `place`; return whether it was written."""
    if place.exists():
        return False
    if text:
        write_atomic(path, text.encode())
    else:
        # a ledger to which somebody has added meanwhile must not be replaced by an empty one
        make_folder(path.parent)
        path.touch()
        sync_folder(path.parent)
    return True


def _complete(path: Path, text: str) -> bool:
    """Add to a list of patterns those lines of `text` that it lacks; return whether it lacked any."""
    before = read_regular(path) if path.exists() else b""
    known = {line.strip() for line in before.splitlines()}
    lacking = [line for line in text.encode().splitlines() if line not in known]
    if lacking:
        joint = b"" if before.endswith(b"\n") or not before else b"\n"
        write_atomic(path, before + joint + b"\n".join(lacking) + b"\n")
    return bool(lacking)


def _git(folder: Path) -> bool:
    """Return whether `folder` is in a git repository, after making one where git is installed and there is none."""
    program = shutil.which("git")
    if program is None:
        return False
    inside = _run(folder, program, "rev-parse", "--is-inside-work-tree")
    return inside or _run(folder, program, "init", "--quiet")


def _dvc(folder: Path, *, git: bool) -> bool:
    """Return whether `folder` is in a DVC project, after making one where DVC is installed and there is none."""
    for parent in (folder.resolve(), *folder.resolve().parents):
        if (parent / ".dvc" / "config").is_file():
            return True
        if (parent / ".git").exists():
            # a project beyond the repository would be another one's
            break
    program = shutil.which("dvc") or shutil.which("dvc", path=str(Path(sys.executable).parent))
    if program is None:
        return False
    place = "--no-scm" if not git else "--subdir" if not (folder / ".git").exists() else None
    if not _run(folder, program, "init", "--quiet", *([place] if place else [])):
        return False
    settings = ["[core]", "    analytics = false", *([] if git else ["    no_scm = True"])]
    write_atomic(folder / ".dvc" / "config", "".join(f"{line}\n" for line in settings).encode())
    return True


def _run(folder: Path, *command: str) -> bool:
    # variables such as GIT_DIR, which hooks set, would lead to another repository
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**inherited, "DVC_NO_ANALYTICS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0
