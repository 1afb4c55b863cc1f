"""Every command of tracemark: its path, one line of help, and the errors that it can end with.

The table is all that `tracemark --help` reads; a command's module is imported when the command is used. The exit codes
on each help page come from the error classes named here; what a negative answer is, each command has words of its own
for.
"""

from __future__ import annotations

from typing import NamedTuple

from tracemark.errors import (
    ExportRefusedError,
    IntegrityError,
    LedgerChainError,
    LockedError,
    NegativeAnswerError,
    NewerFormatError,
    NoStoreError,
    NothingReadableError,
    TracemarkError,
    UsageError,
)

Errors = tuple[type[TracemarkError], ...]


class Entry(NamedTuple):
    """What is known of a command before its module is loaded."""

    help: str
    """One line; also the first line of the command's docstring."""
    errors: Errors = ()
    """What it can end with, besides usage errors, bugs and a negative answer."""
    no: str | None = "findings of severity error"
    """When it ends with the exit code of a negative answer; None when it never does."""


_FILES: Errors = (NoStoreError,)
_LEDGER: Errors = (*_FILES, LockedError, NewerFormatError, LedgerChainError)
_STORE: Errors = (*_FILES, LockedError, NewerFormatError, IntegrityError)
_BOTH: Errors = (*_STORE, LedgerChainError)

GROUPS: dict[str, str] = {
    "harness": "List, compare, check and accept harness versions.",
    "traces": "List, show and search stored traces.",
    "export": "Write training sets of one harness, or traces for other tools.",
    "failures": "List, show and write out failures that recur.",
    "gate": "Judge harness and model apart, and install what is better.",
    "model": "Accept a model.",
    "pipeline": "Generate the DVC pipeline and the data of its plots.",
}

COMMANDS: dict[str, Entry] = {
    "init": Entry("Lay out a new corpus.", (LockedError, NewerFormatError, IntegrityError, LedgerChainError), None),
    "harness list": Entry("List the known harness versions.", _BOTH),
    "harness show": Entry("Show a harness version's fingerprint, components and parts.", _FILES),
    "harness match": Entry(
        "Show which known harnesses can have made foreign traces.",
        _BOTH,
        "no known harness fits all of them, or findings of severity error",
    ),
    "harness diff": Entry(
        "Show in which parts two harness versions differ.", _FILES, "they differ, or findings of severity error"
    ),
    "harness check": Entry("Check harness versions for everything that weakens a fingerprint.", _FILES),
    "harness freeze": Entry("Write a harness out as a version in harness_versions/.", _FILES),
    "harness accept": Entry(
        "Make a harness version the accepted one.", _LEDGER, "it has findings of severity error, and is not accepted"
    ),
    "harness impact": Entry(
        "Tell which stored traces a change of tool schemas makes useless.",
        _BOTH,
        "a call stopped being valid or cannot be judged, or findings of severity error",
    ),
    "harness equivalent": Entry(
        "Let exports treat two harnesses as one.", _BOTH, "more differs than may, or it stands so already"
    ),
    "ingest": Entry(
        "Read traces from PATHS into the store.",
        (*_STORE, NothingReadableError),
        "records were refused, or other findings of severity error",
    ),
    "traces list": Entry("List stored traces.", _BOTH),
    "traces show": Entry("Show one stored trace.", _BOTH),
    "traces find": Entry("Find traces by words of task, messages or tool names.", _BOTH),
    "audit": Entry("Tell where a trace, an export or a harness comes from.", _BOTH),
    "export atif": Entry("Write stored traces as ATIF documents.", (*_BOTH, ExportRefusedError)),
    "export sft": Entry("Write a supervised fine-tuning set.", (*_BOTH, ExportRefusedError)),
    "plan": Entry("List what to run next to fill the training set.", (*_BOTH, ExportRefusedError)),
    "failures list": Entry("List failures that recur, the most frequent first.", _BOTH),
    "failures show": Entry("Show one cluster of failures, or where one trace goes and why.", _BOTH),
    "failures export": Entry("Write the failure log of the accepted harness.", (*_BOTH, ExportRefusedError)),
    "gate harness": Entry(
        "Judge a harness against the accepted one.",
        (*_BOTH, ExportRefusedError),
        "the candidate is rejected, or has problems that keep it from being installed",
    ),
    "gate model": Entry(
        "Judge a model against the accepted one.", (*_BOTH, ExportRefusedError), "the candidate is rejected"
    ),
    "gate attribute": Entry("Tell what a new harness and a new model each bring.", (*_BOTH, ExportRefusedError), None),
    "gate freeze": Entry(
        "Freeze the evaluation set.", _LEDGER, "this set is frozen already, or findings of severity error"
    ),
    "gate log": Entry("List the decisions about the accepted pair, and what of their evidence holds.", _LEDGER),
    "gate rollback": Entry(
        "Return to an earlier pair.",
        _LEDGER,
        "there is no pair before the present one, or the pair is that one already",
    ),
    "model accept": Entry("Make a model the accepted one.", _BOTH, None),
    "check": Entry("Check the corpus, changing nothing.", _STORE),
    "reindex": Entry("Rebuild the catalogue from the stored files.", _STORE),
    "retract": Entry("Take traces out of every later export.", _BOTH, "they are retracted already"),
    "reinstate": Entry("Lift the retraction of traces.", _BOTH, "they are not retracted"),
    "stamp": Entry(
        "Decide under which harness traces count.", _BOTH, "they are settled so already, or one cannot be settled so"
    ),
    "pipeline dvcfile": Entry(
        "Write the pipeline's dvc.yaml to standard output.",
        _FILES,
        "with --check: dvc.yaml is not what would be written",
    ),
    "pipeline plots": Entry(
        "Write the data that `dvc plots` draws, from the reports of gates.", (NoStoreError, NewerFormatError), None
    ),
}


def below(path: str) -> list[str]:
    """Return the paths of all commands that are `path` or lie below it; all of them for the empty path."""
    return [name for name in COMMANDS if not path or name == path or name.startswith(path + " ")]


def exits(path: str) -> dict[int, str]:
    """Return the exit codes of a command, or of all commands of a group, with what each means, in order."""
    errors: set[type[TracemarkError]] = {UsageError, TracemarkError}
    for name in below(path):
        errors.update(COMMANDS[name].errors)
    said = {e.exit_code: e.meaning for e in errors}
    if negative := {COMMANDS[name].no for name in below(path)} - {None}:
        said[NegativeAnswerError.exit_code] = (
            f"the answer is no: {negative.pop()}" if len(negative) == 1 else NegativeAnswerError.meaning
        )
    return {0: "ok"} | dict(sorted(said.items()))


def epilog(path: str) -> str:
    """Return the end of a help page: the exit codes, one a line."""
    lines = [f"{code:>4}  {meaning}" for code, meaning in exits(path).items()]
    return "\n".join(["\b", "Exit codes:", *lines])
