"""What does not fit between a module text and its database is named with its remedy."""

import asyncio

import pytest

from countersign.connect import fit, key_check, postgres
from countersign.connect.fit import Misfit
from countersign.declare import Declared, Field, Money, Number, text
from countersign.declare.registry import Registry
from countersign.declare.review import LOOK, undecided_columns
from countersign.records import base_models
from tests.connect.conftest import SCHEMAS, ChangingDatabase, DatabaseFactory, drafted
from tests.servers.postgres import Cluster

NAMES = sorted(path.stem for path in SCHEMAS.glob("*.sql"))
TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY, title VARCHAR(20), due DATE, amount NUMERIC(10, 2), code INTEGER);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person (id), note VARCHAR(20));
"""
MODULE = '''
from countersign.declare import {words}, Model, Module, Ref, Table


class Person(Model, table=Table("person", key={key})):
    """A person."""

    title = {title}
    due = {due}
    amount = Decimal()


class Visit(Model, table=Table({visit}, key="id")):
    """A visit."""

    person = Ref("person", columns={ref})
    note = Text(personal="TEXT")


module = Module("shop", version="1.0.0", models=(Person, Visit))
'''
AS_IS = {"key": '"id"', "title": "Text()", "due": "Date()", "visit": '"visit"', "ref": '"person"'}


@pytest.fixture
def shop(changing_database: ChangingDatabase) -> ChangingDatabase:
    """Return a database with the tables of TABLES, in each engine."""
    changing_database.change(TABLES)
    return changing_database


def models_of(**changes: str) -> dict[str, Declared]:
    """Return the models of MODULE with these changes."""
    given = {**AS_IS, **changes}
    words = [word for word in ("Bool", "Date", "Decimal", "Moment", "Money", "Number", "Text")]
    module = text.build(text.read(MODULE.format(words=", ".join(words), **given)), "shop.py")
    registry = Registry((base_models.MODULE, module))
    return {name: each for name, each in registry.models.items() if each.table is not None}


def misfits(shop: ChangingDatabase, **changes: str) -> list[tuple[str, str]]:
    """Return the places and texts of what does not fit, with these changes of MODULE."""
    return [(each.place, f"{each.text}: {each.remedy}") for each in fit.misfits(models_of(**changes), shop.read())]


def test_a_module_that_fits_has_no_misfits(shop: ChangingDatabase) -> None:
    assert misfits(shop) == []


def test_a_table_that_is_not_there_is_named(shop: ChangingDatabase) -> None:
    assert misfits(shop, visit='"visits"') == [
        ("visit", "the role sees no table visits: correct the name, or grant USAGE on its schema and SELECT")
    ]


def test_a_column_that_is_not_there_is_named(shop: ChangingDatabase) -> None:
    assert [place for place, _ in misfits(shop, key='("id", "part")', ref='("person", "part")')] == [
        "person.table",
        "visit.person",
    ]
    assert misfits(shop, title='Text(column="name")') == [
        (
            "person.title",
            f"the table {shop.place('person')} has no column name: correct the name, or take the column out",
        )
    ]


def test_a_kind_that_cannot_show_the_column_is_named(shop: ChangingDatabase) -> None:
    ((at, said),) = misfits(shop, due="Moment()")

    assert at == "person.due"
    assert said.lower() == "the column due is date, and the file says moment: write date(), if agents may read it"
    assert [each for each, _ in misfits(shop, title='Bool(column="amount")')] == ["person.title"]


def test_the_remedy_for_a_text_is_masked(shop: ChangingDatabase) -> None:
    if shop.is_sqlite:
        pytest.skip("SQLite accepts any value in a column of texts")
    ((_, said),) = misfits(shop, title="Number()")

    assert said.endswith(', and the file says Number: write Text(personal="TEXT")')


def test_a_kind_that_rounds_numbers_does_not_fit(shop: ChangingDatabase) -> None:
    shop.change("CREATE TABLE reading (amount NUMERIC(10, 2), code NUMERIC(10, 0), share REAL)")
    (relation,) = (each for each in shop.read().relations if each.name == "reading")

    def fits(field: Field, column: str) -> bool:
        return fit.column_fits(field, relation.column(column), is_sqlite=shop.is_sqlite)

    assert not fits(Money(scale=1), "amount")
    assert fits(Money(scale=2), "amount")
    assert fits(Number(), "code")
    # A number of SQLite that is not whole is shown as empty.
    assert [fits(Number(), each) for each in ("amount", "share")] == [shop.is_sqlite] * 2


def test_the_options_of_a_foreign_table_are_a_part_of_its_fingerprint(changing_database: ChangingDatabase) -> None:
    if changing_database.is_sqlite:
        pytest.skip("SQLite has no foreign tables")
    database = changing_database
    database.change("CREATE FOREIGN DATA WRAPPER files; CREATE SERVER disk FOREIGN DATA WRAPPER files")
    database.change("CREATE FOREIGN TABLE remote (id int, label text) SERVER disk")

    def fingerprint() -> str:
        (relation,) = (each for each in database.read().relations if each.name == "remote")
        assert relation.definition is not None
        return relation.definition.fingerprint(["id"])

    fingerprints = [fingerprint()]
    for change in (
        "ALTER FOREIGN TABLE remote ALTER COLUMN label OPTIONS (ADD column_name 'email')",
        "ALTER FOREIGN TABLE remote OPTIONS (ADD table_name 'other')",
        "ALTER SERVER disk OPTIONS (ADD host 'other')",
    ):
        database.change(change)
        fingerprints.append(fingerprint())

    assert len(set(fingerprints)) == 4


def test_texts_can_mean_true_or_false(shop: ChangingDatabase) -> None:
    assert misfits(shop, title="Bool()") == []


def failures(shop: ChangingDatabase) -> dict[str, str]:
    """Return the models whose table cannot be read."""
    return asyncio.run(key_check.failures(shop.url, fit.readable(models_of(), shop.read())))


def test_a_table_whose_policy_needs_other_rights_is_named(
    changing_database: ChangingDatabase, postgres_cluster: Cluster
) -> None:
    if changing_database.is_sqlite:
        pytest.skip("SQLite has no roles")
    database = changing_database
    database.change(TABLES)
    role = f"limited_{database.url.rpartition('/')[2]}"
    database.change(f"CREATE ROLE {role} LOGIN; CREATE TABLE member (person int)")
    database.change(f"GRANT SELECT ON person, visit TO {role}; ALTER TABLE person ENABLE ROW LEVEL SECURITY")
    database.change("CREATE POLICY mine ON person USING (id IN (SELECT member.person FROM member))")
    reader = ChangingDatabase(database.url.replace("postgres@", f"{role}@"), database.change)

    assert failures(reader) == {"person": "42501"}
    database.change(f"GRANT SELECT ON member TO {role}")
    assert failures(reader) == {}


def test_a_view_that_fails_is_named_with_its_code(changing_database: ChangingDatabase) -> None:
    if changing_database.is_sqlite:
        pytest.skip("SQLite has no functions")
    changing_database.change(TABLES)
    changing_database.change(
        "CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'xMARKx' USING ERRCODE = 'XX001'; END $$"
    )
    changing_database.change("ALTER TABLE visit RENAME TO visits")
    changing_database.change("CREATE VIEW visit AS SELECT fails() AS id, 1 AS person, 'a'::text AS note")
    database = changing_database.read()
    (relation, key) = fit.unproven_keys(models_of(), database)["visit"]

    assert failures(changing_database) == {"visit": "XX001"}
    assert asyncio.run(key_check.has_repeated_key(changing_database.url, relation, key)) == "XX001"


def test_the_driver_looks_up_no_types(
    changing_database: ChangingDatabase,
) -> None:
    if changing_database.is_sqlite:
        pytest.skip("SQLite has no operators of its own")
    changing_database.change(TABLES)
    changing_database.change("CREATE EXTENSION IF NOT EXISTS citext; ALTER TABLE visit ALTER COLUMN note TYPE citext")
    changing_database.change(
        "CREATE FUNCTION differs(oid, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$"
    )
    changing_database.change("CREATE OPERATOR public.<> (LEFTARG = oid, RIGHTARG = int, FUNCTION = differs)")

    assert failures(changing_database) == {}


def test_texts_show_every_type_but_binary_data(shop: ChangingDatabase) -> None:
    assert misfits(shop, due='Text(column="due")', title='Text(column="amount")') == []


def test_a_ref_has_the_types_of_the_key(shop: ChangingDatabase) -> None:
    wrong = misfits(shop, ref='"note"')

    # A column of SQLite can contain a value of any type.
    expected = [] if shop.is_sqlite else ["visit.person"]
    assert [each for each, _ in wrong] == expected


def test_a_changed_table_is_named_until_its_fingerprint_is_accepted(shop: ChangingDatabase) -> None:
    person = shop.read().relation(models_of()["person"].table or pytest.fail("no table"))
    assert person is not None
    assert person.definition is not None
    key = f'"id", fingerprint="{person.definition.fingerprint(("id",))}"'
    assert misfits(shop, key=key) == []

    shop.change("ALTER TABLE person ADD COLUMN extra INTEGER")
    assert misfits(shop, key=key) == []
    shop.change("ALTER TABLE person RENAME COLUMN code TO number")

    assert misfits(shop, key=key) == [
        (
            "person",
            f"the table {shop.place('person')} has changed since the file was written, so the model is hidden: "
            "look at connect diff, then run connect accept",
        )
    ]


def test_a_key_without_a_unique_index_is_compared_row_by_row(shop: ChangingDatabase) -> None:
    database = shop.read()
    assert fit.unproven_keys(models_of(), database) == {}
    assert fit.unproven_keys(models_of(key='("id", "title")', ref='("person", "note")'), database) == {}
    relation, key = fit.unproven_keys(models_of(key='"code"'), database)["person"]

    shop.change("INSERT INTO person (id, code) VALUES (1, 7), (2, 8), (3, NULL), (4, NULL)")
    assert asyncio.run(key_check.has_repeated_key(shop.url, relation, key)) is False
    shop.change("INSERT INTO person (id, code) VALUES (5, 7)")
    assert asyncio.run(key_check.has_repeated_key(shop.url, relation, key)) is True


def test_a_column_that_the_role_may_not_read_is_named(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    name = url.rpartition("/")[2]
    role = f"partial_{name}"
    postgres_cluster.sql(
        f"CREATE ROLE {role} LOGIN; GRANT SELECT (customer_id, store_id, first_name) ON customer TO {role};"
        f"GRANT SELECT ON store TO {role}",
        database=name,
    )
    drafted_text = drafted(url, "shop", tables=("customer", "store")).text
    registry = Registry((base_models.MODULE, text.build(drafted_text, "shop.py")))
    models = {each: model for each, model in registry.models.items() if model.table is not None}

    wrong = fit.misfits(models, asyncio.run(postgres.read(url.replace("postgres@", f"{role}@"), [])))

    assert wrong[0] == Misfit(
        "customer.last_name", "the role may not read public.customer.last_name", "grant SELECT on the column"
    )
    assert {each.place for each in wrong} == {
        f"customer.{field}" for field in ("last_name", "email", "phone", "note", "activebool")
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_draft_fits_its_database(name: str, schema_url: DatabaseFactory) -> None:
    url = schema_url(name)
    written = drafted(url, name)
    registry = Registry((base_models.MODULE, text.build(written.text, "module.py")))
    models = {each: model for each, model in registry.models.items() if model.table is not None}
    database = asyncio.run(postgres.read(url, []))

    assert fit.misfits(models, database) == []
    assert fit.unproven_keys(models, database) == {}


def test_the_columns_to_look_at_are_those_of_the_report(schema_url: DatabaseFactory) -> None:
    written = drafted(schema_url("shop"), "shop")

    undecided = undecided_columns(text.read(text.write(written.text)))

    assert sorted(each.place for each in undecided) == sorted(written.report.look)
    assert {each.label for each in undecided} == {"", "TEXT"}
    assert LOOK not in "".join(each.reason for each in undecided)


def test_a_key_whose_values_cannot_be_compared_is_no_key(changing_database: ChangingDatabase) -> None:
    if changing_database.is_sqlite:
        pytest.skip("SQLite compares all values")
    changing_database.change(TABLES)
    changing_database.change("ALTER TABLE visit RENAME TO visits")
    changing_database.change("CREATE VIEW visit AS SELECT id::text::json AS id, person, note FROM visits")
    (relation, key) = fit.unproven_keys(models_of(), changing_database.read())["visit"]

    assert asyncio.run(key_check.has_repeated_key(changing_database.url, relation, key)) == key_check.NO_EQUALITY
