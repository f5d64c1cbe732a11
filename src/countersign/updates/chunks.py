"""Contents cut where they say so themselves, so that what is shared between versions is cut alike and kept once.

FastCDC (Xia et al., USENIX ATC 2016) with normalised chunking; each chunk is named by BLAKE3 and kept as one zstd
frame (RFC 8878).
"""

from collections.abc import Iterator

import blake3
from backports import zstd
from pyfastcdc import FastCDC

from countersign.kernel.errors import Refused

SMALLEST, AVERAGE, LARGEST = 16 << 10, 64 << 10, 256 << 10
WINDOW_BYTES = 4 << 20
LEVEL = 3

_cutter = FastCDC(AVERAGE, min_size=SMALLEST, max_size=LARGEST)


class ChunkDamaged(Refused):
    """The stored bytes of a chunk are not the chunk."""

    status = 422
    code = "chunk_damaged"
    title = "Chunk damaged"
    resolution = "Process the artifact again; its stored chunks are then written anew."


def cut(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes of one file as chunks of 16 to 256 KiB, the last one shorter; none for an empty file.

    A file's cuts depend on its bytes alone, however they come in pieces. Memory: about twice WINDOW_BYTES.
    """
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= WINDOW_BYTES:
            yield from _taken(held, is_end=False)
    yield from _taken(held, is_end=True)


def _taken(held: bytearray, *, is_end: bool) -> Iterator[bytes]:
    """Take whole chunks off the front. Before the end a chunk that more bytes could lengthen stays."""
    whole = bytes(held)
    used = 0
    for found in _cutter.cut_buf(whole):
        stop = found.offset + found.length
        if not is_end and stop + LARGEST > len(whole):
            break
        yield whole[found.offset : stop]
        used = stop
    del held[:used]


def chunk_id(chunk: bytes) -> str:
    """The chunk's name: BLAKE3, in hexadecimal."""
    return blake3.blake3(chunk).hexdigest()


def compress(chunk: bytes) -> bytes:
    """One zstd frame that tells its size and carries no checksum: the chunk's name is one."""
    return zstd.compress(chunk, level=LEVEL)


def decompress(frame: bytes, size: int, wanted: str) -> bytes:
    """The chunk of that size and name.

    Raises:
        ChunkDamaged: the frame holds anything else; no more than `size` bytes are ever unpacked.
    """
    try:
        decompressor = zstd.ZstdDecompressor()
        chunk = decompressor.decompress(frame, max_length=size)
        is_whole = len(chunk) == size and (decompressor.eof or not decompressor.decompress(b"", max_length=1))
    except zstd.ZstdError as error:
        raise ChunkDamaged(f"the stored chunk {wanted} is damaged") from error
    if not is_whole or chunk_id(chunk) != wanted:
        raise ChunkDamaged(f"the stored chunk {wanted} is damaged")
    return chunk
