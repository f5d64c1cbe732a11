"""Files that the store should have, and files that it should not have."""

import asyncio
import os
from pathlib import Path

from countersign.kernel.blobs import layout
from countersign.settings import Settings
from countersign.store import lifespan
from countersign.store.releases import blobs


def test_missing_changed_and_surplus_files_are_named_and_intact_files_are_not(tmp_path: Path) -> None:
    async def run() -> tuple[dict[str, blobs.BlobDefect | None], list[str]]:
        settings = Settings(data=str(tmp_path), reserve_mib=0)
        async with lifespan.open_store(settings, "http://127.0.0.1:8480", is_loopback=True) as store:
            digests = [await store.blobs.put(text.encode()) for text in ("kept", "lost", "changed", "old", "new")]
            async with store.database.transaction() as transaction:
                for sha256 in digests[:3]:
                    await blobs.keep(transaction, [await blobs.touch(transaction, sha256, 4)])
            await store.blobs.delete(digests[1])
            path = tmp_path / "blobs" / layout.sealed_name(digests[2])
            path.chmod(0o600)
            path.write_bytes(b"chanced")
            os.utime(tmp_path / "blobs" / layout.sealed_name(digests[3]), (1, 1))
            defects = {fault.sha256: fault.what async for fault in blobs.verify(store.database, store.blobs)}
        return defects, digests

    defects, (kept_digest, lost_digest, changed_digest, old, _) = asyncio.run(run())

    assert defects == {kept_digest: None, lost_digest: "missing", changed_digest: "changed", old: "surplus"}
