"""A TCP proxy that cuts or stalls one connection after a given number of bytes in one direction."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE_BYTES = 16 << 10


class CuttingProxy:
    """Forwards connections to a loopback port. After `up_after` bytes to the server or `down_after` bytes to the
    client, counted over all connections, it cuts the connection.

    With `stalls`, the proxy stalls the connection until the proxy is closed, instead of cutting it. After a cut, the
    receiver cannot read the bytes that it has not read yet; during a stall, it can. `cut_count` is the number of
    connections that were cut or stalled. Later connections are forwarded completely.
    """

    def __init__(
        self, port: int, *, up_after: int | None = None, down_after: int | None = None, stalls: bool = False
    ) -> None:
        self._stalls = stalls
        self._closed = threading.Event()
        self._to = port
        self._left = {"up": up_after, "down": down_after}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.cut_count = 0
        self.passed_bytes = {"up": 0, "down": 0}
        self._accepting = threading.Thread(target=self.accept)
        self._accepting.start()

    @property
    def url(self) -> str:
        """The address that clients use instead of the address of the server."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> None:
        """Accept connections until the proxy is closed."""
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
        """Accept no more connections, and end the open connections."""
        self._closed.set()
        _shut(self._listener)
        self._accepting.join()
        for connection in self._sockets:
            _shut(connection)
        for thread in self._threads:
            thread.join()
        for open_socket in (self._listener, *self._sockets):
            open_socket.close()

    def _pass(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                if self._is_cut(direction, len(piece)):
                    if self._stalls:
                        self._closed.wait()
                    else:
                        _cut(source)
                        _cut(sink)
                    return
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def _is_cut(self, direction: str, count: int) -> bool:
        with self._lock:
            self.passed_bytes[direction] += count
            bytes_left = self._left[direction]
            if bytes_left is None:
                return False
            self._left[direction] = bytes_left - count if bytes_left > count else None
            if bytes_left > count:
                return False
            self.cut_count += 1
            return True


@contextmanager
def cutting_proxy(
    port: int, *, up_after: int | None = None, down_after: int | None = None, stalls: bool = False
) -> Iterator[CuttingProxy]:
    """Run a proxy to the loopback port until the block ends."""
    cutter = CuttingProxy(port, up_after=up_after, down_after=down_after, stalls=stalls)
    try:
        yield cutter
    finally:
        cutter.close()


def _cut(open_socket: socket.socket) -> None:
    """Reset the connection, as if the line was broken. If the socket was not closed, the sender would continue until
    its buffers are full, and then wait."""
    _shut(open_socket)
    with suppress(OSError):
        open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    open_socket.close()


def _shut(open_socket: socket.socket) -> None:
    """Shut down a socket, even if the other end has closed the connection already."""
    with suppress(OSError):
        open_socket.shutdown(socket.SHUT_RDWR)
