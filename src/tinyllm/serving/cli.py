"""`tl-serve` and `tinyllm serve`: the arguments, the sockets, and then the server's life.

Everything that can be wrong is found before anything listens: arguments (exit 2), the model
and the ports (exit 1, one line on stderr).
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tinyllm import LOG_FORMAT
from tinyllm.model import CheckpointError
from tinyllm.serving.accesslog import AccessLog, json_line, text_line
from tinyllm.serving.lifecycle import FLUSH_SECONDS, GRACE_SECONDS
from tinyllm.serving.lifecycle import run as run_server
from tinyllm.serving.limits import Limits
from tinyllm.serving.lines import LineHandler, LineWriter
from tinyllm.serving.process import end_on_signals, make_room_for, open_standard_files, say
from tinyllm.serving.server import Server

DEFAULT_PORT: Final = 8000
DEFAULT_HEALTH_PORT: Final = 9464
DEFAULT_HOST: Final = "0.0.0.0"
BACKLOG: Final = 2048

PROLOGUE = "Serve a checkpoint over POST /v1/completions, plain and streamed."
EPILOGUE = """\
exit codes: 0 after SIGTERM or SIGINT, 1 when the model does not load or a port cannot be
bound (one line on stderr), 2 on a usage error.
environment: OTEL_EXPORTER_OTLP_ENDPOINT and the other OTEL_* variables (docs/tracing.md).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `tl-serve`: as `tinyllm serve`, but the model must be named."""
    return run(tl_serve_parser().parse_args(argv))


def tl_serve_parser() -> argparse.ArgumentParser:
    """Return the argument parser of `tl-serve`."""
    parser = argparse.ArgumentParser(
        prog="tl-serve",
        description=PROLOGUE,
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    for action in parser._actions:
        if action.dest == "model_dir":
            action.required = True
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of a server."""
    limits = Limits()
    add = parser.add_argument
    add("--model-dir", type=Path, metavar="DIR", help="folder with config.json and weights")
    add("--host", default=DEFAULT_HOST, help="address to listen on (default: %(default)s)")
    add("--port", type=_port, default=DEFAULT_PORT, help="0 picks one (default: %(default)s)")
    add(
        "--health-port",
        type=_port,
        default=DEFAULT_HEALTH_PORT,
        metavar="PORT",
        help="GET /healthz alone, answered by a thread of its own (default: %(default)s)",
    )
    add(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes that share the port (default: %(default)s)",
    )
    add(
        "--access-log",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a line per request on stdout (default: on)",
    )
    add(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="of the access log (default: %(default)s)",
    )
    add(
        "--grace",
        type=_seconds,
        default=GRACE_SECONDS,
        metavar="S",
        help="seconds for answers under way at a shutdown (default: %(default)s)",
    )
    add(
        "--keep-alive",
        choices=("on-request", "never"),
        default="on-request",
        help="keep connections of clients that ask for it (default: %(default)s)",
    )
    add(
        "--loop",
        choices=("auto", "asyncio"),
        default="auto",
        help="event loop: uvloop where it is installed, or Python's own (default: %(default)s)",
    )
    times = {
        "head": "for a request's head to arrive",
        "body": "for its body",
        "idle": "between two requests of a kept connection",
        "stall": "while a client takes no byte of its answer",
    }
    for name, what in times.items():
        default = getattr(limits, f"{name}_timeout")
        note = f"seconds {what} (default: %(default)s)"
        add(f"--{name}-timeout", type=_seconds, default=default, metavar="S", help=note)
    for name, what in {
        "max-connections": "open at once; further clients get 503",
        "max-body-bytes": "of a request's body; a larger one gets 413",
    }.items():
        default = getattr(limits, name.replace("-", "_"))
        note = f"{what} (default: %(default)s)"
        add(f"--{name}", type=_count, default=default, metavar="N", help=note)
    # How a supervisor hands its listening socket and its lifeline to a worker.
    add("--listen-fd", type=int, help=argparse.SUPPRESS)
    add("--lifeline-fd", type=int, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Serve as the arguments say; return the exit code."""
    open_standard_files()
    end_on_signals()
    errors = LineWriter(sys.stderr.fileno(), "log")
    logging.basicConfig(
        format=LOG_FORMAT,
        level=logging.INFO,
        handlers=[LineHandler(errors)],
    )
    try:
        model_dir = args.model_dir or default_model_dir()
        if args.workers > 1:
            return _run_group(args, model_dir)
        return _run_one(args, model_dir)
    except (CheckpointError, OSError) as error:
        errors.write(f"tl-serve: {_reason(error)}\n")
        return 1
    finally:
        errors.close(FLUSH_SECONDS)


def _run_one(args: argparse.Namespace, model_dir: Path) -> int:
    server = Server.from_env(model_dir, limits=limits_of(args))
    lifeline = None
    if args.listen_fd is None:
        listener, health = bind(args.host, args.port), bind(args.host, args.health_port)
    else:
        listener, health = socket.socket(fileno=args.listen_fd), None
        lifeline = socket.socket(fileno=args.lifeline_fd)
    if args.access_log:
        server.access_log = AccessLog(
            sys.stdout.fileno(), json_line if args.log_format == "json" else text_line
        )

    def started() -> None:
        if lifeline is not None:
            lifeline.send(b"R")
        elif health is not None:
            announce(listener, health)

    run_server(
        server,
        listener,
        health,
        grace=args.grace,
        started=started,
        lifeline=lifeline,
        plain_loop=args.loop == "asyncio",
    )
    return 0


def _run_group(args: argparse.Namespace, model_dir: Path) -> int:
    from tinyllm.model import load_model
    from tinyllm.serving.workers import Supervisor, worker_command

    load_model(model_dir)  # a bad model is one clear line here, not one from each worker
    listener, health = bind(args.host, args.port), bind(args.host, args.health_port)
    supervisor = Supervisor(worker_command(args, model_dir), args.workers, listener, args.grace)
    return supervisor.run(health, started=lambda: announce(listener, health))


def limits_of(args: argparse.Namespace) -> Limits:
    """Return the limits that the arguments set."""
    return Limits(
        head_timeout=args.head_timeout,
        body_timeout=args.body_timeout,
        idle_timeout=args.idle_timeout,
        stall_timeout=args.stall_timeout,
        max_connections=make_room_for(args.max_connections),
        max_body_bytes=args.max_body_bytes,
        keep_alive=args.keep_alive != "never",
    )


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise OSError that names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except socket.gaierror as error:
        reason = error.strerror
    except OSError as error:  # its own text repeats the address in Python's spelling
        reason = os.strerror(error.errno or 0)
    raise OSError(f"cannot listen on {host}:{port}: {reason}")


def announce(listener: socket.socket, health: socket.socket) -> None:
    """Say on stdout where the server listens, and a line to try it with."""
    host, port = _in_url(listener)
    health_host, health_port = _in_url(health)
    local = "localhost" if host in ("0.0.0.0", "[::]") else host
    body = '{"model":"tracer","prompt":"Once","max_tokens":64,"temperature":0.8,"stream":true}'
    say(
        f"listening on {host}:{port}, health on {health_host}:{health_port}\n"
        f"try: curl -N {local}:{port}/v1/completions -d '{body}'"
    )


def _in_url(listener: socket.socket) -> tuple[str, int]:
    """Return host and port as a URL spells them: an IPv6 address stands in brackets."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]" if ":" in host else host, port


def default_model_dir() -> Path:
    """Return the folder of the default model, training it there the first time.

    Raises OSError when it cannot be written.
    """
    from tinyllm.training import TrainingError, train_default_model

    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # which the XDG specification says to ignore
        cache = Path.home() / ".cache"
    model_dir = cache / "tinyllm" / "bigram"
    if not (model_dir / "model.safetensors").exists():
        print(f"training the default model into {model_dir}", file=sys.stderr)
        try:
            train_default_model(model_dir)
        except TrainingError as error:
            raise OSError(str(error)) from error
    return model_dir


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _port(text: str) -> int:
    return _integer(text, 0, 65535, "a port from 0 to 65535")


def _count(text: str) -> int:
    return _integer(text, 1, 2**31, "a whole number from 1")


def _integer(text: str, low: int, high: int, wanted: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds <= 86400 * 365:
        return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")


if __name__ == "__main__":
    sys.exit(main())
