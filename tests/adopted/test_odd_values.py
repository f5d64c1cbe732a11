"""Keys and texts that an existing database may have and our own tables never have."""

import csv
import io
import json
import sqlite3
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from countersign.declare import Grant, text
from countersign.declare.registry import Registry
from countersign.records import base_models
from countersign.records.adopted.store import AdoptedStore
from countersign.records.commands.csv_format import escape_formula
from countersign.records.commands.errors import BadInput
from tests.adopted.shop import Shop, open_shop

HEAD = '''"""Odd values."""

from countersign.declare import Bool, Date, Decimal, LongText, Model, Module, Moment, Money, Number, Ref, Table, Text

'''


def registry_of(*models: str, search_path: str = '"public",') -> Registry:
    """Return the modules with the models of these class statements."""
    names = ", ".join(each.split("(")[0].removeprefix("class ") for each in models)
    end = f'module = Module("odd", version="1.0.0", models=({names},), search_path=({search_path}))\n'
    module = text.build(text.read(HEAD + "\n\n".join((*models, end))), "odd.py")
    return Registry((base_models.MODULE, module))


@asynccontextmanager
async def opened(tmp_path: Path, script: str, *models: str) -> AsyncGenerator[Shop]:
    """Open the service over a SQLite file that the script fills."""
    path = tmp_path / "odd.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    async with open_shop(f"sqlite:///{path}", tmp_path, registry_of(*models)) as shop:
        yield shop


NOTE = 'class Note(Model, table=Table("note", key="k")):\n    title = Text()\n'
LONG_NOTE = 'class Note(Model, table=Table("note", key="k")):\n    title = LongText(personal="TEXT")\n'


@pytest.mark.parametrize("key", ["TEXT PRIMARY KEY NOT NULL", "INTEGER PRIMARY KEY"])
async def test_text_of_sqlite_that_is_not_utf_8_is_shown_with_replacement_characters(tmp_path: Path, key: str) -> None:
    script = f"CREATE TABLE note (k {key}, title TEXT); INSERT INTO note VALUES (1, CAST(x'67e96e' AS TEXT)), (2, 'b');"
    async with opened(tmp_path, script, NOTE) as shop:
        root = shop.inside.administrator()
        listed = await shop.inside.value(root, "note", "list")
        got = await shop.inside.value(root, "note", "get", id=listed[0]["id"])
        exported = await shop.inside.value(root, "note", "export")

    assert [each["title"] for each in listed] == ["g\N{REPLACEMENT CHARACTER}n", "b"]
    assert got == listed[0]
    assert "g\N{REPLACEMENT CHARACTER}n" in exported["text"]


