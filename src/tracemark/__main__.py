"""Where the program begins: `tracemark`, and `python -m tracemark` where it is not on the path.

Loading takes a while, in which somebody may interrupt it as well as later.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Load the program and run it; an interrupt meanwhile ends it as one does later."""
    try:
        from tracemark.cli.main import main as run  # noqa: PLC0415 - what takes a while

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        # `INTERRUPTED` of what may not be loaded
        sys.exit(130)


if __name__ == "__main__":
    main()
