"""What a server says of its requests, read from its access log while it runs.

A line is written when a request has ended, so a request that has no line yet, when the line of
a later request is there, has not ended: that is how a test knows that a stream still runs,
without a clock.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from support.processes import TlServe
from support.wire import exchange, get

Line = dict[str, Any]


class AccessLog:
    """The log of a server started with `--log-format json`."""

    def __init__(self, server: TlServe) -> None:
        self._server = server
        self._ended: dict[str, Line] = {}  # by request id
        self._probes = (f"probe-{n}" for n in itertools.count())

    def still_runs(self, request_id: str) -> bool:
        """Whether a request that has begun has not ended."""
        probe = next(self._probes)
        assert (
            exchange(self._server.address, get("/healthz", f"X-Request-Id: {probe}")).status == 200
        )
        self.end_of(probe)
        return request_id not in self._ended

    def end_of(self, request_id: str) -> Line:
        """Wait for a request's line."""
        stdout = self._server.process.stdout
        assert stdout is not None
        while request_id not in self._ended:
            text = stdout.readline()
            assert text, "the server ended"
            line: Line = json.loads(text)
            self._ended[line["request_id"]] = line
        return self._ended[request_id]
