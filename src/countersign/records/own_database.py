"""Refuses to create or open our own tables in the database of others."""

from pathlib import Path

from countersign.declare import DeclarationError
from countersign.declare.registry import Registry
from countersign.kernel import connection_urls
from countersign.records import modules
from countersign.settings import BadSetting, Settings

_SQLITE = "sqlite:///"


def require_apart(settings: Settings, registry: Registry) -> None:
    """Check that models with a table of an existing database have its address, and that our own tables are in another
    database. This opens no database.

    Raises:
        BadSetting: the address is missing, or it is the address of our own tables.
    """
    if all(model.table is None for model in registry.models.values()):
        return
    if not settings.existing_url:
        raise BadSetting(
            "the modules have tables of an existing database, and its address is not set: set COUNTERSIGN_EXISTING_URL "
            "to it, and leave COUNTERSIGN_DATABASE_URL empty"
        )
    if _place(settings.existing_url) == _place(settings.database_url):
        raise BadSetting(
            "COUNTERSIGN_DATABASE_URL and COUNTERSIGN_EXISTING_URL are the same database: leave "
            "COUNTERSIGN_DATABASE_URL empty, because Countersign would create its own tables in the existing database"
        )


def require_apart_for_texts(settings: Settings) -> None:
    """Run `require_apart` for the module texts among the modules, if a database URL is set. Modules of packages are
    not imported, and a text that cannot be read is left to the commands that need it.

    Raises:
        BadSetting: see `require_apart`.
    """
    texts = [name for name in modules.names(settings.modules) if name.endswith(modules.TEXT_SUFFIX)]
    if not settings.database_url or not texts:
        return
    for name in texts:
        try:
            registry = modules.found([name])
        except DeclarationError:
            continue
        require_apart(settings, registry)


def _place(url: str) -> str:
    """Return what identifies the database at the URL, or an empty text if the URL is empty."""
    if url.startswith(_SQLITE):
        return str(Path(url.removeprefix(_SQLITE)).resolve())
    try:
        return connection_urls.postgres_location(url) if url else ""
    except ValueError as error:
        raise BadSetting(f"the address of a database: {error}") from error
