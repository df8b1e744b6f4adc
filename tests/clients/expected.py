"""What every client asks the succ model, and what it must get."""

from __future__ import annotations

from typing import Any

GREEDY: dict[str, Any] = {"model": "m", "prompt": "a", "max_tokens": 3, "temperature": 0}
TEXTS = ["b", "c", "d"]
TEXT = "bcd"
USAGE = {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}

# A stream of 66 MB, since the model's name stands in every event: more than all buffers between
# the server and its client hold, so it cannot end before the client has read most of it.
LONG: dict[str, Any] = {
    "model": "m" * 16_000,
    "prompt": "a",
    "max_tokens": 4096,
    "temperature": 0,
}
