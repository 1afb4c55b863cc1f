"""Compress frames of 64 lines with several settings of zstd, and print time and size beside those of level 3.

frames.py FILE… [--lines 1024]     JSON lines, such as the `inbox` of measure.py's data
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

import orjson
import zstandard

SETTINGS: dict[str, dict[str, int]] = {
    "level 3": {},
    "level 3, chain log 14": {"chain_log": 14},
    "level 3, chain log 13": {"chain_log": 13},
    "level 3, chain log 12": {"chain_log": 12},
    "level 3, chain log 13, min match 6": {"chain_log": 13, "min_match": 6},
    "level 2": {"compression_level": 2},
}


def frames(paths: list[Path], lines: int) -> list[bytes]:
    """Return the first `lines` lines of each file in canonical form, in frames of 64."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            texts = [orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS) for line in islice(file, lines)]
        found += [b"\n".join(texts[at : at + 64]) + b"\n" for at in range(0, len(texts), 64)]
    return found


def compress(data: list[bytes], setting: dict[str, int]) -> tuple[float, int]:
    """Return the best of seven times in seconds, and the compressed size in bytes."""
    best = float("inf")
    for _ in range(7):
        parameters = zstandard.ZstdCompressionParameters(
            **{"compression_level": 3, **setting}, write_checksum=True, write_content_size=True
        )
        compressor = zstandard.ZstdCompressor(compression_params=parameters)
        began = time.perf_counter()
        size = sum(len(compressor.compress(frame)) for frame in data)
        best = min(best, time.perf_counter() - began)
    return best, size


def main() -> None:
    """Measure every setting and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--lines", type=int, default=1024)
    options = parser.parse_args()
    data = frames(options.files, options.lines)
    whole = sum(map(len, data))
    first = compress(data, SETTINGS["level 3"])
    for name, setting in SETTINGS.items():
        seconds, size = compress(data, setting)
        print(
            f"{name:<36} time {seconds / first[0]:.2f}  bytes {size / first[1]:.3f}  {whole / seconds / 1e6:.0f} MB/s"
        )


if __name__ == "__main__":
    main()
