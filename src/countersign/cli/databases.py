"""`countersign db`: the databases of both services upgraded, or moved to PostgreSQL."""

import click

from countersign.cli import configuration, moving, output, record_store, store
from countersign.cli.administration import data_option
from countersign.records import app
from countersign.settings import Settings


@click.group()
def db() -> None:
    """The databases of both services."""


@db.command("upgrade")
@click.option("--dry-run", is_flag=True, help="Tell what would be applied, and change nothing.")
@data_option
@output.json_option
def upgrade_db(dry_run: bool, data: str | None) -> None:
    """Apply the migrations that are to come to the databases of both services; `serve` does so too.

    Where there is none yet, that of the store is made. What would lose data is refused: see `modules plan`.
    """
    settings = configuration.load(data=data)
    if dry_run:
        names = record_store.settled(_pending(settings), "cannot tell what is to come")
        output.answer({"pending": names}, "\n".join(names) or "The databases are up to date.")
        return
    names = record_store.settled(_upgraded(settings), "cannot upgrade the databases")
    output.answer({"applied": names}, "\n".join(names) or "The databases were up to date.")


async def _pending(settings: Settings) -> list[str]:
    own = await store.pending(settings) if _is_of_store(settings) else []
    return own + await record_store.pending(settings)


async def _upgraded(settings: Settings) -> list[str]:
    own = await store.upgrade(settings) if _is_of_store(settings) else []
    return own + await record_store.upgrade(settings)


def _is_of_store(settings: Settings) -> bool:
    """Not where records alone are kept."""
    return store.has_database(settings) or not app.database_file(settings).exists()


db.add_command(moving.migrate)
