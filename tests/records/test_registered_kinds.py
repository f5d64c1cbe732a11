"""Kinds of fields that a module registers: they are read, stored, filtered, ordered, counted, masked, described, and
used in CSV."""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from countersign.declare import (
    EQUALITY,
    RANGES,
    BadValue,
    Field,
    Grant,
    Model,
    Module,
    Notation,
    Number,
    Stored,
    Text,
)
from countersign.declare.registry import Registry
from countersign.records import api_meta, base_models, json_schemas
from countersign.records.api_meta import Approvals
from countersign.records.commands.errors import BadInput
from countersign.records.schema.difference import desired_snapshot, steps_between
from countersign.records.schema.snapshot import EMPTY
from tests.records import inside
from tests.records.inside import InProcessService

_HOURS_AND_MINUTES = re.compile(r"([0-9]{1,4}):([0-5][0-9])", re.ASCII)


class Duration(Field):
    """A duration in hours and minutes, H:MM. It is stored as whole minutes, so that it is ordered as a number."""

    kind: ClassVar[str] = "duration"
    column: ClassVar[Any] = "BIGINT"
    operators: ClassVar[frozenset[str]] = EQUALITY | RANGES
    is_countable: ClassVar[bool] = True

    def read(self, value: object) -> Stored:
        """Return the minutes.

        Raises:
            BadValue: the value is not a text H:MM.
        """
        match = _HOURS_AND_MINUTES.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise BadValue("must be hours and minutes, H:MM")
        return int(match[1]) * 60 + int(match[2])

    def show(self, stored: Stored) -> object:
        """Return the duration as H:MM."""
        return f"{int(stored or 0) // 60}:{int(stored or 0) % 60:02d}"

    def read_cell(self, cell: str, notation: Notation) -> object:
        """Read H:MM, or hours with decimals as in a time sheet.

        Raises:
            BadValue: the hours are not a number.
        """
        if _HOURS_AND_MINUTES.fullmatch(cell):
            return cell
        try:
            return self.show(round(float(cell.replace(notation.decimal, ".")) * 60))
        except ValueError as error:
            raise BadValue("must be hours such as 1:30 or 1.5") from error

    def show_cell(self, value: object, notation: Notation) -> str | None:
        """Return the hours with decimals."""
        hours = int(self.read(value) or 0) / 60
        return f"{hours:g}".replace(".", notation.decimal)

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string H:MM."""
        return {"type": "string", "pattern": "^[0-9]{1,4}:[0-5][0-9]$"}


class Iban(Text):
    """A bank account number in capitals without spaces. It is text, so that it can be personal."""

    kind: ClassVar[str] = "iban"

    def formatted(self, text: str) -> str:
        """Return the number in capitals without spaces.

        Raises:
            BadValue: the text does not begin with a country code and check digits.
        """
        account = "".join(text.split()).upper()
        if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{8,30}", account):
            raise BadValue("must be an account number such as DE89 3704 0044 0532 0130 00")
        return account


class Shift(Model):
    """The hours of a person."""

    title = Text(required=True)
    worked = Duration(index=True)
    account = Iban(personal="IBAN")


KINDS = (Duration, Iban)
ACCOUNT = "DE89370400440532013000"


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service whose module registers the kinds."""
    async with inside.open_service(database_url, tmp_path, Shift, kinds=KINDS) as service:
        yield service


async def add(service: InProcessService, *worked: str) -> list[str]:
    """Create shifts with these durations, and return their ids."""
    root = service.administrator()
    return [(await service.value(root, "shift", "create", title="s", worked=text))["id"] for text in worked]


async def test_a_value_is_read_stored_and_shown(service: InProcessService) -> None:
    root = service.administrator()
    created_shift = await service.value(
        root, "shift", "create", title="s", worked="1:30", account="de89 3704 0044 0532 0130 00"
    )

    assert (created_shift["worked"], created_shift["account"]) == ("1:30", ACCOUNT)
    assert await service.rows('SELECT worked, account FROM "shift"') == [(90, ACCOUNT)]
    with pytest.raises(BadInput, match=r"shift\.worked must be hours and minutes"):
        await service.value(root, "shift", "update", id=created_shift["id"], worked=90)


