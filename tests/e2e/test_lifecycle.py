"""How a server starts and ends (CONTRACT, point 21): exit codes, signals, the drain."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from support.processes import BIN, TlServe, run_command
from support.waiting import health, wait_until
from support.wire import (
    Address,
    Reply,
    complete,
    connect,
    exchange,
    get,
    parse_reply,
    post,
    read_all,
)
from tinyllm.serving.cli import main

LOOPS = pytest.mark.parametrize("loop", ["auto", "asyncio"])
# The name is in every event, so this stream is larger than all buffers on its way.
LARGE = {"model": "m" * 3_000, "prompt": "a", "max_tokens": 4096, "stream": True}
HALF = b'POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 26\r\n\r\n{"model":"m",'
REST = b'"prompt":"a"}'


class Start(Protocol):
    """Starts a server that ends with the test."""

    def __call__(self, *arguments: str) -> TlServe: ...


@pytest.fixture
def start(succ_model: Path) -> Iterator[Start]:
    with ExitStack() as started:
        yield lambda *arguments: started.enter_context(TlServe(succ_model, *arguments))


def open_large_stream(address: Address) -> tuple[socket.socket, bytes]:
    """A stream whose client reads its beginning and stops."""
    connection = connect(address)
    connection.sendall(post("/v1/completions", LARGE))
    return connection, connection.recv(100)


def rest_of(connection: socket.socket, beginning: bytes) -> Reply:
    return parse_reply(beginning + read_all(connection))


def drains(server: TlServe) -> bool:
    return health(server.health_address) == 503


# The end


@pytest.mark.parametrize(
    ("number", "loop", "workers"),
    [
        (signal.SIGTERM, "auto", "1"),
        (signal.SIGINT, "asyncio", "1"),
        (signal.SIGTERM, "asyncio", "2"),
        (signal.SIGINT, "auto", "2"),
    ],
)
def test_a_signal_ends_an_idle_server_with_0(
    start: Start, number: int, loop: str, workers: str
) -> None:
    server = start("--loop", loop, "--workers", workers)
    assert complete(server.address, max_tokens=3, temperature=0).status == 200
    code, _, err = server.stop(number)
    assert (code, err) == (0, "")


@LOOPS
def test_a_shutdown_lets_open_answers_end(start: Start, loop: str) -> None:
    server = start("--loop", loop, "--no-access-log", "--grace", "60")
    with ExitStack() as connections:
        half = connections.enter_context(connect(server.address))
        idle = connections.enter_context(connect(server.address))
        stream, beginning = open_large_stream(server.address)
        connections.enter_context(stream)
        _drain_beside(server, half, idle)
        assert rest_of(stream, beginning).events()[-1] == "[DONE]"
    assert server.process.wait(20) == 0
    assert server.stop()[2] == ""


def _drain_beside(server: TlServe, half: socket.socket, idle: socket.socket) -> None:
    half.sendall(HALF.replace(b"Host: t", b"Host: t\r\nConnection: keep-alive"))
    idle.sendall(get("/healthz", "Connection: keep-alive"))
    assert idle.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
    assert exchange(server.health_address, get("/healthz")).status == 200

    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: drains(server), "503 on the health port")
    reply = exchange(server.health_address, get("/healthz"))
    assert reply.headers["retry-after"] == "1"
    assert reply.json()["error"]["message"] == "the server is shutting down"
    assert read_all(idle) == b"", "an idle connection is no open answer"
    with pytest.raises(ConnectionRefusedError):
        connect(server.address)

    half.sendall(REST)
    finished = parse_reply(read_all(half))
    assert finished.status == 200
    assert finished.headers["connection"] == "close"


def test_answers_that_outlast_the_grace_are_broken_off(start: Start) -> None:
    server = start("--grace", "0.1", "--log-format", "json")
    stream, beginning = open_large_stream(server.address)
    code, out, err = server.stop()
    assert (code, err) == (0, "")
    (line,) = [json.loads(text) for text in out.splitlines()]
    assert line["ended"] == "shut_down"
    assert 0 < line["completion_tokens"] < 4096
    with stream, pytest.raises(ConnectionResetError):  # and no end of file, as of a whole stream
        rest_of(stream, beginning)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(start: Start, number: int) -> None:
    server = start("--grace", "3600", "--no-access-log")
    stream, _ = open_large_stream(server.address)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: drains(server), "503 on the health port")
    assert server.process.poll() is None, "the open stream holds it"
    with stream:
        code, _, err = server.stop(number)
    assert (code, err) == (0, "")


def test_a_client_that_never_asked_does_not_hold_the_end(start: Start) -> None:
    server = start("--grace", "3600", "--head-timeout", "3600", "--no-access-log")
    with connect(server.address) as silent:
        wait_until(lambda: health(server.address) == 200, "the server")
        assert server.stop()[0] == 0
        assert parse_reply(read_all(silent)).status == 408


class Load:
    """Clients that ask without pause, each on a new connection, until they are refused."""

    def __init__(self, address: Address, clients: int) -> None:
        self._address = address
        self.whole = 0
        self.unheard = 0  # refused, or reset before a byte of an answer
        self.broken: list[bytes] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        asked = {"model": "m", "prompt": "a", "max_tokens": 300, "stream": number % 2 == 0}
        while True:
            data, error = b"", False
            try:
                with connect(self._address) as connection:
                    connection.sendall(post("/v1/completions", asked))
                    while chunk := connection.recv(65536):
                        data += chunk
            except OSError:
                error = True
            with self._lock:
                if _is_whole(data):
                    self.whole += 1
                elif data:
                    self.broken.append(data)
                else:
                    self.unheard += 1
            if error or not data:
                return

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()


def _is_whole(data: bytes) -> bool:
    if b"text/event-stream" in data[:200]:
        return data.endswith(b"data: [DONE]\n\n")
    head, _, body = data.partition(b"\r\n\r\n")
    return f"Content-Length: {len(body)}\r\n".encode() in head + b"\r\n"


@pytest.mark.parametrize(("loop", "workers"), [("auto", "1"), ("asyncio", "1"), ("auto", "2")])
def test_a_shutdown_under_load_loses_no_accepted_answer(
    start: Start, loop: str, workers: str
) -> None:
    server = start("--loop", loop, "--log-format", "json", "--workers", workers)
    load = Load(server.address, clients=8)
    wait_until(lambda: load.whole >= 50, "fifty answers")
    code, out, err = server.stop()
    load.join()
    assert (code, err) == (0, "")
    assert load.broken == []
    lines = [json.loads(text) for text in out.splitlines()]
    assert {line["ended"] for line in lines} == {"completed"}
    assert len(lines) == load.whole, "every answer that was logged was received whole"


# The start


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--model-dir", "m", "--port", "65536"],
        ["--model-dir", "m", "--port", "-1"],
        ["--model-dir", "m", "--port", "\u0663"],
        ["--model-dir", "m", "--grace", "-1"],
        ["--model-dir", "m", "--grace", "nan"],
        ["--model-dir", "m", "--head-timeout", "soon"],
        ["--model-dir", "m", "--workers", "0"],
        ["--model-dir", "m", "--max-connections", "1e3"],
        ["--model-dir", "m", "--log-format", "xml"],
        ["--model-dir", "m", "--keep-alive", "always"],
        ["--model-dir", "m", "--loop", "trio"],
        ["--model-dir", "m", "--no-such-flag"],
        ["--model-dir", "m", "extra"],
    ],
    ids=lambda arguments: " ".join(arguments[2:]) or "no model",
)
def test_a_usage_error_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: tl-serve ")
    assert err.splitlines()[-1].startswith("tl-serve: error: ")


def broken_model(tmp_path: Path, name: str, succ_model: Path) -> Path:
    """A model directory that does not load, and why not."""
    directory = tmp_path / "model"
    shutil.copytree(succ_model, directory)
    weights, config = directory / "model.safetensors", directory / "config.json"
    if name == "no folder":
        shutil.rmtree(directory)
    elif name == "no weights":
        weights.unlink()
    elif name == "cut weights":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif name == "other architecture":
        config.write_text('{"tl_arch":"llama","tl_tokenizer":"bytes","vocab_size":256}')
    return directory


@pytest.mark.parametrize(
    ("name", "reason", "workers"),
    [
        ("no folder", "No such file or directory", "1"),
        ("no weights", "No such file or directory", "1"),
        ("cut weights", "model.safetensors", "1"),
        ("cut weights", "model.safetensors", "2"),
        ("other architecture", "llama", "1"),
    ],
)
def test_a_model_that_does_not_load_is_1_and_one_line(
    tmp_path: Path, succ_model: Path, name: str, reason: str, workers: str
) -> None:
    model = broken_model(tmp_path, name, succ_model)
    with socket.create_server(("127.0.0.1", 0)) as taken:  # were it to listen, it would fail there
        port = str(taken.getsockname()[1])
        done = run_command("tl-serve", "--model-dir", model, "--port", port, "--workers", workers)
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("tl-serve: ")
    assert reason in line
    assert str(model) in line
    assert "cannot listen" not in line


@pytest.mark.parametrize(
    ("which", "workers"), [("--port", "1"), ("--health-port", "1"), ("--port", "2")]
)
def test_a_port_in_use_is_1_and_one_line(succ_model: Path, which: str, workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = {"--port": "0", "--health-port": "0", "--workers": workers, which: port}
        done = run_command(
            "tl-serve",
            *("--model-dir", succ_model, "--host", "127.0.0.1"),
            *[text for pair in arguments.items() for text in pair],
        )
    assert (done.returncode, done.stdout) == (1, b"")
    expected = f"tl-serve: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert done.stderr.decode() == expected


def test_a_host_that_is_not_ours_is_1_and_one_line(succ_model: Path) -> None:
    done = run_command("tl-serve", "--model-dir", succ_model, "--host", "192.0.2.1", "--port", "0")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "tl-serve: cannot listen on 192.0.2.1:0: Cannot assign requested address\n"
    )


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGTERM, "1"), (signal.SIGINT, "1"), (signal.SIGTERM, "2")]
)
def test_a_signal_while_the_model_loads_ends_with_0(number: int, workers: str) -> None:
    code = (
        "import sys, tinyllm.model, tinyllm.serving.server as server\n"
        "from tinyllm.serving.cli import main\n"
        "def load(directory):\n"
        "    print('loading', flush=True)\n"
        # Not signal.pause(): a signal just before it would be slept through for ever.
        "    while True: pass\n"
        "tinyllm.model.load_model = server.load_model = load\n"
        f"sys.exit(main(['--model-dir', 'm', '--workers', '{workers}']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_ipv6_address_is_spelled_as_in_a_url(succ_model: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    with TlServe(succ_model, "--host", "::1", "--log-format", "json") as server:
        assert server.address[0] == "[::1]"
        assert f"curl -N [::1]:{server.address[1]}/v1/completions" in server.curl_line
        reply = complete(("::1", server.address[1]), max_tokens=3, temperature=0)
        assert reply.json()["choices"][0]["text"] == "bcd"
        _, out, _ = server.stop()
    assert json.loads(out)["client"].startswith("[::1]:")


# Standard files that are closed, full or not read


@pytest.mark.parametrize(
    ("closed", "workers"), [((1,), "1"), ((0, 1, 2), "1"), ((0, 1, 2), "2")], ids=str
)
def test_a_server_without_standard_files_serves(
    succ_model: Path, closed: tuple[int, ...], workers: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    redirections = " ".join(f"{descriptor}>&-" for descriptor in closed)
    command = f"exec {BIN}/tl-serve --host 127.0.0.1 --port {port} --health-port 0 "
    command += f"--workers {workers} --model-dir {succ_model} {redirections}"
    with subprocess.Popen(
        ["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        address = ("127.0.0.1", port)
        wait_until(lambda: health(address) == 200, "the server")
        for _ in range(3):
            reply = complete(address, prompt="", max_tokens=3)  # an error is told on no socket
            assert reply.status == 400
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert err == b""
    assert 1 in closed or out.count(b"POST /v1/completions") == 3


@pytest.mark.parametrize("file", ["/dev/full", "closed pipe"])
def test_a_stdout_that_takes_nothing_is_said_and_survived(succ_model: Path, file: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if file == "closed pipe":
        reader, stdout = os.pipe()
        os.close(reader)
    else:
        stdout = os.open(file, os.O_WRONLY)
    command = f"{BIN}/tl-serve --host 127.0.0.1 --port {port} --health-port 0 --model-dir"
    with subprocess.Popen(
        [*command.split(), succ_model], stdout=stdout, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(stdout)
        wait_until(lambda: health(("127.0.0.1", port)) == 200, "the server")
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    (line,) = err.splitlines()
    assert "nothing more is said on stdout: " in line


def test_a_reader_that_is_stuck_delays_neither_answers_nor_the_end(start: Start) -> None:
    server = start("--log-format", "json")
    request = get("/healthz", "X-Request-Id: " + "x" * 128)
    for _ in range(600):  # over 200 KB of lines, into a pipe of 64 KB that nobody reads
        assert exchange(server.address, request).status == 200
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0
