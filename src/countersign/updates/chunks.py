"""Content-defined chunking: versions share the chunks of their common content, and each chunk is stored once.

The method is FastCDC (Xia et al., USENIX ATC 2016) with normalised chunking. The name of a chunk is its BLAKE3 digest.
Each chunk is stored as one zstd frame (RFC 8878). The frame is encrypted with the chunk's name, because a pack that a
client may download for one build also contains chunks of other builds: only a client that knows a chunk's name can
read the chunk.
"""

import threading
from collections.abc import Generator, Iterator
from typing import TypeAlias

import blake3
from backports import zstd
from pyfastcdc import FastCDC

from countersign.kernel.errors import Refused
from countersign.kernel.security.encryption import decrypt_convergent, encrypt_convergent

MIN_BYTES, AVERAGE_BYTES, MAX_BYTES = 16 << 10, 64 << 10, 256 << 10
WINDOW_BYTES = 2 << 20
LEVEL = 1

Chunk: TypeAlias = bytes | memoryview

_thread_local = threading.local()
_cutter = FastCDC(AVERAGE_BYTES, min_size=MIN_BYTES, max_size=MAX_BYTES)


class ChunkDamaged(Refused):
    """The stored bytes of a chunk do not match its name or size."""

    status = 422
    code = "chunk_damaged"
    title = "Chunk damaged"
    resolution = "Process the artifact again. This writes its stored chunks again."


def cut(pieces: Iterator[bytes]) -> Iterator[Chunk]:
    """Cut the bytes of one file into chunks of 16 to 256 KiB. The last chunk can be shorter. An empty file has no
    chunks.

    The cuts depend only on the bytes of the file, not on the pieces. The chunks are views of a window of about
    WINDOW_BYTES and one piece. The window stays in memory while the caller keeps one of its chunks.
    """
    pending: list[bytes | memoryview] = []
    length = 0
    for piece in pieces:
        pending.append(piece)
        length += len(piece)
        if length >= WINDOW_BYTES:
            window = memoryview(b"".join(pending))
            used_bytes = yield from _cut(window, is_end=False)
            pending[:] = [window[used_bytes:]]
            length = len(window) - used_bytes
    yield from _cut(memoryview(b"".join(pending)), is_end=True)


def _cut(window: memoryview, *, is_end: bool) -> Generator[Chunk, None, int]:
    """Yield the complete chunks at the start of the window, and return the offset at which they end.

    Unless `is_end` is set, do not yield a last chunk that more bytes could extend.
    """
    used_bytes = 0
    for chunk_found in _cutter.cut_buf(window):
        stop = chunk_found.offset + chunk_found.length
        if not is_end and stop + MAX_BYTES > len(window):
            break
        yield window[chunk_found.offset : stop]
        used_bytes = stop
    return used_bytes


def chunk_id(chunk: Chunk) -> str:
    """Return the name of a chunk, its BLAKE3 digest in hexadecimal."""
    return blake3.blake3(chunk).hexdigest()


def compress(chunk: Chunk) -> bytes:
    """Compress a chunk to a zstd frame, and encrypt the frame with the chunk's name, which also serves as checksum.
    This function is thread-safe."""
    compressor = getattr(_thread_local, "compressor", None)
    if compressor is None:
        compressor = _thread_local.compressor = zstd.ZstdCompressor(level=LEVEL)
    return encrypt_convergent(
        compressor.compress(chunk, mode=zstd.ZstdCompressor.FLUSH_FRAME), chunk_id(chunk).encode()
    )


def decompress(frame: bytes, size: int, name: str) -> bytes:
    """Decompress the frame of the chunk with this name and this size in bytes. At most `size` bytes are decompressed.

    Raises:
        ChunkDamaged: the content of the frame does not match the name or the size.
    """
    try:
        decompressor = zstd.ZstdDecompressor()
        chunk = decompressor.decompress(decrypt_convergent(frame, name.encode()), max_length=size)
        is_whole = len(chunk) == size and (decompressor.eof or not decompressor.decompress(b"", max_length=1))
    except zstd.ZstdError as error:
        raise ChunkDamaged(f"the stored chunk {name} is damaged") from error
    if not is_whole or chunk_id(chunk) != name:
        raise ChunkDamaged(f"the stored chunk {name} is damaged")
    return chunk