async def test_values_are_filtered_ordered_and_counted(service: InProcessService) -> None:
    await add(service, "10:00", "2:00", "2:00")
    root = service.administrator()

    long_shifts = await service.value(root, "shift", "list", filter=[{"field": "worked", "op": "gt", "value": "2:00"}])
    ordered = await service.value(root, "shift", "list", order=[{"field": "worked"}])
    counts = await service.value(root, "shift", "count_by", field="worked")

    assert [shift["worked"] for shift in long_shifts] == ["10:00"]
    assert [shift["worked"] for shift in ordered] == ["2:00", "2:00", "10:00"]
    assert counts == [{"value": "2:00", "count": 2}, {"value": "10:00", "count": 1}]
    with pytest.raises(BadInput, match=r"op contains does not fit shift\.worked, a duration field"):
        await service.value(root, "shift", "list", filter=[{"field": "worked", "op": "contains", "value": "2"}])


async def test_csv_cells_use_the_notation_of_the_kind(service: InProcessService) -> None:
    root = service.administrator()
    text = "title;worked\r\na;1,5\r\nb;0:45\r\n"
    await service.value(root, "shift", "import", csv=text, decimal=",")

    exported = await service.value(
        root, "shift", "export", form="shown", fields=["title", "worked"], order=[{"field": "title"}], decimal=","
    )
    refused_import = await service.value(root, "shift", "import", csv="title,worked\nc,long\n", dry_run=True)

    assert exported["text"].splitlines() == ["Title,Worked", 'a,"1,5"', 'b,"0,75"']
    assert "shift.worked must be hours such as 1:30 or 1.5" in str(refused_import["errors"])


async def test_a_masked_caller_reads_and_sends_back_tokens(service: InProcessService) -> None:
    root = service.administrator()
    created_shift = await service.value(root, "shift", "create", title="a", account=ACCOUNT)
    second_shift = await service.value(root, "shift", "create", title="b")
    grant = Grant(model="shift", commands="*", clear=("title", "worked"), masked=("account",), write="*")
    person = await service.person(grant)

    token = (await service.value(person, "shift", "get", id=created_shift["id"]))["account"]
    await service.value(person, "shift", "update", id=second_shift["id"], account=token)

    assert re.fullmatch("IBAN_[0-9]+", token)
    assert (await service.value(root, "shift", "get", id=second_shift["id"]))["account"] == ACCOUNT
    with pytest.raises(BadInput, match="one placeholder token and nothing else"):
        await service.value(person, "shift", "update", id=second_shift["id"], account=f"X {token}")


async def test_a_registered_kind_is_described(service: InProcessService) -> None:
    root, approvals = service.administrator(), Approvals(frozenset(), frozenset(), frozenset())

    meta = api_meta.meta_document(root, service.service.records.registry, approvals)
    fields = next(model["fields"] for model in meta["models"] if model["name"] == "shift")
    schema = json_schemas.input_schema(root.view.models["shift"], "create")["properties"]

    assert [field["kind"] for field in fields] == ["text", "duration", "iban"]
    assert schema["worked"]["pattern"] == "^[0-9]{1,4}:[0-5][0-9]$"


def test_an_upgrade_from_number_keeps_the_values_only_if_the_new_kind_widens_number() -> None:
    class Minutes(Duration):
        kind: ClassVar[str] = "minutes"
        widens: ClassVar[frozenset[str]] = frozenset({"number"})

    def registry_with(worked: Field, *kinds: type[Field]) -> Registry:
        model = type("Shift", (Model,), {"title": Text(), "worked": worked})
        return Registry([base_models.MODULE, Module("trial", version="1", models=(model,), kinds=kinds)])

    snapshot_before = desired_snapshot(registry_with(Number()), EMPTY, "sqlite")
    for worked, is_destructive in ((Minutes(), False), (Duration(), True)):
        changed_registry = registry_with(worked, Minutes, Duration)
        steps = steps_between(
            snapshot_before,
            desired_snapshot(changed_registry, snapshot_before, "sqlite"),
            changed_registry.kinds.values(),
        )
        assert any(step.is_destructive for step in steps) is is_destructive
