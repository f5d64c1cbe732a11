"""The body of a request that carries a file's bytes: handed on in stretches, and told when the connection ended."""

from collections.abc import AsyncIterator

from countersign.kernel import clock
from countersign.kernel.http.request import ClientGone


class Body:
    """Bytes as they arrive. A cut connection ends them like any end, so that what came before it can be kept; `gone`
    holds it then."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._is_over = False
        self.gone: ClientGone | None = None

    async def has_more(self) -> bool:
        """Wait for more bytes; False at the end of the body or of the connection."""
        while not self._rest and not self._is_over:
            try:
                self._rest = await anext(self._chunks)
            except StopAsyncIteration:
                self._is_over = True
            except ClientGone as gone:
                self.gone, self._is_over = gone, True
        return bool(self._rest)

    async def stretch(self, limit: int, seconds: float) -> AsyncIterator[bytes]:
        """The next bytes: `limit` at most, and no more once the seconds have passed."""
        ends_s = clock.monotonic_s() + seconds
        while limit > 0 and await self.has_more():
            piece, self._rest = self._rest[:limit], self._rest[limit:]
            limit -= len(piece)
            yield piece
            if clock.monotonic_s() >= ends_s:
                return

    async def skip(self, count: int) -> bool:
        """Read that many bytes and let them go; False when the body ended before."""
        while count > 0 and await self.has_more():
            dropped = min(count, len(self._rest))
            self._rest = self._rest[dropped:]
            count -= dropped
        return count == 0
