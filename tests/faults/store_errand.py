"""The scenario for fault tests of the store: a publisher creates a product, uploads a file, issues codes, changes the
product, and removes a draft; a customer redeems a code and gets an API key."""

import hashlib
import json
import random
import uuid
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from countersign.store.context import Store
from tests.faults import shop
from tests.faults.errands import ErrandClient, Request, WriteDoubled, WriteLost

API = "/api/v1"
FILE_BYTES = 20_000
COUNT_EFFECTS = """
SELECT
    (SELECT count(*) FROM product WHERE slug = $1),
    (SELECT count(*) FROM product WHERE slug = $1 AND title = $2),
    (SELECT count(*) FROM release r JOIN product p ON p.id = r.product_id WHERE p.slug = $1),
    (SELECT count(*) FROM release r JOIN product p ON p.id = r.product_id
     WHERE p.slug = $1 AND r.status = 'published'),
    (SELECT count(*) FROM artifact a JOIN release r ON r.id = a.release_id JOIN product p ON p.id = r.product_id
     WHERE p.slug = $1 AND a.status = 'ready'),
    (SELECT count(*) FROM code c JOIN code_batch b ON b.id = c.batch_id JOIN product p
     ON b.products LIKE '%' || p.id || '%' WHERE p.slug = $1 AND b.status = 'revoked'),
    (SELECT coalesce(sum(c.uses), 0) FROM code c JOIN code_batch b ON b.id = c.batch_id JOIN product p
     ON b.products LIKE '%' || p.id || '%' WHERE p.slug = $1),
    (SELECT count(*) FROM redemption d JOIN code c ON c.code_hash = d.code_hash JOIN code_batch b ON b.id = c.batch_id
     JOIN product p ON b.products LIKE '%' || p.id || '%' WHERE p.slug = $1),
    (SELECT count(*) FROM entitlement e JOIN product p ON p.id = e.product_id
     WHERE p.slug = $1 AND e.revoked_at IS NULL),
    (SELECT count(*) FROM oauth_client WHERE name = $1)
"""
EXPECTED_COUNTS = (1, 1, 2, 2, 1, 2, 1, 1, 1, 1)
"""The result of COUNT_EFFECTS when every step of the errand has happened once."""


class Tokens(NamedTuple):
    """The clients of an errand at the store: bearer tokens of a publisher and of a customer."""

    publisher: str
    customer: str


async def create_publisher_and_customer(store: Store) -> Tokens:
    """Return an organisation that publishes, and a customer."""
    publisher = await shop.publisher(store, await shop.organisation(store))
    customers = await shop.persons(store, 1)
    return Tokens(publisher, next(iter(customers.values())))


def content(number: int) -> bytes:
    """Return the bytes of the errand's file."""
    return random.Random(number).randbytes(FILE_BYTES)


async def publish_and_sell(step_runner: ErrandClient, tokens: Tokens, number: int) -> None:
    """Run each step of the scenario that has no answer yet. If a step has an answer, check that its effect remains.

    Raises:
        WriteLost, WriteRefused: see ErrandClient.step.
    """
    await _StoreErrand(step_runner, tokens, number).run()


async def require_once(store: Store, number: int) -> None:
    """Require that every step of a finished scenario had its effect exactly once.

    Raises:
        WriteDoubled, WriteLost: a step had its effect more than once, or not at all.
    """
    row = await store.database.fetch_one(COUNT_EFFECTS, f"errand-{number}", f"Errand {number} renamed")
    assert row is not None
    counts = tuple(int(value) for value in row)
    if counts != EXPECTED_COUNTS:
        kind = WriteDoubled if any(has > due for has, due in zip(counts, EXPECTED_COUNTS, strict=True)) else WriteLost
        raise kind(f"errand {number} left {counts} instead of {EXPECTED_COUNTS}")


