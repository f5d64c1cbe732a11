"""A server from its start to its stop: what is opened in each worker, what is told when it is ready."""

import os
import signal
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from countersign.cli import lifecycle, operating, output
from countersign.cli.lock import DataLock
from countersign.cli.output import Exit, Failure
from countersign.cli.place import Place, place_of
from countersign.cli.starting import Service
from countersign.declare import DeclarationError
from countersign.kernel import telemetry
from countersign.kernel.beside import beside
from countersign.kernel.database import moved
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused
from countersign.kernel.http import server
from countersign.kernel.http.deadlines import Deadlines
from countersign.kernel.http.notify import READY, notify
from countersign.kernel.http.operator import Watched
from countersign.kernel.http.server import ASGIApp, CannotListen, Listener, Server
from countersign.kernel.security.masterkey import master_key
from countersign.kernel.traces import open as traces
from countersign.settings import BadSetting, Settings

DOING = "cannot serve"
BROKEN = "the disk failed while a change was made durable"
LONGEST_WORDS = 16_384


@dataclass(frozen=True, slots=True)
class Wanted:
    """A service that was asked for, and its port; 0 takes a free one."""

    service: Service[Any]
    port: int


@dataclass(frozen=True, slots=True)
class Start:
    """How the services were asked to be started."""

    settings: Settings
    host: str
    wanted: tuple[Wanted, ...]
    workers: int
    is_demo: bool = field(kw_only=True)

    def places(self, listeners: Sequence[Listener]) -> list[Place]:
        """Where each service is, now that its listener has its port."""
        return [
            place_of(each.service.url(self.settings), self.host, listener.port)
            for each, listener in zip(self.wanted, listeners[: len(self.wanted)], strict=True)
        ]


