"""OTEL_* variables: what they mean, and that a bad one is said and never stops the engine."""

from __future__ import annotations

import logging
import os

import pytest

from tinyllm import __version__
from tinyllm.tracing import ExportConfig, TraceContext
from tinyllm.tracing.config import NO_LIMIT, SHORTEST_DELAY, traces_url
from tinyllm.tracing.sampling import Sampler

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
BASE = {ENDPOINT: "http://h:4318"}


def config(**variables: str) -> ExportConfig:
    found = ExportConfig.from_env({**BASE, **variables})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("http://h:4318//", "http://h:4318/v1/traces"),
        ("http://h:4318/base", "http://h:4318/base/v1/traces"),
        ("http://h:4318/base/", "http://h:4318/base/v1/traces"),
        ("http://h:4318/v1/traces", "http://h:4318/v1/traces/v1/traces"),
        ("https://h/base?key=1", "https://h/base/v1/traces?key=1"),
        ("HTTP://h", "http://h/v1/traces"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
    ],
)
def test_traces_go_below_the_base_endpoint(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url
    assert config(**{ENDPOINT: f" {endpoint} "}).endpoint == url


@pytest.mark.parametrize(
    "url", ["http://t:1", "http://t:1/", "http://t:1/in?a=b", "https://t/v1/traces/"]
)
def test_the_endpoint_for_traces_is_used_as_it_is(url: str) -> None:
    assert config(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url).endpoint == url


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({}, id="no-endpoint"),
        pytest.param({ENDPOINT: ""}, id="empty-is-unset"),
        pytest.param({ENDPOINT: "  "}, id="blank-is-unset"),
        pytest.param({**BASE, "OTEL_SDK_DISABLED": "true"}, id="disabled"),
        pytest.param({**BASE, "OTEL_SDK_DISABLED": "TRUE"}, id="disabled-in-capitals"),
        pytest.param({**BASE, "OTEL_TRACES_EXPORTER": "none"}, id="exporter-none"),
        pytest.param({**BASE, "OTEL_TRACES_SAMPLER": "always_off"}, id="sampler-always-off"),
        pytest.param(
            {**BASE, "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
            id="ratio-0",
        ),
    ],
)
def test_no_export(environ: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    assert ExportConfig.from_env(environ) is None
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("h:4318", "http:// or https://"),
        ("localhost", "http:// or https://"),
        ("grpc://h:4317", "http:// or https://"),
        ("http://", "no host"),
        ("http://:4318", "no host"),
        ("http://h:70000", "Port out of range"),
        ("http://h:x", "Port could not"),
        ("http://h:0", "port 0"),
        ("http://user:secret@h", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://h/a b", "characters"),
        ("http://h\u00e9", "characters"),
        ("http://[::1", "Invalid IPv6"),
    ],
)
@pytest.mark.parametrize("name", [ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_a_bad_endpoint_is_said_without_its_text(
    name: str, endpoint: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert ExportConfig.from_env({name: endpoint}) is None
    (message,) = caplog.messages
    assert message.startswith(f"{name}: ")
    assert reason in message
    assert "secret" not in message


def test_defaults(caplog: pytest.LogCaptureFixture) -> None:
    found = config()
    assert (found.timeout, found.export_timeout, found.schedule_delay) == (10.0, 30.0, 5.0)
    assert (found.max_queue_size, found.max_batch_size) == (16_384, 512)
    assert (found.gzip, found.sampler, found.headers) == (False, None, {})
    assert found.certificate is found.client_certificate is found.client_key is None
    assert found == ExportConfig("http://h:4318/v1/traces")
    assert caplog.messages == []


def test_everything_set() -> None:
    found = config(
        OTEL_EXPORTER_OTLP_TIMEOUT="2500",
        OTEL_EXPORTER_OTLP_COMPRESSION="GZIP",
        OTEL_EXPORTER_OTLP_CERTIFICATE="ca.pem",
        OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE="client.pem",
        OTEL_EXPORTER_OTLP_CLIENT_KEY="key.pem",
        OTEL_BSP_MAX_QUEUE_SIZE="100",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10",
        OTEL_BSP_SCHEDULE_DELAY="200",
        OTEL_BSP_EXPORT_TIMEOUT="1500",
    )
    assert (found.timeout, found.export_timeout, found.schedule_delay) == (2.5, 1.5, 0.2)
    assert (found.max_queue_size, found.max_batch_size, found.gzip) == (100, 10, True)
    assert found.certificate == "ca.pem"
    assert (found.client_certificate, found.client_key) == ("client.pem", "key.pem")


@pytest.mark.parametrize(
    ("name", "general", "special", "field", "value"),
    [
        ("TIMEOUT", "1000", "2000", "timeout", 2.0),
        ("COMPRESSION", "gzip", "none", "gzip", False),
        ("HEADERS", "a=1", "b=2", "headers", {"b": "2"}),
        ("CERTIFICATE", "a.pem", "b.pem", "certificate", "b.pem"),
        ("ENDPOINT", "http://a", "http://b/x", "endpoint", "http://b/x"),
    ],
)
def test_the_variable_for_traces_goes_first(
    name: str, general: str, special: str, field: str, value: object
) -> None:
    names = {f"OTEL_EXPORTER_OTLP_{name}": general, f"OTEL_EXPORTER_OTLP_TRACES_{name}": special}
    assert getattr(config(**names), field) == value
    # An empty one is none.
    names[f"OTEL_EXPORTER_OTLP_TRACES_{name}"] = ""
    assert getattr(config(**names), field) != value


def test_a_timeout_of_zero_is_no_limit_and_a_delay_of_zero_does_not_spin() -> None:
    found = config(
        OTEL_EXPORTER_OTLP_TIMEOUT="0", OTEL_BSP_EXPORT_TIMEOUT="0", OTEL_BSP_SCHEDULE_DELAY="0"
    )
    assert found.timeout == found.export_timeout == NO_LIMIT
    assert found.schedule_delay == SHORTEST_DELAY


@pytest.mark.parametrize(
    ("name", "value", "field", "default"),
    [
        pytest.param(name, value, field, getattr(ExportConfig("x"), field), id=f"{name}={value}")
        for name, field, values in [
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "timeout", ["ten", "-1", "1.5", "10s", "1e3", "9" * 16]),
            ("OTEL_BSP_EXPORT_TIMEOUT", "export_timeout", ["-5", "x"]),
            ("OTEL_BSP_SCHEDULE_DELAY", "schedule_delay", ["\u0661", "+1"]),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "max_queue_size", ["0", "-1", "many"]),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "max_batch_size", ["0", "1_0"]),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", ["zstd"]),
            ("OTEL_TRACES_SAMPLER", "sampler", ["jaeger_remote"]),
        ]
        for value in values
    ],
)
def test_a_bad_value_is_said_and_the_default_used(
    name: str, value: str, field: str, default: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert getattr(config(**{name: value}), field) == default
    (message,) = caplog.messages
    assert message.startswith(f"{name}={value} is no")
    assert message.endswith("is used")


def test_a_batch_is_never_larger_than_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    assert config(OTEL_BSP_MAX_QUEUE_SIZE="100").max_batch_size == 100
    assert caplog.messages == []
    found = config(OTEL_BSP_MAX_QUEUE_SIZE="100", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="101")
    assert found.max_batch_size == 100
    assert caplog.messages == [
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE is above OTEL_BSP_MAX_QUEUE_SIZE: 100 is used"
    ]


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("key1=value1,key2=value2", {"key1": "value1", "key2": "value2"}),
        (" key1 = value1 , key2 = value2 ", {"key1": "value1", "key2": "value2"}),
        ("Authorization=Basic%20YTpi==", {"Authorization": "Basic YTpi=="}),
        ("a=%C3%BC", {"a": "\u00fc"}),
        ("a=,,b=1", {"a": "", "b": "1"}),
    ],
)
def test_headers_are_percent_decoded_pairs(text: str, headers: dict[str, str]) -> None:
    assert config(OTEL_EXPORTER_OTLP_HEADERS=text).headers == headers


