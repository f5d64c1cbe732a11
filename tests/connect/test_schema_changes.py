"""What changes in a database is shown, and taken over into the module text without losing what a person has written."""

import asyncio
from collections.abc import Sequence

import pytest

from countersign.connect import draft, fit, postgres, rights, schema_changes
from countersign.connect.schema_changes import ModelChange
from countersign.declare import Declared, text
from countersign.declare.registry import Registry
from countersign.declare.text import FieldText, ModuleText
from countersign.records import base_models
from tests.connect.conftest import SCHEMAS, ChangingDatabase, DatabaseFactory, drafted

TABLES = """
CREATE TABLE person (
    id INTEGER PRIMARY KEY, name VARCHAR(45) NOT NULL, email VARCHAR(50), quantity INTEGER, due DATE, notes TEXT
);
CREATE TABLE visit (
    number INTEGER PRIMARY KEY, guest INTEGER REFERENCES person (id), title VARCHAR(20), password VARCHAR(20)
);
CREATE TABLE shelf (id INTEGER PRIMARY KEY, title VARCHAR(20));
CREATE TABLE log (message TEXT);
"""
EDITS = (
    ('email = Text(max_length=50, personal="EMAIL")', 'mail = Text(column="email", label="Mail", personal="EMAIL")'),
    ("# quantity: left out: look: a value in a table about people", "quantity = Number()"),
    ("class Visit(Model, ", 'class Call(Model, name="call", '),
    ("(Person, Shelf, Visit)", "(Person, Shelf, Call)"),
    ('Grant(model="visit"', 'Grant(model="call"'),
    ("module = Module(", "# The module of the shop.\nmodule = Module("),
)


def models_of(module: ModuleText) -> dict[str, Declared]:
    """Return the models of a module text, which is written and read again."""
    assert text.read(text.write(module)) == module
    registry = Registry((base_models.MODULE, text.build(module, "shop.py")))
    return {name: each for name, each in registry.models.items() if each.table is not None}


class Shop:
    """A database, and the module text for it that a person has edited."""

    def __init__(self, database: ChangingDatabase) -> None:
        self.database = database
        database.change(TABLES)
        drafted = draft.draft(database.read(), {}, name="shop", origin="a test")
        self.written = text.write(drafted.text)
        self.edit(*EDITS)

    def edit(self, *edits: tuple[str, str]) -> None:
        """Replace texts of the module text, each of which it must contain."""
        for old, new in edits:
            assert old in self.written, self.written
            self.written = self.written.replace(old, new)

    def changes(self) -> list[ModelChange]:
        """Return the changes since the text was written."""
        module = text.read(self.written)
        return schema_changes.changes(module, models_of(module), self.database.read(), {})

    def lines(self) -> list[str]:
        """Return the changes in words."""
        return [f"{each.model}: {line}" for each in self.changes() for line in each.lines]

    def accept(self) -> None:
        """Take all changes over, after which the module text fits its database and shows no change."""
        module = schema_changes.accepted(text.read(self.written), self.changes())
        models = models_of(module)
        self.written = text.write(module)
        assert fit.misfits(models, self.database.read()) == []
        assert self.lines() == []

    def field(self, model: str, name: str) -> str:
        """Return the line of a field, with its comment."""
        lines = [line.strip() for line in self.written.splitlines()]
        return next(line for line in lines[lines.index(f'"""A row of {model}."""') :] if line.startswith(f"{name} = "))


@pytest.fixture
def shop(changing_database: ChangingDatabase) -> Shop:
    """Return a shop, in each engine."""
    return Shop(changing_database)


def is_proven(changes: Sequence[ModelChange]) -> bool:
    """Return whether no change needs a look at the fields."""
    return all(each.is_proven for each in changes)


def test_without_a_change_there_is_nothing_to_accept(shop: Shop) -> None:
    assert shop.changes() == []
    module = text.read(shop.written)
    assert schema_changes.new_tables(module, models_of(module), shop.database.read()) == []


