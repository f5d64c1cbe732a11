"""Sends batches as an owner, and compares the store before and after a failed batch."""

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.contract.scenes import all_rows
from tests.store.world import World


@dataclass
class Batches:
    """Sends batches, by default with the token of `owner`."""

    world: World
    owner: str

    async def send(self, operations: list[Any], token: str | None = None, **options: Any) -> httpx.Response:
        """Send a batch with this `mode` and these headers."""
        headers = options.pop("headers", None)
        body = {"operations": operations, **options}
        return await self.world.call("POST", "/batch", token, json=body, headers=headers)

    async def results(self, operations: list[Any], token: str | None = None, **options: Any) -> list[dict[str, Any]]:
        """Send a batch that must be accepted, and return its results."""
        answer = await self.send(operations, token or self.owner, **options)
        assert answer.status_code == 200, answer.text
        results: list[dict[str, Any]] = answer.json()["results"]
        assert len(results) == len(operations)
        return results

    async def all_rows(self) -> dict[str, list[str]]:
        """Return everything that the store contains."""
        return await all_rows(self.world.store)


def operation_of(method: str, path: str, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """Return an operation of a batch."""
    operation: dict[str, Any] = {"method": method, "path": path}
    if headers:
        operation["headers"] = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        operation["body"] = body
    return operation


def get(path: str, **headers: str) -> dict[str, Any]:
    """Return a GET operation."""
    return operation_of("GET", path, None, **headers)


def post(path: str, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """Return a POST operation."""
    return operation_of("POST", path, body, **headers)


def put(path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Return a PUT operation."""
    return operation_of("PUT", path, body, **headers)


def product(slug: str, **members: Any) -> dict[str, Any]:
    """Return a body for POST /products."""
    return {"slug": slug, "title": slug.title(), "kind": "game", "platforms": ["linux"], **members}


def statuses(results: list[dict[str, Any]]) -> list[int]:
    """Return the status of each operation."""
    return [result["status"] for result in results]


def codes(results: list[dict[str, Any]]) -> list[str | None]:
    """Return the error code of each operation."""
    return [result["body"].get("code") for result in results]


@pytest.fixture
async def batches(world: World) -> Batches:
    """Batches of the owner of north."""
    return Batches(world, await world.person("owner@north.example", north="owner"))
