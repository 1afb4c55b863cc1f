"""`audit`: where does this come from, and is it still what it says?

Of a trace: which harness made it, by what evidence for each part, which known harnesses fit its content, what differs
from the accepted one, where its bytes came from, which exports used it. Of an export: every row made again from the
store. Of a harness: its traces, successes, exports and decisions.
"""

from __future__ import annotations

from pathlib import Path

from tracemark.acts.audit_export import ExportAudit, audit_export
from tracemark.acts.audit_harness import HarnessAudit, audit_harness
from tracemark.acts.audit_trace import TraceAudit, audit_trace
from tracemark.acts.corpus import VERSIONS, Corpus, is_short, open_store
from tracemark.acts.pulled import require_no_output, resolve
from tracemark.durable import is_there
from tracemark.errors import NotPulledError, UnknownNameError
from tracemark.exporters import interchange_folder, sft
from tracemark.exporters import manifest as manifests
from tracemark.store.reading import SHORTEST_PREFIX


def audit(root: Path, target: str) -> TraceAudit | ExportAudit | HarnessAudit:
    """Audit what `target` names: the folder of an export, a harness, or a trace.

    A folder without a manifest is taken for an export only when nothing else answers to its name and it holds the rows
    of one. The folder of a harness version means the version.

    Raises:
        UnknownNameError: when nothing answers to `target`.
        NoStoreError: when there is no store.
        NotPulledError: when nothing does of what is on disk, and what dvc.lock pins is not.
    """
    folder = Path(target)
    if (folder / manifests.NAME).is_file():
        return audit_export(root, folder)
    corpus = Corpus(root)
    try:
        name = _version_at(corpus, folder) or target
        return audit_harness(corpus, corpus.resolve(name), name)
    except (UnknownNameError, NotPulledError) as unknown:
        if _may_be_trace(target):
            with open_store(root) as store:
                return audit_trace(corpus, store, resolve(corpus, store, target))
        if folder.is_dir():
            if is_there(folder / sft.FILE):
                return audit_export(root, folder)
            if is_there(folder / interchange_folder.NAME):
                raise UnknownNameError(
                    f"{target!r} holds documents of `export atif`, which are no training set",
                    hint=f"tracemark ingest {target} --dry-run tells what in them the store does not have",
                ) from None
            raise UnknownNameError(
                f"{target!r} is a folder without {manifests.NAME}, so no export, and names no harness and no trace",
                hint="name the folder that `tracemark export` wrote; tracemark harness list; tracemark traces list",
            ) from None
        require_no_output(corpus, folder)
        if isinstance(unknown, NotPulledError):
            raise
        short = f" (of an id at least {SHORTEST_PREFIX} digits are needed)" if is_short(target) else ""
        raise UnknownNameError(
            f"{target!r} is no export folder, no harness and no trace id{short}",
            hint=f"{unknown.hint}; tracemark traces list",
        ) from None


def _version_at(corpus: Corpus, folder: Path) -> str | None:
    """Return the name of the harness version whose folder a path names; None when it names none."""
    below = len(folder.parts) > 1 and folder.resolve().parent == (corpus.root / VERSIONS).resolve()
    return folder.name if below else None


def _may_be_trace(target: str) -> bool:
    return SHORTEST_PREFIX <= len(target) <= 64 and all(digit in "0123456789abcdef" for digit in target)
