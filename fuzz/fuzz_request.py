"""Any bytes, however cut, give the same requests and then the same error, or wait for more."""

from __future__ import annotations

import io

from tinyllm.wire import HttpError, Request, RequestParser, read_request

MAX_HEAD_BYTES, MAX_BODY_BYTES = 512, 64  # small, so that short inputs reach the caps
STATUSES = (400, 411, 413, 417, 431, 501, 0)


def outcome(pieces: list[bytes], head: int, body: int) -> tuple[list[Request], str]:
    """Feed the pieces and the end; return all requests and the error that ends them."""
    parser = RequestParser(head, body)
    requests = []
    for piece in [*pieces, b""]:
        parser.feed(piece)
        try:
            while (request := parser.next_request()) is not None:
                requests.append(request)
        except HttpError as error:
            if error.status not in STATUSES:
                raise AssertionError("an error that the parser has no rule for") from error
            return requests, f"{type(error).__name__}: {error.message}"
    raise AssertionError("the end of the stream gave neither a request nor an error")


def written(request: Request) -> bytes:
    """Return the request as bytes that say the same."""
    lines = [f"{request.method} {request.target} HTTP/{request.version}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body


def pieces(cut: int, stream: bytes) -> list[bytes]:
    """Cut in two at an offset, or, for every eighth `cut`, after every byte of the first 64."""
    if cut % 8:
        at = cut % (len(stream) + 1)
        parts = [stream[:at], stream[at:]]
    else:
        parts = [*(stream[at : at + 1] for at in range(min(len(stream), 64))), stream[64:]]
    return [part for part in parts if part]


def check(data: bytes) -> None:
    """The first byte says how to cut the rest."""
    cut, stream = data[0] if data else 0, data[1:]
    whole = outcome([stream] if stream else [], MAX_HEAD_BYTES, MAX_BODY_BYTES)
    assert outcome(pieces(cut, stream), MAX_HEAD_BYTES, MAX_BODY_BYTES) == whole
    for request in whole[0]:
        assert len(request.body) <= MAX_BODY_BYTES
        assert outcome([written(request)], 2**20, 2**20)[0] == [request]
        for name, value in request.headers:
            assert value in request.header_values(name.upper())
        assert request.path
        assert isinstance(request.wants_keep_alive, bool)
        assert request.query("n") is None or "=" in request.target or "n" in request.target
    check_blocking(stream)


def check_blocking(stream: bytes) -> None:
    """`read_request` reads what the parser reads, and leaves the rest in the reader."""
    requests, error = outcome([stream] if stream else [], 16384, 2**20)
    reader = io.BytesIO(stream)
    found = ""
    try:
        for request in requests:
            assert read_request(reader) == request
        read_request(reader)
    except HttpError as raised:
        found = f"{type(raised).__name__}: {raised.message}"
    assert found.partition(":")[0] == error.partition(":")[0]
