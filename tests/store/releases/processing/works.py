"""Creates builds in a test: archives from real packers, processed in the process of the test and committed as by a
runner."""

import io
import random
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from countersign.kernel import ids
from countersign.kernel.clock import Instant
from countersign.store.context import Store
from countersign.store.jobs.job_types import AnyJobType, JobContext, Outcome
from countersign.store.releases import blobs
from countersign.store.releases.processing.build_job import TYPES
from tests.store.files import Shop, release

BY_NAME: dict[str, AnyJobType] = {type_.name: type_ for type_ in TYPES}
EXECUTABLE = b"#!/bin/sh\necho hello\n"


def noise(size: int, seed: int = 1) -> bytes:
    """Return incompressible bytes, which are the same for the same seed."""
    return random.Random(seed).randbytes(size)


def tar(files: Mapping[str, bytes], links: Mapping[str, str] | None = None, folders: tuple[str, ...] = ()) -> bytes:
    """Return a tar archive. Files that begin like a script are executable."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder in folders:
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
            archive.addfile(info)
    return tar_bytes.getvalue()


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive."""
    zip_bytes = io.BytesIO()
    with zipfile.ZipFile(zip_bytes, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return zip_bytes.getvalue()


@dataclass
class JobRunner:
    """Runs jobs of a shop at once, and records the progress that they report."""

    shop: Shop
    folder: Path
    told: list[float] = field(default_factory=list[float])

    @property
    def store(self) -> Store:
        """The store of the shop."""
        return self.shop.store

    async def outcome(self, kind: str, artifact_id: str, **options: object) -> Outcome:
        """Run the job, and return its outcome without storing it."""
        job = BY_NAME[kind]
        payload_members = {"artifact_id": artifact_id, **options} if artifact_id else options
        payload = msgspec.convert(payload_members, job.payload)
        scratch = self.folder / ids.new_uuid()
        scratch.mkdir(parents=True)
        row = await self.store.database.fetch_one("SELECT id FROM organisation WHERE slug = 'north'")
        assert row is not None

        async def tell(share: float) -> None:
            self.told.append(share)

        work: JobContext[Any] = JobContext("job", row[0], "person:test", payload, 1, scratch, tell)
        return await job.run(self.store, work)

    async def keep(self, outcome: Outcome) -> None:
        """Commit the outcome."""
        if outcome.commit is not None:
            async with self.store.database.transaction() as transaction:
                await outcome.commit(transaction)

    async def run_job(self, kind: str, artifact_id: str, **options: object) -> Any:
        """Run the job, commit it, and return its result as decoded JSON."""
        outcome = await self.outcome(kind, artifact_id, **options)
        await self.keep(outcome)
        return msgspec.to_builtins(outcome.result)

    async def remove_reserved(self, *, largest: bool) -> None:
        """Remove a reserved blob without references, like the collector does a day later."""
        database, distant = self.store.database, Instant(1 << 62)
        sizes = {
            sha256: await self.store.blobs.size(sha256) or 0 async for sha256 in blobs.unused_blobs(database, distant)
        }
        sha256 = (max if largest else min)(sizes, key=sizes.__getitem__)
        await blobs.note_idle(database, sha256)
        assert await blobs.remove_unused(database, self.store.blobs, sha256, distant)

    async def upload(self, data: bytes, version: str = "1.0.0", filename: str = "game.tar", **members: object) -> str:
        """Upload an artifact of a release, which is created if needed, and return its id."""
        world, shop = self.shop.world, self.shop
        lists = [
            await world.call("GET", f"/products/{shop.product_id}/{kind}", shop.token)
            for kind in ("drafts", "releases")
        ]
        if version not in {item["version"] for present in lists for item in present.json()}:
            await release(world, shop.token, shop.product_id, version, publish=False)
        path = f"/products/{shop.product_id}/releases/{version}/artifacts"
        body = {"filename": filename, "size": len(data), **members}
        announced_response = await world.call("POST", path, shop.token, json=body)
        assert announced_response.status_code == 201, announced_response.text
        assert (await shop.put(announced_response.json()["upload_url"], data)).status_code == 201
        return announced_response.json()["artifact_id"]

    async def upload_and_process(
        self, data: bytes, version: str = "1.0.0", filename: str = "game.tar", **members: object
    ) -> Any:
        """Upload and process a file, and return the result."""
        return await self.run_job("build.process", await self.upload(data, version, filename, **members))

    async def publish(self, version: str) -> None:
        """Publish a release."""
        path = f"/products/{self.shop.product_id}/releases/{version}/publish"
        assert (await self.shop.world.call("POST", path, self.shop.token)).status_code == 200

    async def get(self, path: str, token: str | None = None, **options: object) -> Any:
        """Send a GET request below the product's address, which must have the status 200, and return the response."""
        answer = await self.shop.world.call("GET", f"/products/{self.shop.product_id}{path}", token, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()
