"""The arguments of a server: what they mean, and that a worker gets them all."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import tinyllm.training
from tinyllm.serving import cli
from tinyllm.serving.cli import default_model_dir, limits_of, tl_serve_parser
from tinyllm.serving.limits import Limits
from tinyllm.serving.workers import worker_command
from tinyllm.wire import ParserState

MODEL = ["--model-dir", "m"]
ALL = [
    *("--log-format", "json", "--grace", "1.5", "--keep-alive", "never", "--loop", "asyncio"),
    *("--head-timeout", "2", "--body-timeout", "3", "--idle-timeout", "4", "--stall-timeout", "5"),
    *("--max-connections", "6", "--max-body-bytes", "7", "--no-access-log"),
]
OWN = {"model_dir", "host", "port", "health_port", "workers", "listen_fd", "lifeline_fd"}


@pytest.mark.parametrize("arguments", [[], ALL], ids=["defaults", "all"])
def test_a_worker_gets_every_argument_but_the_ports(arguments: list[str]) -> None:
    parser = tl_serve_parser()
    args = parser.parse_args([*MODEL, *arguments])
    (_, _, _, module, *rest) = worker_command(args, Path("m"))
    assert module == "tinyllm.serving.cli"
    inherited = vars(parser.parse_args(rest))
    for name, value in vars(args).items():
        if name not in OWN:
            assert inherited[name] == value, name


def test_all_of_them_differ_from_the_defaults() -> None:
    parse = tl_serve_parser().parse_args
    defaults, changed = vars(parse(MODEL)), vars(parse([*MODEL, *ALL]))
    assert {name for name in defaults if defaults[name] == changed[name]} == OWN


def test_the_limits_are_what_the_arguments_say() -> None:
    assert limits_of(tl_serve_parser().parse_args(MODEL)) == Limits()
    assert limits_of(tl_serve_parser().parse_args([*MODEL, *ALL])) == Limits(
        head_timeout=2.0,
        body_timeout=3.0,
        idle_timeout=4.0,
        stall_timeout=5.0,
        max_connections=6,
        max_body_bytes=7,
        keep_alive=False,
    )


def test_each_state_of_a_request_has_its_patience() -> None:
    limits = Limits()
    assert {state: limits.patience(state) for state in ParserState} == {
        ParserState.IDLE: 75.0,
        ParserState.HEAD: 10.0,
        ParserState.BODY: 30.0,
    }
    assert limits.shortest == 10.0


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("/var/cache/x", "/var/cache/x/tinyllm/bigram"),
        ("relative", "/home/of/mine/.cache/tinyllm/bigram"),
        ("", "/home/of/mine/.cache/tinyllm/bigram"),
        (None, "/home/of/mine/.cache/tinyllm/bigram"),
    ],
    ids=["absolute", "relative", "empty", "unset"],
)
def test_the_default_model_lives_in_the_user_s_cache(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, folder: str
) -> None:
    trained: list[Path] = []
    monkeypatch.setattr(tinyllm.training, "train_default_model", trained.append)
    monkeypatch.setenv("HOME", "/home/of/mine")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if variable is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", variable)
    assert default_model_dir() == Path(folder)
    assert trained == [Path(folder)]


def test_a_default_model_that_is_there_is_not_trained_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tinyllm.training, "train_default_model", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "tinyllm" / "bigram"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").touch()
    assert default_model_dir() == folder


def test_a_host_that_has_no_address_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(address: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_server", unknown)
    with pytest.raises(OSError, match=r"^cannot listen on nowhere:80: Name or service not known$"):
        cli.bind("nowhere", 80)
