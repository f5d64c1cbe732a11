"""What the guess cannot clear stays masked or is left out, on both engines."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from countersign.connect.draft import LOOK, Draft
from countersign.connect.guess import guess
from countersign.connect.run_together import words
from countersign.connect.schema import BaseType, TableColumn
from countersign.declare import text
from countersign.declare.registry import Registry
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
def found(request: pytest.FixtureRequest, schema_url: DatabaseFactory, tmp_path: Path) -> Draft:
    """Return the draft for the schema `denied.sql`, in each engine."""
    if request.param == "postgres":
        return drafted(schema_url("denied"), "denied")
    return drafted_sqlite(sqlite_denied(tmp_path))


def test_secrets_of_every_type_are_no_fields(found: Draft) -> None:
    assert {each.removeprefix("thing.") for each in found.report.secret} == SECRET


def test_personal_values_that_are_no_text_are_left_out_to_look_at(found: Draft) -> None:
    written = text.write(found.text)

    assert [each for each in sorted(LEFT_OUT) if f"    # {each}: left out: {LOOK}" not in written] == []
    assert {each.removeprefix("thing.") for each in found.report.look} == LEFT_OUT | MASKED


def test_text_is_masked_whatever_its_name_and_its_first_values_say(found: Draft) -> None:
    fields = {each.name: each for each in found.text.models[0].body if isinstance(each, FieldText)}
    module = text.build(text.read(text.write(found.text)), "module.py")
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


def test_a_run_together_name_is_divided_into_words_alone() -> None:
    vocabulary = {"manager", "pin", "man", "age", "r"}

    assert words("managerpin", vocabulary) == {"manager", "pin", "man", "age", "r"}
    assert words("spinning", vocabulary) == set()
    assert words("manager", vocabulary) == set()
    assert words("a" * 100_000, {"a", "aa"}) == {"a", "aa"}


