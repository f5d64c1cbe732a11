"""The pages in front of a service that returns the request it got."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from countersign.kernel.http.request import ASGIApp, Receive, Send
from countersign.web import store_site, work_site
from countersign.web.assets import Assets
from countersign.web.origin import PublicAddress
from countersign.web.site import Site
from countersign.web.site_config import SiteConfig
from tests.servers.countersign import Running, served

HERE = PublicAddress("http://127.0.0.1:8480", is_loopback=True)
PUBLIC = PublicAddress("https://store.example", is_loopback=False)
OPEN = PublicAddress("http://store.example", is_loopback=False)
SESSION = "css_" + "a" * 40
BEARER = "bearer-of-the-session"
FILES = {
    "manifest.json": json.dumps(
        {
            "_shared.js": {"file": "assets/shared-1.js", "css": ["assets/shared-1.css"]},
            "store/main.tsx": {"file": "assets/store-1.js", "imports": ["_shared.js"]},
            "work/main.tsx": {"file": "assets/work-1.js", "imports": ["_shared.js"]},
        }
    ).encode(),
    "store.paths.json": b'["/", "/products/{slug}", "/design"]',
    "work.paths.json": b'["/", "/signin"]',
    "assets/store-1.js": b"let it",
    "assets/store-1.js.gz": b"packed",
    "assets/messages-work-de-1.js.gz": b"packed",
    "assets/messages-work-de-1.js": b"texts",
    "assets/shared-1.css": b"a{}",
    "stamp": b"of the build",
}


@dataclass
class EchoService:
    """A service that returns the request that it received. It exchanges sessions, accepts sign-ins, and refuses
    /api/gone."""

    asked: list[str] = field(default_factory=list[str])
    exchange: tuple[int, dict[str, Any]] = (200, {"access_token": BEARER, "expires_in": 900})
    api_status: int = 200

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request (ASGI 3)."""
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        body = (await receive()).get("body", b"")
        line = f"{scope['method']} {scope['path']}"
        self.asked.append(line)
        status, answer = self.answer(line, headers, body)
        response_headers = [(b"content-type", b"application/json"), (b"retry-after", b"7")]
        await send({"type": "http.response.start", "status": status, "headers": response_headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode(), "more_body": False})

    def answer(self, line: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """Return the status and the body for one request."""
        if line == "POST /auth/session/token":
            return self.exchange
        if line == "POST /api/auth/login":
            is_right = json.loads(body) == {"username": "alice", "password": "right"}
            return (200, {"token": "cst_" + "b" * 40}) if is_right else (401, {"error": "wrong"})
        if line.partition(" ")[2].startswith(("/api/", "/auth/", "/llms.txt")):
            return self.api_status, {"line": line, "headers": headers, "body": body.decode()}
        return 404, {"error": "not found"}


@pytest.fixture
def echo() -> EchoService:
    """The service."""
    return EchoService()


def store_entry(home: PublicAddress) -> SiteConfig:
    """Return the store's pages at this place."""
    return store_site.site_config("The Store", "__Host-countersign" if home.is_secure else "countersign", home)


def work_entry(home: PublicAddress) -> SiteConfig:
    """Return the work app's pages at this place."""
    return work_site.site_config(home, "COUNTERSIGN_RECORDS_URL")


@asynccontextmanager
async def browsing(
    service: ASGIApp, entry: SiteConfig, home: PublicAddress = HERE, files: dict[str, bytes] | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Provide a client of the service with its pages in front."""
    site = Site(entry, service, home, Assets(FILES if files is None else files))
    transport = httpx.ASGITransport(site)
    async with httpx.AsyncClient(transport=transport, base_url=home.root_url) as client:
        yield client


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Both services with the demonstration, as `serve` starts them."""
    with served(tmp_path_factory.mktemp("demo") / "data", "--demo", service="both") as running:
        yield running


@pytest.fixture(scope="session")
def requires_built_pages() -> None:
    """The test is skipped when the pages are not built."""
    if Assets.of_package().entry_assets("store") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")
