"""Chunks as the network gives them, evened out for the disk and the bucket."""

from collections.abc import AsyncGenerator, AsyncIterator

from countersign.kernel.blobs.layout import PIECE_BYTES


async def in_pieces(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes | bytearray, None]:
    """The same bytes in pieces of about PIECE_BYTES, or as large as they came."""
    piece = bytearray()
    async for chunk in chunks:
        if not piece and len(chunk) >= PIECE_BYTES:
            yield chunk
            continue
        piece += chunk
        if len(piece) >= PIECE_BYTES:
            yield piece
            piece = bytearray()
    if piece:
        yield piece
