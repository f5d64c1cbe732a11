"""Refuses to create or open our own tables in the database of others."""

from pathlib import Path

from countersign.declare import DeclarationError
from countersign.declare.registry import Registry
from countersign.records import modules
from countersign.settings import BadSetting, Settings

OWN_FILE = "records.sqlite"
_SQLITE = "sqlite:///"


def require_separate(settings: Settings, registry: Registry) -> None:
    """Check that models with a table of an existing database have its address, and that our own tables are in the data
    folder or, if a table is writable, in a schema of the same PostgreSQL database. This opens no database.

    Any other database may be the existing one under another address, so none is accepted for our own tables.

    Raises:
        BadSetting: the address is missing or that of our own file, or COUNTERSIGN_DATABASE_URL is another database.
    """
    if all(model.table is None for model in registry.models.values()):
        return
    if not settings.existing_url:
        raise BadSetting(
            "the modules have tables of an existing database, and its address is not set: set COUNTERSIGN_EXISTING_URL "
            "to it, and leave COUNTERSIGN_DATABASE_URL empty"
        )
    if settings.database_url and not _is_shared(settings, registry):
        raise BadSetting(
            "the modules have tables of an existing database (COUNTERSIGN_EXISTING_URL), and COUNTERSIGN_DATABASE_URL "
            "is set too: leave COUNTERSIGN_DATABASE_URL empty, so that Countersign creates its own tables in the data "
            "folder and only reads the existing database. For tables with writable=True, both may be the same "
            "PostgreSQL database: its own tables are then in the schema records"
        )
    own_file = Path(settings.data) / OWN_FILE
    existing_file = settings.existing_url.removeprefix(_SQLITE)
    if settings.existing_url.startswith(_SQLITE) and _is_same(Path(existing_file), own_file):
        raise BadSetting(
            "COUNTERSIGN_EXISTING_URL is the file of Countersign's own tables in the data directory: set it to the "
            "existing database"
        )


def _is_shared(settings: Settings, registry: Registry) -> bool:
    """Return whether our own tables belong in the existing database, because people write its tables."""
    is_same = settings.database_url == settings.existing_url and not settings.existing_url.startswith(_SQLITE)
    return is_same and any(model.table is not None and model.table.writable for model in registry.models.values())


def _is_same(path: Path, other_path: Path) -> bool:
    try:
        return path.resolve() == other_path.resolve() or path.samefile(other_path)
    except OSError:
        return False


def require_separate_for_texts(settings: Settings) -> None:
    """Run `require_separate` for the module texts among the modules, if a database URL is set. Modules of packages are
    not imported, and a text that cannot be read is left to the commands that need it.

    Raises:
        BadSetting: see `require_separate`.
    """
    texts = [name for name in modules.module_names(settings.modules) if name.endswith(modules.TEXT_SUFFIX)]
    if not settings.database_url or not texts:
        return
    for name in texts:
        try:
            registry = modules.found([name])
        except DeclarationError:
            continue
        require_separate(settings, registry)
