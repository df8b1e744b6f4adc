"""An exporter that writes nothing: each handover on its standard input becomes a constant body.

python -m benchmarks.serving.constant_exporter PORT      (the collector's; see switched.py)
"""

from __future__ import annotations

import http.client
import sys
from typing import Final

SPANS_PER_BODY: Final = 512
PACKED_BYTES: Final = 230
SPAN_BYTES: Final = 1_628  # as observing.py's load makes them
PIECES: Final = [b"x" * (64 * SPAN_BYTES)] * (SPANS_PER_BODY // 64)  # as the exporter's Body has


def main(port: int) -> None:
    """Post until the input ends."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Content-Length": str(sum(map(len, PIECES)))}
    while (
        len(sys.stdin.buffer.read(SPANS_PER_BODY * PACKED_BYTES)) == SPANS_PER_BODY * PACKED_BYTES
    ):
        connection.request("POST", "/v1/traces", PIECES, headers)
        connection.getresponse().read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
