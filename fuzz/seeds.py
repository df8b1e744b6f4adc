"""Write the seeds of a target from the test data: `python fuzz/seeds.py request DIR`.

Each seed gets the leading byte by which the targets cut the rest.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent.parent / "tests" / "data"
MAX_SEED_BYTES = 4096


def seeds(target: str) -> Iterator[bytes]:
    """Return the seeds of one target: request, sse, json or response."""
    name, key, prefix = {
        "request": ("http_requests.json", "bytes_base64", b"\x09"),
        "sse": ("sse_streams.json", "stream_base64", b"\x09"),
        "json": ("json_parsing.json", "bytes_base64", b""),
        "response": ("", "", b""),
    }[target]
    if not name:
        yield b"\x00X-Request-Id\n\nabc 1\n\napplication/json\n\n{}"
        return
    for case in json.loads((DATA / name).read_bytes())["cases"]:
        if key in case and len(seed := base64.b64decode(case[key])) < MAX_SEED_BYTES:
            yield prefix + seed


def main(target: str, folder: str) -> None:
    """Write one file per seed."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        Path(folder, f"seed-{number:03d}").write_bytes(seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
