"""What a workflow action's effect may do: read its record, write others, take the next number, in one transaction."""

from collections.abc import Mapping
from typing import Protocol


class Work(Protocol):
    """The hands of an effect. Values are JSON values as commands take them; everything commits with the action."""

    @property
    def record(self) -> Mapping[str, object]:
        """The record before the action, every field in clear, `id` included."""
        ...

    @property
    def today(self) -> str:
        """The present day, YYYY-MM-DD in UTC."""
        ...

    async def change(self, **values: object) -> None:
        """Set fields of the record, also ones that are readonly to callers."""
        ...

    async def create(self, model: str, /, **values: object) -> str:
        """Make a record; its id.

        Raises:
            Refused: a value does not fit, or a ref leads nowhere.
        """
        ...

    async def find(self, model: str, /, **values: object) -> str | None:
        """The id of a record with exactly these values, or None."""
        ...

    async def read(self, model: str, record_id: str, /, *, locks: bool = True) -> Mapping[str, object] | None:
        """The record of that id, every field in clear, `id` included; None if it does not exist.

        With `locks`, nobody changes it until the action ends; without, the action waits for nobody.
        """
        ...

    async def setting(self, name: str, /) -> str:
        """The value of a setting that a module declares: the stored one, or the default.

        Raises:
            LookupError: no module declares it.
        """
        ...

    async def count(self, model: str, /, **values: object) -> int:
        """How many records have exactly these values."""
        ...

    async def next_number(self, sequence: str) -> int:
        """The next number of the sequence, from 1: without gaps, since it is given back when the action fails.

        Call the sequence <model>-<prefix> where the record's number is written <prefix>-<n>: it goes on after the
        numbers of records that an import restores.
        """
        ...

    def refuse(self, reason: str) -> None:
        """End the action; nothing of it is kept and the caller reads the reason.

        Raises:
            Refused: always.
        """
        ...
