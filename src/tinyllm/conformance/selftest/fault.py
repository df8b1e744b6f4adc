"""The list of broken servers: each is a class with one fault, and names the case that finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tinyllm.conformance.case import Suite
from tinyllm.conformance.selftest.engine import Engine
from tinyllm.conformance.selftest.httpd import HttpServer
from tinyllm.conformance.selftest.wire import Wire


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken server.

    `caught_by` are the cases that find the fault; `shared` are those that must fail with them,
    because the fault takes away what they stand on; `may` are those (globs) that fail or not by
    the text that happens to come. No other case may fail.
    """

    server: type[HttpServer]
    caught_by: tuple[str, ...]
    shared: tuple[str, ...] = ()
    may: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The class's name."""
        return self.server.__name__

    @property
    def subject(self) -> str:
        """The file that defines it, which says how far it can reach."""
        return self.server.__module__.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """What is wrong with it."""
        return " ".join((self.server.__doc__ or "").split())

    @property
    def suite(self) -> Suite:
        """The suite that is run against it."""
        return Suite.ENGINE if issubclass(self.server, Engine) else Suite.WIRE


_faults: list[Fault] = []

Server = TypeVar("Server", bound=type[HttpServer])


def caught_by(
    *cases: str, shared: tuple[str, ...] = (), may: tuple[str, ...] = ()
) -> Callable[[Server], Server]:
    """Register a server class as broken."""

    def add(server: Server) -> Server:
        _faults.append(Fault(server, cases, shared, may))
        return server

    return add


def caught_on_both(
    *names: str,
    shared: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    may: tuple[str, ...] = (),
) -> Callable[[type[HttpServer]], type[HttpServer]]:
    """Register a fault of the edge for both servers.

    Names are the cases' without their suite; `also` are shared cases of one suite, with it.
    """

    def add(edge: type[HttpServer]) -> type[HttpServer]:
        for base, suite in ((Engine, "v0."), (Wire, "wire.")):
            body = {"__doc__": edge.__doc__, "__module__": edge.__module__}
            made = type(base.__name__ + edge.__name__, (edge, base), body)
            own = tuple(name for name in also if name.startswith(suite))
            both = tuple(suite + name for name in shared)
            caught_by(*(suite + n for n in names), shared=(*both, *own), may=may)(made)
        return edge

    return add


def all_faults() -> list[Fault]:
    """Return every broken server."""
    from tinyllm.conformance.selftest import faults

    faults.load()
    return _faults
