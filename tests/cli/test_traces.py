"""Spans arrive at a trace collector when COUNTERSIGN_OTLP_URL is set."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.cli.output import Exit
from countersign.kernel.tracing import Parent, parse_traceparent
from tests.cli.conftest import Run
from tests.servers.collector import Collector, collecting
from tests.servers.countersign import served
from tests.servers.process import free_port

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A trace collector on a port of its own; the test is skipped when the exporter is not installed."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with collecting() as collector:
        yield collector


def attributes(span: Any) -> dict[str, str | int]:
    """Return the attributes of a span."""
    kinds = {"string_value": str, "int_value": int}
    attributes: dict[str, str | int] = {}
    for attribute in span.attributes:
        kind = attribute.value.WhichOneof("value")
        attributes[attribute.key] = kinds[kind](getattr(attribute.value, kind))
    return attributes


def test_each_request_of_both_services_is_a_span_by_its_template(collector: Collector, tmp_path: Path) -> None:
    marker = "Zq7w"
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Marker": marker, "Authorization": f"Bearer {marker}"}
    trace_settings = {"COUNTERSIGN_OTLP_URL": collector.url, "COUNTERSIGN_TRUSTED_PROXIES": "127.0.0.1"}
    with served(tmp_path / "data", service="both", settings=trace_settings) as server:
        answer = httpx.get(f"{server.url}/api/v1/products/{marker}", params={"q": marker}, headers=headers)
        login = f"http://127.0.0.1:{server.records_port}/api/auth/login"
        httpx.post(login, json={"username": marker, "password": marker})
        httpx.get(f"{server.url}/{marker}")

    (product,) = [span for _, span in collector.spans if span.name == "GET /products/{id}"]
    assert attributes(product) == {
        "http.request.method": "GET",
        "http.route": "/products/{id}",
        "http.response.status_code": answer.status_code,
        "countersign.request_id": answer.headers["x-request-id"],
    }
    assert (product.trace_id.hex(), product.parent_span_id.hex(), product.kind) == (TRACE, CALLER, 2)
    assert 0 < product.end_time_unix_nano - product.start_time_unix_nano < 60 * 10**9
    assert {(service, span.name) for service, span in collector.spans} >= {
        ("distribution", "GET /products/{id}"),
        ("distribution", "GET"),
        ("records", "POST /api/auth/login"),
    }
    assert not [body for body in collector.bodies if marker.encode() in body]


def send_traced(tmp_path: Path, settings: Mapping[str, str], *traceparents: str) -> None:
    """Send one request with each header to each service."""
    with served(tmp_path / "data", service="both", settings=settings) as server:
        for traceparent in traceparents:
            for port in (server.port, server.records_port):
                httpx.get(f"http://127.0.0.1:{port}/nowhere", headers={"traceparent": traceparent})


def test_a_stranger_hides_no_request_from_the_traces_and_chooses_no_trace(collector: Collector, tmp_path: Path) -> None:
    trace_settings = {"COUNTERSIGN_OTLP_URL": collector.url, "COUNTERSIGN_TRUSTED_PROXIES": "192.0.2.1"}

    send_traced(tmp_path, trace_settings, f"00-{TRACE}-{CALLER}-00")

    spans_by_service = {service: span for service, span in collector.spans if span.links}
    assert {*spans_by_service} == {"distribution", "records"}
    for span in spans_by_service.values():
        assert span.trace_id.hex() != TRACE
        assert not span.parent_span_id
        assert [(link.trace_id.hex(), link.span_id.hex()) for link in span.links] == [(TRACE, CALLER)]


def test_a_stranger_has_nothing_sampled_that_the_operator_does_not_sample(collector: Collector, tmp_path: Path) -> None:
    trace_settings = {"COUNTERSIGN_OTLP_URL": collector.url, "OTEL_TRACES_SAMPLER": "parentbased_always_off"}

    send_traced(tmp_path, trace_settings, f"00-{TRACE}-{CALLER}-01")

    assert collector.spans == []


def test_a_trusted_proxy_decides_which_traces_are_sampled(collector: Collector, tmp_path: Path) -> None:
    trace_settings = {
        "COUNTERSIGN_OTLP_URL": collector.url,
        "COUNTERSIGN_TRUSTED_PROXIES": "127.0.0.1",
        "OTEL_TRACES_SAMPLER": "parentbased_always_off",
    }
    unsampled = "f" * 32

    send_traced(tmp_path, trace_settings, f"00-{TRACE}-{CALLER}-01", f"00-{unsampled}-{CALLER}-00")

    assert [(service, span.trace_id.hex()) for service, span in sorted(collector.spans, key=lambda span: span[0])] == [
        ("distribution", TRACE),
        ("records", TRACE),
    ]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_unreachable_collector_delays_no_request(tmp_path: Path, workers: str) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    trace_settings = {"COUNTERSIGN_OTLP_URL": f"http://127.0.0.1:{free_port()}"}
    with served(tmp_path / "data", "--workers", workers, settings=trace_settings) as server:
        assert [httpx.get(f"{server.url}/api/v1/info").status_code for _ in range(20)] == [200] * 20

    assert "killed" not in server.log.read_text()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_without_the_packages_the_start_is_refused_with_the_packages_to_install(
    run: Run, tmp_path: Path, workers: str
) -> None:
    stub = tmp_path / "without" / "opentelemetry"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    source = str(Path(__file__).parents[2] / "src")
    trace_settings = {"COUNTERSIGN_OTLP_URL": "http://127.0.0.1:4318", "PYTHONPATH": f"{stub.parent}:{source}"}

    result = run(
        "serve", "distribution", "--data", tmp_path / "data", "--port", "0", "--workers", workers, **trace_settings
    )

    assert result.returncode == Exit.FAILED, result.stderr
    assert "countersign[traces]" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_invalid_collector_address_is_refused(run: Run, tmp_path: Path) -> None:
    trace_settings = {"COUNTERSIGN_OTLP_URL": "localhost:4318"}

    result = run("serve", "distribution", "--data", tmp_path / "data", "--port", "0", **trace_settings)

    assert result.returncode == Exit.USAGE
    assert "COUNTERSIGN_OTLP_URL" in result.stderr


@pytest.mark.parametrize(
    ("header", "parent"),
    [
        (f"00-{TRACE}-{CALLER}-01", Parent(int(TRACE, 16), int(CALLER, 16), True)),
        (f"00-{TRACE}-{CALLER}-00", Parent(int(TRACE, 16), int(CALLER, 16), False)),
        (f"cc-{TRACE}-{CALLER}-01", Parent(int(TRACE, 16), int(CALLER, 16), True)),
        (f"ff-{TRACE}-{CALLER}-01", None),
        (f"00-{'0' * 32}-{CALLER}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{CALLER}-01", None),
        (f"00-{TRACE}-{CALLER}-01, 00-{TRACE}-{CALLER}-01", None),
        ("", None),
        (None, None),
        (json.dumps({}), None),
    ],
)
def test_a_traceparent_is_parsed_as_the_standard_requires(header: str | None, parent: Parent | None) -> None:
    assert parse_traceparent(header) == parent
