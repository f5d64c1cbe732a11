"""A TCP proxy that cuts or holds a connection once, after a given number of bytes in one direction."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE_BYTES = 16 << 10


class Cutter:
    """Passes connections on to a loopback port, and cuts the one that carries byte number `after`; with `holds` it
    stands still there instead, until the proxy is closed. A cut loses what the receiver has not read yet; after a hold
    the receiver still reads it.

    Bytes are counted over all connections. `cuts` tells how many were cut; further ones are passed on whole.
    """

    def __init__(
        self, port: int, *, up_after: int | None = None, down_after: int | None = None, holds: bool = False
    ) -> None:
        self._holds = holds
        self._closed = threading.Event()
        self._to = port
        self._left = {"up": up_after, "down": down_after}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.cuts = 0
        self.passed = {"up": 0, "down": 0}
        self._accepting = threading.Thread(target=self.accept)
        self._accepting.start()

    @property
    def url(self) -> str:
        """The address that clients use instead of the server's."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> None:
        """Take connections until the proxy is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets.append(server)
                for direction, source, sink in (("up", client, server), ("down", server, client)):
                    thread = threading.Thread(target=self._pass, args=(direction, source, sink))
                    thread.start()
                    self._threads.append(thread)

    def close(self) -> None:
        """Take no more connections, and end those there are."""
        self._closed.set()
        _shut(self._listener)
        self._accepting.join()
        for each in self._sockets:
            _shut(each)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()

    def _pass(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                if self._is_cut(direction, len(piece)):
                    if self._holds:
                        self._closed.wait()
                    else:
                        _cut(source)
                        _cut(sink)
                    return
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def _is_cut(self, direction: str, count: int) -> bool:
        with self._lock:
            self.passed[direction] += count
            left = self._left[direction]
            if left is None:
                return False
            self._left[direction] = left - count if left > count else None
            if left > count:
                return False
            self.cuts += 1
            return True


@contextmanager
def cutting(
    port: int, *, up_after: int | None = None, down_after: int | None = None, holds: bool = False
) -> Iterator[Cutter]:
    """A proxy to the loopback port for the length of the block."""
    cutter = Cutter(port, up_after=up_after, down_after=down_after, holds=holds)
    try:
        yield cutter
    finally:
        cutter.close()


def _cut(each: socket.socket) -> None:
    """End it like a broken line: without closing it, its sender would go on until the buffers are full, and wait."""
    _shut(each)
    with suppress(OSError):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    each.close()


def _shut(each: socket.socket) -> None:
    """End a socket's conversation, also when the other end did so first."""
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
