"""A server with the specification's model, on connections without sockets."""

from __future__ import annotations

import pytest

from support.memory import MakePort, Port
from support.models import succ
from tinyllm.model import Bigram
from tinyllm.serving.limits import Limits
from tinyllm.serving.server import Server


@pytest.fixture(scope="session")
def model() -> Bigram:
    return Bigram.from_weight(
        [succ(before, after) for before in range(256) for after in range(256)]
    )


@pytest.fixture
def server(model: Bigram) -> Server:
    return Server(model)


@pytest.fixture
def make_port(server: Server) -> MakePort:
    """A port of the real server; keyword arguments are limits."""
    return lambda **limits: Port(server.dispatch, Limits(**limits))


@pytest.fixture
def port(make_port: MakePort) -> Port:
    return make_port()
