"""Any field either makes a response with exactly that field or is refused; none splits one."""

from __future__ import annotations

from tinyllm.wire import response_bytes, sse_head_bytes


def check(data: bytes) -> None:
    """Name, value, content type and body, separated by LF LF; the first byte picks a status."""
    status = 200 + (data[0] * 2 if data else 0)
    parts = data[1:].decode("utf-8", "replace").split("\n\n", 3)
    name, value, content_type, body = [*parts, "", "", "", ""][:4]
    payload = body.encode()
    try:
        sent = response_bytes(status, content_type, [(name, value)], payload)
        stream = sse_head_bytes([(name, value)])
    except ValueError:
        return
    head, _, rest = sent.partition(b"\r\n\r\n")
    assert rest == payload
    assert head.decode("latin-1").split("\r\n")[1:] == [
        f"Content-Type: {content_type}",
        f"Content-Length: {len(payload)}",
        f"{name}: {value}",
        "Connection: close",
    ]
    assert head.count(b"\n") == 4
    assert b"\0" not in head
    assert stream.count(b"\r\n") == stream.count(b"\n") == stream.count(b"\r") == 6
