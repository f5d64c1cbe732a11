"""Each decision on a column is a change of the module text, which stays valid."""

from dataclasses import replace

import pytest

from countersign.declare import text
from countersign.declare.model import Declared
from countersign.declare.registry import Registry
from countersign.declare.review import (
    Decision,
    DecisionNote,
    MappedColumn,
    TokenLabel,
    decided,
    mapped_columns,
    undecided_columns,
)
from countersign.declare.text import ModuleText
from countersign.records import base_models

MODULE = '''"""shop, from a test. 4 columns to look at."""

from countersign.declare import LongText, Model, Module, Table, Text


class Customer(Model, table=Table("customer", key="id")):
    """A row of customer."""

    # a comment of a person
    email = Text(personal="EMAIL")  # name
    note = LongText(column="Note", personal="TEXT")  # look: text that no one has looked at
    city = Text(max_length=20, personal="TEXT")  # look: text that no one has looked at
    phone = LongText(personal="PHONE", linked=False)  # look: its table has changed
    # born.at: left out: look: a personal value, and tokens stand for text only
    # password: left out: secret


# customer.city: a comment between the models


module = Module("shop", version="1.0.0", models=(Customer,))
'''


def after(**decisions: Decision) -> tuple[ModuleText, Declared]:
    """Return the module text and its model after these decisions on fields of the customer."""
    places: dict[str, Decision] = {f"customer.{name}": each for name, each in decisions.items()}
    module_text = decided(text.read(MODULE), places)
    assert text.read(text.write(module_text)) == module_text
    return module_text, Registry((base_models.MODULE, text.build(module_text, "shop.py"))).models["customer"]


def test_the_columns_to_look_at_say_what_agents_see() -> None:
    columns = undecided_columns(text.read(MODULE))

    assert [(each.place, each.shown) for each in columns] == [
        ("customer.note", "TEXT_…"),
        ("customer.city", "TEXT_…"),
        ("customer.phone", "PHONE_…"),
        ("customer.born.at", "nothing"),
    ]
    reason = "text that no one has looked at"
    assert replace(columns[0], written=None, field=None) == MappedColumn("customer", "note", "TEXT", reason)


def test_no_decision_changes_nothing() -> None:
    assert after()[0] == text.read(MODULE)
    assert decided(text.read(MODULE), {"customer.password": "hide", "order.note": "hide"}) == text.read(MODULE)


def test_a_clear_field_is_not_personal() -> None:
    module_text, customer = after(city="clear", phone="clear")

    assert (customer.fields["city"].personal, customer.fields["phone"].personal) == (None, None)
    assert "    city = Text(max_length=20)  # decided\n" in text.write(module_text)
    assert "    phone = LongText()  # decided\n" in text.write(module_text)
    assert module_text.summary == "shop, from a test. 2 columns to look at."


@pytest.mark.parametrize("name", ["note", "city", "phone"])
@pytest.mark.parametrize("label", ["PERSON", "REMARK"])
def test_a_label_is_valid_for_every_kind_of_text(name: str, label: str) -> None:
    module_text, customer = after(**{name: TokenLabel(label)})

    assert customer.fields[name].personal == label
    assert customer.fields[name].linked == (label == "PERSON" and name == "city")
    assert f"customer.{name}" not in [each.place for each in undecided_columns(module_text)]


def test_a_hidden_field_becomes_a_comment_that_keeps_its_declaration() -> None:
    module_text, customer = after(note="hide")

    assert "note" not in customer.fields
    was = 'note = LongText(column="Note", personal="TEXT")  # look: text that no one has looked at'
    assert f"    # Note: left out: hidden; it was {was}\n" in text.write(module_text)
    assert "note" not in [each.name for each in undecided_columns(module_text)]


