"""The draft of a module text: every table with a key works without an edit, and no personal text is shown in clear."""

import re
from pathlib import Path

import psycopg
import pytest

from countersign.connect.draft import NO_KEY, Draft
from countersign.declare import Field, Ref, Select, Text, text
from countersign.declare.model import Declared
from countersign.declare.registry import Registry
from countersign.records import base_models
from tests.connect.conftest import SCHEMAS, DatabaseFactory, drafted

ALL = sorted(path.stem for path in SCHEMAS.glob("*.sql"))
GOLDEN = Path(__file__).parent / "shop_module.txt"

def registry(module_draft: Draft) -> Registry:
    """Return the checked registry of the draft, which is written and read again."""
    module = text.build(text.read(text.write(module_draft.text)), "module.py")
    return Registry((base_models.MODULE, module))


def models(module_draft: Draft) -> dict[str, Declared]:
    """Return the models of the draft by the table that they adopt."""
    return {each.table.relation: each for each in registry(module_draft).models.values() if each.table is not None}


def columns(model: Declared) -> dict[str, Field]:
    """Return the fields of the model by their columns."""
    return {".".join(field.table_columns): field for field in model.fields.values()}


@pytest.mark.parametrize("name", ALL)
def test_every_draft_is_a_valid_module_as_it_is(name: str, schema_url: DatabaseFactory) -> None:
    module_draft = drafted(schema_url(name), name)

    assert text.read(text.write(module_draft.text)) == module_draft.text
    declared = registry(module_draft)
    assert sorted(module_draft.report.models) == sorted(
        each.name for each in declared.models.values() if each.table is not None
    )
    left_out = [place for place, reason in module_draft.report.left_out if reason != NO_KEY]
    assert set(left_out) <= {
        "public.customer_list", "public.schema_migrations", "public.event_2026", "public.event_count",
        "public.only_bytes", "public.parent", "public.event_title", "public.broken_view",
    }  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_no_text_is_shown_in_clear(name: str, schema_url: DatabaseFactory) -> None:
    for sample in (200, 0):
        module_draft = drafted(schema_url(name), name, sample=sample)

        shown = {
            f"{model.name}.{field.name}"
            for model in models(module_draft).values()
            for field in model.fields.values()
            if isinstance(field, Text) and not field.personal
        }
        assert not shown


def test_the_text_of_the_shop_is_as_written(schema_url: DatabaseFactory) -> None:
    module_draft = drafted(schema_url("shop"), "shop")

    written = re.sub(r'fingerprint="[0-9a-f]{16}"', 'fingerprint="0a1b2c3d4e5f"', text.write(module_draft.text))
    assert written == GOLDEN.read_text()


def test_a_key_is_no_field_and_a_reference_is_a_ref(schema_url: DatabaseFactory) -> None:
    shop = models(drafted(schema_url("shop"), "shop"))

    details, shipment = shop["public.OrderDetails"], shop["public.shipment"]
    assert details.table is not None
    assert details.table.key_columns == ("orderId", "lineNo")
    assert "orderId" not in columns(details)
    ref = shipment.fields["order_detail"]
    assert isinstance(ref, Ref)
    assert (ref.target, ref.columns) == ("order_detail", ("order_id", "line_no"))


def test_secrets_are_no_fields(schema_url: DatabaseFactory) -> None:
    shop = drafted(schema_url("shop"), "shop")
    words = drafted(schema_url("languages"), "languages")

    assert shop.report.secret == ["customer.password_hash"]
    assert len(words.report.secret) == 3
    assert "password_hash" not in columns(models(shop)["public.customer"])
    assert "# password_hash: left out: secret" in text.write(shop.text)


def test_personal_columns_get_labels_in_several_languages(schema_url: DatabaseFactory) -> None:
    declared_models = models(drafted(schema_url("languages"), "languages", sample=0))

    german = {name: field.personal for name, field in columns(declared_models["public.Mitarbeiter"]).items()}
    japanese = {name: field.personal for name, field in columns(declared_models["public.顧客"]).items()}
    assert german == {
        "Vorname": "PERSON", "Nachname": "PERSON", "Straße": "ADDRESS", "PLZ": "ADDRESS", "Ort": "ADDRESS",
        "Steuernummer": "TAXID", "E-Mail": "EMAIL", "Bemerkung": "TEXT",
    }  # fmt: skip
    assert japanese == {
        "氏名": "PERSON", "住所": "ADDRESS", "電話番号": "PHONE", "メール": "EMAIL", "備考": "TEXT", "都道府県": "TEXT"
    }  # fmt: skip
    assert columns(declared_models["public.顧客"])["氏名"].label == "氏名"


def test_values_are_looked_at_unless_the_sample_is_zero(schema_url: DatabaseFactory) -> None:
    url = schema_url("shop")

    assert columns(models(drafted(url, "shop"))["public.shipment"])["contact"].personal == "EMAIL"
    assert columns(models(drafted(url, "shop", sample=0))["public.shipment"])["contact"].personal == "TEXT"


