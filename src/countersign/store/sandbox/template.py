"""The original that every data set of the sandbox is a copy of: what it is called, and the process that makes it."""

import hashlib
import subprocess
import sys
from functools import cache
from pathlib import Path

from countersign import __version__
from countersign.kernel import telemetry
from countersign.kernel.database.migrate import migrations
from countersign.kernel.errors import Unavailable
from countersign.store.sandbox.folders import Template

COMMAND = (sys.executable, "-m", "countersign.store.build_template")
MAX_BUILD_S = 120


@cache
def template(package: str) -> Template:
    """The original for a store of these migrations; its name changes with them and with the version."""
    parts = [__version__, *(migration.sha256 for migration in migrations(package))]
    return Template(hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16], _fill)


def _fill(folder: Path) -> None:
    try:
        subprocess.run([*COMMAND, str(folder)], check=True, timeout=MAX_BUILD_S)
    except (OSError, subprocess.SubprocessError) as error:
        telemetry.logger("sandbox").error("the sandbox's data could not be made", exc_info=error)
        raise Unavailable("the sandbox's data could not be made; the fault was logged") from error
