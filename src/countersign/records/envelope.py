"""The envelope of a command that was carried out, and a whole list in it, made piece by piece."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from countersign.kernel.http.response import encode
from countersign.records.commands import list_search
from countersign.records.commands.run import Body, Run


class Envelope(msgspec.Struct):
    """The answer of a command that was carried out (API document, Command envelope)."""

    denied: tuple[str, ...]
    value: object


def is_whole_list(command: str, body: Body) -> bool:
    """Whether a list of every visible record is asked for, which may be longer than memory."""
    return command == "list" and "limit" not in body


def whole_list(run: Run, model: str, body: Body) -> AsyncGenerator[bytes]:
    """The envelope of every visible record, from one snapshot, in constant memory.

    Raises:
        BadInput: the query is refused; raised by the call, before the first piece is made.
    """
    asked = list_search.read_query(run, model, "list", body)
    list_search.statement(run, model, asked)
    denied = run.view_of(model).denied

    async def pieces() -> AsyncGenerator[bytes]:
        yield b'{"denied":%b,"value":[' % encode(denied)
        separator = b""
        async with aclosing(list_search.stream(run, model, asked)) as found:
            async for records in found:
                yield separator + encode(records)[1:-1]
                separator = b","
        yield b"]}"

    return pieces()
