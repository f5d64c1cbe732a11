"""What access tells of itself to the audit, which lies above it: handed over in the transaction it happens in."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from countersign.kernel.database.port import Transaction


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing a person did: the command it counts as, the record it was done to, and what fields it set."""

    user_id: str
    command: str
    model: str
    record_id: str
    values: Mapping[str, object] = field(default_factory=dict[str, object])


Note: TypeAlias = Callable[[Transaction, Happening], Awaitable[None]]
"""Writes a happening down; whoever opens a transaction of its own calls it before the end."""