def test_a_column_that_is_left_out_can_only_be_hidden() -> None:
    impossible: tuple[Decision, ...] = ("clear", TokenLabel("DATE"))
    for decision in impossible:
        given: dict[str, Decision] = {"born.at": decision}
        assert after(**given)[0] == text.read(MODULE)

    hidden: dict[str, Decision] = {"born.at": "hide"}
    module_text, _ = after(**hidden)

    comment = "    # born.at: left out: hidden: a personal value, and tokens stand for text only\n"
    assert comment in text.write(module_text)
    assert len(undecided_columns(module_text)) == 3


NOTE = DecisionNote("root", "2026-11-30", "looked at it; it was fine: left out: look: x")


@pytest.mark.parametrize("decision", ["clear", "hide", TokenLabel("REMARK")])
@pytest.mark.parametrize("name", ["email", "note", "city", "phone"])
def test_the_comment_says_who_has_decided_and_why(name: str, decision: Decision) -> None:
    module_text = decided(text.read(MODULE), {f"customer.{name}": decision}, NOTE)

    assert text.read(text.write(module_text)) == module_text
    column = next(each for each in mapped_columns(module_text) if each.name == name)
    assert (column.state, column.note.by, column.note.day) == ("decided", "root", "2026-11-30")
    assert column.note.reason == "looked at it, it was fine left out look: x"
    assert column.is_left_out == (decision == "hide")
    assert "decided by root on 2026-11-30: looked at it" in text.write(module_text)


def test_a_column_without_a_kind_keeps_the_note_of_the_person_who_has_hidden_it() -> None:
    module_text = decided(text.read(MODULE), {"customer.born.at": "hide"}, NOTE)

    column = next(each for each in mapped_columns(module_text) if each.name == "born.at")
    assert (column.state, column.note.by, column.choices) == ("decided", "root", ())


def test_a_hidden_field_can_be_decided_on_again() -> None:
    hidden = after(note="hide")[0]

    module_text = decided(hidden, {"customer.note": TokenLabel("REMARK")})

    assert '    note = LongText(column="Note", personal="REMARK")  # decided\n' in text.write(module_text)
    assert text.write(decided(hidden, {"customer.note": "hide"})) == text.write(hidden)


def test_a_field_with_any_comment_can_be_hidden_and_shown_again() -> None:
    note = DecisionNote("root", "2026-11-30", "as agreed\u00a0with\nlegal \x07")
    labelled = text.read(text.write(decided(text.read(MODULE), {"customer.note": TokenLabel("REMARK")}, note)))
    hidden = text.read(text.write(decided(labelled, {"customer.note": "hide"}, note)))

    column = next(each for each in mapped_columns(hidden) if each.place == "customer.note")

    assert column.note.reason == "as agreed with legal \ufffd"
    assert column.choices == ("personal", "clear", "hidden")


@pytest.mark.parametrize("line", ["note = Text(", "import os", "a = Text(); b = 1", 'x = Text(column="\ufffd")'])
def test_a_hidden_column_without_its_whole_declaration_stays_hidden(line: str) -> None:
    module = MODULE.replace("# password: left out: secret", f"# password: left out: hidden; it was {line}")

    column = next(each for each in mapped_columns(text.read(module)) if each.name == "password")

    assert (column.state, column.field, column.choices) == ("decided", None, ())


def test_the_revision_of_a_column_changes_with_its_line_and_its_table_alone() -> None:
    def revisions(source: str) -> dict[str, str]:
        return {each.name: each.revision for each in mapped_columns(text.read(source))}

    before = revisions(MODULE)
    line = revisions(MODULE.replace("max_length=20", "max_length=30"))
    table = revisions(MODULE.replace('key="id"', 'key="number"'))

    assert {name for name in before if before[name] != line[name]} == {"city"}
    assert all(before[name] != table[name] for name in before)


def test_other_comments_stay() -> None:
    written = text.write(after(note="hide", city="clear")[0])

    for comment in ("# a comment of a person", "# password: left out: secret", "# customer.city: a comment"):
        assert comment in written
    assert 'email = Text(personal="EMAIL")  # name' in written
