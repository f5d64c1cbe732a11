"""A TCP proxy that cuts the connection once, after a given number of bytes in one direction."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE_BYTES = 16 << 10


class Cutter:
    """Passes connections on to a loopback port, and cuts the one that carries byte number `after`.

    Bytes are counted over all connections. `cuts` tells how many were cut; further ones are passed on whole.
    """

    def __init__(self, port: int, *, up_after: int | None = None, down_after: int | None = None) -> None:
        self._to = port
        self._left = {"up": up_after, "down": down_after}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.cuts = 0
        self.passed = {"up": 0, "down": 0}

    @property
    def url(self) -> str:
        """The address that clients use instead of the server's."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> None:
        """Take connections until the proxy is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                for direction, source, sink in (("up", client, server), ("down", server, client)):
                    thread = threading.Thread(target=self._pass, args=(direction, source, sink), daemon=True)
                    thread.start()
                    self._threads.append(thread)

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _pass(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                if self._is_cut(direction, len(piece)):
                    for end in (source, sink):
                        end.shutdown(socket.SHUT_RDWR)
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
def cutting(port: int, *, up_after: int | None = None, down_after: int | None = None) -> Iterator[Cutter]:
    """A proxy to the loopback port for the length of the block."""
    cutter = Cutter(port, up_after=up_after, down_after=down_after)
    thread = threading.Thread(target=cutter.accept, daemon=True)
    thread.start()
    try:
        yield cutter
    finally:
        cutter.close()
        thread.join()
