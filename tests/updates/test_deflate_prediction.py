"""Streams of GNU gzip and of Node's zlib, which resemble zlib's, are recoded and restored bit by bit."""

import random
import shutil
import subprocess
import zlib
from array import array
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.updates.deltas import make
from countersign.updates.manifest import File
from countersign.updates.recompress import archives, deflate_prediction, deflate_tokens, zlib_settings
from countersign.updates.recompress.archives import InflateBudget
from countersign.updates.recompress.deflate_prediction import Edit, Recoding
from countersign.updates.recompress.deflate_tokens import Block
from countersign.updates.varint import Malformed, VarintReader

CHANCE = random.Random(2)
WORDS = [bytes(CHANCE.choice(b"abcdefghijklmnopqrstuvwxyz") for _ in range(CHANCE.randrange(2, 9))) for _ in range(600)]
TEXT = b"".join(
    b"%s = %s(%d)\n" % (CHANCE.choice(WORDS), CHANCE.choice(WORDS), CHANCE.randrange(99)) for _ in range(9000)
)
NODE = (Path(__file__).parent / "samples/node-9.gz").read_bytes()
"""The output of zlib.gzipSync(TEXT, {level: 9}) of Node 20, as npm packs."""


def gnu(data: bytes, level: int = 6) -> bytes:
    """Return the data compressed by GNU gzip."""
    if shutil.which("gzip") is None:
        pytest.skip("gzip is not installed")
    return subprocess.run(["gzip", "-n", f"-{level}"], input=data, capture_output=True, check=True).stdout


def recompress_checked(data: bytes) -> archives.DecompressedFile:
    """Return the unpacked data. The reverse operation is checked too."""
    decompressed_archive = archives.decompress(data, InflateBudget())
    if decompressed_archive.recipe:
        assert archives.recompress(decompressed_archive.content, decompressed_archive.recipe, len(data)) == data
    return decompressed_archive


@pytest.mark.parametrize("level", [1, 6, 9])
def test_a_file_packed_by_gnu_gzip_is_unpacked(level: int) -> None:
    packed_file = gnu(TEXT, level)

    decompressed_archive = recompress_checked(packed_file)

    assert TEXT in decompressed_archive.content
    assert len(decompressed_archive.recipe) < len(packed_file) // 50


def test_a_file_packed_by_node_is_unpacked() -> None:
    decompressed_archive = recompress_checked(NODE)

    assert TEXT in decompressed_archive.content
    assert len(decompressed_archive.recipe) < len(NODE) // 40


def test_a_file_packed_by_the_installed_node_is_unpacked() -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    script = "process.stdout.write(require('zlib').gzipSync(require('fs').readFileSync(0)))"
    packed_file = subprocess.run(["node", "-e", script], input=TEXT, capture_output=True, check=True).stdout

    assert TEXT in recompress_checked(packed_file).content


@pytest.mark.parametrize("tool", ["gzip", "node"])
def test_an_update_of_a_compressed_file_costs_little_more_than_its_changed_content(tool: str) -> None:
    """The new file is a packed file, so that a delta contains its recipe and the change."""
    new = gnu(TEXT) if tool == "gzip" else NODE
    changed_text = TEXT[:50_000] + b"changed" + TEXT[50_010:]
    old = gnu(changed_text)
    sides = [
        make.BuildFiles([File("a.tgz", 0o644, len(data), sha256(data).hexdigest(), "", [])], lambda _, data=data: data)
        for data in (old, new)
    ]

    (delta,) = make.make(*sides)

    assert len(delta.blob) < len(new) // (20 if tool == "gzip" else 8)


def compress_randomly(rng: random.Random, content: bytes) -> bytes:
    """Return a stream with any settings, and flushes anywhere."""
    level, strategy = rng.randrange(10), rng.choice((zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY))
    compressor = zlib.compressobj(level, zlib.DEFLATED, -15, rng.randrange(1, 10), strategy)
    stream, at = b"", 0
    while at < len(content):
        step = rng.randrange(1, 40_000)
        stream += compressor.compress(content[at : at + step])
        at += step
        stream += compressor.flush(rng.choice((zlib.Z_NO_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH)))
    return stream + compressor.flush()


