"""tracemark: the trace store that knows which harness made every trace.

What a program uses, everything else being the business of the command `tracemark`:

    tracemark.record(harness, inbox, run)    record a run under a harness; `help(tracemark.record)` tells the rest
    tracemark.__version__                    the version

Each name is loaded when it is first used, so that `import tracemark` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracemark.runner.record import record as record

__version__ = "0.1.0"

_LAZY = {"record": "tracemark.runner.record"}

__all__ = ["__version__", "record"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tracemark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
