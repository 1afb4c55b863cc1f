"""Every error that stops tracemark, each with its exit code.

An exception means *cannot go on*; a problem of one record or one file is a `Finding` (see `findings`). Each error says
what happened (`str(error)`), where (`where`) and what to do next (`hint`), so that the command line can print it in
words or as data without knowing the class.

    TracemarkError                 70   base; itself only for what should not happen
    ├── NegativeAnswerError         1   the question was answered, and the answer is no
    ├── UsageError                  2   what the caller asked cannot be done as asked
    │   ├── UnknownNameError        2   no such harness, trace, format …; the known ones are listed
    │   ├── ManifestError           2   a harness.yaml or a file it names is not usable
    │   ├── ParamsError             2   params.yaml is not usable
    │   ├── HarnessChangedError     2   the folder on disk is not what was loaded
    │   └── IrregularFileError      2   a folder, a pipe, a device or a link stands where something else should
    ├── NoStoreError               10   no store here
    │   └── NotPulledError         10   dvc.lock pins data that is not on disk
    ├── LockedError                11   another process holds the lock
    ├── NewerFormatError           12   written by a newer tracemark
    ├── NothingReadableError       20   the source held nothing that could be read
    ├── IntegrityError             30   stored bytes are not what their name says
    ├── LedgerChainError           31   the ledger's chain is broken
    └── ExportRefusedError         40   an export would break its own rules
"""

from __future__ import annotations

from typing import ClassVar

LISTED = "\n  "
"""What stands in front of each fault in the message of an error that lists several."""


class TracemarkError(Exception):
    """Base of all errors of tracemark.

    Args:
        message: what happened, one sentence without a trailing full stop being required.
        where: file, line, trace or record concerned; None when the message says it all.
        hint: the next command or step; None when there is nothing to suggest.
    """

    exit_code: ClassVar[int] = 70
    meaning: ClassVar[str] = "a bug in tracemark"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        # a program that meets the error in its own traceback reads the same as one who uses the command line
        for word, text in (("at", where), ("hint", hint)):
            if text is not None:
                self.add_note(f"{word}: {text}")

    def as_json(self) -> dict[str, object]:
        """Return the error as data: `error`, `exit_code`, `message`, and `where` and `hint` where known."""
        data: dict[str, object] = {
            "error": type(self).__name__,
            "exit_code": self.exit_code,
            "message": self.message,
        }
        if self.where is not None:
            data["where"] = self.where
        if self.hint is not None:
            data["hint"] = self.hint
        return data


class NegativeAnswerError(TracemarkError):
    """The question could be answered, and the answer is no."""

    exit_code = 1
    meaning = "the answer is no, as the help page of the command words it"


class UsageError(TracemarkError):
    """What the caller asked cannot be done as asked."""

    exit_code = 2
    meaning = "usage: an argument, a name, a manifest or a parameter is not usable"


def not_installed(purpose: str, library: str) -> UsageError:
    """Return the error that a library is not installed that is needed for one purpose alone.

    The hint names the library itself, as tracemark may not come from an index: whoever put a package of that name there
    would be obeyed.

    Args:
        purpose: what needs it, plural.
        library: its name on the package index.
    """
    return UsageError(f"{purpose} need {library}, which is not installed", hint=f"pip install {library}")


class UnknownNameError(UsageError):
    """A name that nothing answers to; the hint lists the known ones."""


class ManifestError(UsageError):
    """A harness.yaml, or a file that it names, is not usable."""


class ParamsError(UsageError):
    """params.yaml is not usable."""


class HarnessChangedError(UsageError):
    """The harness folder on disk is not what was loaded."""


class IrregularFileError(UsageError):
    """A folder, a pipe, a device or a link stands where something else should; it was not opened."""


class NoStoreError(TracemarkError):
    """There is no store at the place given."""

    exit_code = 10
    meaning = "no store here, or its data is not pulled"


class NotPulledError(NoStoreError):
    """dvc.lock pins data that is not on disk."""


class LockedError(TracemarkError):
    """Another process holds a lock, and still does after a minute, or after `TRACEMARK_LOCK_WAIT` seconds."""

    exit_code = 11
    meaning = "locked by another process"


class NewerFormatError(TracemarkError):
    """The data was written by a newer tracemark."""

    exit_code = 12
    meaning = "written by a newer tracemark"


class NothingReadableError(TracemarkError):
    """The source held nothing that could be read."""

    exit_code = 20
    meaning = "nothing readable in the source"


class IntegrityError(TracemarkError):
    """Stored bytes are not what their name or their digest says."""

    exit_code = 30
    meaning = "integrity: stored bytes are not what their name says"


class LedgerChainError(TracemarkError):
    """The ledger's chain of digests is broken."""

    exit_code = 31
    meaning = "the ledger's chain is broken"


class ExportRefusedError(TracemarkError):
    """An export, or a comparison that a gate is asked for, would break its own rules; nothing was written."""

    exit_code = 40
    meaning = "refused: an export, or what a gate is to compare"