def test_every_stream_is_restored_byte_for_byte(is_full: bool) -> None:
    """A stream from any program consists only of tokens and blocks."""
    for seed in range(2_000 if is_full else 12):
        rng = random.Random(seed)
        pieces = (TEXT[: rng.randrange(30_000)], rng.randbytes(rng.randrange(70_000)), bytes(999))
        content = b"".join(rng.sample(pieces, rng.randrange(4)))
        stream = compress_randomly(rng, content)

        tokens, blocks = deflate_tokens.read(stream, deflate_prediction.MAX_TOKENS)

        assert deflate_tokens.write(content, tokens, blocks) == stream, seed
        recoding = deflate_prediction.RecodingSearch().find(stream, content)
        if recoding is not None:
            assert deflate_prediction.restore(content, recoding) == stream
            decoded = deflate_prediction.decode(VarintReader(deflate_prediction.encode(recoding)), 1 << 40)
            assert deflate_prediction.restore(content, decoded) == stream


def test_a_recoding_is_never_longer_than_a_part_of_its_stream() -> None:
    noise = random.Random(3).randbytes(60_000)
    stream = compress_randomly(random.Random(4), noise)
    recoding = deflate_prediction.RecodingSearch().find(stream, noise)

    assert recoding is None or len(deflate_prediction.encode(recoding)) * 4 <= len(stream)


def test_a_stream_of_very_many_blocks_is_given_up_at_once() -> None:
    empty = "010" + "0000000"
    bits = (empty * 100_000 + "110" + "0000000")[::1]
    stream = bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))
    assert zlib.decompress(stream, -15) == b""

    with pytest.raises(Malformed, match="too many blocks"):
        deflate_tokens.read(stream, deflate_prediction.MAX_TOKENS)


@cache
def of_node() -> bytes:
    """Return the recoding of the sample."""
    recoding = deflate_prediction.RecodingSearch().find(NODE[10:-8], TEXT)
    assert recoding is not None
    return deflate_prediction.encode(recoding)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_untrusted_recoding_is_refused_or_gives_bounded_content(data: st.DataObject) -> None:
    encoded = bytearray(of_node())
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        restored_content = deflate_prediction.restore(
            TEXT[:2_000], deflate_prediction.decode(VarintReader(bytes(encoded)), 1 << 40)
        )
    except Malformed:
        return
    assert len(restored_content) < 1 << 20


@pytest.mark.parametrize(
    "recoding",
    [
        Recoding(0, [Edit(9, 9, [])], [Block(deflate_tokens.FIXED, 1)]),
        Recoding(0, [], [Block(deflate_tokens.FIXED, 2)]),
        Recoding(0, [], [Block(deflate_tokens.DYNAMIC, 1, 17, 0)]),
        Recoding(0, [Edit(0, 1, [9 << 16 | 40_000])], [Block(deflate_tokens.FIXED, 1)]),
        Recoding(0, [], [Block(3, 1)]),
        Recoding(0, [], []),
    ],
    ids=str,
)
def test_a_recoding_that_does_not_fit_is_refused(recoding: Recoding) -> None:
    with pytest.raises(Malformed):
        zlib_settings.restore(b"a", recoding)


def test_reading_ends_in_the_middle_of_a_block_that_has_very_many_tokens() -> None:
    content = b"a" * (1 << 17)
    stream = deflate_tokens.write(
        content, array("I", bytes(4 * len(content))), [Block(deflate_tokens.FIXED, len(content))]
    )

    tokens, blocks = deflate_tokens.read(stream, 1_000)

    assert 1_000 <= len(tokens) < 1_100
    assert blocks[0].tokens == len(tokens)


def test_a_huffman_code_with_too_many_words_is_refused() -> None:
    # The last block is dynamic and has the minimum of symbols: the lengths of four codes are one bit.
    stream = (1 | deflate_tokens.DYNAMIC << 1 | 0b001_001_001_001 << 17).to_bytes(32, "little")

    with pytest.raises(Malformed, match="the code lengths allow fewer code words"):
        deflate_tokens.read(stream, 10)


def test_a_literal_without_a_code_is_refused() -> None:
    tokens, blocks = deflate_tokens.read(zlib.compress(TEXT, wbits=-15), len(TEXT))

    with pytest.raises(Malformed, match="do not fit"):
        deflate_tokens.write(TEXT.replace(b"=", b"\0"), tokens, blocks)


def test_very_many_empty_blocks_are_refused_before_they_are_written() -> None:
    with pytest.raises(Malformed, match="too many blocks"):
        deflate_tokens.write(b"", array("I"), [Block(deflate_tokens.FIXED, 0)] * 5_000)
