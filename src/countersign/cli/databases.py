"""`countersign db`: the databases of both services upgraded, or moved to PostgreSQL."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from countersign.cli import configuration, lock, moving, output, record_store, store
from countersign.cli.administration import data_option
from countersign.cli.tables import Tables
from countersign.kernel.database.postgres_admin import privileges_at
from countersign.records import app
from countersign.settings import Settings
from countersign.store import lifespan


class Kept(NamedTuple):
    """A service's tables, what is to come for them, and how it is applied."""

    tables: Tables
    pending: Callable[[Settings], Awaitable[list[str]]]
    upgrade: Callable[[Settings], Awaitable[list[str]]]


SERVICES = {
    lifespan.SCHEMA: Kept(store.TABLES, store.pending, store.upgrade),
    app.SCHEMA: Kept(record_store.TABLES, record_store.pending, record_store.upgrade),
}

DOING = "cannot upgrade the databases"


@click.group()
def db() -> None:
    """The databases of both services."""


@db.command("upgrade")
@click.argument("service", type=click.Choice(tuple(SERVICES)), required=False)
@click.option("--dry-run", is_flag=True, help="Tell what would be applied, and change nothing.")
@data_option
@output.json_option
def upgrade_db(service: str | None, dry_run: bool, data: str | None) -> None:
    """Apply the migrations that are to come to the database of the service, or without a name of both; `serve` does so
    too.

    A service that is named, and both where neither was ever served, get their tables here. What would lose data is
    refused: see `modules plan`; and so is all that is to come while the data directory is served.
    """
    settings = configuration.load(data=data)
    wanted, names = record_store.settled(_pending(settings, service), DOING)
    value, words = {"pending": names}, f"Up to date: {', '.join(wanted)}."
    if not dry_run:
        if names:
            # A server has its tables as they were when it started.
            with lock.held(Path(settings.data), DOING):
                names = record_store.settled(_upgraded(settings, wanted), DOING)
        value, words = {"applied": names}, f"Were up to date: {', '.join(wanted)}."
    output.answer({**value, "services": wanted}, "\n".join(names) or words)
    for each in SERVICES:
        if service is None and each not in wanted:
            output.note(f"There are no tables of {each} here; to make them: countersign db upgrade {each}")


async def _wanted(settings: Settings, service: str | None) -> list[str]:
    """The service that was named, else those that are there, else both."""
    if service is not None:
        return [service]
    return [name for name, each in SERVICES.items() if await each.tables.are_kept(settings)] or list(SERVICES)


async def _pending(settings: Settings, service: str | None) -> tuple[list[str], list[str]]:
    """The services that are meant, and what is to come for them.

    Raises:
        PrivilegeMissing: PostgreSQL's role may not apply it.
    """
    wanted, names = await _wanted(settings, service), list[str]()
    for each in wanted:
        found = await SERVICES[each].pending(settings)
        if found and settings.database_url:
            (there,) = await privileges_at(settings.database_url, (each,))
            there.require_upgrade()
        names += found
    return wanted, names


async def _upgraded(settings: Settings, wanted: Sequence[str]) -> list[str]:
    return [name for each in wanted for name in await SERVICES[each].upgrade(settings)]


db.add_command(moving.migrate)
