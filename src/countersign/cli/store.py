"""The store of a data directory, opened for one piece of administration."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, output
from countersign.cli.output import Exit, Failure
from countersign.cli.target import DEFAULT_SERVER
from countersign.distribution import app
from countersign.distribution.context import Store
from countersign.kernel.errors import Refused
from countersign.settings import BadSetting, Settings

ResultT = TypeVar("ResultT")

LOCK = "serve.lock"


def run(data: str | None, doing: str, work: Callable[[Store], Awaitable[ResultT]]) -> ResultT:
    """What the work makes of the store in the data directory (None: the configured one), beside a running server.

    Raises:
        Failure: a setting cannot be used, the store cannot be opened, or the work was refused.
    """
    settings = configuration.load(data=data)

    async def open_and_work() -> ResultT:
        async with app.opened(settings, root_url(settings), is_loopback=True) as store:
            return await work(store)

    return settled(open_and_work(), doing)


def settled(work: Coroutine[Any, Any, ResultT], doing: str) -> ResultT:
    """The result of the work; refusals become the failure of a command.

    Raises:
        Failure: the work was refused, or a setting cannot be used.
    """
    try:
        return asyncio.run(work)
    except Refused as refused:
        exit_code = output.exit_of(refused.status, refused.code)
        raise Failure(
            doing, why=refused.detail, remedy=refused.remedy, exit_code=exit_code, problem=refused.code
        ) from refused
    except BadSetting as error:
        remedy = "Correct it; `countersign config` explains every setting."
        raise Failure(doing, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error


def root_url(settings: Settings) -> str:
    """The store's public address: the configured one, else where it was last served, else the default."""
    if settings.distribution_url:
        return settings.distribution_url.rstrip("/")
    try:
        served: object = json.loads((Path(settings.data) / LOCK).read_text())["distribution"]
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT_SERVER
    return served if isinstance(served, str) and urlsplit(served).hostname else DEFAULT_SERVER