class Words:
    """What the first worker has to say about signing in, on its way to the process that talks to the person.

    Workers are forked, so it goes through a pipe; it is small enough never to fill one.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self.are_told = False

    def tell(self, words: str) -> None:
        """Send the words; to be called once."""
        os.write(self._writing, words.encode()[:LONGEST_WORDS])

    def read(self) -> str:
        """The words. Workers that are forked after this know that they were told."""
        self.are_told = True
        return os.read(self._reading, LONGEST_WORDS).decode()


def run(start: Start, lock: DataLock) -> None:
    """Serve until SIGTERM or ctrl-C.

    Raises:
        Failure: the address cannot be had, the store cannot be opened, a module is declared wrongly, or the disk
            failed under a commit.
    """
    settings, words, mailboxes = start.settings, Words(), operating.Mailboxes(start.workers)
    own = operating.listeners(settings)
    broken: list[str] = []

    @asynccontextmanager
    async def application(index: int, listeners: Sequence[Listener]) -> AsyncGenerator[Sequence[ASGIApp]]:
        is_first = index == 0
        told: list[str] = []
        apps: list[ASGIApp] = []
        services: list[Watched] = []
        async with AsyncExitStack() as stack:
            stack.enter_context(traces.sending(settings.otlp_url))
            for each, place in zip(start.wanted, start.places(listeners), strict=True):
                context = await stack.enter_async_context(each.service.opened(settings, place))
                database = each.service.database(context)
                await stack.enter_async_context(_ended_when_broken(database, each.service.title, broken))
                if is_first and not words.are_told:
                    said = await each.service.prepare(context, start.is_demo)
                    head = f"Countersign {each.service.title} on {place.root_url} (data in {settings.data})"
                    told.append(f"{head}\n{said}")
                apps.append(await stack.enter_async_context(each.service.serving(context, is_first)))
                services.append(each.service.watched(context))
            apps += await stack.enter_async_context(operating.watching(settings, mailboxes, index, services))
            if told:
                words.tell("\n".join(told))
            yield apps

    def ready(listeners: Sequence[Listener]) -> None:
        places = start.places(listeners)
        addresses = {each.service.name: place.root_url for each, place in zip(start.wanted, places, strict=True)}
        lock.announce(addresses, [key.id for key in master_key(settings).keys])
        click.echo(words.read())
        for hint in _hints(start, places):
            output.note(f"  {hint}")
        operating.announce(own)
        click.echo("Stop with ctrl-C.")
        lifecycle.ready("serve", addresses=addresses, operator=[operating.url(each.host, each.port) for each in own])
        notify(READY)

    served = Server(
        application,
        [*(Listener(each.service.name, start.host, each.port) for each in start.wanted), *own],
        workers=start.workers,
        deadlines=_deadlines(settings),
        grace_s=settings.grace_s,
        on_ready=ready,
    )
    with closing(mailboxes):
        _serve(served, start)
    if broken:
        remedy = "Check the disk under the data directory, then start again: what was acknowledged is there."
        raise Failure("cannot go on", why=f"{BROKEN} ({', '.join(broken)})", remedy=remedy)


def _hints(start: Start, places: Sequence[Place]) -> Iterator[str]:
    for each, place in zip(start.wanted, places, strict=True):
        if not each.service.url(start.settings) and not place.is_loopback:
            yield f"Set {each.service.setting} to the https address that others use: links name it."
    data = start.settings.data
    if start.settings.database_url and moved.is_ambiguous(Path(data)):
        yield f"{data} also holds SQLite databases, which are not served: put them elsewhere,"
        yield "for a command that lacks COUNTERSIGN_DATABASE_URL works on them."


@asynccontextmanager
async def _ended_when_broken(database: Database, title: str, broken: list[str]) -> AsyncGenerator[None]:
    """While the block lasts: when the database can write no more, this process is stopped as by SIGTERM, and the title
    noted. One worker of several is replaced then."""

    async def watch() -> None:
        await database.broken.wait()
        broken.append(title)
        telemetry.logger("serve").error(f"{BROKEN}; the process ends, to begin anew with what is on it", service=title)
        os.kill(os.getpid(), signal.SIGTERM)

    async with beside(watch()):
        yield


def _deadlines(settings: Settings) -> Deadlines:
    return Deadlines(
        header_s=settings.header_deadline_s,
        idle_s=settings.idle_deadline_s,
        body_grace_s=settings.body_grace_s,
        body_bytes_s=settings.body_rate_kib_s * 1024,
    )


def _unheard(error: CannotListen, start: Start) -> Failure:
    """The failure of a service, or the operator, whose address cannot be had; it names what chooses that."""
    name = error.listener.name
    if name == operating.OPERATOR:
        whose, port, host = "the operator's port", "COUNTERSIGN_OPERATOR_PORT", "COUNTERSIGN_OPERATOR_HOST"
    else:
        whose, host = f"the service {name}", "--host"
        port = "--port" if len(start.wanted) == 1 else f"--{name}-port"
    if error.is_taken:
        remedy = f"Stop what listens there, or choose another port by {port}."
    else:
        remedy = f"Choose an address of this machine by {host}, or a port that this user may have by {port}."
    exit_code = Exit.CONFLICT if error.is_taken else Exit.USAGE
    return Failure(DOING, why=f"{whose}: {error}", remedy=remedy, exit_code=exit_code)


def _serve(wanted: Server, start: Start) -> None:
    try:
        if start.settings.otlp_url:
            traces.require(start.settings.otlp_url)
        server.run(wanted)
    except CannotListen as error:
        raise _unheard(error, start) from error
    except Refused as refused:
        raise output.refusal(DOING, refused) from refused
    except SchemaMismatch as error:
        raise Failure(DOING, why=str(error), exit_code=Exit.CONFLICT) from error
    except DeclarationError as error:
        remedy = "Correct the module, or leave it out of COUNTERSIGN_MODULES."
        raise Failure(DOING, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error
    except (BadSetting, ValueError) as error:
        remedy = "Correct it; `countersign config` explains every setting."
        raise Failure(DOING, why=str(error) or type(error).__name__, remedy=remedy, exit_code=Exit.USAGE) from error
