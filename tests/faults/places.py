"""Services with accounts that can run errands: filled once for the test run, copied for every life."""

import asyncio
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import apsw

from countersign.records import app as records
from countersign.store import app as distribution
from tests.faults import frail_worker, office_errand, store_errand
from tests.faults.errands import StepLedger, WriteLost
from tests.faults.frail import ErrandRun
from tests.faults.lives import RestartableService
from tests.records import office
from tests.servers.countersign import MASTER_KEY, move_to_postgres


class FilledDirectory(NamedTuple):
    """A service's filled data directory (and PostgreSQL database, if it has a URL), and the bearer tokens for
    errands."""

    service: str
    data: Path
    tokens: tuple[str, str]
    database_url: str = ""


def fill_directory(
    service: str, data: Path, database_url: str = "", root_url: str = frail_worker.ROOT_URL
) -> FilledDirectory:
    """Fill a new data directory, and an empty database, for a service that will be served there."""
    url = database_url if database_url.startswith("postgres") else ""
    filling = _store(data, url, root_url) if service == "distribution" else _office(data, url)
    return FilledDirectory(service, data, asyncio.run(filling), url)


async def _store(data: Path, url: str, root_url: str) -> tuple[str, str]:
    store_settings = frail_worker.settings(str(data), url)
    async with distribution.open_store(store_settings, root_url, is_loopback=True) as store:
        return await store_errand.create_publisher_and_customer(store)


async def _office(data: Path, url: str) -> tuple[str, str]:
    office_settings = office.settings(str(data), url)
    tokens = await office.furnish(office_settings)
    async with records.open_records(office_settings, office.ROOT_URL, is_loopback=True) as service:
        return await office_errand.open_desk(service, tokens["alice"])


_folders: list[TemporaryDirectory[str]] = []


@cache
def to_copy(service: str) -> FilledDirectory:
    """Return a filled data directory on SQLite, made once for the test run."""
    folder = TemporaryDirectory()
    _folders.append(folder)
    return fill_directory(service, Path(folder.name) / "data")


def fill_for(lives: RestartableService, database_url: str = "") -> FilledDirectory:
    """Fill the data directory of the lives and an empty database, with quotas too large to be reached."""
    if lives.service == "records":
        url = database_url if database_url.startswith("postgres") else ""
        filled = to_copy("records")._replace(data=lives.data, database_url=url)
        shutil.copytree(to_copy("records").data, lives.data)
        if url:
            move_to_postgres(lives.data, {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY})
    else:
        # The store's tokens contain the address that they are valid for.
        filled = fill_directory(lives.service, lives.data, database_url, lives.root_url)
    lives.settings["COUNTERSIGN_DATABASE_URL"] = filled.database_url
    lives.settings["COUNTERSIGN_RESERVE_MIB"] = "0"
    lives.settings |= {f"COUNTERSIGN_RATE_{kind}": "1000000" for kind in ("KEYS", "COMMUNITY")}
    return filled


def copy_for_errands(filled: FilledDirectory, data: Path, count: int) -> ErrandRun:
    """Copy the filled directory, and return `count` errands for the copy, none of which has begun."""
    shutil.copytree(filled.data, data)
    return ErrandRun(filled.service, data, filled.tokens, ledgers={number: StepLedger() for number in range(count)})


def require_sound(errand_run: ErrandRun) -> None:
    """Require that the database is consistent.

    Raises:
        WriteLost: the database is damaged.
    """
    for path in errand_run.data.glob("*.sqlite"):
        connection = apsw.Connection(str(path))
        integrity = connection.pragma("integrity_check")
        connection.close()
        if integrity != "ok":
            raise WriteLost(f"{path.name}: {integrity}")


def require_once(errand_run: ErrandRun) -> None:
    """Require that every step of every errand has happened exactly once. All errands are finished.

    Raises:
        WriteDoubled, WriteLost: a step has happened twice, or not at all.
    """
    asyncio.run(_require_once(errand_run))


async def _require_once(errand_run: ErrandRun) -> None:
    store_settings = frail_worker.settings(str(errand_run.data), errand_run.database_url)
    if errand_run.service == "distribution":
        async with distribution.open_store(store_settings, frail_worker.ROOT_URL, is_loopback=True) as store:
            for number in errand_run.ledgers:
                await store_errand.require_once(store, number)
        return
    async with records.open_records(store_settings, office.ROOT_URL, is_loopback=True) as opened_records:
        await office_errand.require_intact(opened_records)
        for ledger in errand_run.ledgers.values():
            await office_errand.require_audited_once(opened_records, ledger)
