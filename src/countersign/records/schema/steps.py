"""What an upgrade consists of: steps, each a sentence for people, the statements it takes and the work on old rows."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from countersign.records.schema.snapshot import Snapshot

Kind: TypeAlias = Literal["default", "made", "folded", "value", "options", "release"]


@dataclass(frozen=True, slots=True)
class Work:
    """What is done to the rows of a table, in batches, each a transaction.

    default  gives the field its default where it is empty
    made     computes a computed field or a total
    folded   makes the folded copies of a text
    value    gives each value of a personal field its id in the vault
    options  takes `options`, which there are no longer, out of a select: its default comes in their place
    release  gives up the value ids of a personal field

    `is_there` tells whether the field's column was there when the upgrade was planned.
    """

    kind: Kind
    table: str
    field: str
    options: tuple[str, ...] = ()
    is_there: bool = True


class Unique(NamedTuple):
    """A column that is to be unique: no two rows may have the same value. `is_there` as for `Work`."""

    table: str
    column: str
    is_there: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One change: first its work, then its statements in one transaction with writing down what is installed after it.

    A step that takes options out of a select is destructive only when rows hold one (`checks`).
    """

    sentence: str
    statements: tuple[str, ...]
    after: Snapshot
    is_destructive: bool = False
    work: Work | None = None
    unique: Unique | None = None
