"""A command that finds a damaged database reports its file and the remedy."""

import json
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.kernel.database.open import open_database
from countersign.kernel.errors import Unavailable
from tests.cli.conftest import Run

PAGE = 4096


@pytest.fixture
def data(run: Run, tmp_path: Path) -> Path:
    """A data directory with a store."""
    created_result = run("org", "create", "acme", "--name", "Acme", "--data", tmp_path / "data")
    assert created_result.returncode == Exit.OK
    return tmp_path / "data"


def damage(file: Path, start: int) -> None:
    """Overwrite the file from the offset `start` on."""
    with file.open("r+b") as damaged_file:
        damaged_file.seek(start)
        damaged_file.write(b"\xff" * (file.stat().st_size - start))


@pytest.mark.parametrize(("start", "why"), [(0, "is not a SQLite database"), (PAGE, "is damaged")])
@pytest.mark.parametrize(
    "subcommand", [["serve", "distribution", "--port", "0"], ["org", "create", "b", "--name", "B"]]
)
def test_a_damaged_database_is_reported_with_its_file_and_the_remedy(
    run: Run, data: Path, subcommand: list[str], start: int, why: str
) -> None:
    damage(data / "distribution.sqlite", start)

    result = run(*subcommand, "--data", data)

    assert result.returncode == Exit.UNREACHABLE
    assert why in result.stderr
    assert f"The file is {data}/distribution.sqlite." in result.stderr
    assert "countersign verify" in result.stderr
    assert "countersign restore" in result.stderr
    assert "Try again" not in result.stderr


def test_the_doctor_names_the_file_too(run: Run, data: Path) -> None:
    damage(data / "distribution.sqlite", 0)

    result = run("doctor", "--json", "--data", data)

    (database_check,) = [
        check for check in json.loads(result.stdout)["checks"] if check["check"] == "distribution database"
    ]
    assert database_check["standing"] == "fail"
    assert f"The file is {data}/distribution.sqlite." in database_check["detail"]
    assert "countersign restore" in database_check["remedy"]


async def test_a_caller_does_not_get_the_path(tmp_path: Path) -> None:
    file = tmp_path / "secret-place.db"
    file.write_bytes(b"no database" * PAGE)

    with pytest.raises(Unavailable) as refusal:
        await open_database(f"sqlite:///{file}", schema="")

    assert "secret-place" not in refusal.value.detail + refusal.value.remedy
    assert f"The file is {file}." in refusal.value.__notes__
