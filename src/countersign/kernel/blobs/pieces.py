"""Chunks as the network gives them, evened out for the disk and the bucket."""

from collections.abc import AsyncGenerator, AsyncIterator

from countersign.kernel.blobs.layout import PIECE_BYTES


async def in_pieces(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytearray, None]:
    """The same bytes in pieces of about PIECE_BYTES; each piece is the receiver's own."""
    piece = bytearray()
    async for chunk in chunks:
        piece += chunk
        if len(piece) >= PIECE_BYTES:
            yield piece
            piece = bytearray()
    if piece:
        yield piece
