"""Uploads files to the store: announced, sent whole, in parts, or cut off in the middle."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.context import Store
from tests.servers.s3 import Bucket
from tests.store.world import World

PUBLISHER = "publisher@north.example"


class Shop(NamedTuple):
    """A world with a publisher of `north`, and one of its products with a published release 1.0.0."""

    world: World
    token: str
    product_id: str

    @property
    def store(self) -> Store:
        """The store of this world."""
        return self.world.store

    async def announce(self, size: int, filename: str = "game.zip", **members: object) -> httpx.Response:
        """Announce a file of the release."""
        body = {"filename": filename, "size": size, **members}
        path = f"/products/{self.product_id}/releases/1.0.0/artifacts"
        return await self.world.call("POST", path, self.token, json=body)

    async def address(self, size: int, filename: str = "game.zip", **members: object) -> str:
        """Announce a file and return its upload address."""
        answer = await self.announce(size, filename, **members)
        assert answer.status_code == 201, answer.text
        return answer.json()["upload_url"]

    async def upload(self, data: bytes, filename: str = "game.zip", **members: object) -> dict[str, Any]:
        """Upload a file and return the ready artifact."""
        answer = await self.put(await self.address(len(data), filename, **members), data)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def put(self, address: str, data: bytes, content_range: str | None = None) -> httpx.Response:
        """Send bytes to an upload address."""
        headers = {} if content_range is None else {"Content-Range": content_range}
        return await self.world.http.put(address, content=data, headers=headers)

    async def received_ranges(self, address: str) -> list[list[int]]:
        """Return what the store has received."""
        answer = await self.world.http.get(address)
        assert answer.status_code == 200, answer.text
        return answer.json()["received"]


async def open_shop(world: World, **members: object) -> Shop:
    """Create a shop with a product that has these members."""
    token = await world.person(PUBLISHER, north="publisher")
    product_id = await product(world, token, "river", **members)
    await release(world, token, product_id, "1.0.0", publish=True)
    return Shop(world, token, product_id)


async def product(world: World, token: str, slug: str, **members: object) -> str:
    """Create a draft product of the token's organisation, and return its id."""
    body = {"slug": slug, "title": slug.title(), "kind": "game", "platforms": ["linux"], **members}
    answer = await world.call("POST", "/products", token, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def release(world: World, token: str, product_id: str, version: str, *, publish: bool) -> None:
    """Create a release of a product."""
    body = {"version": version, "channel": "stable", "notes_only": publish}
    answer = await world.call("POST", f"/products/{product_id}/releases", token, json=body)
    assert answer.status_code == 201, answer.text
    if publish:
        answer = await world.call("POST", f"/products/{product_id}/releases/{version}/publish", token)
        assert answer.status_code == 200, answer.text


def sha256_of(data: bytes) -> str:
    """Return the digest as the API writes it."""
    return hashlib.sha256(data).hexdigest()


def pattern(size: int, seed: int = 1) -> bytes:
    """Return bytes without short repetitions."""
    return hashlib.shake_256(seed.to_bytes(4)).digest(size)


async def put_and_cut(store: Store, address: str, pieces: Iterable[bytes], content_range: str | None, size: int) -> int:
    """Send pieces of a body of `size` bytes, then cut the connection. Return the status that the client does not
    receive, or 0."""
    app = distribution.create(store)
    path = httpx.URL(address).raw_path
    headers = [(b"content-length", b"%d" % size)]
    if content_range is not None:
        headers.append((b"content-range", content_range.encode()))
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.disconnect"})
    sent_messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent_messages.append(message)

    scope = {"type": "http", "method": "PUT", "path": path.decode(), "raw_path": path, "query_string": b""}
    await app({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send)
    return sent_messages[0]["status"] if sent_messages else 0


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a default store: SQLite with a directory of blobs, or PostgreSQL with a bucket."""
    if not settings.database_url:
        return settings
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    bucket: Bucket = request.getfixturevalue("s3_url")
    url = f"s3://{bucket.name}/store?endpoint={bucket.endpoint}&region=us-east-1&allow_http=true"
    return replace(settings, blobs_url=url)


@pytest.fixture
async def shop(world: World) -> Shop:
    """A shop whose product must be bought."""
    return await open_shop(world, access="entitled")