class _StoreErrand:
    def __init__(self, step_runner: ErrandClient, tokens: Tokens, number: int) -> None:
        self._step_runner = step_runner
        self._tokens = tokens
        self._number = number
        self._slug = f"errand-{number}"
        self._product_path = f"{API}/products/{self._slug}"

    async def run(self) -> None:
        """Create, upload, publish, sell, change, remove."""
        product_body = {"slug": self._slug, "title": f"Errand {self._number}", "kind": "game", "platforms": ["linux"]}
        await self._step_as_publisher("product", "POST", f"{API}/products", {**product_body, "status": "public"})
        first_release = {"version": "1", "channel": "stable", "notes_only": True}
        await self._step_as_publisher("release", "POST", f"{self._product_path}/releases", first_release)
        await self._step_as_publisher("publish", "POST", f"{self._product_path}/releases/1/publish")
        await self._upload()
        codes = await self._step_as_publisher(
            "codes", "POST", f"{API}/codes", {"kind": "license", "products": [self._slug], "count": 2}
        )
        await self._step_runner.step(
            "redeem", self._request("redeem", "POST", f"{API}/redeem", {"code": codes["codes"][0]})
        )
        second_release = {"version": "2", "channel": "beta", "notes_only": True}
        renamed_product = {**product_body, "title": f"Errand {self._number} renamed", "status": "public"}
        operations = [
            {"method": "PUT", "path": f"/products/{self._slug}", "body": renamed_product},
            {"method": "POST", "path": f"/products/{self._slug}/releases", "body": second_release},
            {"method": "POST", "path": f"/products/{self._slug}/releases/2/publish"},
        ]
        await self._step_as_publisher("batch", "POST", f"{API}/batch", {"mode": "atomic", "operations": operations})
        await self._step_as_publisher(
            "client", "POST", f"{API}/org/clients", {"name": self._slug, "scopes": ["read:products"]}
        )
        await self._step_as_publisher(
            "draft", "POST", f"{self._product_path}/releases", {"version": "3", "channel": "beta"}
        )
        await self._step_as_publisher("removal", "DELETE", f"{self._product_path}/releases/3")
        await self._step_as_publisher("revoke", "POST", f"{API}/codes/{codes['batch_id']}/revoke", {})
        await self._step_runner.step("key", Request("POST", "/api/keys?tier=community"), self._working_key)

    async def _upload(self) -> None:
        raw = content(self._number)
        artifact_body = {"filename": "a.bin", "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        announced_file = await self._step_as_publisher(
            "announce", "POST", f"{self._product_path}/releases/1/artifacts", artifact_body
        )
        address = urlsplit(announced_file["upload_url"]).path
        await self._step_runner.step("upload", Request("PUT", address, body=raw), self._uploaded)

    async def _step_as_publisher(self, name: str, method: str, path: str, body: object = None) -> Any:
        request = self._request(name, method, path, body)._replace(token=self._tokens.publisher)
        return await self._step_runner.step(name, request)

    def _request(self, name: str, method: str, path: str, body: object = None) -> Request:
        key = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._slug}/{name}"))
        raw = b"" if body is None else json.dumps(body).encode()
        return Request(method, path, self._tokens.customer, raw, key)

    async def _uploaded(self, first_answer: Any) -> Any:
        """Return the file as its publisher sees it, when its upload is complete."""
        files: list[Any] = []
        for kind in ("drafts", "releases"):
            answer = await self._step_runner.ask(Request("GET", f"{self._product_path}/{kind}", self._tokens.publisher))
            assert answer.status == 200, answer
            files += [artifact for release in json.loads(answer.body) for artifact in release["artifacts"]]
        ready_files = [file for file in files if file["status"] == "ready"]
        if not ready_files:
            return None
        download = await self._step_runner.ask(
            Request("GET", f"{API}/artifacts/{ready_files[0]['id']}", self._tokens.publisher)
        )
        if download.body != content(self._number):
            raise WriteLost(f"errand {self._number}: the artifact is ready, and not whole: {download.status}")
        return ready_files[0]

    async def _working_key(self, first_answer: Any) -> Any:
        """Return the first answer if the service accepts the API key in it. Without a first answer, the key is unknown,
        so return None."""
        if first_answer is None:
            return None
        answer = await self._step_runner.ask(Request("GET", f"{API}/products?limit=1", first_answer["api_key"]))
        return first_answer if answer.status == 200 else None
