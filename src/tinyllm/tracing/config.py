"""What the export of spans is set to, read once from OpenTelemetry's environment variables.

The names and their meanings are the OpenTelemetry specification's ("OpenTelemetry Protocol
Exporter", "Environment Variable Specification"); environment.py keeps its rules for bad values.
Times are integers in milliseconds, and a timeout of 0 is none.

Two points are ours. Without an endpoint there is no export: an engine that nobody asked for
spans sends none. And the queue is eight times the specification's 2048 by default, because one
process answers twenty thousand requests a second and a collector may pause for half a second.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyllm import __version__
from tinyllm.tracing.environment import Environment, log
from tinyllm.tracing.sampling import Sampler, sampler_from_env
from tinyllm.tracing.span import AttrValue

TRACES_PATH = "/v1/traces"
DEFAULT_SERVICE_NAME = "tinyllm"
NO_LIMIT = 86_400.0  # seconds; what a timeout of 0 stands for
SHORTEST_DELAY = 0.01  # seconds; a delay of 0 would keep the exporter's thread spinning

_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2: token
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")  # section 5.5: no CR, LF, NUL
OWN_FIELDS = frozenset(("content-type", "content-length", "content-encoding", "connection"))


def default_resource() -> dict[str, AttrValue]:
    """Return what is known of this process without being told."""
    return {
        "service.name": DEFAULT_SERVICE_NAME,
        "service.version": __version__,
        "process.pid": os.getpid(),
        "host.name": os.uname().nodename,
    }


@dataclass(frozen=True)
class ExportConfig:
    """Where spans go and how; all times in seconds."""

    endpoint: str  # the whole URL that batches are posted to
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    timeout: float = 10.0  # of one attempt, from connecting to the end of the answer
    gzip: bool = False
    certificate: str | None = None  # PEM file of the authorities to trust, for https
    client_certificate: str | None = None  # PEM files for mutual TLS
    client_key: str | None = None
    resource: Mapping[str, AttrValue] = field(default_factory=default_resource)
    sampler: Sampler | None = None  # None keeps every span
    max_queue_size: int = 16_384
    max_batch_size: int = 512
    schedule_delay: float = 5.0  # the longest that a span waits for its batch to fill
    export_timeout: float = 30.0  # of one batch, all attempts and pauses together
    first_pause: float = 1.0  # before the second attempt; each pause doubles the one before

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> ExportConfig | None:
        """Return the configuration that the environment asks for, None for no export."""
        env = Environment(os.environ if environ is None else environ)
        if env.boolean("OTEL_SDK_DISABLED") or not _exports_to_otlp(env):
            return None
        endpoint = _endpoint(env)
        sampler = sampler_from_env(env)
        if endpoint is None or (sampler is not None and sampler.never):
            return None
        _check_protocol(env)
        queue_size = env.count(cls.max_queue_size, "OTEL_BSP_MAX_QUEUE_SIZE")
        config = cls(
            endpoint,
            _headers(env),
            timeout=_timeout(env, cls.timeout, *_exporter_names("TIMEOUT")),
            gzip=env.choice(("none", "gzip"), "none", *_exporter_names("COMPRESSION")) == "gzip",
            certificate=env.text(*_exporter_names("CERTIFICATE")),
            client_certificate=env.text(*_exporter_names("CLIENT_CERTIFICATE")),
            client_key=env.text(*_exporter_names("CLIENT_KEY")),
            resource=_resource(env),
            sampler=sampler,
            max_queue_size=queue_size,
            max_batch_size=_batch_size(env, cls.max_batch_size, queue_size),
            schedule_delay=max(
                env.seconds(cls.schedule_delay, "OTEL_BSP_SCHEDULE_DELAY"), SHORTEST_DELAY
            ),
            export_timeout=_timeout(env, cls.export_timeout, "OTEL_BSP_EXPORT_TIMEOUT"),
        )
        return config if _certificates_can_be_used(config) else None


def traces_url(base: str) -> str:
    """Return where traces go below a base endpoint: `/v1/traces` behind the path it has.

    Raises ValueError if the base is not an http or https URL with a host.
    """
    from urllib.parse import urlsplit  # a few ms that an engine without export does not pay

    parts = urlsplit(_checked_url(base))
    return parts._replace(path=parts.path.rstrip("/") + TRACES_PATH).geturl()


def _exporter_names(name: str) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}"


def _exports_to_otlp(env: Environment) -> bool:
    """OTEL_TRACES_EXPORTER: a list of exporters, of which otlp is the only one here."""
    exporters = [name.strip() for name in (env.text("OTEL_TRACES_EXPORTER") or "otlp").split(",")]
    if exporters == ["none"]:
        return False
    if "otlp" not in exporters:
        log.warning("OTEL_TRACES_EXPORTER=%s: only otlp and none are known", ",".join(exporters))
    return True


def _endpoint(env: Environment) -> str | None:
    """The URL for traces is used as it is; the general one gets the signal's path."""
    found = env.find(*_exporter_names("ENDPOINT"))
    if found is None:
        return None
    name, url = found
    try:
        return _checked_url(url) if "TRACES" in name else traces_url(url)
    except ValueError as problem:
        log.warning("%s: %s: no spans are exported", name, problem)
        return None


