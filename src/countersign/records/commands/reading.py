"""The one read gate: which columns a caller's view selects, and how their rows become what it is sent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from countersign.declare import Field
from countersign.declare.fields.field import Stored
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.records.access.view import Domain, ModelView, View
from countersign.records.commands.conditions import Scope
from countersign.records.commands.sql import Parameters, column
from countersign.records.schema.snapshot import ALIASED

Record: TypeAlias = msgspec.Struct
"""One record as JSON shows it: a struct whose members are `id`, `revision` and the fields of the view."""


LONG_KINDS = frozenset({"longtext", "structure"})


class Masks(Protocol):
    """What turns value ids into one caller's placeholder tokens, and back."""

    def tokens(self, ids: Sequence[int]) -> list[int]:
        """The numbers of the tokens of the value ids, in their order."""
        ...

    def value_id(self, number: int) -> int:
        """The value id that a token's number (below 2^48) would be made from."""
        ...


class Kept(NamedTuple):
    """The statement that reads one record, as it is on one day (since 1970): its text, and its values but the id."""

    day: int
    text: str
    values: list[Value]


class Reading:
    """How the records of one model are read for one view: made once per view and engine, used for every answer."""

    def __init__(
        self, view: View, model_view: ModelView, dialect: Dialect, bits: Mapping[str, int], domain: Domain | None
    ) -> None:
        model = model_view.model
        self.view = model_view
        self._whole = view
        self._dialect: Dialect = dialect
        self._domain = domain
        self._bits = bits
        self.names = ("id", "revision", *model_view.fields)
        self.kept: Kept | None = None
        self.shape: Any = _shape(model.name, self.names)
        places = [(place, model.fields[name]) for place, name in enumerate(model_view.fields, 2)]
        self._masked = tuple((place, field) for place, field in places if model_view.fields[field.name] == "masked")
        clear = [each for each in places if each not in self._masked]
        self._shown = _shown(clear)
        self.texts = tuple(place for place, field in clear if field.is_folded)
        self.structures = tuple((place, field.name) for place, field in places if field.kind == "structure")
        self.has_long_texts = _has_long_texts(model_view)

    @property
    def is_plain(self) -> bool:
        """Whether rows are sent as the database gives them."""
        return not (self._masked or self._shown or self.structures)

    def columns(self, scope: Scope) -> list[str]:
        """The expressions to select, in the order of `names`."""
        return [f"{scope.alias}.id", self.revision(scope), *self._expressions(scope)]

    def revision(self, scope: Scope) -> str:
        """The record's revision, counting the changes the caller can see."""
        alias = scope.alias
        hidden = sum(1 << bit for name, bit in self._bits.items() if name not in self.view.fields)
        if not hidden:
            return f"{alias}.revision"
        seen = sum(1 << bit for name, bit in self._bits.items() if name in self.view.fields)
        # Most records never had a hidden change; the others' visible ones are counted.
        return (
            f"CASE WHEN {alias}.changed & {hidden} = 0 THEN {alias}.revision ELSE 1 + (SELECT count(*) "
            f"FROM record_change AS change WHERE change.model = '{self.view.model.name}' "
            f"AND change.record_id = {alias}.id AND change.fields & {seen} <> 0) END"
        )

    def _expressions(self, scope: Scope) -> Iterable[str]:
        for name, sight in self.view.fields.items():
            field = self.view.model.fields[name]
            yield scope.value_of(field) if sight == "clear" else self._value_id(scope, field)

    def _value_id(self, scope: Scope, field: Field) -> str:
        canonical = column(scope.alias, f"{field.name}__value")
        if self._domain is None or not field.linked:
            return canonical
        domain = scope.parameters.put(self._domain.id)
        # Most records never had an alias, and say so in their own row: nothing has to be looked up for them.
        return (
            f"CASE WHEN {scope.alias}.changed < {ALIASED} THEN {canonical} ELSE "
            f"coalesce((SELECT alias.value_id FROM pii_alias AS alias WHERE alias.model = '{self.view.model.name}' "
            f"AND alias.record_id = {scope.alias}.id AND alias.field = '{field.name}' "
            f"AND alias.domain_id = {domain}), {canonical}) END"
        )

    def scope(self, parameters: Parameters) -> Scope:
        """The model's table in a statement for this view."""
        return Scope(self._dialect, parameters, "t", self._whole)

    def values(self, rows: Sequence[Row], masks: Masks | None) -> list[list[Any]]:
        """The rows with every value as it is shown, placeholder tokens in place of masked ones."""
        shown = [list(row) for row in rows]
        for place, show in self._shown:
            for values in shown:
                if values[place] is not None:
                    values[place] = show(values[place])
        if self._masked:
            if masks is None:
                raise LookupError("masked fields need a token domain")
            _mask(shown, self._masked, masks)
        for place, _ in self.structures:
            for values in shown:
                if values[place] is not None:
                    values[place] = msgspec.Raw(values[place].encode())
        return shown

    def records(self, rows: Sequence[Row], masks: Masks | None = None) -> list[Record]:
        """The rows as records ready to be encoded."""
        shape = self.shape
        if self.is_plain:
            return [shape(*row) for row in rows]
        return [shape(*values) for values in self.values(rows, masks)]


def _has_long_texts(view: ModelView) -> bool:
    return any(view.model.fields[name].kind in LONG_KINDS for name in view.fields)


def _shown(places: Iterable[tuple[int, Field]]) -> tuple[tuple[int, Callable[[Stored], object]], ...]:
    """Where in a row a stored value has to be turned into what JSON shows, and how."""
    return tuple((place, field.show) for place, field in places if not field.shows_as_stored)


def _mask(rows: list[list[Any]], masked: tuple[tuple[int, Field], ...], masks: Masks) -> None:
    """Put tokens for value ids, all of a page in one go."""
    filled = [(place, field.personal, [each for each in rows if each[place] is not None]) for place, field in masked]
    numbers = iter(masks.tokens([each[place] for place, _, holders in filled for each in holders]))
    for place, label, holders in filled:
        for each, number in zip(holders, numbers, strict=False):
            each[place] = f"{label}_{number}"


@lru_cache(maxsize=4096)
def _shape(name: str, members: tuple[str, ...]) -> type[msgspec.Struct]:
    """A struct with these members; made once, since making one compiles code."""
    return msgspec.defstruct(
        name,
        [(f"m{place}", object) for place in range(len(members))],
        rename=dict((f"m{place}", member) for place, member in enumerate(members)),
        frozen=True,
        gc=False,
    )
