"""What changes in a database is shown, and taken over into the module text without losing what a person has written."""

import asyncio
from collections.abc import Sequence

import pytest

from countersign.connect import fit, postgres, rights, schema_changes
from countersign.connect.schema_changes import ModelChange
from countersign.declare import text
from countersign.declare.text import FieldText
from countersign.kernel.database.table_fingerprints import TableDefinition
from tests.connect.conftest import SCHEMAS, UNKNOWN, ChangingDatabase, DatabaseFactory, Shop, drafted, models_of


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

    changes = shop.changes()
    shop.accept()

    (change,) = changes
    assert change.model == "call"
    assert [line.partition(" ")[0] for line in change.lines] == ["+"] * 3
    assert any(
        line.startswith("+ phone ")
        and line.endswith('not in the file, so agents do not see it: phone = Text(max_length=20, personal="PHONE")')
        for line in change.lines
    )
    assert is_proven(changes)
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

    changes = shop.changes()
    assert not is_proven(changes)
    gone = "the column is gone" if not shop.database.is_sqlite else UNKNOWN
    assert f'- email: {gone}: mail = Text(column="email", label="Mail", personal="EMAIL")' in changes[0].lines
    assert set(changes[0].clear) == (set() if shop.database.is_sqlite else {"quantity"})
    shop.accept()

    was = 'mail = Text(column="email", label="Mail", personal="EMAIL")  # name'
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

    gone = "the column is gone" if not shop.database.is_sqlite else UNKNOWN
    assert f"call: - password: {gone}; it was left out" in shop.lines()
    shop.accept()

    assert "    # password: left out: the column is gone; it was left out: secret\n" in shop.written