@pytest.mark.parametrize("name", sorted(path.stem for path in SCHEMAS.glob("*.sql")))
def test_a_new_draft_shows_no_change(name: str, schema_url: DatabaseFactory) -> None:
    url = schema_url(name)
    module = text.read(text.write(drafted(url, name).text))
    database = asyncio.run(postgres.read(url, []))

    assert schema_changes.changes(module, models_of(module), database, {}) == []
    assert schema_changes.new_tables(module, models_of(module), database) == []


def test_new_columns_are_declared_as_a_draft_declares_them(shop: Shop) -> None:
    before = shop.written
    for column in ("phone VARCHAR(20)", "api_key VARCHAR(20)", "salary INTEGER"):
        shop.database.change(f"ALTER TABLE visit ADD COLUMN {column}")

    found = shop.changes()
    shop.accept()

    (change,) = found
    assert change.model == "call"
    assert [line.partition(" ")[0] for line in change.lines] == ["+"] * 3
    assert any(
        line.startswith("+ phone ")
        and line.endswith('not in the file, so agents do not see it: phone = Text(max_length=20, personal="PHONE")')
        for line in change.lines
    )
    assert is_proven(found)
    table = shop.database.place("visit")
    assert shop.field(table, "phone") == 'phone = Text(max_length=20, personal="PHONE")  # name'
    assert "    # api_key: left out: secret\n" in shop.written
    assert "    # salary: left out: look: " in shop.written
    kept = [line for line in before.splitlines() if "fingerprint" not in line and "import" not in line]
    assert [line for line in kept if line not in shop.written.splitlines()] == []


def test_a_column_whose_line_a_person_has_deleted_is_not_offered_again(shop: Shop) -> None:
    shop.edit(("    quantity = Number()\n", ""))
    assert shop.lines() == []

    shop.database.change("ALTER TABLE person ADD COLUMN pieces INTEGER")
    shop.accept()

    assert "quantity" not in shop.written


