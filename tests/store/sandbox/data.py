"""A key of the sandbox with its data set, as tests use and inspect them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from countersign.kernel.security.secrets import digest
from countersign.store.sandbox import folders
from countersign.store.sandbox.router import SandboxRouter
from tests.contract.scenes import all_rows
from tests.store.world import World

PRODUCT: dict[str, Any] = {"slug": "made", "title": "Made", "kind": "tool", "platforms": ["linux"]}


@dataclass
class SandboxCaller:
    """A caller with a key."""

    world: World
    front: SandboxRouter
    key: str

    @classmethod
    async def create(cls, world: World, front: SandboxRouter, tier: str = "sandbox") -> "SandboxCaller":
        """Create a key. The first call creates its data set."""
        answer = await world.http.get("/api/keys", params={"tier": tier})
        return cls(world, front, answer.json()["api_key"])

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request to the sandbox with the key. The path is relative to the versioned API of the sandbox."""
        headers = {"X-API-Key": self.key, **options.pop("headers", {})}
        return await self.world.http.request(method, f"/sandbox/api/v1{path}", headers=headers, **options)

    @property
    def name(self) -> str:
        """The name of the data set."""
        return "k" + digest(self.key).hex()[:40]

    @property
    def folder(self) -> Path:
        """The folder of the data set."""
        return Path(self.world.store.settings.data) / folders.FOLDER / self.name

    async def all_content(self) -> dict[str, Any]:
        """Return everything that the data set contains: rows and files."""
        async with self.front.data_sets.opened(self.name) as data_set:
            return {"rows": await all_rows(data_set.store), "files": files(self.folder / "blobs")}

    async def slugs(self) -> set[str]:
        """Return the products that the owner of the key sees, by slug."""
        listed_answer = await self.call("GET", "/products", params={"limit": "100"})
        return {item["slug"] for item in listed_answer.json()["items"]}


def files(folder: Path, *, but: str = "") -> list[str]:
    """Return every file in the folder, without those in its subfolder `but`."""
    paths: list[str] = []
    for folder_path, inner, names in os.walk(folder):
        relative_folder = os.path.relpath(folder_path, folder)
        if relative_folder == "." and but in inner:
            inner.remove(but)
        paths += [os.path.normpath(os.path.join(relative_folder, name)) for name in names]
    return sorted(paths)


async def all_of(world: World) -> dict[str, Any]:
    """Return everything that the service itself contains, without its sandbox and its counters: rows, blobs, mail."""
    data = Path(world.store.settings.data)
    return {
        "rows": await all_rows(world.store),
        "files": [
            name
            for name in files(data, but=folders.FOLDER)
            if not name.startswith(("counters.", "distribution.sqlite"))
        ],
    }
