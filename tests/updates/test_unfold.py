"""Archives inside files, unfolded and restored bit by bit."""

import gzip
import io
import random
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.updates.recompress import archives, zlib_settings
from countersign.updates.recompress.archives import MAX_LEVELS, InflateBudget, spans
from countersign.updates.recompress.zlib_settings import SETTINGS, SettingsSearch, StreamRecipe
from countersign.updates.varint import Malformed

CHANCE = random.Random(1)
TEXT = b"".join(b"%d bottles, %d glasses\n" % (CHANCE.randrange(999), CHANCE.randrange(999)) for _ in range(4000))


def zip_files(contents: dict[str, bytes], level: int = 6, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of these files."""
    zip_bytes = io.BytesIO()
    with zipfile.ZipFile(zip_bytes, "w", method, compresslevel=level) as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name), data, method, level)
    return zip_bytes.getvalue()


def tar_files(contents: dict[str, bytes]) -> bytes:
    """Return a tar of these files."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return tar_bytes.getvalue()


def recompress_checked(data: bytes) -> archives.DecompressedFile:
    """Return the data unpacked with a budget of its own. The reverse operation is checked too."""
    decompressed_archive = archives.decompress(data, InflateBudget())
    if decompressed_archive.recipe:
        assert archives.recompress(decompressed_archive.content, decompressed_archive.recipe, len(data)) == data
    return decompressed_archive


@pytest.mark.parametrize("level", range(1, 10))
def test_the_entries_of_a_zip_are_unpacked(level: int) -> None:
    decompressed_archive = recompress_checked(zip_files({"a.txt": TEXT, "b.txt": TEXT[::-1]}, level))

    assert TEXT in decompressed_archive.content
    assert TEXT[::-1] in decompressed_archive.content


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT, mtime=0),
        gzip.compress(TEXT, 9, mtime=0) + gzip.compress(TEXT[:999], mtime=0),
        tar_files({"inner.zip": zip_files({"a": TEXT})}),
        gzip.compress(tar_files({"x": b"x", "inner.gz": gzip.compress(TEXT, mtime=0)}), mtime=0),
        zip_files({"inner.zip": zip_files({"a": TEXT})}),
        zip_files({"inner.zip": zip_files({"a": TEXT})}, method=zipfile.ZIP_STORED),
    ],
    ids=["gzip", "two-gzips", "zip-in-tar", "gzip-in-tar-in-gzip", "zip-in-zip", "zip-stored-in-zip"],
)
def test_archives_in_archives_are_unpacked(data: bytes) -> None:
    assert TEXT in recompress_checked(data).content


def test_no_more_than_three_levels_are_opened() -> None:
    data = TEXT
    for _ in range(MAX_LEVELS + 1):
        data = gzip.compress(data, mtime=0)

    decompressed_archive = recompress_checked(data)

    assert decompressed_archive.recipe
    assert TEXT not in decompressed_archive.content


