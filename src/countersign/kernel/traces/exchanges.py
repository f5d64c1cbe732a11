"""Exchanges with a collector that end when their time is over, however slowly it takes, answers or drips; imported only
when one is configured.

The timeouts of requests hold for each piece that arrives, so that a byte a second is never late.
"""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol, Self, cast

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool


def session() -> requests.Session:
    """Takes an answer's status and header and never its body, which may be endless and tells nothing that is needed. It
    is used within `limited` alone."""
    made = requests.Session()
    made.stream = True
    made.hooks["response"] = [_left]
    for scheme in ("http://", "https://"):
        made.mount(scheme, _Watched())
    return made


@contextmanager
def limited(own: requests.Session, limit_s: float) -> Generator[None]:
    """While the block lasts the session may be used, by this thread, with connections that end with it; when it has
    lasted for so long they are cut off."""
    with _Cutting(limit_s) as cutting:
        token = _UNDER_WAY.set(cutting)
        try:
            yield
        finally:
            _UNDER_WAY.reset(token)
            own.close()


def _left(answer: requests.Response, *_: object, **__: object) -> None:
    answer.close()


class _Cutting:
    """Shuts the connections that were made in the block once it lasts too long. It does so by descriptors of its own,
    for those of a connection change hands where TLS begins."""

    def __init__(self, limit_s: float) -> None:
        self._made: list[socket.socket] = []
        self._is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(limit_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for each in self._made:
                each.close()
            self._made.clear()

    def note(self, made: socket.socket) -> None:
        """A connection was made.

        Raises:
            TimeoutError: too late.
        """
        with self._lock:
            if self._is_over:
                made.close()
                raise TimeoutError("the collector took too long to be reached")
            self._made.append(made.dup())

    def _cut(self) -> None:
        with self._lock:
            self._is_over = True
            for each in self._made:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


_UNDER_WAY: ContextVar[_Cutting] = ContextVar("exchange")


class _Plain(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        _UNDER_WAY.get().note(made)
        return made


class _Secure(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        _UNDER_WAY.get().note(made)
        return made


class _Pool(Protocol):
    ConnectionCls: type[HTTPConnection]


class _Watched(HTTPAdapter):
    """Makes connections that the exchange under way may cut off."""

    def get_connection_with_tls_context(
        self,
        request: requests.PreparedRequest,
        verify: bool | str,
        proxies: dict[str, str] | None = None,
        cert: str | tuple[str, str] | None = None,
    ) -> HTTPConnectionPool:
        pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
        cast(_Pool, pool).ConnectionCls = _Secure if pool.scheme == "https" else _Plain
        return pool
