"""The transport and the acceptor over real loopback sockets, on both kinds of event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tinyllm.serving import transport as transport_module
from tinyllm.serving.transport import HIGH_WATER, SMALL_BYTES, Acceptor, Outbox, SocketTransport

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.SelectorEventLoop,
}


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Run a test's coroutine on one kind of loop, but not for ever."""

    def run_it(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(asyncio.wait_for(coroutine, 20))

    return run_it


class Recorder(asyncio.Protocol):
    """A protocol that remembers what it is told, and can be awaited."""

    def __init__(self) -> None:
        self.transport: SocketTransport
        self.data = b""
        self.told: list[str] = []
        self.keep_open = False
        self.changed = asyncio.Event()

    def _tell(self, what: str) -> None:
        self.told.append(what)
        self.changed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SocketTransport)
        self.transport = transport
        self._tell("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self._tell("data")

    def eof_received(self) -> bool:
        self._tell("eof")
        return self.keep_open

    def pause_writing(self) -> None:
        self._tell("pause")

    def resume_writing(self) -> None:
        self._tell("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self._tell("lost" if exc is None else type(exc).__name__)

    async def until(self, what: str) -> None:
        while what not in self.told:
            self.changed.clear()
            await self.changed.wait()


class Answerer(Recorder):
    """Answers the first bytes and closes, as a connection does with a plain request."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.write(b"answer to " + data)
        self.transport.close()


class Port:
    """A listening socket, its acceptor, and the protocols of what it accepted."""

    def __init__(self, make: Callable[[], Recorder] = Recorder) -> None:
        self.protocols: list[Recorder] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self._make = make
        self.made = asyncio.Event()
        self.acceptor = Acceptor(asyncio.get_running_loop(), self.listener, self._protocol)

    def _protocol(self) -> Recorder:
        self.protocols.append(self._make())
        self.made.set()
        return self.protocols[-1]

    async def connect(self) -> tuple[Recorder, socket.socket]:
        self.made.clear()
        client = socket.create_connection(self.address)
        client.setblocking(False)
        await self.made.wait()
        return self.protocols[-1], client

    def __enter__(self) -> Port:
        return self

    def __exit__(self, *exception: object) -> None:
        self.acceptor.close()
        for protocol in self.protocols:
            protocol.transport.abort()


async def read_to_end(client: socket.socket) -> bytes:
    data = b""
    while chunk := await asyncio.get_running_loop().sock_recv(client, 1 << 20):
        data += chunk
    return data


Run = Callable[[Awaitable[None]], None]


def test_a_request_is_answered_and_closed(run: Run) -> None:
    async def scenario() -> None:
        with Port(Answerer) as port:
            protocol, client = await port.connect()
            with client:
                client.send(b"hello")
                assert await read_to_end(client) == b"answer to hello"
            await protocol.until("lost")
            assert protocol.told == ["made", "data", "lost"]

    run(scenario())


def test_a_request_that_is_there_at_once_is_never_watched(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        watched: list[socket.socket] = []
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.send(b"hello")
            protocol = Answerer()
            loop_like = _Watching(loop, watched)
            transport = SocketTransport(
                loop_like,  # type: ignore[arg-type]
                ours,
                (),
                protocol,
                Outbox(loop),
            )
            transport.begin()
            transport.uncork()
            assert theirs.recv(100) == b"answer to hello"
            assert theirs.recv(100) == b""
        assert watched == []

    run(scenario())


def transport_of(sock: socket.socket, protocol: asyncio.Protocol) -> SocketTransport:
    """Return the transport of a connected socket, for whose `begin` it is time."""
    loop = asyncio.get_running_loop()
    return SocketTransport(loop, sock, (), protocol, Outbox(loop))


class Spy(socket.socket):
    """Remembers, of each send, how much it took and whether more was announced."""

    def __init__(self, spied: socket.socket) -> None:
        super().__init__(fileno=spied.detach())
        self.sends: list[tuple[int, bool]] = []

    def send(self, data: Any, flags: int = 0) -> int:
        sent = super().send(data, flags)
        self.sends.append((sent, bool(flags & socket.MSG_MORE)))
        return sent


@pytest.mark.parametrize(
    ("answers", "sends"),
    [
        ([b"one", b"two"], [(6, True)]),
        ([b"one", b"x" * SMALL_BYTES], [(3 + SMALL_BYTES, False)]),
    ],
    ids=["small", "large"],
)
@pytest.mark.parametrize("end", [SocketTransport.close, SocketTransport.write_eof])
def test_a_small_last_answer_leaves_in_one_piece_with_the_end(
    run: Run,
    answers: list[bytes],
    sends: list[tuple[int, bool]],
    end: Callable[[SocketTransport], None],
) -> None:
    class Last(Recorder):
        def data_received(self, data: bytes) -> None:
            assert self.transport.cork()
            for answer in answers:
                self.transport.write(answer)
            end(self.transport)
            assert not self.transport.cork()
            self.transport.uncork()

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        spy = Spy(ours)
        with theirs:
            theirs.setblocking(False)
            transport = transport_of(spy, Last())
            transport.begin()
            transport.uncork()
            theirs.send(b"a request that comes later")
            assert await read_to_end(theirs) == b"".join(answers)
            assert spy.sends == sends
            transport.abort()

    run(scenario())


def test_what_is_no_last_answer_leaves_at_once(run: Run) -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        spy = Spy(ours)
        with theirs:
            transport = transport_of(spy, Recorder())
            transport.begin()
            transport.uncork()
            transport.write(b"one")
            transport.write(b"two")
            assert spy.sends == [(3, False), (3, False)]
            transport.abort()

    run(scenario())


@pytest.mark.parametrize("size", [1, 8 << 20], ids=["small", "over the kernel's buffer"])
def test_a_first_answer_leaves_when_the_transport_is_uncorked(run: Run, size: int) -> None:
    class Twice(Recorder):
        def data_received(self, data: bytes) -> None:
            self.transport.write(data * size)
            self.transport.write(b"end")
            self.transport.close()

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.send(b"x")
            theirs.setblocking(False)
            protocol = Twice()
            transport = transport_of(ours, protocol)
            transport.begin()
            with pytest.raises(BlockingIOError):
                theirs.recv(1)
            transport.uncork()
            assert await read_to_end(theirs) == b"x" * size + b"end"
            await protocol.until("lost")

    run(scenario())


def test_a_client_that_leaves_a_corked_transport_is_told_of(run: Run) -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        theirs.send(b"x")
        protocol = Answerer()
        transport = transport_of(ours, protocol)
        transport.begin()
        theirs.close()
        transport.uncork()
        await protocol.until("BrokenPipeError")

    run(scenario())


class _Watching:
    """A loop that notes what it is asked to watch."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watched: list[socket.socket]) -> None:
        self.call_soon = loop.call_soon
        self._watched = watched

    def add_reader(self, watched: socket.socket, *_: object) -> None:
        self._watched.append(watched)

    add_writer = add_reader


def test_small_writes_leave_at_once(run: Run) -> None:
    async def scenario() -> None:
        with Port() as port:
            protocol, client = await port.connect()
            with client:
                connected = protocol.transport.get_extra_info("socket")
                assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(scenario())


def test_a_reader_that_stops_pauses_and_resumes_the_protocol(run: Run) -> None:
    async def scenario() -> None:
        with Port() as port:
            protocol, client = await port.connect()
            with client:
                written = 0
                while "pause" not in protocol.told:
                    protocol.transport.write(bytes([written % 251]) * 10_000)
                    written += 10_000
                held = protocol.transport.get_write_buffer_size()
                assert HIGH_WATER < held <= HIGH_WATER + 10_000
                loop, data = asyncio.get_running_loop(), b""
                while len(data) < written:
                    data += await loop.sock_recv(client, 1 << 20)
                assert data == b"".join(
                    bytes([n % 251]) * 10_000 for n in range(0, written, 10_000)
                )
                await protocol.until("resume")
                assert protocol.transport.get_write_buffer_size() == 0

    run(scenario())


def test_close_sends_what_is_left_and_abort_does_not(run: Run) -> None:
    async def scenario() -> None:
        size = 8 << 20  # more than any socket buffer takes
        with Port() as port:
            protocol, client = await port.connect()
            with client:
                protocol.transport.write(b"x" * size)
                protocol.transport.close()
                protocol.transport.write(b"too late")
                assert "lost" not in protocol.told
                assert await read_to_end(client) == b"x" * size
            await protocol.until("lost")
            protocol, client = await port.connect()
            with client:
                protocol.transport.write(b"x" * size)
                protocol.transport.abort()
                await protocol.until("lost")
                with contextlib.suppress(ConnectionResetError):
                    assert len(await read_to_end(client)) < size

    run(scenario())


def test_a_client_that_only_shut_down_its_sending_side_can_be_answered(run: Run) -> None:
    async def scenario() -> None:
        with Port() as port:
            protocol, client = await port.connect()
            protocol.keep_open = True
            with client:
                client.send(b"q")
                client.shutdown(socket.SHUT_WR)
                await protocol.until("eof")
                protocol.transport.write(b"a")
                protocol.transport.close()
                assert await read_to_end(client) == b"a"
            await protocol.until("lost")

    run(scenario())


def test_end_of_file_closes_unless_the_protocol_objects(run: Run) -> None:
    async def scenario() -> None:
        with Port() as port:
            protocol, client = await port.connect()
            client.close()
            await protocol.until("lost")
            assert protocol.told == ["made", "eof", "lost"]

    run(scenario())


def test_write_eof_comes_after_what_was_written(run: Run) -> None:
    async def scenario() -> None:
        size = 4 << 20
        with Port() as port:
            protocol, client = await port.connect()
            with client:
                protocol.transport.write(b"x" * size)
                protocol.transport.write_eof()
                assert len(await read_to_end(client)) == size
                client.send(b"still heard")
                await protocol.until("data")
                assert protocol.data == b"still heard"

    run(scenario())


def test_a_reset_is_told_once(run: Run) -> None:
    async def scenario() -> None:
        with Port() as port:
            protocol, client = await port.connect()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
            await protocol.until("ConnectionResetError")
            protocol.transport.write(b"x")
            protocol.transport.close()
            protocol.transport.abort()
            await asyncio.sleep(0)
            assert protocol.told == ["made", "ConnectionResetError"]

    run(scenario())


def test_paused_reading_leaves_data_to_the_kernel(run: Run) -> None:
    async def scenario() -> None:
        with Port() as port:
            protocol, client = await port.connect()
            with client:
                protocol.transport.pause_reading()
                client.send(b"one")
                other, second = await port.connect()  # by now the loop has seen the data
                second.close()
                await other.until("lost")
                assert protocol.data == b""
                assert not protocol.transport.is_reading()
                protocol.transport.resume_reading()
                await protocol.until("data")
                assert protocol.data == b"one"

    run(scenario())


def test_a_protocol_that_raises_loses_its_own_connection_only(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(Answerer):
        def data_received(self, data: bytes) -> None:
            if data == b"bad":
                raise RuntimeError("fault")
            super().data_received(data)

    async def scenario() -> None:
        with Port(Faulty) as port:
            bad, client = await port.connect()
            with client:
                client.send(b"bad")
                await bad.until("lost")
            _, client = await port.connect()
            with client:
                client.send(b"good")
                assert await read_to_end(client) == b"answer to good"

    run(scenario())
    assert "fault" in caplog.text


class _OutOfDescriptors:
    """A listening socket whose accept fails a number of times, as when descriptors run out."""

    def __init__(self, listener: socket.socket, failures: int) -> None:
        self._listener = listener
        self.failures = failures

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


def test_without_descriptors_accepting_pauses_and_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport_module, "ACCEPT_PAUSE", 0.01)

    async def scenario() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        scarce = _OutOfDescriptors(listener, failures=3)
        protocol = Answerer()
        acceptor = Acceptor(
            asyncio.get_running_loop(),
            scarce,  # type: ignore[arg-type]
            lambda: protocol,
        )
        client = socket.create_connection(listener.getsockname())
        client.setblocking(False)
        with client:
            client.send(b"hello")
            assert await read_to_end(client) == b"answer to hello"
        acceptor.close()

    with caplog.at_level(logging.ERROR):
        run(scenario())
    assert caplog.text.count("cannot accept connections: Too many open files") == 3