@pytest.mark.parametrize("tool", ["jar", "bsdtar"])
def test_archives_of_other_tools_that_use_zlib_are_unpacked(tmp_path: Path, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (tmp_path / "text").write_bytes(TEXT)
    command = ["jar", "cf"] if tool == "jar" else ["bsdtar", "--format", "zip", "-cf"]
    subprocess.run([*command, tmp_path / "out.zip", "-C", tmp_path, "text"], check=True, capture_output=True)

    assert TEXT in recompress_checked((tmp_path / "out.zip").read_bytes()).content


@pytest.mark.parametrize("settings_", SETTINGS, ids=str)
def test_every_setting_is_found_again(settings_: zlib_settings.DeflateSettings) -> None:
    level, memory, strategy, window = settings_
    compressor = zlib.compressobj(level, zlib.DEFLATED, -window, memory, strategy)
    stream = compressor.compress(TEXT) + compressor.flush()

    recipe = SettingsSearch().find(stream, TEXT)

    assert recipe is not None
    assert zlib_settings.restore(TEXT, recipe) == stream


def test_a_stream_with_another_end_is_made_again_with_a_correction() -> None:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    stream = compressor.compress(TEXT) + compressor.flush(zlib.Z_FULL_FLUSH) + compressor.flush()

    recipe = SettingsSearch().find(stream, TEXT)

    assert recipe is not None
    assert not recipe.is_exact
    assert len(zlib_settings.encode(recipe)) < 40
    assert zlib_settings.restore(TEXT, recipe) == stream


def test_a_stream_of_an_unknown_compressor_is_kept_compressed() -> None:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    pieces = [
        compressor.compress(TEXT[at : at + 700]) + compressor.flush(zlib.Z_SYNC_FLUSH) for at in range(0, 80_000, 700)
    ]
    data = gzip.compress(b"", mtime=0)[:10] + b"".join(pieces) + compressor.flush() + bytes(8)

    decompressed_archive = recompress_checked(data)

    assert decompressed_archive == (data, b"")
    assert TEXT[:70_000] in b"".join(archives.reference(data, InflateBudget())), "as a reference it needs no way back"


def test_a_bomb_is_left_closed() -> None:
    bomb = gzip.compress(bytes(64 << 20), mtime=0)
    budget = InflateBudget(size=1 << 20)

    assert archives.decompress(bomb, budget) == (bomb, b"")
    assert budget.bytes_left == 1 << 20


def test_the_streams_of_all_files_share_one_budget() -> None:
    budget = InflateBudget(streams=3)

    assert archives.decompress(zip_files({str(number): TEXT[number:] for number in range(2)}), budget).recipe
    assert len(spans(zip_files({str(number): TEXT[number:] for number in range(9)}), budget)) == 1


def test_a_reference_is_deterministic() -> None:
    data = gzip.compress(tar_files({"inner.zip": zip_files({"a": TEXT, "b": b"b" * 99})}), mtime=0)

    assert list(archives.reference(data, InflateBudget())) == list(archives.reference(data, InflateBudget()))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_archive_is_unfolded_to_what_it_is_or_not_at_all(data: st.DataObject) -> None:
    whole_archive = data.draw(st.sampled_from(_SEEDS))
    damaged_archive = bytearray(whole_archive)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(damaged_archive) - 1))
        damaged_archive[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    damaged = bytes(damaged_archive)

    decompressed_archive = archives.decompress(damaged, InflateBudget(size=1 << 20))

    if decompressed_archive.recipe:
        assert archives.recompress(decompressed_archive.content, decompressed_archive.recipe, len(damaged)) == damaged
    else:
        assert decompressed_archive.content == damaged


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=200))
def test_an_untrusted_recipe_is_refused_or_gives_bounded_content(recipe: bytes, content: bytes) -> None:
    try:
        data = archives.recompress(content, recipe, 1000)
    except Malformed:
        return

    assert len(data) <= 1000


def test_a_recipe_never_makes_more_than_was_announced() -> None:
    data = zip_files({"a": TEXT})
    decompressed_archive = recompress_checked(data)

    with pytest.raises(Malformed):
        archives.recompress(decompressed_archive.content, decompressed_archive.recipe, len(data) // 2)


@pytest.mark.parametrize(
    "recipe", [StreamRecipe(0, 9, ((10, b"x"),), is_exact=False), StreamRecipe(0, 10**9, (), is_exact=False)], ids=str
)
def test_a_correction_outside_of_its_stream_is_refused(recipe: StreamRecipe) -> None:
    with pytest.raises(Malformed):
        zlib_settings.restore(b"a", recipe)


_SEEDS = (
    zip_files({"a": TEXT[:500], "b": TEXT[:300]}),
    gzip.compress(TEXT[:700], mtime=0),
    gzip.compress(tar_files({"z": zip_files({"a": TEXT[:400]})}), mtime=0),
    tar_files({"z": zip_files({"a": TEXT[:400]}), "y": gzip.compress(TEXT[:300], mtime=0)}),
)