def test_a_field_without_a_column_becomes_a_comment(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person DROP COLUMN email")

    found = shop.changes()
    assert not is_proven(found)
    assert '- email: the column is gone: mail = Text(column="email", label="Mail", personal="EMAIL")' in found[0].lines
    assert set(found[0].clear) == {"quantity"}
    shop.accept()

    was = 'mail = Text(column="email", label="Mail", personal="EMAIL")'
    assert f"    # email: left out: the column is gone; it was {was}\n" in shop.written


def test_a_new_column_is_found_beside_columns_that_are_gone(shop: Shop) -> None:
    for statement in ("DROP COLUMN email", "DROP COLUMN due", "ADD COLUMN phone VARCHAR(20)"):
        shop.database.change(f"ALTER TABLE person {statement}")
    shop.accept()
    assert 'phone = Text(max_length=20, personal="PHONE")' in shop.written

    shop.database.change("ALTER TABLE person DROP COLUMN name")
    shop.database.change("ALTER TABLE person ADD COLUMN fax VARCHAR(20)")
    shop.accept()

    assert 'fax = Text(max_length=20, personal="PHONE")' in shop.written


def test_a_comment_on_a_column_that_is_gone_says_so(shop: Shop) -> None:
    shop.database.change("ALTER TABLE visit DROP COLUMN password")

    assert "call: - password: the column is gone; it was left out" in shop.lines()
    shop.accept()

    assert "    # password: left out: the column is gone\n" in shop.written


def test_a_renamed_column_that_is_left_out_stays_left_out(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person RENAME COLUMN due TO number")

    found = shop.changes()
    shop.accept()

    assert is_proven(found) is not shop.database.is_sqlite
    assert found[0].lines[0] == "~ the column due is now called number"
    assert "    # number: left out: look: a value in a table about people\n" in shop.written
    assert "due" not in shop.written


def test_a_column_in_the_place_of_another_is_no_proof(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person ADD COLUMN secret_text TEXT")
    shop.database.change("ALTER TABLE person DROP COLUMN notes")

    assert not is_proven(shop.changes())


def test_new_fields_that_agents_read_in_clear_are_named(shop: Shop) -> None:
    shop.database.change("ALTER TABLE shelf ADD COLUMN pieces INTEGER")
    shop.database.change("ALTER TABLE shelf ADD COLUMN remark VARCHAR(20)")

    (change,) = shop.changes()
    shop.accept()

    assert change.clear == ("pieces",)
    assert shop.field(shop.database.place("shelf"), "pieces") == "pieces = Number()"


def test_a_role_without_rights_on_a_column_is_told_of_it(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite has no roles")
    role = f"narrow_{shop.database.url.rpartition('/')[2]}"
    shop.database.change(rights.grants(models_of(text.read(shop.written)), role, "shop.py"))
    shop.database.url = shop.database.url.replace("postgres@", f"{role}@")
    assert shop.lines() == []

    shop.database.change("ALTER TABLE visit ADD COLUMN phone VARCHAR(20)")

    assert shop.lines() == ["call: + phone: not in the file, and the role may not read it"]
    shop.accept()
    assert "    # phone: left out: the role may not read it\n" in shop.written


def test_a_renamed_column_keeps_its_field(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person RENAME COLUMN email TO contact")
    shop.database.change("ALTER TABLE person RENAME COLUMN notes TO remarks")

    found = shop.changes()
    shop.accept()

    assert is_proven(found) is not shop.database.is_sqlite
    assert sorted(line for line in found[0].lines if line.startswith("~")) == [
        "~ the column email is now called contact",
        "~ the column notes is now called remarks",
    ]
    table = shop.database.place("person")
    assert shop.field(table, "mail") == 'mail = Text(column="contact", label="Mail", personal="EMAIL")  # name'
    assert shop.field(table, "notes").startswith('notes = LongText(column="remarks", personal="TEXT")  # look: ')


def swap(database: ChangingDatabase, first: str, second: str) -> None:
    """Let two columns of the table of people exchange their names."""
    for old, new in ((first, "other"), (second, first), ("other", second)):
        database.change(f"ALTER TABLE person RENAME COLUMN {old} TO {new}")


def test_fields_follow_columns_that_have_exchanged_their_names(shop: Shop) -> None:
    shop.edit(('    notes = LongText(personal="TEXT")', "    notes = LongText()"))
    swap(shop.database, "name", "notes")

    found = shop.changes()
    shop.accept()

    assert is_proven(found) is not shop.database.is_sqlite
    table = shop.database.place("person")
    assert 'column="notes"' in shop.field(table, "name")
    assert 'personal="PERSON"' in shop.field(table, "name")
    assert 'LongText(column="name")' in shop.field(table, "notes")


def test_a_change_that_cannot_be_explained_needs_a_look(shop: Shop) -> None:
    swap(shop.database, "name", "notes")
    swap(shop.database, "email", "notes")

    found = shop.changes()

    assert not is_proven(found)
    assert any("is no longer the table that was reviewed" in line for line in found[0].lines)


def test_a_field_with_a_wrong_kind_gets_that_of_a_draft(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.edit(("    quantity = Number()", '    quantity = Number(label="Pieces")'))
    shop.database.change("ALTER TABLE person ALTER COLUMN quantity TYPE text")

    found = shop.changes()
    shop.accept()

    assert not is_proven(found)
    assert "! quantity is now text, the file says Number" in found[0].lines
    field = shop.field("public.person", "quantity")
    assert field.startswith('quantity = Text(label="Pieces", personal="TEXT")  # look: ')


def test_a_personal_value_with_another_type_is_left_out(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.edit(("    # due: left out: look: a value in a table about people", "    due = Date()"))
    shop.database.change("ALTER TABLE person ALTER COLUMN due TYPE integer USING 1")

    shop.accept()

    assert "    # due: left out: look: a value in a table about people" in shop.written
    assert "due = " not in shop.written


def test_another_key_is_taken_over(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.database.change("ALTER TABLE visit DROP CONSTRAINT visit_pkey")
    shop.database.change("ALTER TABLE visit ADD PRIMARY KEY (guest, number)")

    assert "call: ! (number) is no longer its key, so the ids of its records change" in shop.lines()
    shop.accept()

    assert 'Table("public.visit", key=("guest", "number"), ' in shop.written


def test_a_new_value_of_an_enum_type_becomes_an_option(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite has no enum types")
    shop.database.change("CREATE TYPE state AS ENUM ('open', 'closed')")
    shop.database.change("ALTER TABLE visit ADD COLUMN state state")
    shop.accept()
    shop.edit(('state = Select("open", "closed")', 'state = Select("closed", "open", label="State now")'))
    assert shop.lines() == []
    shop.database.change("ALTER TYPE state ADD VALUE 'paused'")

    assert shop.lines() == ["call: + state has the new value paused, which is shown as empty"]
    shop.accept()

    assert shop.field("public.visit", "state") == 'state = Select("closed", "open", "paused", label="State now")'


def test_a_table_that_is_gone_stays_in_the_file(shop: Shop) -> None:
    shop.database.change("DROP TABLE visit")
    before = shop.written

    (change,) = shop.changes()

    assert change.lines == (f"! its table {shop.database.place('visit')} is gone, or may no longer be read",)
    assert change.changed is None
    assert schema_changes.accepted(text.read(before), [change]) == text.read(before)


def test_a_table_that_the_file_does_not_name_is_listed(shop: Shop) -> None:
    shop.database.change("CREATE TABLE invoice (id INTEGER PRIMARY KEY, title VARCHAR(20))")
    shop.database.change("CREATE TABLE keyless (title VARCHAR(20))")
    module = text.read(shop.written)

    found = schema_changes.new_tables(module, models_of(module), shop.database.read())

    assert found == [shop.database.place("invoice")]


def test_a_new_reference_names_the_model_of_the_file(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person ADD COLUMN last_visit INTEGER REFERENCES visit (number)")

    found = shop.changes()
    shop.accept()

    assert 'last_visit = Ref("call")' in shop.written or 'Ref("call", columns="last_visit")' in shop.written
    assert not is_proven(found), "a foreign key changes the fingerprint"


HOSTILE = ('"); import os #', "a\nb", "'; DROP TABLE visit; --", "\\", "{}", "#", "\x07\u202e", "😀", " ", "None")


def test_new_columns_can_have_any_name(shop: Shop) -> None:
    for name in HOSTILE:
        quoted = name.replace('"', '""')
        shop.database.change(f'ALTER TABLE visit ADD COLUMN "{quoted}" VARCHAR(20)')

    shop.accept()

    fields = models_of(text.read(shop.written))["call"].fields
    assert {column for field in fields.values() for column in field.table_columns} >= set(HOSTILE)
    new = [each for each in text.read(shop.written).models[2].body if isinstance(each, FieldText)]
    assert all("personal" in dict(each.call.options) for each in new if each.call.word in ("Text", "LongText"))


def test_a_renamed_column_with_any_name_keeps_its_field(shop: Shop) -> None:
    for old, new in (("email", '"); import os #'), ("notes", "a\nb")):
        quoted = new.replace('"', '""')
        shop.database.change(f'ALTER TABLE person RENAME COLUMN {old} TO "{quoted}"')

    assert all("\n" not in line for line in shop.lines())
    shop.accept()

    fields = models_of(text.read(shop.written))["person"].fields
    assert (fields["mail"].table_columns, fields["notes"].table_columns) == (('"); import os #',), ("a\nb",))


def test_a_view_keeps_the_key_that_a_person_has_named(shop: Shop) -> None:
    shop.database.change("CREATE VIEW shown AS SELECT number, title FROM visit")
    shown = shop.database.place("shown")
    shop.edit(
        (f'Table("{shop.database.place("visit")}"', f'Table("{shown}"'),
        ('    guest = Ref("person", columns="guest")\n', ""),
    )

    assert any("is no longer the table that was reviewed" in line for line in shop.lines())
    shop.accept()
    shop.database.change("DROP VIEW shown")
    shop.database.change("CREATE VIEW shown AS SELECT number, title, title AS phone FROM visit")

    shop.accept()

    assert f'Table("{shown}", key="number"' in shop.written
    assert "phone = Text(" in shop.written
