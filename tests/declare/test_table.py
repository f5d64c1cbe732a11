"""Models with a table of an existing database: names, columns and commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.declare import Bool, Decimal, DeclarationError, Grant, Moment, Money, Ref, Role, Select, Table, Text
from countersign.declare.model import TABLE_COMMANDS
from countersign.declare.table import quoted, relation_names, relation_of
from tests.declare.sample_modules import model, registry
from tests.scaling.measuring import growth

NAMES = st.text(min_size=1).filter(lambda name: "\0" not in name)


@given(st.lists(NAMES, min_size=1, max_size=2))
def test_the_names_of_a_relation_are_parsed_as_written(names: list[str]) -> None:
    assert relation_names(relation_of(*names)) == tuple(names)


def test_the_names_of_a_relation_are_quoted_in_sql() -> None:
    assert list(map(quoted, relation_names("public.customer"))) == ['"public"', '"customer"']
    assert list(map(quoted, relation_names(relation_of('"); import os #')))) == ['"""); import os #"']


def test_columns_have_the_name_of_the_field_unless_another_is_declared() -> None:
    active, store, line = Bool(column="activebool"), Ref("store", columns="store_id"), Ref("line", columns=("a", "b"))
    active.name = store.name = line.name = "field"

    assert (active.table_columns, store.table_columns) == (("activebool",), ("store_id",))
    assert line.table_columns == ("a", "b")
    title_field = Text()
    title_field.name = "title"
    assert title_field.table_columns == ("title",)


def test_a_model_with_a_table_has_only_reading_commands_and_reading_kinds() -> None:
    plant = model(
        "Plant",
        {"title": Text(), "seen": Moment(zone="Europe/Vienna"), "height": Decimal(), "price_minor": Money(scale=3)},
        table=Table("public.plant", key="id", fingerprint="0a", rows_about=12),
    )
    model_found = registry(plant, roles=(Role("gardener", Grant(model="plant", masked="*")),)).models["plant"]

    assert model_found.commands == TABLE_COMMANDS
    assert model_found.table == Table("public.plant", key="id", fingerprint="0a", rows_about=12)


def test_one_model_may_write_a_table_that_others_read() -> None:
    tables = [Table("public.plant", key="id", writable=True), Table("plant", key="id"), Table("bed.plant", key="id")]
    models = [model(f"Plant{number}", {"title": Text()}, table=each) for number, each in enumerate(tables)]

    assert {"plant0", "plant1", "plant2"} <= registry(*models).models.keys()


def test_the_values_of_a_column_give_the_options_of_a_select() -> None:
    state = Select(values={0: "draft", 1: "sent", 2: "draft"}, unknown="other")

    assert state.options == ("draft", "sent", "other")


@pytest.mark.parametrize("value", ["1", "-12.3400", "0.5"])
def test_a_decimal_is_a_text_of_digits(value: str) -> None:
    assert Decimal().read(value) == value


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_a_name_that_no_database_can_contain_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="NUL or half of a surrogate pair"):
        registry(model("Plant", {"title": Text()}, table=Table("plant", key=name)))
    with pytest.raises(DeclarationError, match="NUL or half of a surrogate pair"):
        registry(model("Plant", {"title": Text(column=name)}, table=Table("plant", key="id")))
    with pytest.raises(DeclarationError, match="NUL or half of a surrogate pair"):
        registry(model("Plant", {"title": Text(label=name)}, table=Table("plant", key="id")))
    with pytest.raises(DeclarationError, match="NUL or half of a surrogate pair"):
        registry(model("Plant", {"title": Select(values={name: "open"})}, table=Table("plant", key="id")))


def test_the_options_of_a_select_are_checked_in_linear_time() -> None:
    def select(count: int) -> Select:
        return Select(*(f"option-{number}" for number in range(count)))

    assert growth(select, lambda field: registry(model("Plant", {"state": field})), 8_000).is_linear
