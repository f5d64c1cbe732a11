"""What the application passes to the sandbox, and the capability addresses of a data set."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from countersign.kernel.http.request import ASGIApp
from countersign.settings import Settings
from countersign.store.context import PREFIX, Store
from countersign.store.sandbox.folders import Template

Opening: TypeAlias = Callable[[Settings, str, bool], AbstractAsyncContextManager[Store]]
"""Opens a store, given its settings, its root address, and whether it is reached from this machine alone."""

ROOT, BLOBS = "/sandbox", "blobs"
RESERVE_MIB = 1024
"""Strangers' data sets leave so much more of the volume free than the service itself does."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The service's own making, applied to a data set. `application` makes a store's application, `workers` is the
    command of a process that works on a store's jobs; empty: nobody does."""

    opening: Opening
    application: Callable[[Store], ASGIApp]
    template: Template
    workers: Sequence[str]


def settings_of(settings: Settings, folder: Path, original: Path) -> Settings:
    """The settings of a data set in the folder, whose first blobs are read where the original has them: nothing of the
    service's own is named in them."""
    return replace(
        settings,
        data=str(folder),
        config="",
        database_url="",
        master_key="",
        master_key_file="",
        blobs_url="",
        blobs_beneath=str(original / BLOBS),
        cdn_url="",
        downloads="proxy",
        counters_url="",
        smtp_url="discard:",
        private_issuers=False,
        ask_model_url="",
        ask_model="",
        ask_model_key="",
        storage_mib=max(1, settings.sandbox_mib // 2),
        reserve_mib=settings.reserve_mib + RESERVE_MIB if settings.reserve_mib else 0,
        page_cache_mib=min(1, settings.page_cache_mib),
        artifact_max_mib=min(settings.sandbox_mib // 4 or 1, settings.artifact_max_mib),
        archive_total_mib=min(settings.sandbox_mib, settings.archive_total_mib),
        archive_seconds=min(60, settings.archive_seconds),
        archive_memory_mib=min(512, settings.archive_memory_mib),
        upload_ttl_s=min(3600, settings.upload_ttl_s),
        job_engine="embedded",
        jobs_running=min(2, settings.jobs_running),
        jobs_queued=min(20, settings.jobs_queued),
        job_seconds=min(120, settings.job_seconds),
        job_memory_mib=min(1024, settings.job_memory_mib),
        delta_group_mib=min(32, settings.delta_group_mib),
        sandboxes=0,
    )


def way_in(store: Store) -> str:
    """What a caller of the sandbox without a key is told to do."""
    return (
        f"Get a key with GET {store.root_url}/api/keys?tier=sandbox, then send it as X-API-Key to "
        f"{store.root_url}{ROOT}{PREFIX}: it is an owner there."
    )


_SIGNED = b"sandbox address\0"
_FORM = re.compile(
    rb"%s/(?P<name>[0-9A-Za-z_-]{1,64})\.(?P<signature>[0-9a-f]{32})(?=/api/v1/(artifacts/uploads|media/uploads|blobs)/)"
    % ROOT.encode()
)


def root(store: Store, name: str) -> str:
    """The path below which the data set of this name is reached without its key."""
    return f"{ROOT}/{name}.{store.addresses.sign(_SIGNED + name.encode()).hex()}"


def named(store: Store, path: bytes) -> tuple[str, str] | None:
    """The name of the data set and the root, where the path is an upload or a signed download of a data set; else
    None, also where the signature is wrong."""
    found = _FORM.match(path)
    if found is None or not store.addresses.verify(_SIGNED + found["name"], bytes.fromhex(found["signature"].decode())):
        return None
    return found["name"].decode(), found[0].decode()
