"""Logs the life cycle of `serve` and `worker`: one JSON event each for start, ready and stop. SIGHUP is ignored."""

import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from countersign import __version__
from countersign.cli.output import Exit, Failure
from countersign.cli.server.listen_address import PORTS
from countersign.kernel import connection_urls, telemetry
from countersign.kernel.database.open import file_name
from countersign.settings import Settings

FAILED = "failure"


@contextmanager
def log_lifecycle(part: str, settings: Settings, failure: str) -> Generator[None]:
    """Configure the log from the settings, log the start, and log the end of the block if it fails.

    The code that receives a stop signal logs the stop. This process and its children ignore SIGHUP from now on.

    Raises:
        Failure: the log level is unknown.
    """
    try:
        telemetry.configure(settings.log_level)
    except ValueError as error:
        remedy = "Correct COUNTERSIGN_LOG_LEVEL."
        raise Failure(failure, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log = telemetry.logger(part)
    log.info(
        "start", version=__version__, database=describe_database(settings), data=str(Path(settings.data).absolute())
    )
    try:
        yield
    except Failure as failed:
        log.error("stop", reason=FAILED, why=failed.why or failed.what, exit_code=int(failed.exit_code))
        raise
    except BaseException as error:
        log.error("stop", reason=FAILED, why="an unexpected error", exc_info=error)
        raise


def log_ready(part: str, **members: object) -> None:
    """Log that the process is ready."""
    telemetry.logger(part).info("ready", **members)


def describe_database(settings: Settings) -> Mapping[str, object]:
    """Return the kind and name of the configured database, without a password."""
    if settings.database_url:
        try:
            return {"kind": "postgresql", "name": connection_urls.describe_postgres(settings.database_url)}
        except ValueError:
            return {"kind": "postgresql", "name": ""}
    data = Path(settings.data).absolute()
    return {"kind": "sqlite", "name": ", ".join(str(data / file_name(schema)) for schema in PORTS)}