def _checked_url(url: str) -> str:
    """Return the URL; raise ValueError, which does not repeat it, if nothing can be sent there."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("the URL does not start with http:// or https://")
    if not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("the URL has no host, or characters that a URL cannot have")
    if parts.username is not None:
        raise ValueError("the URL has a user name; use OTEL_EXPORTER_OTLP_HEADERS instead")
    if parts.port == 0:  # reading it raises ValueError for what is no port number
        raise ValueError("the URL has port 0")
    return url


def _check_protocol(env: Environment) -> None:
    """Say what is sent instead, if the environment asks for another protocol than http/json."""
    found = env.find(*_exporter_names("PROTOCOL"))
    if found is None or found[1].lower() == "http/json":
        return
    log.warning("%s=%s: spans are sent as http/json all the same", *found)
    if found[1].lower() == "grpc":
        log.warning("an OTLP/gRPC port (4317) does not take them; the OTLP/HTTP port is 4318")


def _certificates_can_be_used(config: ExportConfig) -> bool:
    if not config.endpoint.lower().startswith("https:"):
        return True
    from tinyllm.tracing.transport import tls_context  # and ssl, which http does not need

    try:
        tls_context(config)
    except OSError as problem:  # ssl.SSLError is one
        names = "OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY"
        log.warning("%s cannot be used (%s): no spans are exported", names, problem)
        return False
    return True


def _headers(env: Environment) -> dict[str, str]:
    try:
        name, pairs = env.pairs(*_exporter_names("HEADERS"))
    except ValueError as problem:
        log.warning("%s: no header of the list is sent", problem)
        return {}
    headers = {}
    for key, value in pairs.items():
        if not _FIELD_NAME.fullmatch(key) or not _FIELD_VALUE.fullmatch(value):
            log.warning("%s: %r has no valid name or value and is not sent", name, key)
        elif key.lower() in OWN_FIELDS:
            log.warning("%s: %s is set by the exporter itself", name, key)
        else:
            headers[key] = value
    return headers


def _resource(env: Environment) -> dict[str, AttrValue]:
    """Ours, then OTEL_RESOURCE_ATTRIBUTES, then OTEL_SERVICE_NAME; the later one wins."""
    resource = default_resource()
    try:
        resource.update(env.pairs("OTEL_RESOURCE_ATTRIBUTES")[1])
    except ValueError as problem:
        # Resource SDK: on any error the whole value is dropped, and the error is reported.
        log.warning("%s: the whole list is ignored", problem)
    if service_name := env.text("OTEL_SERVICE_NAME"):
        resource["service.name"] = service_name
    return resource


def _timeout(env: Environment, default: float, *names: str) -> float:
    return env.seconds(default, *names) or NO_LIMIT


def _batch_size(env: Environment, default: int, queue_size: int) -> int:
    """A batch is never larger than the queue (Trace SDK, "Batching processor")."""
    size = env.count(default, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
    if size > queue_size:
        name = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
        if env.find(name):
            log.warning("%s is above OTEL_BSP_MAX_QUEUE_SIZE: %d is used", name, queue_size)
        return queue_size
    return size