def test_the_smallest_unique_index_is_the_key_where_there_is_no_other(schema_url: DatabaseFactory) -> None:
    module_draft = drafted(schema_url("no_keys"), "no_keys")

    keys = {name: model.table.key_columns for name, model in models(module_draft).items() if model.table is not None}
    assert keys == {
        "public.by_integer": ("number",), "public.by_unique_index": ("code",), "public.refers_to_none": ("number",)
    }  # fmt: skip
    assert {place for place, reason in module_draft.report.left_out if reason == NO_KEY} == {
        f"public.{name}" for name in ("deferred", "expression", "nothing", "nullable", "partial", "no_column")
    }


def test_labels_of_an_enum_that_are_no_words_get_options(schema_url: DatabaseFactory) -> None:
    field = models(drafted(schema_url("every_type"), "every_type"))["public.every_type"].fields["an_odd"]

    assert isinstance(field, Select)
    assert field.values["two words"] == "two_words"
    assert {each.label["en"] for each in field.choices} >= {"two words", "日本", "naïve"}
    assert set(field.values) == {"two words", "TEXT_1", "naïve", "日本", ""}


def test_every_type_has_a_field_or_a_reason(schema_url: DatabaseFactory) -> None:
    module_draft = drafted(schema_url("every_type"), "every_type")

    model = models(module_draft)["public.every_type"]
    written = text.write(module_draft.text)
    table = (SCHEMAS / "every_type.sql").read_text().partition("CREATE TABLE every_type (")[2].partition("\n);")[0]
    named = set(re.findall(r"(?:^    |, )([a-z_]+) [a-z]", table, re.MULTILINE)) - {"every_type_id"}
    missing = {each for each in named if each not in columns(model) and f"    # {each}: left out: " not in written}
    assert len(named) > 45
    assert not missing


def test_the_values_of_a_type_with_the_name_of_a_known_type_are_not_read(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TYPE citext AS (a integer)")
        connection.execute(
            "CREATE FUNCTION read(citext) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'read'; END $$"
        )
        connection.execute("CREATE CAST (citext AS text) WITH FUNCTION read(citext)")
        connection.execute("CREATE TABLE box (id integer PRIMARY KEY, label citext, title text)")
        connection.execute("INSERT INTO box VALUES (1, ROW(1)::citext, 'Oak')")

    written = text.write(drafted(postgres_url, "box").text)

    assert "    # label: left out: the type citext has no kind" in written


def test_only_named_tables_are_adopted(schema_url: DatabaseFactory) -> None:
    module_draft = drafted(schema_url("shop"), "shop", tables=("store", "public.customer"))

    assert sorted(models(module_draft)) == ["public.customer", "public.store"]


def test_names_that_look_like_code_stay_names(schema_url: DatabaseFactory) -> None:
    declared_models = models(drafted(schema_url("hostile_names"), "hostile_names"))

    hostile = next(model for relation, model in declared_models.items() if "import os" in relation)
    assert {'")\nimport os\n#', "a\nb", "'; DROP TABLE customer; --", "\x07\u202e", "None"} <= set(columns(hostile))
    assert len(hostile.fields) == 18
    assert all(re.fullmatch("[a-z][a-z0-9_]{0,39}", each) for each in hostile.fields)


@pytest.mark.parametrize(
    ("columns", "deleted"),
    [
        ("deleted_at timestamptz", "deleted_at"),
        ('"deletedAt" timestamp', "deletedAt"),
        ("archived_at date, is_deleted boolean NOT NULL DEFAULT false", "is_deleted"),
        ("deleted_at timestamptz NOT NULL DEFAULT now()", ""),
        ("is_deleted integer NOT NULL", ""),
        ("removed_at timestamptz", ""),
    ],
)
def test_a_column_that_marks_deleted_rows_is_named_in_the_table(postgres_url: str, columns: str, deleted: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE plant (id int PRIMARY KEY, title text, {columns})".encode())

    written = text.write(drafted(postgres_url, "garden").text)

    assert (f'deleted="{deleted}"' in written) == (f"# {deleted}: left out: it marks deleted rows" in written)
    assert ("deleted=" in written) == bool(deleted)


def test_a_column_that_may_count_changes_is_named_in_a_comment(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(b"CREATE TABLE plant (id int PRIMARY KEY, lock_version int NOT NULL, version int)")

    written = text.write(drafted(postgres_url, "garden").text)

    assert "    # lock_version may count changes: then name it in version of Table, without a field\n" in written
    assert "# version may" not in written


def test_only_row_rules_and_views_need_the_search_path(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE plant (id int PRIMARY KEY, name text)")
    before = text.write(drafted(postgres_url, "garden").text)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE plant ENABLE ROW LEVEL SECURITY")
    after = text.write(drafted(postgres_url, "garden").text)

    assert "search_path" not in before
    assert 'search_path=("public",)' in after
