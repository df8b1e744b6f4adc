"""`--workers N`: processes behind one port (supervisor in workers.py)."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from support.processes import TlServe
from support.waiting import health, wait_until
from support.wire import Reply, complete, connect, get, parse_reply, post, read_all

# The name is in every event, so this stream is larger than all buffers on its way.
LARGE = {"model": "m" * 3_000, "prompt": "a", "max_tokens": 4096, "stream": True}


class OpenStream:
    """A stream whose client has read its beginning and waits."""

    def __init__(self, server: TlServe) -> None:
        self.connection = connect(server.address)
        self.connection.sendall(post("/v1/completions", LARGE))
        self.beginning = self.connection.recv(100)

    def rest(self) -> Reply:
        with self.connection:
            return parse_reply(self.beginning + read_all(self.connection))


def read_to_the_end(connection: socket.socket) -> bytes:
    """Read until the end: for a dead process the kernel sends an end of file or a reset."""
    data = b""
    with connection, suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            data = chunk
    return data


def workers(server: TlServe) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children()


@contextmanager
def alone(server: TlServe, pid: int) -> Iterator[None]:
    """Stop all workers but one, so that whoever connects meanwhile is its client."""
    others = [worker for worker in workers(server) if worker.pid != pid]
    for worker in others:
        worker.suspend()
    yield
    for worker in others:
        worker.resume()


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def pair(succ_model: Path) -> Iterator[TlServe]:
    """A server of two workers."""
    with TlServe(succ_model, "--workers", "2", "--no-access-log", "--grace", "60") as server:
        yield server


@pytest.fixture(scope="module")
def shared_pair(succ_model: Path) -> Iterator[TlServe]:
    """The same, for tests that leave it as it was."""
    with TlServe(succ_model, "--workers", "2", "--no-access-log") as server:
        yield server


@pytest.fixture
def streams(pair: TlServe) -> Iterator[dict[int, OpenStream]]:
    """An open stream of each worker, by its process id."""
    by_worker = {}
    with ExitStack() as connections:
        for worker in workers(pair):
            with alone(pair, worker.pid):
                by_worker[worker.pid] = stream = OpenStream(pair)
            connections.enter_context(stream.connection)
        yield by_worker


def test_killing_a_worker_loses_its_answers_only_and_it_is_replaced(
    pair: TlServe, streams: dict[int, OpenStream]
) -> None:
    victim, survivor = streams
    os.kill(victim, signal.SIGKILL)
    assert not read_to_the_end(streams[victim].connection).endswith(b"[DONE]\n\n")
    assert health(pair.health_address) == 200, "the group answers"
    assert complete(pair.address, max_tokens=3, temperature=0).status == 200
    assert streams[survivor].rest().events()[-1] == "[DONE]"
    wait_until(lambda: len(workers(pair)) == 2, "another worker")
    (other,) = {worker.pid for worker in workers(pair)} - {survivor}
    assert other != victim
    with alone(pair, other):
        assert complete(pair.address, max_tokens=3, temperature=0).status == 200
    code, _, err = pair.stop()
    assert code == 0
    said = rf"WARNING tinyllm\.serving: worker {victim} was killed by SIGKILL; starting another\n"
    assert re.fullmatch(rf"\S+ \S+ {said}", err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_all_and_the_exit_waits_for_every_worker(
    pair: TlServe, streams: dict[int, OpenStream], number: int
) -> None:
    pair.process.send_signal(number)
    wait_until(lambda: health(pair.health_address) == 503, "503 on the health port")
    first, last = streams
    assert streams[first].rest().events()[-1] == "[DONE]"
    wait_until(lambda: not is_running(first), "the end of the worker that has no answers left")
    assert pair.process.poll() is None, "the other worker has"
    assert health(pair.health_address) == 503
    assert streams[last].rest().events()[-1] == "[DONE]"
    _, err = pair.process.communicate(timeout=20)
    assert (pair.process.returncode, err) == (0, "")
    assert not is_running(last)


def test_a_second_signal_reaches_all(pair: TlServe, streams: dict[int, OpenStream]) -> None:
    pair.process.send_signal(signal.SIGTERM)
    wait_until(lambda: health(pair.health_address) == 503, "503 on the health port")
    code, _, err = pair.stop()
    assert (code, err) == (0, "")
    assert not any(is_running(pid) for pid in streams)


def test_workers_end_when_their_supervisor_is_killed(
    pair: TlServe, streams: dict[int, OpenStream]
) -> None:
    pair.process.kill()
    pair.process.wait()
    for stream in streams.values():
        assert stream.rest().events()[-1] == "[DONE]", "what was open has its grace"
    wait_until(lambda: not any(is_running(pid) for pid in streams), "the workers' end")


def test_a_worker_that_does_not_end_is_killed(succ_model: Path) -> None:
    # Its exit takes longer than the patience of its supervisor, since it is stopped.
    code = (
        "import sys, tinyllm.serving.workers as workers\n"
        "workers.FLUSH_SECONDS = workers.PATIENCE_SECONDS = 0.1\n"
        "from tinyllm.serving.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = "--host 127.0.0.1 --port 0 --health-port 0 --workers 2 --grace 0 --model-dir"
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments.split(), succ_model],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ")
        children = psutil.Process(process.pid).children()
        for child in children:
            child.suspend()
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "2 workers did not end in time; killing them" in err
    assert not any(is_running(child.pid) for child in children)


SUPERVISE = """
import socket, sys, tinyllm.serving.workers as workers
workers.RESTART_PAUSE = 0.01
listener, health = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
command = [sys.executable, "-c", {worker!r}]
sys.exit(workers.Supervisor(command, 2, listener, 1.0).run(health, lambda: print("started")))
"""


def supervise(worker: str) -> subprocess.CompletedProcess[str]:
    """Run a supervisor of workers that are this code."""
    return subprocess.run(
        [sys.executable, "-c", SUPERVISE.format(worker=worker)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_workers_that_never_accept_are_given_up() -> None:
    done = supervise("import sys; sys.exit(3)")
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert len([line for line in lines if "ended with exit code 3; starting another" in line]) == 4
    assert lines[-1].endswith("ended with exit code 3; giving up after 5 starts in vain") or lines[
        -2
    ].endswith("giving up after 5 starts in vain")


def test_a_worker_that_cannot_be_started_is_tried_again() -> None:
    code = SUPERVISE.format(worker="").replace(
        "command = [sys.executable, \"-c\", '']", 'command = ["/nonexistent/python"]'
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "a worker could not be started: No such file or directory; starting another" in (
        done.stderr
    )
    assert "giving up after 5 starts in vain" in done.stderr


def test_both_workers_answer_with_the_same_text(shared_pair: TlServe) -> None:
    asked = {"prompt": "a", "max_tokens": 50, "temperature": 1.5, "seed": 11}
    texts = []
    for worker in workers(shared_pair):
        with alone(shared_pair, worker.pid):
            texts.append(complete(shared_pair.address, **asked).json()["choices"][0]["text"])
    assert len(texts) == 2
    assert texts[0] == texts[1]


def test_a_kept_connection_stays_with_its_worker(shared_pair: TlServe) -> None:
    with connect(shared_pair.address) as connection:
        for _ in range(3):
            connection.sendall(get("/healthz", "Connection: keep-alive"))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


def test_the_current_folder_is_no_library(
    succ_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not the library')")
    monkeypatch.chdir(tmp_path)
    with TlServe(succ_model.resolve(), "--no-access-log", "--workers", "2") as server:
        assert complete(server.address).status == 200
