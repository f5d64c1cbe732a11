"""A key of the sandbox and the data set behind it, as tests speak to them and look into them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from countersign.kernel.security.secrets import digest
from countersign.store.sandbox import folders
from countersign.store.sandbox.router import SandboxRouter
from tests.contract.scenes import everything
from tests.store.world import World

PRODUCT: dict[str, Any] = {"slug": "made", "title": "Made", "kind": "tool", "platforms": ["linux"]}


@dataclass
class Sandbox:
    """Somebody with a key."""

    world: World
    front: SandboxRouter
    key: str

    @classmethod
    async def taken(cls, world: World, front: SandboxRouter, tier: str = "sandbox") -> "Sandbox":
        """With a fresh key; its data set is made by the first call."""
        answer = await world.http.get("/api/keys", params={"tier": tier})
        return cls(world, front, answer.json()["api_key"])

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """A request to the sandbox with the key; the path is relative to the sandbox's versioned API."""
        headers = {"X-API-Key": self.key, **options.pop("headers", {})}
        return await self.world.http.request(method, f"/sandbox/api/v1{path}", headers=headers, **options)

    @property
    def name(self) -> str:
        """What its data set is called."""
        return "k" + digest(self.key).hex()[:40]

    @property
    def folder(self) -> Path:
        """Where the data set is."""
        return Path(self.world.store.settings.data) / folders.FOLDER / self.name

    async def everything(self) -> dict[str, Any]:
        """All that the data set holds: rows and files."""
        async with self.front.data_sets.used(self.name) as found:
            return {"rows": await everything(found.store), "files": files(self.folder / "blobs")}

    async def slugs(self) -> set[str]:
        """The products that the key's owner sees, by slug."""
        listed = await self.call("GET", "/products", params={"limit": "100"})
        return {item["slug"] for item in listed.json()["items"]}


def files(folder: Path, *, but: str = "") -> list[str]:
    """Every file under the folder, without those in its folder `but`."""
    found: list[str] = []
    for place, inner, names in os.walk(folder):
        here = os.path.relpath(place, folder)
        if here == "." and but in inner:
            inner.remove(but)
        found += [os.path.normpath(os.path.join(here, name)) for name in names]
    return sorted(found)


async def all_of(world: World) -> dict[str, Any]:
    """All that the service itself holds, but for its sandbox and its counters: rows, blobs, mail."""
    data = Path(world.store.settings.data)
    return {
        "rows": await everything(world.store),
        "files": [
            name
            for name in files(data, but=folders.FOLDER)
            if not name.startswith(("counters.", "distribution.sqlite"))
        ],
    }
