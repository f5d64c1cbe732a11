"""Origins: pages of this machine and of the service are accepted, and no others."""

import pytest

from countersign.kernel.mcp.server import is_origin_allowed

OWN = "https://records.example:8443"


@pytest.mark.parametrize(
    "origin", [None, OWN, "http://localhost", "https://localhost:1", "http://127.0.0.1:80", "http://[::1]:5"]
)
def test_an_allowed_origin_is_accepted(origin: str | None) -> None:
    assert is_origin_allowed(origin, OWN)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "https://records.example",
        "http://records.example:8443",
        "https://records.example:8443.evil.example",
        "https://evil.example",
        "http://127.0.0.2",
        "http://localhost@evil.example",
        "file://localhost",
        "http://[::1",
        "http://localhost:x",
        "chrome-extension://localhost",
    ],
)
def test_a_foreign_origin_is_refused(origin: str) -> None:
    assert not is_origin_allowed(origin, OWN)


def test_a_service_at_its_standard_port_knows_its_own_pages() -> None:
    assert is_origin_allowed("https://records.example", "https://records.example")
