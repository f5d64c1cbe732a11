"""Opening the job engine that the settings choose."""

from countersign.kernel.database.port import Database
from countersign.kernel.jobs.engine import EmbeddedEngine, Engine
from countersign.settings import BadSetting


async def open_engine(choice: str, database: Database, url: str, schema: str, *, lease_s: int) -> Engine:
    """Open the chosen engine (`auto`, `embedded`, `procrastinate`), and create its tables if it has any.

    Raises:
        BadSetting: Procrastinate was chosen without PostgreSQL.
        Unavailable: the database cannot be reached.
    """
    is_postgres = database.dialect == "postgres"
    if choice == "embedded" or (choice == "auto" and not is_postgres):
        return EmbeddedEngine()
    if not is_postgres:
        raise BadSetting("COUNTERSIGN_JOB_ENGINE: procrastinate needs PostgreSQL; use embedded or auto")
    # Import the module only when it is used, since it loads a second PostgreSQL driver.
    from countersign.kernel.jobs.procrastinate import ProcrastinateEngine

    engine = ProcrastinateEngine(url, schema, lease_s=lease_s)
    await engine.install(database)
    return engine
