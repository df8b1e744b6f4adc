"""https: a collector is trusted by its own certificate in a file, and not otherwise."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.tools import require
from tinyllm.tracing import ExportConfig
from tinyllm.tracing.transport import Accepted, Collector, Unavailable

BODY = b'{"resourceSpans":[]}'


class Taking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        assert self.rfile.read(int(self.headers["Content-Length"])) == BODY
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    openssl = require("openssl")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=test", "-keyout", str(key)]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def url(pair: tuple[Path, Path]) -> Iterator[str]:
    """A collector that shows the certificate, and asks for the same one in return."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.load_verify_locations(pair[0])
    context.verify_mode = ssl.CERT_REQUIRED
    with HTTPServer(("127.0.0.1", 0), Taking) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()
        thread.join()


def test_a_trusted_collector_gets_spans_over_one_connection(
    url: str, pair: tuple[Path, Path]
) -> None:
    certificate, key = map(str, pair)
    poster = Collector(
        ExportConfig(url, certificate=certificate, client_certificate=certificate, client_key=key)
    )
    assert [poster.post([BODY], 10) for _ in range(3)] == [Accepted()] * 3
    poster.close()


def test_an_unknown_collector_gets_none(url: str, pair: tuple[Path, Path]) -> None:
    poster = Collector(ExportConfig(url))
    answer = poster.post([BODY], 10)
    poster.close()
    assert isinstance(answer, Unavailable)
    assert "certificate verify failed" in answer.reason.lower()


@pytest.mark.parametrize("content", [None, "nothing"], ids=["missing", "empty"])
def test_an_unusable_certificate_is_said_and_stops_nobody(
    content: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "certificate.pem"
    if content is not None:
        path.write_text(content)
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://h:4318",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(path),
    }
    assert ExportConfig.from_env(environ) is None
    (message,) = caplog.messages
    assert message.startswith("OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY")
