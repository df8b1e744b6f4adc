"""What the fuzzer cannot read from the contract's JSON Schema, told to it in code.

JSON Schema counts 16.0 as an integer; the contract does not (CONTRACT, point 12), and no keyword
says so. So the fuzzer spells the integers it makes as integers.
"""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in body.items()
    }
