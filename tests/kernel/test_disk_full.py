"""A full disk is recognised in one place, for any source of the error, and has a clear error."""

import ast
import errno
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import apsw
import asyncpg
import pytest

from countersign.backup import atomic_files
from countersign.kernel.blobs import disk
from countersign.kernel.database import postgres, sqlite_connection
from countersign.kernel.errors import ERRNOS, Refused, StorageFull, Unavailable, disk_full, is_disk_full, is_volume_full
from countersign.kernel.telemetry import LossyStream
from tests.faults import volumes
from tests.source import sources

NAMES = {"ENOSPC", "EDQUOT", "EFBIG", "DiskFullError", "53100"}
"""Names that only this one module may use."""


def system(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder with a database on a volume without free space."""
    volume = tmp_path / "volume"
    volumes.mount_memory(volume, 2)
    connection = apsw.Connection(str(volume / "store.sqlite"))
    connection.execute("PRAGMA journal_mode = wal; CREATE TABLE t (a)")
    connection.close()
    volumes.fill_volume(volume)
    yield volume
    volumes.unmount(volume)


@pytest.mark.parametrize("number", sorted(ERRNOS))
def test_errors_of_the_system_are_recognised_also_as_the_cause_of_another_error(number: int) -> None:
    outer = Unavailable("it cannot be used")
    outer.__cause__ = system(number)

    assert is_disk_full(system(number))
    assert is_disk_full(outer)
    assert not is_disk_full(system(errno.EACCES))
    assert not is_disk_full(Unavailable("it cannot be used"))


def test_the_errors_of_both_databases_are_recognised() -> None:
    refusals = [sqlite_connection.refusal(apsw.exception_for(13)), postgres.refusal(asyncpg.DiskFullError("full"))]

    assert is_disk_full(asyncpg.DiskFullError("full"))
    assert not is_disk_full(asyncpg.OutOfMemoryError("memory"))
    for error in refusals:
        assert isinstance(error, StorageFull)
        assert error.detail.startswith("The disk is full: ")


@pytest.mark.parametrize("refusals", [lambda: atomic_files.disk_errors(Path("here")), disk.refusals])
@pytest.mark.parametrize("number", sorted(ERRNOS))
def test_each_writer_of_files_names_a_full_disk(refusals: object, number: int) -> None:
    assert callable(refusals)
    with pytest.raises(StorageFull, match="The disk is full: ") as failure, refusals():
        raise system(number)

    if number != errno.ENOSPC:
        assert os.strerror(number).lower() in failure.value.detail


def test_a_full_volume_is_recognised_though_sqlite_reports_another_error(full: Path) -> None:
    with closing(apsw.Connection(str(full / "store.sqlite"))) as connection:
        with pytest.raises(apsw.Error) as failure:
            connection.execute("PRAGMA journal_mode = wal; SELECT * FROM t").fetchall()
        refusal = sqlite_connection.refusal(failure.value, connection)

    assert not isinstance(failure.value, apsw.FullError), "else this test shows nothing"

    assert isinstance(refusal, StorageFull)
    assert is_volume_full(full / "not" / "there" / "yet")


def test_a_failing_disk_with_space_is_not_called_full(tmp_path: Path) -> None:
    refusal = sqlite_connection.refusal(apsw.exception_for(10), file=str(tmp_path / "store.sqlite"))

    assert isinstance(refusal, Refused)
    assert not is_disk_full(refusal)
    assert not is_volume_full(tmp_path)


def test_a_log_on_a_full_disk_raises_no_error() -> None:
    file = Path("/dev/full").open("w", encoding="utf-8", buffering=1)  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        file.write("a line\n")
    stream = LossyStream(file)

    stream.write("a line\n" * 10_000)
    stream.flush()

    with suppress(OSError):
        file.close()


def test_the_message_names_the_place_and_the_remedy() -> None:
    refusal = disk_full("the outbox folder")

    assert refusal.detail == "The disk is full: no space is left for the outbox folder."
    assert refusal.remedy == StorageFull.resolution


def test_no_other_module_looks_for_the_errors_of_a_full_disk() -> None:
    paths: list[str] = []
    for source in sources():
        if source.path.endswith("/kernel/errors.py"):
            continue
        names = {node.attr for node in source.nodes if isinstance(node, ast.Attribute)}
        texts = {str(node.value) for node in source.nodes if isinstance(node, ast.Constant)}
        paths += [source.path] if NAMES & (names | texts) else []

    assert paths == [], "use countersign.kernel.errors"