async def test_a_key_of_sqlite_may_have_any_type_and_rows_without_an_id_are_left_out(tmp_path: Path) -> None:
    script = """
    CREATE TABLE note (k INT PRIMARY KEY, title TEXT);
    INSERT INTO note VALUES (5, 'int'), ('abc', 'text'), (x'00ff', 'blob'), (1.5, 'real'), (NULL, 'none'),
        (CAST(x'67e96e' AS TEXT), 'not UTF-8');
    """
    async with opened(tmp_path, script, NOTE) as shop:
        root = shop.inside.administrator()
        listed = await shop.inside.value(root, "note", "list")
        got = [await shop.inside.value(root, "note", "get", id=each["id"]) for each in listed]

    assert got == listed
    assert {each["title"] for each in listed} == {"int", "text", "blob", "real"}
    assert all(each["id"] for each in listed)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_key_that_is_too_long_for_an_id_is_no_record(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    script = "CREATE TABLE note (k TEXT PRIMARY KEY NOT NULL, title TEXT); INSERT INTO note VALUES ('a', 'short'), ("
    script += f"'{'b' * 100_000}', 'long')"
    if engine == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        with psycopg.connect(url, autocommit=True) as connection:
            for each in script.split("; "):
                connection.execute(each.encode())
        manager = open_shop(url, tmp_path, registry_of(NOTE))
    else:
        manager = opened(tmp_path, script, NOTE)
    async with manager as shop:
        root = shop.inside.administrator()
        listed = await shop.inside.value(root, "note", "list")
        page = await shop.inside.value(root, "note", "search", limit=10)

    assert [each["title"] for each in listed] == ["short"]
    assert (page["total"], len(page["rows"])) == (1, 1)


async def test_refs_have_the_ids_of_the_records_however_the_keys_are_spelled(
    postgres_url: str, tmp_path: Path
) -> None:
    models = (
        'class Tag(Model, table=Table("tag", key="id")):\n    title = Text()\n',
        'class Item(Model, table=Table("item", key="id")):\n    tag = Ref("tag", columns="tag")\n'
        '    other = Ref("tag", columns="other")\n',
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE tag (id numeric PRIMARY KEY, title text)")
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, tag int, other numeric)")
        connection.execute("INSERT INTO tag VALUES (5.0, 'five'), (1.50, 'more')")
        connection.execute("INSERT INTO item VALUES (1, 5, 1.5)")
    async with open_shop(postgres_url, tmp_path, registry_of(*models)) as shop:
        root = shop.inside.administrator()
        (item,) = await shop.inside.value(root, "item", "list")
        tag = await shop.inside.value(root, "tag", "get", id=item["tag"])
        other = await shop.inside.value(root, "tag", "get", id=item["other"])
        filtered = await shop.inside.value(
            root, "item", "list", filter=[{"field": "tag", "op": "eq", "value": tag["id"]}]
        )

    assert (tag["title"], other["title"]) == ("five", "more")
    assert filtered == [item]


async def test_refs_of_sqlite_find_a_key_that_ignores_case(tmp_path: Path) -> None:
    script = """
    CREATE TABLE tag (id TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, title TEXT);
    CREATE TABLE item (id INTEGER PRIMARY KEY, tag TEXT REFERENCES tag);
    INSERT INTO tag VALUES ('Ada', 'a');
    INSERT INTO item VALUES (1, 'ADA');
    """
    models = (
        'class Tag(Model, table=Table("tag", key="id")):\n    title = Text()\n',
        'class Item(Model, table=Table("item", key="id")):\n    tag = Ref("tag", columns="tag")\n',
    )
    async with opened(tmp_path, script, *models) as shop:
        root = shop.inside.administrator()
        (item,) = await shop.inside.value(root, "item", "list")
        tag = await shop.inside.value(root, "tag", "get", id=item["tag"])

    assert (tag["title"], tag["id"]) == ("a", item["tag"])


@pytest.mark.parametrize("value", ["'now'", "'-4000-01-01'", "'12:30'", "'2026-13-45'", "20200101"])
async def test_a_text_of_sqlite_that_is_no_date_is_empty(tmp_path: Path, value: str) -> None:
    script = "CREATE TABLE day (id INTEGER PRIMARY KEY, d DATE, t DATETIME);"
    script += f"INSERT INTO day VALUES (1, {value}, {value});"
    model = 'class Day(Model, table=Table("day", key="id")):\n    d = Date()\n    t = Moment()\n'
    async with opened(tmp_path, script, model) as shop:
        (day,) = await shop.inside.value(shop.inside.administrator(), "day", "list")

    assert (day["d"], day["t"]) == (None, None)


async def test_texts_are_cut_and_a_page_of_long_texts_takes_little_memory(tmp_path: Path) -> None:
    script = """
    CREATE TABLE note (k INTEGER PRIMARY KEY, title TEXT);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
    INSERT INTO note SELECT i, hex(zeroblob(200000)) FROM n;
    """
    async with opened(tmp_path, script, LONG_NOTE) as shop:
        agent = await shop.inside.agent("scout", Grant(model="note", commands="*", masked="*"))
        tracemalloc.start()
        try:
            page = await shop.inside.value(agent, "note", "search", limit=100)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert len(page["rows"]) == 100
    assert peak < 25 << 20, peak


async def test_a_text_is_cut_behind_the_longest_that_its_field_may_have(tmp_path: Path) -> None:
    script = "CREATE TABLE note (k INTEGER PRIMARY KEY, title TEXT); INSERT INTO note VALUES (1, hex(zeroblob(1000)));"
    async with opened(tmp_path, script, NOTE) as shop:
        (note,) = await shop.inside.value(shop.inside.administrator(), "note", "list")

    assert note["title"] == "0" * 1_001


async def test_functions_that_others_create_in_a_schema_do_not_run(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE note (k int PRIMARY KEY, price numeric(10, 2), title varchar(20))")
        connection.execute("INSERT INTO note VALUES (1, 5, 'Rose')")
        # These fit our operands better than the functions of PostgreSQL.
        connection.execute("CREATE FUNCTION times(numeric, integer) RETURNS numeric LANGUAGE sql AS 'SELECT 777.0'")
        connection.execute("CREATE OPERATOR * (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = times)")
        connection.execute("CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT $1::text || 1'")
    fields = '    price_minor = Money(column="price", scale=2)\n    title = Text()\n'
    note = f'class Note(Model, table=Table("public.note", key="k")):\n{fields}'
    registry = registry_of(note, search_path="")
    async with open_shop(postgres_url, tmp_path, registry) as shop:
        root = shop.inside.administrator()
        condition = {"field": "title", "op": "contains", "value": "rose"}
        listed = await shop.inside.value(root, "note", "list", filter=[condition])

    assert [(each["price_minor"], each["title"]) for each in listed] == [(500, "Rose")]


@asynccontextmanager
async def opened_postgres(url: str, tmp_path: Path, script: str, *models: str) -> AsyncGenerator[Shop]:
    """Open the service over a PostgreSQL database that the script fills."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())
    async with open_shop(url, tmp_path, registry_of(*models)) as shop:
        yield shop


async def test_rows_without_an_id_are_not_counted(tmp_path: Path) -> None:
    script = """
    CREATE TABLE note (k INT PRIMARY KEY, title TEXT);
    INSERT INTO note VALUES (5, 'int'), (NULL, 'none'), (CAST(x'67e96e' AS TEXT), 'not UTF-8');
    """
    async with opened(tmp_path, script, NOTE) as shop:
        page = await shop.inside.value(shop.inside.administrator(), "note", "search", limit=1)

    assert (page["total"], [each["title"] for each in page["rows"]]) == (1, ["int"])


async def test_an_integer_primary_key_of_sqlite_in_descending_order_may_have_any_value(tmp_path: Path) -> None:
    script = """
    CREATE TABLE note (k INTEGER PRIMARY KEY DESC, title TEXT);
    INSERT INTO note VALUES (5, 'int'), ('abc', 'text'), (1.5, 'real'), (NULL, 'none');
    """
    async with opened(tmp_path, script, NOTE) as shop:
        root = shop.inside.administrator()
        page = await shop.inside.value(root, "note", "search", limit=5)
        got = [await shop.inside.value(root, "note", "get", id=each["id"]) for each in page["rows"]]

    assert (page["total"], {each["title"] for each in got}) == (3, {"int", "text", "real"})


async def test_count_by_counts_keys_that_are_bytes(tmp_path: Path) -> None:
    models = (
        'class Kind(Model, table=Table("kind", key="k")):\n    title = Text()\n',
        'class Note(Model, table=Table("note", key="k")):\n    kind = Ref("kind", columns="kind")\n',
    )
    script = """
    CREATE TABLE kind (k BLOB PRIMARY KEY NOT NULL, title TEXT);
    CREATE TABLE note (k INTEGER PRIMARY KEY, kind BLOB);
    INSERT INTO kind VALUES (x'00ff', 'bytes'), ('abc', 'text');
    INSERT INTO note VALUES (1, x'00ff'), (2, x'00ff'), (3, 'abc'), (4, NULL);
    """
    async with opened(tmp_path, script, *models) as shop:
        root = shop.inside.administrator()
        kinds = {each["id"]: each["title"] for each in await shop.inside.value(root, "kind", "list")}
        counted = await shop.inside.value(root, "note", "count_by", field="kind")
        got = [await shop.inside.value(root, "kind", "get", id=each) for each in kinds]

    assert {kinds.get(each["value"]): each["count"] for each in counted} == {"bytes": 2, "text": 1, None: 1}
    assert {each["title"] for each in got} == {"bytes", "text"}


DOMAINS = """
CREATE DOMAIN flag AS boolean; CREATE DOMAIN nested_flag AS flag;
CREATE DOMAIN local_time AS timestamp; CREATE DOMAIN nested_time AS local_time;
CREATE DOMAIN number AS integer; CREATE DOMAIN nested_number AS number;
CREATE TABLE note (k nested_number PRIMARY KEY, open nested_flag, at nested_time, word text);
INSERT INTO note VALUES (1, true, '2026-07-01 12:00', 'yes'), (2, false, NULL, 'f'), (3, NULL, NULL, 'perhaps');
"""


async def test_a_domain_over_a_domain_has_the_values_of_its_base_type(postgres_url: str, tmp_path: Path) -> None:
    model = (
        'class Note(Model, table=Table("note", key="k")):\n    open = Bool()\n'
        '    at = Moment(zone="Europe/Vienna")\n    word = Bool()\n'
    )
    async with opened_postgres(postgres_url, tmp_path, DOMAINS, model) as shop:
        listed = await shop.inside.value(shop.inside.administrator(), "note", "list")

    assert [each["open"] for each in listed] == [True, False, None]
    assert [each["word"] for each in listed] == [True, False, None], "a text that is neither true nor false is empty"
    assert listed[0]["at"] == "2026-07-01T10:00:00.000Z"
    assert {len(each["id"]) for each in listed} == {24}


async def test_the_id_of_a_key_whose_label_was_renamed_is_no_record(postgres_url: str, tmp_path: Path) -> None:
    script = """
    CREATE TYPE size AS ENUM ('small', 'large');
    CREATE TABLE note (k size PRIMARY KEY, title text);
    INSERT INTO note VALUES ('small', 'S'), ('large', 'L');
    """
    async with opened_postgres(postgres_url, tmp_path, script, NOTE) as shop:
        root = shop.inside.administrator()
        small, large = await shop.inside.value(root, "note", "list")
        shop.change("ALTER TYPE size RENAME VALUE 'small' TO 'tiny'")
        by_ids = [{"field": "id", "op": "in", "value": [small["id"], large["id"]]}]
        page = await shop.inside.value(root, "note", "search", filter=by_ids)

        assert [each["title"] for each in page["rows"]] == ["L"]
        with pytest.raises(BadInput, match="no such record"):
            await shop.inside.value(root, "note", "get", id=small["id"])


PLANTED = """
CREATE TYPE size AS ENUM ('small', 'large');
CREATE TABLE note (
    k size PRIMARY KEY, title varchar(20), balance numeric(8, 2), at timestamptz, day date, parts bigint
);
INSERT INTO note VALUES ('small', 'S', 5, '2026-07-01T10:00:00Z', '2026-07-01', 3), ('large', 'L', 7, NULL, NULL, NULL);
CREATE FUNCTION times(numeric, integer) RETURNS numeric LANGUAGE sql AS 'SELECT 777::numeric';
CREATE OPERATOR * (FUNCTION = times, LEFTARG = numeric, RIGHTARG = integer);
CREATE FUNCTION never(varchar, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR = (FUNCTION = never, LEFTARG = varchar, RIGHTARG = text);
CREATE FUNCTION never(size, size) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR = (FUNCTION = never, LEFTARG = size, RIGHTARG = size);
CREATE FUNCTION to_char(date, text) RETURNS text LANGUAGE sql AS $$SELECT '1999-09-09'$$;
CREATE FUNCTION date_trunc(text, date) RETURNS timestamptz LANGUAGE sql AS $$SELECT '1999-09-09'::timestamptz$$;
CREATE FUNCTION "left"(text, integer) RETURNS text LANGUAGE sql AS $$SELECT 'planted'$$;
CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql AS $$SELECT 'planted'$$;
CREATE FUNCTION round(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 888::numeric';
"""


@pytest.mark.parametrize("path", ['"public",', '"public", "pg_catalog"'])
async def test_functions_and_operators_that_others_plant_are_not_used(
    postgres_url: str, tmp_path: Path, path: str
) -> None:
    model = (
        'class Note(Model, table=Table("note", key="k")):\n    title = Text()\n'
        '    balance_minor = Money(column="balance")\n    at = Moment()\n    day = Date()\n    parts = Number()\n'
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(PLANTED.encode())
    async with open_shop(postgres_url, tmp_path, registry_of(model, search_path=path)) as shop:
        root = shop.inside.administrator()
        small, large = await shop.inside.value(root, "note", "list")
        got = await shop.inside.value(root, "note", "get", id=large["id"])
        by_title = [{"field": "title", "op": "eq", "value": "S"}]
        page = await shop.inside.value(root, "note", "search", filter=by_title)
        contained = [{"field": "title", "op": "contains", "value": "l"}]
        containing = await shop.inside.value(root, "note", "search", filter=contained)
        july = {"date": "day", "from": "2026-06-29", "to": "2026-07-05", "step": "week", "fn": "sum", "field": "parts"}
        by_week = await shop.inside.value(root, "note", "series", **july)

    assert by_week["points"] == [{"at": "2026-06-29", "value": 3}]
    assert {**small, "id": "", "revision": 0} == {
        **{"id": "", "revision": 0, "title": "S", "balance_minor": 500, "at": "2026-07-01T10:00:00.000Z"},
        **{"day": "2026-07-01", "parts": 3},
    }
    assert (got, page["rows"], containing["rows"]) == (large, [small], [large])


async def test_a_table_without_a_schema_in_its_name_is_found_without_a_search_path(
    postgres_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE note (k int PRIMARY KEY, title text)")
        connection.execute("INSERT INTO note VALUES (1, 'Rose')")
    async with open_shop(postgres_url, tmp_path, registry_of(NOTE, search_path="")) as shop:
        listed = await shop.inside.value(shop.inside.administrator(), "note", "list")

    assert [each["title"] for each in listed] == ["Rose"]


AMOUNTS = 'class Amount(Model, table=Table("amount", key="k")):\n    {name} = {kind}\n'
DECIMALS = """
CREATE DOMAIN weight AS numeric(8, 3);
CREATE TABLE amount (
    k int PRIMARY KEY, narrow numeric(8, 2), heavy weight, real float8, whole numeric(20, 0), free numeric, big bigint
);
INSERT INTO amount VALUES (1, 12.70, 1.5, 0.7, 12, 12.7, 9007199254740991), (2, 3, 2, 3, 4, 5.0, 9007199254740992);
"""


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("narrow", "Number()", "its column has 2 decimals"),
        ("heavy", "Number()", "its column has 3 decimals"),
        ("real", "Number()", "its column has decimals"),
        ("narrow_minor", 'Money(column="narrow", scale=1)', "its column has 2 decimals"),
    ],
)
async def test_a_model_whose_numbers_would_be_rounded_is_hidden_with_the_reason(
    postgres_url: str, tmp_path: Path, name: str, kind: str, reason: str
) -> None:
    model = AMOUNTS.format(name=name, kind=kind)
    async with opened_postgres(postgres_url, tmp_path, DECIMALS, model, NOTE) as shop:
        (store,) = {each for each in shop.inside.service.engine.adopted.values() if isinstance(each, AdoptedStore)}
        suspension_reason = store.suspensions.reasons["amount"]

    assert f"amount.{name}: {reason}" in suspension_reason
    assert "declare Decimal" in suspension_reason


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [
        ("whole", "Number()", [12, 4]),
        ("free", "Number()", [None, 5]),
        ("big", "Number()", [2**53 - 1, None]),
        ("narrow", "Decimal()", ["12.70", "3.00"]),
        ("narrow_minor", 'Money(column="narrow")', [1270, 300]),
        ("free_minor", 'Money(column="free", scale=0)', [None, 5]),
        ("real_minor", 'Money(column="real", scale=1)', [7, 30]),
    ],
)
async def test_a_number_has_the_exact_value_or_none(
    postgres_url: str, tmp_path: Path, name: str, kind: str, values: list[object]
) -> None:
    model = AMOUNTS.format(name=name, kind=kind)
    async with opened_postgres(postgres_url, tmp_path, DECIMALS, model) as shop:
        root = shop.inside.administrator()
        listed = await shop.inside.value(root, "amount", "list")
        filters = [{"field": name, "op": "eq", "value": values[1]}]
        page = await shop.inside.value(root, "amount", "search", filter=filters) if values[1] is not None else None

    assert [each[name] for each in listed] == values
    assert page is None or page["rows"] == listed[1:]


async def test_a_number_of_a_sqlite_file_has_the_exact_value_or_none(tmp_path: Path) -> None:
    script = """
    CREATE TABLE amount (k INTEGER PRIMARY KEY, price NUMERIC(10, 2), parts INTEGER);
    INSERT INTO amount VALUES (1, 12.34, 3), (2, 12.345, 3.5), (3, 1e300, NULL), (4, -0.07, 1);
    """
    model = AMOUNTS.format(name="price_minor", kind='Money(column="price")\n    parts = Number()')
    async with opened(tmp_path, script, model) as shop:
        listed = await shop.inside.value(shop.inside.administrator(), "amount", "list")

    assert [each["price_minor"] for each in listed] == [1234, None, None, -7]
    assert [each["parts"] for each in listed] == [3, None, None, 1]


ODD_NOTE = '''class Note(Model, table=Table("note", key="k")):
    title = Text(personal="TEXT")
    plain = Text()
    size = Number()
    price_minor = Money(column="price")
    rate = Decimal()
    day = Date()
    moment = Moment()
    is_open = Bool()
    parent = Ref("note", columns="parent")
'''
ODD_NOTES = """
CREATE TABLE note (k INTEGER PRIMARY KEY, title TEXT, plain TEXT, size INTEGER, price NUMERIC, rate REAL, day DATE,
    moment DATETIME, is_open BOOLEAN, parent INTEGER REFERENCES note);
INSERT INTO note VALUES (-9, '=1+1', '=1+1', -4, -1.25, 0.1, '2026-01-02', '2026-01-02 03:04:05', 1, NULL),
    (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -9),
    (2, '', '', 9007199254740991, 90071992547409, 1e300, '0001-01-01', '9999-12-31 23:59:59', 0, 1),
    (3, '''', '''', 'text', 'text', 'text', 'text', 'text', 'yes', 4),
    (4, 'a' || char(10) || '=b', 'a' || char(10) || '-b', 9007199254740992, 1.005, -0.0, '2026-01-02 10', 'now', 7, 99),
    (5, '''''+', '''''+', x'00', x'00', x'00', x'00', x'00', x'00', 'text'),
    (6, CAST(x'67e96e' AS TEXT), CAST(x'67e96e' AS TEXT), 1, 2, 3, NULL, NULL, NULL, x'00'),
    (7, char(0xff1d) || 'x', char(0xff1d) || 'x', 0, 0, 0, '2026-02-30', NULL, NULL, 7),
    (8, 'a "quoted", text', 'a;b', 0, 0, 0, NULL, NULL, NULL, 7);
"""


def cell(value: object) -> str:
    """Return the cell of a CSV file for a value of a response."""
    if isinstance(value, str):
        return escape_formula(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("fields", [None, ["size"], ["plain", "parent"]])
async def test_an_export_has_the_values_of_the_list(tmp_path: Path, fields: list[str] | None) -> None:
    script = ODD_NOTES + "".join(f"INSERT INTO note (k, plain) VALUES ({k}, 'plain {k}');" for k in range(10, 1_200))
    async with opened(tmp_path, script, ODD_NOTE) as shop:
        root = shop.inside.administrator()
        agent = await shop.inside.agent("scout")
        for caller in (root, agent):
            listed = [*await shop.inside.value(caller, "note", "list", limit=1_000)]
            listed += await shop.inside.value(caller, "note", "list", limit=1_000, offset=1_000)
            body = {} if fields is None else {"fields": fields}
            exported = await shop.inside.value(caller, "note", "export", **body)

            names = list(listed[0]) if fields is None else fields
            expected = io.StringIO()
            rows = [names, *([cell(record[name]) for name in names] for record in listed)]
            csv.writer(expected, lineterminator="\r\n").writerows(rows)
            assert len(listed) == 1_199
            assert exported["text"] == expected.getvalue()
