"""An upgrade from any models gives the same schema as an installation in an empty database."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from countersign.backup import schema_validation
from countersign.backup.schema_description import describe_schema
from countersign.declare import Bool, Date, Field, LongText, Model, Number, Ref, Select, Text
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.records.schema.install import MIGRATIONS, installed, tables
from countersign.records.schema.snapshot import Column, ModelTable
from tests.figures import Figures
from tests.records.schema.conftest import column_of, model, put, upgrade

FIELDS: Mapping[str, Callable[[], Field]] = {
    "text": Text,
    "indexed text": lambda: Text(index=True),
    "unique text": lambda: Text(unique=True),
    "address": lambda: Text(personal="EMAIL"),
    "indexed address": lambda: Text(personal="EMAIL", index=True, linked=False),
    "phone": lambda: Text(personal="PHONE", required=True, default="1"),
    "long text": LongText,
    "notes": lambda: LongText(personal="NOTES"),
    "number": lambda: Number(index=True),
    "unique number": lambda: Number(unique=True),
    "flag": lambda: Bool(required=True, default=True),
    "select": lambda: Select("a", "b", index=True),
    "turned select": lambda: Select("b", "a", index=True),
    "short select": lambda: Select("a", required=True, default="a"),
    "day": lambda: Date(index=True),
    "ref to one": lambda: Ref("one"),
    "ref to two": lambda: Ref("two"),
}
VALUES: Mapping[str, int | str | None] = {"number": 1, "bool": 1, "select": "b", "date": "2026-01-01", "ref": None}

Declared = dict[str, dict[str, str]]
NAMES = ("one", "two", "three")
SEQUENCES = st.lists(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.dictionaries(st.sampled_from(("a", "b", "c", "d")), st.sampled_from(sorted(FIELDS)), min_size=1),
    ),
    min_size=2,
    max_size=5,
)
_numbers = count(1)


def models(declared: Declared) -> list[type[Model]]:
    """Return the models. A ref to a model that is not among them becomes a text."""
    return [
        model(
            name,
            **{
                field: Text() if kind.startswith("ref") and kind.split()[-1] not in declared else FIELDS[kind]()
                for field, kind in fields.items()
            },
        )
        for name, fields in declared.items()
    ]


async def insert_full_row(database: Database, table: ModelTable) -> None:
    """Insert one row with a value in every possible field."""
    values = {column.name: _value(column) for column in table.columns if column.kind}
    await put(database, table.name, **values)


def _value(column: Column) -> int | str | None:
    return column.options[-1] if column.options else VALUES.get(column.kind, "1")


async def compare(url: str, folder: Path, sequence: list[Declared]) -> None:
    """Upgrade from each set of models to the next, with a row in every table. Compare the result with a new
    installation of the last set."""
    number = next(_numbers)
    grown, fresh_database = [await open_named(url, folder, f"{name}_{number}") for name in ("grown", "fresh")]
    try:
        for declared in sequence:
            known_tables = (await installed(grown)).tables if declared is not sequence[0] else {}
            await upgrade(grown, *models(declared), destroy=True)
            # As in a service, the connections know the types of the columns from the first write.
            await grown.close()
            grown = await open_named(url, folder, f"grown_{number}")
            for name, table in (await installed(grown)).tables.items():
                if name not in known_tables:
                    await insert_full_row(grown, table)
        await upgrade(fresh_database, *models(sequence[-1]))

        assert (await describe_schema(grown)).replace("grown_", "fresh_") == await describe_schema(fresh_database)
        if grown.dialect == "sqlite":
            await schema_validation.require_own(grown, MIGRATIONS, tables, scratch_folder=folder)
        assert await upgrade(grown, *models(sequence[-1])) == []
        for name in sequence[-1]:
            assert len(await column_of(grown, name, "id")) == 1
    finally:
        await grown.close()
        await fresh_database.close()


async def open_named(url: str, folder: Path, name: str) -> Database:
    """Open an empty database with this name: a file or a schema."""
    database_url = f"sqlite:///{folder}/{name}.sqlite" if url.startswith("sqlite") else url
    return await open_database(database_url, schema=name, pool=2, reserve_bytes=0)


def test_any_sequence_of_changes_leads_to_the_schema_of_a_new_installation(
    database_url: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    @settings(
        max_examples=200 if is_full else 10,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(SEQUENCES)
    @example([{name: {"a": "ref to two", "b": "ref to one"} for name in ("one", "two")}, {}])
    @example([{"one": {"a": "select", "b": "address"}}, {"one": {"a": "short select", "b": "notes"}}])
    def changes(sequence: list[Declared]) -> None:
        asyncio.run(compare(database_url, tmp_path, sequence))

    changes()
    figures |= {"sequences": 200 if is_full else 10, "different": 0}
