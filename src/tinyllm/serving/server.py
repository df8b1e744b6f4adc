"""The server: one model, and everything that requests share.

`Server` is made once from a model directory and the environment; `serve` runs it on a
listening socket until it is stopped. Handlers get the server as an argument: there is no
module-level state.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinyllm.decoding import ByteTokenizer, SamplerCache
from tinyllm.model import LanguageModel, load_model
from tinyllm.serving.accesslog import AccessLog
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.limits import Limits
from tinyllm.serving.responses import Pending, Response
from tinyllm.serving.routes import COMPLETIONS, dispatch
from tinyllm.serving.telemetry import completion_span
from tinyllm.tracing import ExportConfig
from tinyllm.wire import Request

if TYPE_CHECKING:
    from tinyllm.tracing import ExporterProcess, SpanExporter


class Server:
    """What the requests of one process share: the model, its cache, the log, the exporter."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        limits: Limits | None = None,
        access_log: AccessLog | None = None,
        exporter: ExporterProcess | SpanExporter | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = ByteTokenizer()
        self.cache = SamplerCache(model)
        self.limits = limits or Limits()
        self.access_log = access_log
        self.exporter = exporter
        self.unavailable = ""  # why new requests are not welcome, once they are not

    @classmethod
    def from_env(
        cls,
        model_dir: str | os.PathLike[str],
        *,
        environ: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        access_log: AccessLog | None = None,
    ) -> Server:
        """Load a model and read the OTEL_* variables (engine spec, section 2.8).

        Raises CheckpointError when the model does not load.
        """
        model = load_model(Path(model_dir))
        config = ExportConfig.from_env(os.environ if environ is None else environ)
        exporter = None
        if config is not None:
            from tinyllm.tracing import ExporterProcess  # which few servers need

            exporter = ExporterProcess(config)
        return cls(model, limits=limits, access_log=access_log, exporter=exporter)

    def warm_up(self) -> None:
        """Make what the first long answer would wait for: numpy and the generator's tables.

        It takes longer than all the rest of the start, so it happens beside the first requests.
        """
        self.cache.seeds.prepare()

    def dispatch(self, request: Request, exchange: Exchange) -> Response | Pending:
        """Return the answer to a request (see routes)."""
        return dispatch(request, self, exchange)

    def finished(self, exchanges: Sequence[Exchange]) -> None:
        """Tell the log and the trace of exchanges that are over: of all, or, if it raises, of none.

        Together: told of one by one they cost a busy loop 10 to 11 us each, so 8 to 9.
        """
        lines = [] if self.access_log is None else self.access_log.lines(exchanges)
        if self.exporter is not None:
            self.exporter.offer(
                *[completion_span(each) for each in exchanges if each.path == COMPLETIONS]
            )
        if self.access_log is not None:
            self.access_log.write(*lines)

    def close(self, timeout: float) -> None:
        """Flush what is still to be told, within `timeout` seconds each."""
        if self.exporter is not None:
            self.exporter.close(timeout)
        if self.access_log is not None:
            self.access_log.close(timeout)


def serve(listener: socket.socket, server: Server) -> None:
    """Serve on a bound socket until the process is told to stop (engine spec, section 4)."""
    from tinyllm.serving.lifecycle import run  # it imports this module's Server

    run(server, listener)
