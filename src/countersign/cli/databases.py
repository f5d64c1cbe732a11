"""`countersign db`: the databases of both services upgraded, or moved to PostgreSQL."""

import click

from countersign.cli import configuration, moving, output, store
from countersign.cli.administration import data_option


@click.group()
def db() -> None:
    """The databases of both services."""


@db.command("upgrade")
@click.option("--dry-run", is_flag=True, help="Tell what would be applied, and change nothing.")
@data_option
@output.json_option
def upgrade_db(dry_run: bool, data: str | None) -> None:
    """Apply the migrations that are to come; `serve` does so too."""
    settings = configuration.load(data=data)
    if dry_run:
        names = store.settled(store.pending(settings), "cannot tell what is to come")
        output.answer({"pending": names}, "\n".join(names) or "The database is up to date.")
        return
    names = store.settled(store.upgrade(settings), "cannot upgrade the database")
    output.answer({"applied": names}, "\n".join(names) or "The database was up to date.")


db.add_command(moving.migrate)