def test_a_renamed_column_that_is_left_out_stays_left_out(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person RENAME COLUMN due TO number")

    changes = shop.changes()
    shop.accept()

    assert is_proven(changes) is not shop.database.is_sqlite
    is_called = "is gone, or may now be called" if shop.database.is_sqlite else "is now called"
    assert changes[0].lines[0] == f"~ the column due {is_called} number"
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
    shop.database.change(rights.grants(models_of(text.read(shop.written)).values(), role, "shop.py"))
    shop.database.url = shop.database.url.replace("postgres@", f"{role}@")
    assert shop.lines() == []

    shop.database.change("ALTER TABLE visit ADD COLUMN phone VARCHAR(20)")

    assert shop.lines() == ["call: + phone: not in the file, and the role may not read it"]
    shop.accept()
    assert "    # phone: left out: the role may not read it\n" in shop.written


def test_a_renamed_column_keeps_its_field(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person RENAME COLUMN email TO contact")
    shop.database.change("ALTER TABLE person RENAME COLUMN notes TO remarks")

    changes = shop.changes()
    shop.accept()

    assert is_proven(changes) is not shop.database.is_sqlite
    is_called = "is gone, or may now be called" if shop.database.is_sqlite else "is now called"
    assert sorted(line for line in changes[0].lines if line.startswith("~")) == [
        f"~ the column email {is_called} contact",
        f"~ the column notes {is_called} remarks",
    ]
    table = shop.database.place("person")
    comment = "look: no one has looked at its column; name" if shop.database.is_sqlite else "name"
    assert shop.field(table, "mail") == f'mail = Text(column="contact", label="Mail", personal="EMAIL")  # {comment}'
    assert shop.field(table, "notes").startswith('notes = LongText(column="remarks", personal="TEXT")  # look: ')


def swap(database: ChangingDatabase, first: str, second: str) -> None:
    """Let two columns of the table of people exchange their names."""
    for old, new in ((first, "other"), (second, first), ("other", second)):
        database.change(f"ALTER TABLE person RENAME COLUMN {old} TO {new}")


def test_fields_follow_columns_that_have_exchanged_their_names(shop: Shop) -> None:
    swap(shop.database, "name", "notes")

    changes = shop.changes()
    shop.accept()

    assert is_proven(changes) is not shop.database.is_sqlite
    table = shop.database.place("person")
    assert 'column="notes"' in shop.field(table, "name")
    assert 'personal="PERSON"' in shop.field(table, "name")
    assert 'LongText(column="name", personal="TEXT")' in shop.field(table, "notes")


def test_a_clear_field_is_masked_if_its_column_is_not_proven_to_be_the_same(shop: Shop) -> None:
    line = next(each for each in shop.written.splitlines() if each.startswith("    notes = LongText("))
    shop.edit((line, "    notes = LongText()"))
    shop.database.change("ALTER TABLE person DROP COLUMN notes")
    shop.database.change("ALTER TABLE person ADD COLUMN diagnosis TEXT")

    (change,) = shop.changes()
    shop.accept()

    assert not change.is_proven
    assert "notes = LongText()" not in shop.written.replace("it was notes = LongText()", "")
    assert not any(each.partition(" ")[0] in ("notes", "diagnosis") for each in change.clear)
    assert 'personal="TEXT"' in next(line for line in shop.written.splitlines() if "diagnosis" in line)


@pytest.mark.parametrize("other", ["social_security_number", "password_hash"])
def test_a_clear_field_whose_column_gets_a_personal_or_secret_name_is_masked(shop: Shop, other: str) -> None:
    line = next(each for each in shop.written.splitlines() if each.startswith("    title = Text("))
    shop.edit((line, "    title = Text(max_length=20)"))
    shop.database.change(f"ALTER TABLE visit RENAME COLUMN title TO {other}")

    (change,) = shop.changes()
    shop.accept()

    assert not change.is_proven
    assert not any(each.startswith("title") for each in change.clear)


def test_a_column_that_is_created_again_is_masked(shop: Shop) -> None:
    written = next(line for line in shop.written.splitlines() if line.startswith("    name = Text("))
    shop.edit((written, "    name = Text()"))
    shop.database.change("ALTER TABLE person DROP COLUMN name")
    shop.database.change("ALTER TABLE person ADD COLUMN name VARCHAR(45)")

    (change,) = shop.changes()
    shop.accept()

    assert not change.is_proven
    assert 'personal="PERSON"' in shop.field(shop.database.place("person"), "name")
    assert "  # look: " in shop.field(shop.database.place("person"), "name")


def test_a_field_of_a_column_that_the_fingerprint_does_not_cover_is_named_until_it_is_accepted(shop: Shop) -> None:
    shop.database.change("ALTER TABLE shelf ADD COLUMN colour TEXT")
    line = next(each for each in shop.written.splitlines() if each.startswith("    title = Text(max_length=20"))
    shop.edit((f"{line}\n", f"{line}\n    colour = Text()\n"))
    module = text.read(shop.written)
    named = [name for name, each in models_of(module).items() if "colour" in each.fields]

    changes = shop.changes()
    misfits = fit.misfits(models_of(module), shop.database.read())
    shop.accept()

    assert "shelf" in named
    lines = [line for each in changes if each.model == "shelf" for line in each.lines]
    assert lines == ["! colour is newer than the fingerprint, so the model is hidden: colour = Text()"]
    assert not is_proven(changes)
    assert "shelf" in {each.place for each in misfits}
    assert shop.field(shop.database.place("shelf"), "colour") == "colour = Text()"


def test_a_key_that_a_person_has_chosen_stays(shop: Shop) -> None:
    shop.edit(('key="id", fingerprint', 'key="title", fingerprint'))
    module = text.read(shop.written)
    fingerprint = definition_of(shop, "shelf").fingerprint(["title"])
    old = models_of(module)["shelf"].table
    assert old is not None
    shop.edit((old.fingerprint, fingerprint))
    assert [line for line in shop.lines() if line.startswith("shelf")] == []

    shop.database.change("ALTER TABLE shelf ADD COLUMN remark VARCHAR(20)")
    changes = [each for each in shop.changes() if each.model == "shelf"]
    accepted = schema_changes.accepted(text.read(shop.written), changes)

    assert is_proven(changes)
    table = models_of(accepted)["shelf"].table
    assert table is not None
    assert table.key_columns == ("title",)
    assert any("remark" in line for line in changes[0].lines)


def definition_of(shop: Shop, table: str) -> TableDefinition:
    """Return the definition of a table."""
    relation = next(each for each in shop.database.read().relations if each.name == table)
    assert relation.definition is not None
    return relation.definition


def test_a_table_whose_key_has_no_index_is_compared(shop: Shop) -> None:
    shelf, log = shop.database.place("shelf"), shop.database.place("log")
    shop.database.change("ALTER TABLE log ADD COLUMN title VARCHAR(20)")
    table = models_of(text.read(shop.written))["shelf"].table
    assert table is not None
    shop.edit(
        (f'Table("{shelf}", key="id"', f'Table("{log}", key="message"'),
        (table.fingerprint, definition_of(shop, "log").fingerprint(["message"])),
    )
    assert shop.lines() == []

    shop.database.change("ALTER TABLE log ADD COLUMN phone VARCHAR(20)")
    changes = shop.changes()
    shop.accept()

    assert is_proven(changes)
    assert f'Table("{log}", key="message"' in shop.written
    assert "phone = Text(" in shop.written


def test_a_model_without_a_fingerprint_gets_no_columns(shop: Shop) -> None:
    table = models_of(text.read(shop.written))["shelf"].table
    assert table is not None
    shop.edit((f', fingerprint="{table.fingerprint}"', ""))
    shop.database.change("ALTER TABLE shelf ADD COLUMN margin INTEGER")

    assert shop.lines() == []


def test_a_comment_of_a_person_stays(shop: Shop) -> None:
    line = next(each for each in shop.written.splitlines() if each.startswith("    title = Text(max_length=20"))
    shop.edit((f"{line}\n", f"{line}\n    # see wiki: left out: on purpose, ask Bob\n"))

    assert shop.lines() == []
    shop.database.change("ALTER TABLE shelf ADD COLUMN remark VARCHAR(20)")
    shop.accept()

    assert "    # see wiki: left out: on purpose, ask Bob\n" in shop.written


def test_a_column_that_comes_back_is_offered(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person DROP COLUMN email")
    shop.accept()
    shop.database.change("ALTER TABLE person ADD COLUMN email VARCHAR(50)")

    assert any(line.startswith("person: + email ") for line in shop.lines())


def test_a_kind_that_a_person_has_chosen_stays(shop: Shop) -> None:
    line = next(each for each in shop.written.splitlines() if each.startswith("    title = Text(max_length=20"))
    shop.edit((line, '    title = Bool(label="Open", restricted=("shop_reader",))'))
    shop.edit(("import Grant", "import Bool, Grant"))

    assert shop.lines() == []
    assert fit.misfits(models_of(text.read(shop.written)), shop.database.read()) == []


def test_a_field_with_another_kind_keeps_its_restriction(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.edit(("    quantity = Number()", '    quantity = Number(restricted=("shop_reader",))'))
    shop.database.change("ALTER TABLE person ALTER COLUMN quantity TYPE text")

    changes = shop.changes()
    shop.accept()

    assert not is_proven(changes)
    field = shop.field("public.person", "quantity")
    assert 'restricted=("shop_reader",)' in field
    assert field.endswith('; it was quantity = Number(restricted=("shop_reader",))')


def test_a_value_of_an_enum_type_that_is_no_word_becomes_an_option(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite has no enum types")
    shop.database.change("CREATE TYPE state AS ENUM ('open', 'closed')")
    shop.database.change("ALTER TABLE visit ADD COLUMN state state")
    shop.accept()
    shop.database.change("ALTER TYPE state ADD VALUE 'in progress'")

    assert not is_proven(shop.changes())
    shop.accept()

    values = '{"open": "open", "closed": "closed", "in progress": "in_progress"}'
    assert f"values={values}" in " ".join(shop.written.split()) or values in " ".join(shop.written.split())


def test_a_change_that_cannot_be_explained_needs_a_look(shop: Shop) -> None:
    swap(shop.database, "name", "notes")
    swap(shop.database, "email", "notes")

    changes = shop.changes()

    assert not is_proven(changes)
    assert any("is no longer the table that was reviewed" in line for line in changes[0].lines)


def test_a_field_with_a_wrong_kind_gets_that_of_a_draft(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.edit(("    quantity = Number()", '    quantity = Number(label="Pieces")'))
    shop.database.change("ALTER TABLE person ALTER COLUMN quantity TYPE text")

    changes = shop.changes()
    shop.accept()

    assert not is_proven(changes)
    assert "! quantity is now text, the file says Number" in changes[0].lines
    field = shop.field("public.person", "quantity")
    assert field.startswith('quantity = Text(label="Pieces", personal="TEXT")  # look: ')


def test_a_personal_value_with_another_type_is_left_out(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.edit(("    # due: left out: look: a value in a table about people", "    due = Date()"))
    shop.database.change("ALTER TABLE person ALTER COLUMN due TYPE integer USING 1")

    shop.accept()

    assert "    # due: left out: look: a value in a table about people; it was due = Date()\n" in shop.written
    assert "    due = " not in shop.written


def test_a_key_without_an_index_stays_until_a_person_names_another_one(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.database.change("ALTER TABLE visit DROP CONSTRAINT visit_pkey")
    shop.database.change("ALTER TABLE visit ADD PRIMARY KEY (guest, number)")

    assert "call: ! no unique index covers its key (number): with another one all ids change" in shop.lines()
    assert not is_proven(shop.changes())
    shop.accept()

    assert 'Table("public.visit", key="number", ' in shop.written


def test_another_key_is_taken_over_if_a_column_of_the_key_is_gone(shop: Shop) -> None:
    shop.database.change("DROP TABLE shelf")
    shop.database.change("CREATE TABLE shelf (code INTEGER PRIMARY KEY, title VARCHAR(20), pages INTEGER)")

    (change,) = shop.changes()
    shop.accept()

    assert "! id of its key is gone, so the ids of its records change" in change.lines
    assert not change.is_proven
    assert f'Table("{shop.database.place("shelf")}", key="code", ' in shop.written


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

    new_tables = schema_changes.new_tables(module, models_of(module), shop.database.read())

    assert new_tables == [shop.database.place("invoice")]


def test_a_new_reference_names_the_model_of_the_file(shop: Shop) -> None:
    shop.database.change("ALTER TABLE person ADD COLUMN last_visit INTEGER REFERENCES visit (number)")

    changes = shop.changes()
    shop.accept()

    assert 'last_visit = Ref("call")' in shop.written or 'Ref("call", columns="last_visit")' in shop.written
    assert not is_proven(changes), "a foreign key changes the fingerprint"


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


def test_a_change_besides_the_columns_is_named(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite has no row-level security, and adds no foreign key to a table")
    shop.database.change("ALTER TABLE visit ENABLE ROW LEVEL SECURITY")
    switched = shop.changes()
    shop.accept()
    shop.database.change("ALTER TABLE visit ADD FOREIGN KEY (number) REFERENCES shelf (id)")
    referring = shop.changes()

    assert [each.lines for each in switched] == [("! row-level security is now on, so the model is hidden",)]
    assert "! a foreign key to public.shelf is new, so the model is hidden" in referring[0].lines
    assert not is_proven([*switched, *referring])


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("ALTER TABLE person ALTER COLUMN quantity TYPE bigint", "the type of quantity is now int8, and was int4"),
        ("ALTER TABLE person DROP COLUMN email", "the column email is gone, and the others are as they were"),
        ("ALTER TABLE shelf DROP CONSTRAINT shelf_pkey", "the primary key is now none, and was (id)"),
    ],
)
def test_a_single_change_of_a_table_is_named(shop: Shop, statement: str, line: str) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite changes neither the type nor the key of a table, and numbers its columns anew")

    shop.database.change(statement)
    changes = shop.changes()

    assert f"! {line}, so the model is hidden" in changes[0].lines
    assert not is_proven(changes)
    assert not any("exchanged" in each for each in changes[0].lines)


def test_an_unknown_change_is_shown_with_what_the_table_is_now(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite has no row-level security")
    shop.database.change("ALTER TABLE visit ENABLE ROW LEVEL SECURITY")
    shop.database.change("ALTER TABLE visit ALTER COLUMN title TYPE text")

    lines = shop.changes()[0].lines

    assert any("is no longer the table that was reviewed" in each for each in lines)
    facts = "row-level security is on; its primary key is (number); guest refers to public.person"
    assert f"! it is a table; {facts}" in lines


def restore(shop: Shop, columns: str) -> None:
    """Replace the table `visit` by one with these columns, as restoring a dump of it does."""
    shop.database.change(f"DROP TABLE visit; CREATE TABLE visit ({columns})")


def test_a_restored_dump_is_recognized_by_the_order_of_its_columns(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite numbers its columns anew when one is dropped")
    shop.database.change("ALTER TABLE visit DROP COLUMN password")
    shop.database.change("ALTER TABLE visit ADD COLUMN colour text")
    shop.accept()
    shop.edit(("colour = Text(", "shade = Text(column=\"colour\", "))

    columns = "number integer PRIMARY KEY, guest integer REFERENCES person (id), title varchar(20), colour text"
    restore(shop, f"{columns}, phone varchar(20)")
    changes = shop.changes()
    shop.accept()

    assert is_proven(changes)
    note = "~ the columns have other numbers, in the same order, as after a restored dump"
    assert changes[0].lines[0] == note
    assert changes[0].lines[1].startswith("+ phone ")
    assert "shade = Text(column=\"colour\", " in shop.written


def test_a_restored_table_with_other_columns_is_no_proof(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite numbers its columns anew when one is dropped")
    shop.database.change("ALTER TABLE visit DROP COLUMN password")
    shop.database.change("ALTER TABLE visit ADD COLUMN colour varchar(20)")
    shop.accept()

    restore(shop, "number integer PRIMARY KEY, guest integer REFERENCES person (id), colour text, title varchar(20)")

    assert not is_proven(shop.changes())


def test_a_new_column_that_agents_would_read_in_clear_needs_a_look(shop: Shop) -> None:
    shop.database.change("ALTER TABLE shelf ADD COLUMN remark VARCHAR(20)")
    masked = shop.changes()
    shop.database.change("ALTER TABLE shelf ADD COLUMN pieces INTEGER")
    clear = shop.changes()

    assert is_proven(masked)
    assert not is_proven(clear)
    assert clear[0].clear == ("pieces",)


def test_a_clear_number_whose_column_gets_a_personal_name_is_left_out(shop: Shop) -> None:
    shop.database.change("ALTER TABLE visit ADD COLUMN quantity INTEGER")
    shop.accept()
    assert shop.field(shop.database.place("visit"), "quantity") == "quantity = Number()"
    shop.database.change("ALTER TABLE visit RENAME COLUMN quantity TO salary")

    changes = shop.changes()
    shop.accept()

    assert not is_proven(changes)
    assert "    # salary: left out: look: " in shop.written
    assert "it was quantity = Number(" in shop.written


def test_a_number_that_a_person_has_cleared_stays_clear_under_a_name_of_the_same_sort(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite proves nothing")
    shop.database.change("ALTER TABLE person RENAME COLUMN quantity TO pieces")

    changes = shop.changes()
    shop.accept()

    assert is_proven(changes)
    assert shop.field("public.person", "quantity") == 'quantity = Number(column="pieces")'


def test_a_clear_answer_whose_column_is_renamed_needs_a_look(shop: Shop) -> None:
    shop.database.change("ALTER TABLE shelf ADD COLUMN is_open BOOLEAN")
    shop.accept()
    assert shop.field(shop.database.place("shelf"), "is_open") == "is_open = Bool()"
    shop.database.change("ALTER TABLE shelf RENAME COLUMN is_open TO is_lit")

    assert not is_proven(shop.changes())


def test_a_clear_number_whose_column_becomes_a_date_needs_a_look(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite does not change the type of a column")
    shop.database.change("ALTER TABLE shelf ADD COLUMN quantity INTEGER")
    shop.accept()
    shop.database.change("ALTER TABLE shelf ALTER COLUMN quantity TYPE date USING '2026-01-01'::date")

    shop.accept()

    assert shop.field("public.shelf", "quantity").startswith("quantity = Date()  # look: ")


def test_a_renamed_column_of_a_table_that_has_changed_otherwise_is_named(shop: Shop) -> None:
    if shop.database.is_sqlite:
        pytest.skip("SQLite does not change the type of a column")
    shop.database.change("ALTER TABLE person RENAME COLUMN email TO contact")
    shop.database.change("ALTER TABLE person ALTER COLUMN quantity TYPE bigint")

    lines = shop.changes()[0].lines

    assert "! the file does not name contact character varying(50): agents do not see it" in lines
