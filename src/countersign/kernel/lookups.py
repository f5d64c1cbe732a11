"""Looking up names, each in a thread of its own: one whose servers never answer holds up no other name, no stop of the
process, and nothing else that waits for a thread."""

import asyncio
import socket
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TypeAlias

MAX_LOOKUPS = 128
"""Names that are looked up at a time. Asked for again meanwhile, a name is not looked up twice."""

_Name: TypeAlias = tuple[str, int]

_under_way: dict[_Name, "Future[list[str]]"] = {}
_changing = Lock()


async def addresses(host: str, port: int) -> list[str]:
    """The addresses of a host that take TCP, in the order of the system's choice, each once.

    Whoever stops waiting leaves the lookup to the others who wait: the system cannot be made to end it.

    Raises:
        OSError: there are none, or too many names are being looked up.
        UnicodeError: it is no name.
    """
    name = (host, port)
    with _changing:
        found = _under_way.get(name)
        if found is None:
            if len(_under_way) >= MAX_LOOKUPS:
                raise OSError(f"{MAX_LOOKUPS} names are being looked up already")
            found = _under_way[name] = Future()
            # From now on nobody who stops waiting ends it for the others.
            found.set_running_or_notify_cancel()
            Thread(target=_look_up, args=(name, found), name="lookup", daemon=True).start()
    return await asyncio.wrap_future(found)


def _look_up(name: _Name, found: "Future[list[str]]") -> None:
    host, port = name
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        _end(name)
        found.set_exception(error)
    else:
        _end(name)
        found.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))


def _end(name: _Name) -> None:
    with _changing:
        del _under_way[name]
