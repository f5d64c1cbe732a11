"""The store's errand: a publisher creates, uploads, sells, changes and removes; a customer redeems."""

import hashlib
import json
import random
import uuid
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from countersign.store.context import Store
from tests.faults import shop
from tests.faults.errands import Doubled, Hand, Lost, Request

API = "/api/v1"
FILE_BYTES = 20_000
STANDING = """
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
ONCE = (1, 1, 2, 2, 1, 2, 1, 1, 1, 1)
"""The result of STANDING when every step of the errand has happened once."""


class Trade(NamedTuple):
    """The clients of an errand at the store: bearer tokens of a publisher and of a customer."""

    publisher: str
    customer: str


async def open_for_trade(store: Store) -> Trade:
    """An organisation that publishes, and a customer."""
    publisher = await shop.publisher(store, await shop.organisation(store))
    customers = await shop.persons(store, 1)
    return Trade(publisher, next(iter(customers.values())))


def content(number: int) -> bytes:
    """The bytes of the errand's file."""
    return random.Random(number).randbytes(FILE_BYTES)


async def publish_and_sell(hand: Hand, trade: Trade, number: int) -> None:
    """Run all steps, and check the answers of earlier steps again.

    Raises:
        Lost, Turned: see Hand.step.
    """
    await _Errand(hand, trade, number).run()


async def require_once(store: Store, number: int) -> None:
    """Every step of a finished errand has happened once.

    Raises:
        Doubled, Lost: it has not.
    """
    row = await store.database.fetch_one(STANDING, f"errand-{number}", f"Errand {number} renamed")
    assert row is not None
    found = tuple(int(each) for each in row)
    if found != ONCE:
        kind = Doubled if any(has > due for has, due in zip(found, ONCE, strict=True)) else Lost
        raise kind(f"errand {number} left {found} instead of {ONCE}")


class _Errand:
    def __init__(self, hand: Hand, trade: Trade, number: int) -> None:
        self._hand = hand
        self._trade = trade
        self._number = number
        self._slug = f"errand-{number}"
        self._product = f"{API}/products/{self._slug}"

    async def run(self) -> None:
        """Create, upload, publish, sell, change, remove."""
        made = {"slug": self._slug, "title": f"Errand {self._number}", "kind": "game", "platforms": ["linux"]}
        await self._publish("product", "POST", f"{API}/products", {**made, "status": "public"})
        first = {"version": "1", "channel": "stable", "notes_only": True}
        await self._publish("release", "POST", f"{self._product}/releases", first)
        await self._publish("publish", "POST", f"{self._product}/releases/1/publish")
        await self._upload()
        codes = await self._publish(
            "codes", "POST", f"{API}/codes", {"kind": "license", "products": [self._slug], "count": 2}
        )
        await self._hand.step("redeem", self._request("redeem", "POST", f"{API}/redeem", {"code": codes["codes"][0]}))
        second = {"version": "2", "channel": "beta", "notes_only": True}
        renamed = {**made, "title": f"Errand {self._number} renamed", "status": "public"}
        operations = [
            {"method": "PUT", "path": f"/products/{self._slug}", "body": renamed},
            {"method": "POST", "path": f"/products/{self._slug}/releases", "body": second},
            {"method": "POST", "path": f"/products/{self._slug}/releases/2/publish"},
        ]
        await self._publish("batch", "POST", f"{API}/batch", {"mode": "atomic", "operations": operations})
        await self._publish("client", "POST", f"{API}/org/clients", {"name": self._slug, "scopes": ["read:products"]})
        await self._publish("draft", "POST", f"{self._product}/releases", {"version": "3", "channel": "beta"})
        await self._publish("removal", "DELETE", f"{self._product}/releases/3")
        await self._publish("revoke", "POST", f"{API}/codes/{codes['batch_id']}/revoke", {})
        await self._hand.step("key", Request("POST", "/api/keys?tier=community"), self._opens)

    async def _upload(self) -> None:
        raw = content(self._number)
        told = {"filename": "a.bin", "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        announced = await self._publish("announce", "POST", f"{self._product}/releases/1/artifacts", told)
        address = urlsplit(announced["upload_url"]).path
        await self._hand.step("upload", Request("PUT", address, body=raw), self._uploaded)

    async def _publish(self, name: str, method: str, path: str, body: object = None) -> Any:
        request = self._request(name, method, path, body)._replace(token=self._trade.publisher)
        return await self._hand.step(name, request)

    def _request(self, name: str, method: str, path: str, body: object = None) -> Request:
        key = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._slug}/{name}"))
        raw = b"" if body is None else json.dumps(body).encode()
        return Request(method, path, self._trade.customer, raw, key)

    async def _uploaded(self, first: Any) -> Any:
        """The file as its publisher sees it, when its upload is complete."""
        files: list[Any] = []
        for kind in ("drafts", "releases"):
            answer = await self._hand.ask(Request("GET", f"{self._product}/{kind}", self._trade.publisher))
            assert answer.status == 200, answer
            files += [each for release in json.loads(answer.body) for each in release["artifacts"]]
        ready = [each for each in files if each["status"] == "ready"]
        if not ready:
            return None
        came = await self._hand.ask(Request("GET", f"{API}/artifacts/{ready[0]['id']}", self._trade.publisher))
        if came.body != content(self._number):
            raise Lost(f"errand {self._number}: the artifact is ready, and not whole: {came.status}")
        return ready[0]

    async def _opens(self, first: Any) -> Any:
        """The key, when it was returned and is accepted; a key that was created but never returned cannot be used."""
        if first is None:
            return None
        answer = await self._hand.ask(Request("GET", f"{API}/products?limit=1", first["api_key"]))
        return first if answer.status == 200 else None
