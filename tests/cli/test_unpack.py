"""`unpack` writes a complete tree or nothing, and reports which entry broke which rule."""

import json
import zipfile
from pathlib import Path

from countersign.cli.output import Exit
from tests.cli.conftest import Run


def zip_texts(path: Path, **entries: str) -> Path:
    """Create a zip file of these texts. Two underscores in a name stand for a slash."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


def test_an_archive_becomes_a_folder(run: Run, tmp_path: Path) -> None:
    archive = zip_texts(tmp_path / "a.zip", bin__tool="#!/bin/sh\n", notes="n" * 1000)

    result = run("unpack", archive, "out", "--json")

    assert result.returncode == Exit.OK, result.stderr
    assert json.loads(result.stdout) == {"path": "out", "files": 2, "folders": 1, "links": 0, "size": 1010}
    assert (tmp_path / "out/notes").read_text() == "n" * 1000
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "out"}


def test_a_refusal_names_the_entry_and_the_rule_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    archive = zip_texts(tmp_path / "a.zip", fine="x", **{"..__evil": "x"})

    result = run("unpack", archive, "out")

    assert result.returncode == Exit.FAILED
    assert "../evil" in result.stderr
    assert "rule dot-dot" in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_unusual_harmless_archives_are_unpacked_on_request(run: Run, tmp_path: Path) -> None:
    archive = zip_texts(tmp_path / "a.zip", **{"u\u0308ber": "x"})

    assert run("unpack", archive, "out").returncode == Exit.FAILED
    assert run("unpack", archive, "out", "--compatible").returncode == Exit.OK


def test_a_folder_that_is_not_empty_stays_unchanged(run: Run, tmp_path: Path) -> None:
    archive = zip_texts(tmp_path / "a.zip", fine="x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")

    result = run("unpack", archive, "out")

    assert result.returncode == Exit.CONFLICT
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_file_that_is_not_an_archive_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")

    result = run("unpack", "text", "out", "--json")

    assert result.returncode == Exit.FAILED
    assert json.loads(result.stdout)["error"]["code"] == "archive_unknown"
