"""Only one process at a time has a lock, and releases it when it ends."""

from dataclasses import replace
from pathlib import Path

import pytest

from countersign.kernel.database.postgres_admin import advisory_lock
from countersign.kernel.errors import Unavailable
from countersign.settings import BadSetting, Settings
from countersign.store import lifespan


async def test_a_lock_has_one_holder_and_is_free_after_its_release(postgres_url: str) -> None:
    async with (
        advisory_lock(postgres_url, "a", patience_s=0) as first_lock,
        advisory_lock(postgres_url, "a", patience_s=0.3) as second_lock,
    ):
        assert (first_lock, second_lock) == (True, False)
    async with advisory_lock(postgres_url, "a", patience_s=5) as third_lock:
        assert third_lock is True


async def test_locks_of_other_names_do_not_meet(postgres_url: str) -> None:
    async with (
        advisory_lock(postgres_url, "a", patience_s=0) as first_lock,
        advisory_lock(postgres_url, "b", patience_s=0) as second_lock,
    ):
        assert (first_lock, second_lock) == (True, True)


async def test_an_unreachable_server_is_reported_as_unavailable() -> None:
    with pytest.raises(Unavailable):
        async with advisory_lock("postgresql://nobody@127.0.0.1:1/none", "a", patience_s=0):
            raise AssertionError("there is no such server")


async def test_a_second_node_without_shared_counters_and_files_is_refused(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifespan, "NODE_PATIENCE_S", 0)
    settings = Settings(data=str(tmp_path), database_url=postgres_url)
    counting = Settings(data=str(tmp_path), database_url=postgres_url, counters_url="redis://127.0.0.1:1")
    shared_settings = replace(counting, blobs_url="s3://files")

    async with lifespan.prevent_second_node(settings):
        with pytest.raises(BadSetting, match="COUNTERSIGN_COUNTERS_URL"):
            async with lifespan.prevent_second_node(settings):
                raise AssertionError("two nodes count by themselves")
        with pytest.raises(BadSetting, match="COUNTERSIGN_BLOBS_URL"):
            async with lifespan.prevent_second_node(counting):
                raise AssertionError("two nodes keep files by themselves")
        async with lifespan.prevent_second_node(shared_settings):
            pass
