"""Serves one contender until SIGTERM: `python -m contenders JSON`. `Wanted` describes the JSON."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import uvicorn

from contenders.wanted import Wanted
from countersign.kernel.http import server
from countersign.kernel.http.server import ASGIApp, Listener, Program, Server, Worker


@asynccontextmanager
async def _application(config: Wanted) -> AsyncGenerator[ASGIApp]:
    # Imported when chosen, so that no contender carries another's modules in its memory.
    if config.contender == "bare":
        from contenders import bare

        yield bare.create(config)
    elif config.contender.startswith("records"):
        from contenders import records

        async with records.opened(config) as application:
            yield application
    elif config.contender.startswith("connected"):
        from contenders import connected

        async with connected.opened(config) as application:
            yield application
    elif config.contender == "fastmcp":
        from contenders import fast

        async with fast.opened(config) as application:
            yield application
    elif config.contender.startswith("floor"):
        from contenders import floor

        async with floor.opened(config) as application:
            yield application
    else:
        from contenders import ours

        async with ours.opened(config) as application:
            yield application


def main() -> None:
    """Serve the contender. The peer runs as its authors recommend, and every other contender on the product's own
    server."""
    config = msgspec.json.decode(sys.argv[1], type=Wanted)
    if config.contender == "peer":
        from contenders import peer

        uvicorn.run(
            peer.create(config),
            port=config.port,
            loop="uvloop",
            http="httptools",
            access_log=False,
            log_level="warning",
        )
        return

    @asynccontextmanager
    async def application(_worker: Worker, _listener: Listener) -> AsyncGenerator[ASGIApp]:
        async with _application(config) as bound_application:
            yield bound_application

    server.run(Server([Program(application, Listener("bench", "127.0.0.1", config.port))]))


main()
