"""tracemark: the trace store that knows which harness made every trace.

What a program uses, everything else being the business of the command `tracemark`:

    tracemark.record(harness, inbox, run)    record a run under a harness; `help(tracemark.record)` tells the rest
    tracemark.capture(...)                   make a harness of live objects; `help(tracemark.capture)` tells the rest
    tracemark.freeze(harness, folder)        write a harness out as the folder of a harness version
    tracemark.__version__                    the version

Each name is loaded when it is first used, so that `import tracemark` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracemark.harness.capture import capture as capture
    from tracemark.harness.freeze import freeze as freeze
    from tracemark.runner.record import record as record

__version__ = "0.1.0"

_LAZY = {
    "capture": "tracemark.harness.capture",
    "freeze": "tracemark.harness.freeze",
    "record": "tracemark.runner.record",
}

__all__ = ["__version__", "capture", "freeze", "record"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tracemark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
