"""Choosing the engine: the one place that knows them all."""

from countersign.kernel.database.port import Database
from countersign.kernel.jobs.engine import EmbeddedEngine, Engine
from countersign.settings import BadSetting


async def open_engine(choice: str, database: Database, url: str, schema: str, *, lease_s: int) -> Engine:
    """The engine of this choice (`auto`, `embedded`, `procrastinate`), its tables made where it has any.

    Raises:
        BadSetting: Procrastinate was chosen without PostgreSQL.
        Unavailable: the database cannot be reached.
    """
    is_postgres = database.dialect == "postgres"
    if choice == "embedded" or (choice == "auto" and not is_postgres):
        return EmbeddedEngine()
    if not is_postgres:
        raise BadSetting("COUNTERSIGN_JOB_ENGINE: procrastinate needs PostgreSQL; take embedded or auto")
    # Who has no PostgreSQL should not wait for its second driver.
    from countersign.kernel.jobs.procrastinate import ProcrastinateEngine

    engine = ProcrastinateEngine(url, schema, lease_s=lease_s)
    await engine.install(database)
    return engine
