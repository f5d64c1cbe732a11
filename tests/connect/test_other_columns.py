"""A column that may be another one is masked or marked, and what a person has written about it stays."""

import pytest

from tests.connect.conftest import UNKNOWN, Shop
from tests.connect.test_schema_changes import is_proven


def clear_text(shop: Shop, table: str, field: str) -> str:
    """Let a person show a text to agents, and return its line."""
    place = shop.database.place(table)
    line = shop.field(place, field)
    word = line.partition(" = ")[2].partition("(")[0]
    shop.edit((f"    {line}", f"    {field} = {word}()  # ask Bob"))
    return shop.field(place, field)


def test_a_column_that_takes_the_name_of_one_that_is_dropped_is_masked(shop: Shop) -> None:
    clear_text(shop, "visit", "title")
    shop.database.change("ALTER TABLE visit ADD COLUMN motto VARCHAR(20)")
    shop.accept()
    shop.database.change("ALTER TABLE visit DROP COLUMN title")
    shop.database.change("ALTER TABLE visit RENAME COLUMN motto TO title")

    (change,) = shop.changes()
    shop.accept()

    assert any(line.startswith(f"- motto: {UNKNOWN}: motto = ") for line in change.lines)
    assert change.clear == ()
    field = shop.field(shop.database.place("visit"), "title")
    assert field == 'title = Text(personal="TEXT")  # look: no one has looked at its column; ask Bob'


def test_clear_columns_that_have_exchanged_three_names_are_masked_or_looked_at(shop: Shop) -> None:
    clear_text(shop, "shelf", "title")
    for column in ("motto VARCHAR(20)", "margin INTEGER", "height INTEGER", "width INTEGER", "password VARCHAR(20)"):
        shop.database.change(f"ALTER TABLE shelf ADD COLUMN {column}")
    shop.accept()
    assert shop.field(shop.database.place("shelf"), "height") == "height = Number()"
    for names in (("title", "motto", "password"), ("margin", "height", "width")):
        for old, new in zip(names, (*names[1:], "spare"), strict=True):
            shop.database.change(f"ALTER TABLE shelf RENAME COLUMN {old} TO {new}_")
        shop.database.change(f"ALTER TABLE shelf RENAME COLUMN spare_ TO {names[0]}_")
        for name in names:
            shop.database.change(f"ALTER TABLE shelf RENAME COLUMN {name}_ TO {name}")

    shop.accept()

    place = shop.database.place("shelf")
    assert 'personal="TEXT"' in shop.field(place, "title")
    assert "  # look: " in shop.field(place, "title")
    assert shop.field(place, "height") == "height = Number()  # look: no one has looked at its column"
    assert "    # password: left out: secret\n" in shop.written


@pytest.mark.parametrize("statement", ["DROP COLUMN title", "RENAME COLUMN title TO password_hash"])
def test_the_comment_of_a_person_stays_with_the_declaration(shop: Shop, statement: str) -> None:
    clear_text(shop, "visit", "title")
    shop.database.change(f"ALTER TABLE visit {statement}")

    shop.accept()

    was = "title = Text()" if statement.startswith("DROP") else 'title = Text(column="password_hash")'
    assert f"; it was {was}  # ask Bob\n" in shop.written


def test_a_clear_text_with_another_name_needs_a_look(shop: Shop) -> None:
    clear_text(shop, "visit", "title")
    shop.database.change("ALTER TABLE visit RENAME COLUMN title TO diagnosis")

    changes = shop.changes()
    shop.accept()

    assert not is_proven(changes)
    is_sqlite = shop.database.is_sqlite
    warning = "! agents read diagnosis in clear: look whether it has the same content"
    assert (warning in changes[0].lines) is not is_sqlite
    assert changes[0].clear == (() if is_sqlite else ("title (diagnosis)",))
