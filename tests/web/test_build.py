"""The built pages are small, complete, in the wheel, and block no route of the service."""

import gzip
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from countersign.store.apidocs import routes as documents
from countersign.store.app import ROUTES
from countersign.web.assets import Assets
from tools import pages

ROOT = Path(__file__).parents[2]
ENTRIES = ("store", "work")
LARGEST_SCRIPTS = 60_000


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_first_load_of_a_page_is_small(entry: str, requires_built_pages: None) -> None:
    parts = Assets.of_package().entry_assets(entry)
    assert parts is not None

    scripts = [pages.BUILT / name.removeprefix("/") for name in (parts.script, *parts.preloads)]

    assert sum(len(gzip.compress(script.read_bytes(), 9)) for script in scripts) <= LARGEST_SCRIPTS


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_page_is_known_to_the_server_and_to_the_browser(entry: str) -> None:
    content = json.loads((pages.SOURCES / entry / "paths.json").read_text())
    routed = re.findall(r'template: "([^"]+)"', (pages.SOURCES / entry / "main.tsx").read_text())

    assert sorted(content) == sorted(routed)


def test_no_page_of_the_store_takes_an_address_of_the_api() -> None:
    content = json.loads((pages.SOURCES / "store/paths.json").read_text())
    paths = {route.path for route in (*ROUTES, *documents.routes(ROUTES)) if route.at_root and route.method == "GET"}

    # A request that does not accept HTML gets the service's own answer at the root.
    assert set(content) & paths == {"/"}


def test_the_pages_are_built_again_when_their_sources_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SOURCES", tmp_path)
    (tmp_path / "a.ts").write_text("1")
    first_digest = pages.digest({"store.json": "{}"})

    assert pages.digest({"store.json": "{}"}) == first_digest
    assert pages.digest({"store.json": '{"a":1}'}) != first_digest
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/b.ts").write_text("1")
    assert pages.digest({"store.json": "{}"}) == first_digest
    (tmp_path / "a.ts").write_text("2")
    assert pages.digest({"store.json": "{}"}) != first_digest


def test_the_wheel_carries_the_pages(tmp_path: Path, requires_built_pages: None) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")

    names = set(zipfile.ZipFile(wheel).namelist())

    for path in pages.BUILT.rglob("*"):
        if path.is_file():
            assert f"countersign/web/static/{path.relative_to(pages.BUILT).as_posix()}" in names


def test_no_file_of_the_pages_is_long() -> None:
    long = {str(path): path.read_text().count("\n") for path in pages.sources() if path.suffix in (".ts", ".tsx")}

    assert not {name: lines for name, lines in long.items() if lines > 300}


def test_every_file_of_the_pages_begins_with_a_comment_about_its_content() -> None:
    code = [path for path in pages.sources() if path.suffix in (".ts", ".tsx") and path.name != "vite-env.d.ts"]

    assert not [path.name for path in code if not path.read_text().startswith("// ")]


def test_the_lock_of_the_pages_names_no_registry() -> None:
    assert '"resolved"' not in (pages.SOURCES / "package-lock.json").read_text()
