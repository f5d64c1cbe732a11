"""The port mail leaves through: what sending promises, whichever way it takes."""

from typing import Protocol


class Mail(Protocol):
    """A way for messages out of the service."""

    async def send(self, to: str, subject: str, text: str) -> None:
        """Hand over one message; when this returns, a mail server or the disk has it.

        Raises:
            BadAddress: `to` is not exactly one address.
            Unavailable, StorageFull: the message was not taken.
        """
        ...

    async def check(self) -> None:
        """Find out whether a message would be taken, without sending one.

        Raises:
            Unavailable, StorageFull: it would not.
        """
        ...
