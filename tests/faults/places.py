"""Services with somebody to do errands in them: filled once for the run, copied for every life."""

import asyncio
import shutil
from pathlib import Path
from typing import NamedTuple

import apsw

from countersign.distribution import app as distribution
from countersign.records import app as records
from tests.faults import frail_worker, office_errand, store_errand
from tests.faults.errands import Ledger, Lost
from tests.faults.frail import Errands
from tests.records import office


class Place(NamedTuple):
    """A service's filled data directory, and the bearer tokens of those who do errands."""

    service: str
    data: Path
    tokens: tuple[str, str]


def filled(service: str, data: Path) -> Place:
    """Fill a new data directory."""
    if service == "distribution":
        return Place(service, data, asyncio.run(_store(data)))
    return Place(service, data, asyncio.run(_office(data)))


async def _store(data: Path) -> tuple[str, str]:
    async with distribution.opened(frail_worker.settings(str(data)), frail_worker.ROOT_URL, is_loopback=True) as store:
        return await store_errand.open_for_trade(store)


async def _office(data: Path) -> tuple[str, str]:
    tokens = await office.furnish(office.settings(str(data)))
    async with records.opened(office.settings(str(data)), office.ROOT_URL, is_loopback=True) as service:
        return await office_errand.open_desk(service, tokens["alice"])


def copied(place: Place, data: Path, count: int) -> Errands:
    """That many errands, none of them begun, in a copy of the place."""
    shutil.copytree(place.data, data)
    return Errands(place.service, data, place.tokens, {number: Ledger() for number in range(count)})


def require_sound(about: Errands) -> None:
    """The database is one.

    Raises:
        Lost: it is damaged.
    """
    for path in about.data.glob("*.sqlite"):
        connection = apsw.Connection(str(path))
        found = connection.pragma("integrity_check")
        connection.close()
        if found != "ok":
            raise Lost(f"{path.name}: {found}")


def require_once(about: Errands) -> None:
    """Every step of every errand, all of which are finished, has happened once.

    Raises:
        Doubled, Lost: it has not.
    """
    asyncio.run(_require_once(about.service, about.data, about.ledgers))


async def _require_once(service: str, data: Path, ledgers: dict[int, Ledger]) -> None:
    if service == "distribution":
        wanted = frail_worker.settings(str(data))
        async with distribution.opened(wanted, frail_worker.ROOT_URL, is_loopback=True) as store:
            for number in ledgers:
                await store_errand.require_once(store, number)
        return
    async with records.opened(office.settings(str(data)), office.ROOT_URL, is_loopback=True) as opened:
        await office_errand.require_intact(opened)
        for ledger in ledgers.values():
            await office_errand.require_audited_once(opened, ledger)
