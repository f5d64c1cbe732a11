"""What a pull needs of the store, over HTTP: places, deltas, and ranges of bytes that go on after a cut."""

from collections.abc import Iterator
from urllib.parse import urlencode

from countersign.cli import connection
from countersign.cli.connection import Server, segment
from countersign.cli.output import Exit, Failure
from countersign.cli.transport import Response, Unreachable, read
from countersign.updates.api_types import BEGINS_HEADER, ChunkPlaces, DeltaOffer

ATTEMPTS = 8
PIECE_BYTES = 256 << 10


class Supply:
    """One build of one release at a store."""

    def __init__(self, server: Server, product: str, version: str, platform: str, doing: str) -> None:
        self._server = server
        self._path = f"/products/{segment(product)}/releases/{segment(version)}"
        self._platform = platform
        self._doing = doing
        self._given: list[str] = []
        """Addresses as they were first given; `_fresh` has the ones that work now, in the same order."""
        self._fresh: list[str] = []
        self._from = ""

    def places(self, *, begins: bool) -> ChunkPlaces:
        """Where the chunks lie; the store counts one that `begins`.

        Raises:
            Failure: refused or unreachable.
        """
        found = self._places({BEGINS_HEADER: "1"} if begins else {})
        self._given = self._fresh = _addresses(found, None)
        return found

    def offer(self, version: str) -> DeltaOffer | None:
        """Deltas from that version; None where the store does not have it any more.

        Raises:
            Failure: refused or unreachable.
        """
        found = self._offer(version)
        self._from = version
        self._given = self._fresh = [*self._given, *_addresses(None, found)]
        return found

    def read(self, url: str, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of the range, asked for again from where a connection was cut.

        Raises:
            Failure: refused, or the server stays away.
        """
        done = failures = 0
        while done < length:
            before = done
            try:
                with self._ask(url, offset + done, offset + length) as response:
                    while piece := read(response, min(PIECE_BYTES, length - done)):
                        done += len(piece)
                        yield piece
                if done < length:
                    raise Unreachable("the connection ended in the middle")
            except Unreachable as error:
                failures = 1 if done > before else failures + 1
                if failures == ATTEMPTS:
                    raise self._server.unreachable(self._doing, str(error)) from error
                connection.wait(connection.pause_s(failures))

    def _ask(self, url: str, start: int, end: int) -> Response:
        """The answer that brings the range. An address that has run out is asked for once more."""
        try:
            return self._stream(self._current(url), start, end)
        except Failure as error:
            if error.exit_code not in (Exit.REFUSED, Exit.NOT_FOUND, Exit.CONFLICT) or url not in self._given:
                raise
        offer = self._offer(self._from) if self._from else None
        self._fresh = _addresses(self._places(), offer)
        return self._stream(self._current(url), start, end)

    def _stream(self, url: str, start: int, end: int) -> Response:
        headers = {"Range": f"bytes={start}-{end - 1}"}
        response = self._server.stream(self._server.reached(url), headers, self._doing)
        begins = (response.getheader("Content-Range") or "").startswith(f"bytes {start}-")
        if response.status == 206 and begins:
            return response
        if response.status == 200 and start == 0:
            return response
        response.close()
        why = f"the server does not give the bytes from {start} on"
        raise Failure(self._doing, why=why, remedy="Try again.", exit_code=Exit.CHECKSUM)

    def _current(self, url: str) -> str:
        place = self._given.index(url) if url in self._given else -1
        return self._fresh[place] if 0 <= place < len(self._fresh) else url

    def _places(self, headers: dict[str, str] | None = None) -> ChunkPlaces:
        return self._server.get(f"{self._path}/chunks{self._query()}", ChunkPlaces, self._doing, headers)

    def _offer(self, version: str) -> DeltaOffer | None:
        query = self._query({"from": version})
        try:
            return self._server.get(f"{self._path}/delta{query}", DeltaOffer, self._doing)
        except Failure as error:
            if error.exit_code in (Exit.NOT_FOUND, Exit.REFUSED):
                return None
            raise

    def _query(self, more: dict[str, str] | None = None) -> str:
        given = {**(more or {}), **({"platform": self._platform} if self._platform else {})}
        return f"?{urlencode(given)}" if given else ""


def _addresses(places: ChunkPlaces | None, offer: DeltaOffer | None) -> list[str]:
    """Every address, in an order that stays the same while nothing is processed anew."""
    of_places = [*(pack.url for pack in places.packs), places.artifact_url] if places else []
    return [*of_places, *(delta.url for delta in offer.deltas)] if offer else of_places
