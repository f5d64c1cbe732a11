"""Nested archives are plain bytes. The reader does not open them at any depth."""

import gzip
import io
import zipfile
from dataclasses import replace

import pytest

from countersign.archives.reader import read
from countersign.kernel.errors import Refused
from tests.archives import quines, tars, zips
from tests.archives.cases import LIMITS, drain
from tests.archives.zips import DEFLATED, ZipEntry


def test_a_tower_of_zips_is_one_file() -> None:
    inner = zips.archive(ZipEntry(b"../../escape", bytes(1 << 20), DEFLATED))
    for _ in range(50):
        inner = zips.archive(ZipEntry(b"inner.zip", inner))

    assert [path for path in drain(inner)] == ["inner.zip"]


def test_of_nested_bombs_only_the_outermost_archive_is_opened() -> None:
    bomb = zips.archive(*(ZipEntry(b"%d" % number, bytes(1 << 20), DEFLATED) for number in range(16)))
    outer = zips.archive(*(ZipEntry(b"%d.zip" % number, bomb) for number in range(16)))

    entries = drain(outer, replace(LIMITS, total_bytes=1 << 20))

    assert {content for _, _, content in entries.values()} == {bomb}


@pytest.mark.parametrize(
    "inner",
    [zips.archive(ZipEntry(b"../x")), tars.archive(tars.file(b"/x")), gzip.compress(b"x", mtime=0)],
    ids=["zip", "tar", "gzip"],
)
def test_a_hostile_archive_in_a_tar_is_a_file(inner: bytes) -> None:
    assert drain(tars.archive(tars.file(b"inner", inner)))["inner"][2] == inner


def test_a_zip_that_contains_itself_is_read_once() -> None:
    quine = quines.zip_quine()

    assert zipfile.ZipFile(io.BytesIO(quine)).read("again.zip") == quine
    assert drain(quine)["again.zip"][2] == quine


def test_a_zip_that_contains_itself_is_also_read_within_a_tar() -> None:
    quine = quines.zip_quine()

    assert drain(gzip.compress(tars.archive(tars.file(b"again.zip", quine))))["again.zip"][2] == quine


def test_a_gzip_file_that_unpacks_to_itself_is_not_an_archive() -> None:
    quine = quines.gzip_quine()
    assert gzip.decompress(quine) == quine

    with pytest.raises(Refused):
        list(read(io.BytesIO(quine), LIMITS))
