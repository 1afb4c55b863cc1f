"""`init`: make a corpus repository, without asking anything.

Works in a new or an existing folder, in a git repository or outside one, with DVC installed or not. What is already
there is kept as it is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tracemark.durable import make_folder, write_atomic
from tracemark.errors import UsageError
from tracemark.findings import Report
from tracemark.store.store import Store

FOLDERS = ("harness_versions", "inbox", "domains")
"""Folders that stages depend on, kept in git by an empty `.gitkeep`."""

PARAMS = """\
# The accepted pair. `tracemark harness accept NAME --reason TEXT` writes it, after the ledger.
accepted:
  harness: null
  model: null

ingest:
  success_reward: 1.0      # reward from which on a run without a verdict of its own counts as success
  max_record: 67108864     # bytes; a larger record is refused
  max_expanded: 1073741824 # bytes to which one compressed file may expand
  inbox: partial           # complete: the inbox holds every raw run, so the store can be made again from it

# Tasks on which gates compare; never in a training export. A list of ids, or `{file: PATH}`.
evaluation:
  tasks: []

export:
  evidence: unique         # recorded | unique | claimed
  models: []               # empty: every model
  sft:
    per_task: 1            # null: no limit
    total: 100             # null: no limit
    minimum: 20            # with fewer rows the export is refused
    tool_calls: [2, 60]    # null: no limit
"""
"""The `params.yaml` of a new corpus: every parameter with its default."""

_GITIGNORE = "/.tracemark/\n"
_DVCIGNORE = """\
# what is made by running code, and what no harness counts as its file
__pycache__/
*.pyc
.git/
.DS_Store
*~
*.swp
.tracemark/
"""
_GITATTRIBUTES = "ledger.jsonl merge=union\n"


@dataclass(frozen=True)
class InitReport(Report):
    """What `init` made."""

    root: str
    """The corpus's folder as it was given."""
    created: tuple[str, ...]
    """Files and folders that were not there before, relative to the corpus, in the order made."""
    git: bool
    """Whether the folder is in a git repository now."""
    dvc: bool
    """Whether the folder is a DVC project now."""


def init(folder: Path) -> InitReport:
    """Make `folder` a corpus repository.

    Args:
        folder: a new folder, an empty one, or one to which a corpus is added.

    Raises:
        UsageError: when `folder` is a file.
        OSError: when it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("not a folder", where=str(folder), hint="name a folder that is new or empty")
    make_folder(folder)
    created = []
    for name in FOLDERS:
        if not (folder / name).exists():
            write_atomic(folder / name / ".gitkeep", b"")
            created.append(f"{name}/")
    files = {
        "params.yaml": PARAMS,
        "ledger.jsonl": "",
        ".gitignore": _GITIGNORE,
        ".dvcignore": _DVCIGNORE,
        ".gitattributes": _GITATTRIBUTES,
    }
    for name, text in files.items():
        if _write(folder / name, text):
            created.append(name)
    if not (folder / "traces" / "STORE").exists():
        Store.open(folder, create=True).close()
        created.append("traces/STORE")
    git = _git(folder)
    return InitReport((), str(folder), tuple(created), git, git and _dvc(folder))


def _write(path: Path, text: str) -> bool:
    """Write `text` to a new file, or add those of its lines that an existing one lacks; return whether it changed."""
    if not path.exists():
        write_atomic(path, text.encode())
        return True
    if path.name not in {".gitignore", ".dvcignore", ".gitattributes"}:
        return False
    before = path.read_text(encoding="utf-8")
    lacking = [line for line in text.splitlines() if line not in before.splitlines()]
    if lacking:
        joint = "" if before.endswith("\n") or not before else "\n"
        write_atomic(path, (before + joint + "\n".join(lacking) + "\n").encode())
    return bool(lacking)


def _git(folder: Path) -> bool:
    """Return whether `folder` is in a git repository, after making one where git is installed and there is none."""
    program = shutil.which("git")
    if program is None:
        return False
    inside = _run(folder, program, "rev-parse", "--is-inside-work-tree")
    return inside or _run(folder, program, "init", "--quiet")


def _dvc(folder: Path) -> bool:
    """Return whether `folder` is in a DVC project, after making one where DVC is installed and there is none."""
    if any((parent / ".dvc").is_dir() for parent in (folder.resolve(), *folder.resolve().parents)):
        return True
    program = shutil.which("dvc") or shutil.which("dvc", path=str(Path(sys.executable).parent))
    if program is None:
        return False
    subdir = () if (folder / ".git").exists() else ("--subdir",)
    return _run(folder, program, "init", "--quiet", *subdir) and _run(
        folder, program, "config", "core.analytics", "false"
    )


def _run(folder: Path, *command: str) -> bool:
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0