@pytest.mark.parametrize(
    ("text", "headers", "said"),
    [
        ("a=1,secret", {}, "member 2 of OTEL_EXPORTER_OTLP_HEADERS is not key=value"),
        ("a=1,=secret", {}, "member 2 of OTEL_EXPORTER_OTLP_HEADERS is not key=value"),
        ("a=%FFsecret", {}, "member 1 of OTEL_EXPORTER_OTLP_HEADERS is not percent-encoded UTF-8"),
        ("a=1,b=secret%0D%0AX:1", {"a": "1"}, "'b' has no valid name or value"),
        ("b%3A=secret", {}, "'b:' has no valid name or value"),
        ("b=%E2%82%ACsecret", {}, "'b' has no valid name or value"),
        ("Content-Type=secret,a=1", {"a": "1"}, "Content-Type is set by the exporter itself"),
    ],
)
def test_bad_headers_are_said_without_their_values(
    text: str, headers: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = config(OTEL_EXPORTER_OTLP_HEADERS=text)
    assert found.headers == headers
    (message,) = caplog.messages
    assert said in message
    assert "secret" not in message
    assert "secret" not in repr(found)


def test_headers_stay_out_of_the_configurations_repr() -> None:
    assert "hidden" not in repr(config(OTEL_EXPORTER_OTLP_HEADERS="api-key=hidden"))


def test_resource_is_the_process_and_what_the_environment_adds() -> None:
    assert config().resource == {
        "service.name": "tinyllm",
        "service.version": __version__,
        "process.pid": os.getpid(),
        "host.name": os.uname().nodename,
    }
    found = config(
        OTEL_RESOURCE_ATTRIBUTES="service.name=a,deployment.environment.name=test%2C%20here"
    ).resource
    assert found["service.name"] == "a"
    assert found["deployment.environment.name"] == "test, here"
    found = config(OTEL_RESOURCE_ATTRIBUTES="service.name=a", OTEL_SERVICE_NAME="b").resource
    assert found["service.name"] == "b"


def test_bad_resource_attributes_are_ignored_whole(caplog: pytest.LogCaptureFixture) -> None:
    found = config(OTEL_RESOURCE_ATTRIBUTES="a=1,b").resource
    assert "a" not in found
    assert caplog.messages == [
        "member 2 of OTEL_RESOURCE_ATTRIBUTES is not key=value: the whole list is ignored"
    ]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    name = os.fsdecode(b"engine-\xff")
    assert config(OTEL_SERVICE_NAME=name).resource["service.name"] == "engine-\ufffd"


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("http/json", []),
        ("http/protobuf", ["spans are sent as http/json all the same"]),
        ("grpc", ["spans are sent as http/json all the same", "the OTLP/HTTP port is 4318"]),
        ("smoke", ["spans are sent as http/json all the same"]),
    ],
)
def test_another_protocol_is_said(
    protocol: str, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert config(OTEL_EXPORTER_OTLP_PROTOCOL=protocol).endpoint == "http://h:4318/v1/traces"
    assert len(caplog.messages) == len(said)
    assert all(part in message for part, message in zip(said, caplog.messages, strict=True))


@pytest.mark.parametrize("exporters", ["otlp", "otlp, console", "console"])
def test_otlp_is_the_only_exporter(exporters: str, caplog: pytest.LogCaptureFixture) -> None:
    config(OTEL_TRACES_EXPORTER=exporters)
    said = ["OTEL_TRACES_EXPORTER=console: only otlp and none are known"]
    assert caplog.messages == ([] if "otlp" in exporters else said)


def test_an_odd_boolean_is_false_and_said(caplog: pytest.LogCaptureFixture) -> None:
    config(OTEL_SDK_DISABLED="yes")
    assert caplog.messages == ["OTEL_SDK_DISABLED is neither true nor false: taken as false"]


SAMPLED = TraceContext("0" * 31 + "1", "b" * 16, 1)
NOT_SAMPLED = SAMPLED._replace(flags=0)
LOW, HIGH = "f" * 16 + "0" * 15 + "1", "0" * 16 + "f" * 16  # the lower half decides


@pytest.mark.parametrize(
    ("name", "argument", "root_low", "root_high", "sampled", "not_sampled"),
    [
        ("always_on", "", True, True, True, True),
        ("traceidratio", "1", True, True, True, True),
        ("traceidratio", "0.5", True, False, True, True),
        ("parentbased_always_on", "", True, True, True, False),
        ("parentbased_always_off", "", False, False, True, False),
        ("parentbased_traceidratio", "0.5", True, False, True, False),
        ("ParentBased_TraceIdRatio", "0", False, False, True, False),
    ],
)
def test_samplers(
    name: str, argument: str, root_low: bool, root_high: bool, sampled: bool, not_sampled: bool
) -> None:
    found = config(OTEL_TRACES_SAMPLER=name, OTEL_TRACES_SAMPLER_ARG=argument).sampler
    sampler = found or Sampler(1.0, follow_parent=False)  # None keeps every span
    assert sampler.keeps(None, LOW) is root_low
    assert sampler.keeps(None, HIGH) is root_high
    assert sampler.keeps(SAMPLED, SAMPLED.trace_id) is sampled
    assert sampler.keeps(NOT_SAMPLED, SAMPLED.trace_id) is not_sampled


def test_the_sampled_flag_is_ignored_without_a_sampler() -> None:
    assert config().sampler is None


@pytest.mark.parametrize("argument", ["x", "-0.1", "1.1", "nan", "inf"])
def test_a_bad_ratio_is_said(argument: str, caplog: pytest.LogCaptureFixture) -> None:
    found = config(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG=argument)
    assert found.sampler == Sampler(1.0, follow_parent=False)
    (message,) = caplog.messages
    assert message == f"OTEL_TRACES_SAMPLER_ARG={argument} is no number from 0 to 1: 1 is used"


def test_a_ratio_keeps_that_share_of_random_traces() -> None:
    from tinyllm.tracing import random_hex

    sampler = Sampler(0.25, follow_parent=False)
    kept = sum(sampler.keeps(None, random_hex(16)) for _ in range(20_000))
    assert abs(kept - 5000) < 6 * 61.2  # six standard deviations of a binomial


def test_the_process_environment_is_read_when_none_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://from-os")
    found = ExportConfig.from_env()
    assert found is not None
    assert found.endpoint == "http://from-os/v1/traces"


def test_warnings_go_to_one_logger(caplog: pytest.LogCaptureFixture) -> None:
    config(OTEL_EXPORTER_OTLP_TIMEOUT="x")
    assert caplog.record_tuples[0][:2] == ("tinyllm.tracing", logging.WARNING)
