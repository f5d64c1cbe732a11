"""What `serve` needs to know of a service: how it is opened, prepared, explained and served."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from countersign.cli.place import Place
from countersign.kernel.database.port import Database
from countersign.kernel.http.management import ServiceChecks
from countersign.kernel.http.server import ASGIApp
from countersign.settings import Settings

ContextT = TypeVar("ContextT")


@dataclass(frozen=True, slots=True)
class Service(Generic[ContextT]):
    """One of the platform's services.

    name      what the command line calls it, and the lock file
    title     what people read: "store"
    url       its configured public address, or empty
    opened    its context at a place, brought up to date, until the block is left
    database  the context's
    prepare   once, in the first worker: fill with the demonstration where asked for; what to tell about signing in
    serving   its application; the one worker that `tends` also removes what has expired
    watched   its checks and numbers, for the operator
    """

    name: str
    title: str
    setting: str
    url: Callable[[Settings], str]
    opened: Callable[[Settings, Place], AbstractAsyncContextManager[ContextT]]
    database: Callable[[ContextT], Database]
    prepare: Callable[[ContextT, bool], Awaitable[str]]
    serving: Callable[[ContextT, bool], AbstractAsyncContextManager[ASGIApp]]
    watched: Callable[[ContextT], ServiceChecks]
