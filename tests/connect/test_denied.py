"""What the guess cannot clear stays masked or is left out, on both engines."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from countersign.connect.draft import Draft
from countersign.connect.personal_columns import TableFacts, guess
from countersign.connect.run_together import words
from countersign.connect.schema import BaseType, TableColumn
from countersign.declare import Ref, text
from countersign.declare.registry import Registry
from countersign.declare.review import LOOK
from countersign.declare.text import FieldText
from countersign.records import base_models
from tests.connect.conftest import SCHEMAS, DatabaseFactory, drafted, drafted_sqlite
from tests.connect.test_try import serve_and_read

SECRET = {
    *("cvv", "pin", "otp", "manager_pin", "managerpin", "salt", "userpass", "pass", "user_pass", "pw", "pswd", "dsn"),
    *("mnemonic", "nonce", "session_uuid"),
}
LEFT_OUT = {
    *("ip", "zip", "plz", "mac", "phone", "email_number", "kundenplz", "dateofbirth", "annualsalary", "bonus"),
    *("stundenlohn", "userage", "is_pregnant"),
}
MASKED = {"invite", "status", "unit", "sku", "type", "color", "country_code"}
CLEAR = {"quantity", "price_minor", "delivered", "is_open"}


def sqlite_denied(folder: Path) -> Path:
    """Create a SQLite file with the schema `denied.sql`."""
    path = folder / "denied.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SCHEMAS / "denied.sql").read_text())
    return path


@pytest.fixture(params=["postgres", "sqlite"])
def module_draft(request: pytest.FixtureRequest, schema_url: DatabaseFactory, tmp_path: Path) -> Draft:
    """Return the draft for the schema `denied.sql`, in each engine."""
    if request.param == "postgres":
        return drafted(schema_url("denied"), "denied")
    return drafted_sqlite(sqlite_denied(tmp_path))


def test_secrets_of_every_type_are_no_fields(module_draft: Draft) -> None:
    assert {each.removeprefix("thing.") for each in module_draft.report.secret} == SECRET


def test_personal_values_that_are_no_text_are_left_out_to_look_at(module_draft: Draft) -> None:
    written = text.write(module_draft.text)

    assert [each for each in sorted(LEFT_OUT) if f"    # {each}: left out: {LOOK}" not in written] == []
    assert {each.removeprefix("thing.") for each in module_draft.report.look} == LEFT_OUT | MASKED


def test_text_is_masked_whatever_its_name_and_its_first_values_say(module_draft: Draft) -> None:
    fields = {each.name: each for each in module_draft.text.models[0].body if isinstance(each, FieldText)}
    module = text.build(text.read(text.write(module_draft.text)), "module.py")
    declared = Registry((base_models.MODULE, module)).models["thing"].fields

    assert {name for name, field in declared.items() if not field.personal} == CLEAR
    assert {name for name, field in declared.items() if field.personal} == MASKED
    assert all(fields[each].comment.startswith(LOOK) for each in MASKED)


def test_a_sqlite_file_shows_an_agent_no_text_after_the_first_rows(tmp_path: Path) -> None:
    path = sqlite_denied(tmp_path)

    serve_and_read(f"sqlite:///{path}", drafted_sqlite(path), tmp_path)


@pytest.mark.parametrize("base", ["integer", "bigint", "numeric", "float", "enum", "text", "citext", "uuid", "bytes"])
def test_a_secret_word_counts_for_every_type_that_can_hold_a_secret(base: BaseType) -> None:
    for name in ("pin", "USERPIN", "cardCvv", "login_pw", "dbpass", "sessiontoken", "Kennwort", "pass", "apikey"):
        assert guess(TableColumn(name, 1, base, "")).verdict == "secret", name
    assert guess(TableColumn("passport", 1, base, "")).verdict != "secret"
    assert guess(TableColumn("token_count", 1, base, "")).verdict != "secret"


@pytest.mark.parametrize("base", ["bool", "date", "moment", "local_moment"])
def test_a_boolean_or_a_date_about_a_secret_is_no_secret(base: BaseType) -> None:
    assert guess(TableColumn("password_changed", 1, base, "")).verdict == "clear"


PEOPLE_SCHEMA = """
CREATE TABLE patient (id INTEGER PRIMARY KEY, groesse INTEGER);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, patient_id INTEGER REFERENCES patient, cd4_count INTEGER, special_needs BOOLEAN,
    moved_in DATE, total NUMERIC(8, 2), paid BOOLEAN, created_at TIMESTAMP, status INTEGER
);
CREATE TABLE reading (id INTEGER PRIMARY KEY, visit_id INTEGER REFERENCES visit, level REAL, quantity INTEGER);
CREATE TABLE enrollment (id INTEGER PRIMARY KEY, student_id INTEGER, absences INTEGER);
CREATE TABLE lehrer (id INTEGER PRIMARY KEY, stufe INTEGER);
CREATE TABLE "生徒" (id INTEGER PRIMARY KEY, points INTEGER);
CREATE TABLE eav (id INTEGER PRIMARY KEY, attribute_id INTEGER, value_int INTEGER, value_date DATE, value_bool BOOLEAN);
CREATE TABLE film (id INTEGER PRIMARY KEY, length INTEGER, replacement_cost NUMERIC(8, 2), released DATE);
"""
"""Tables that are about people, that refer to them, and others."""


def test_values_in_tables_that_are_about_people_or_refer_to_them_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(PEOPLE_SCHEMA)
    module = text.build(text.read(text.write(drafted_sqlite(path).text)), "module.py")
    models = Registry((base_models.MODULE, module)).models
    clear = {
        f"{name}.{field.name}"
        for name, model in models.items()
        if model.table is not None
        for field in model.fields.values()
        if not field.personal and not isinstance(field, Ref)
    }

    assert clear == {
        *("visit.total_minor", "visit.paid", "visit.created_at", "visit.status", "reading.quantity"),
        *("eav.attribute_id", "film.length", "film.replacement_cost_minor", "film.released"),
    }


@pytest.mark.parametrize("base", ["integer", "bigint", "numeric"])
@pytest.mark.parametrize(
    "name",
    [
        *("card_no", "cc_num", "kreditkartennr", "acct_no", "tax_no", "personalnr", "badge_no", "contact_no", "mrn"),
        *("マイナンバー番号", "口座番号", "クレジットカード番号", "生年", "年収", "体重"),
        *("diagnose", "schwanger", "fico", "gebjahr", "systolic", "grade", "alimony", "geb_datum"),
    ],
)
def test_a_number_that_may_identify_a_person_or_is_about_health_or_money_is_not_clear(
    base: BaseType, name: str
) -> None:
    if base == "numeric" and name.endswith(("_no", "_num", "nr")):
        pytest.skip("identity numbers are integers")

    assert guess(TableColumn(name, 1, base, "")).verdict != "clear"


@pytest.mark.parametrize("name", ["door_code", "sms_code", "geheimzahl", "puk", "locker_combination", "zugangscode"])
def test_an_access_code_is_secret(name: str) -> None:
    assert guess(TableColumn(name, 1, "integer", "")).verdict == "secret"


@pytest.mark.parametrize(
    "name",
    [
        *("user_activation_key", "reset_key", "bearer", "sid", "private_pem", "aws_key", "wifi_psk", "signed_url"),
        *("backup_codes", "code_verifier", "トークン", "비밀번호", "ключ", "losungswort"),
    ],
)
def test_text_that_opens_something_is_secret(name: str) -> None:
    assert guess(TableColumn(name, 1, "text", "")).verdict == "secret"


def test_a_key_is_secret_in_a_table_of_tokens_alone() -> None:
    key = TableColumn("key", 1, "text", "")

    assert guess(key, (), TableFacts(keeps_secrets=True)).verdict == "secret"
    assert guess(key).verdict == "look"


@pytest.mark.parametrize("name", ["line_number", "order_no", "number", "status_code", "quantity", "page_count"])
def test_a_number_of_a_business_process_is_clear(name: str) -> None:
    assert guess(TableColumn(name, 1, "integer", "")).verdict == "clear"


@pytest.mark.parametrize("name", ["quantity", "page_count", "order_total", "shipped_at", "is_active", "status"])
def test_a_business_value_is_clear_in_a_table_that_refers_to_people(name: str) -> None:
    assert guess(TableColumn(name, 1, "integer", ""), (), TableFacts(refers_to_people=True)).verdict == "clear"


def test_a_run_together_name_is_divided_into_words_alone() -> None:
    vocabulary = {"manager", "pin", "man", "age", "r"}

    assert words("managerpin", vocabulary) == {"manager", "pin", "man", "age", "r"}
    assert words("spinning", vocabulary) == set()
    assert words("manager", vocabulary) == set()
    assert words("a" * 100_000, {"a", "aa"}) == {"a", "aa"}


