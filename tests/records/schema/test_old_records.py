"""Existing records after an upgrade: defaults, computed fields, totals, folded copies, and ids in the vault."""

from countersign.declare import TODAY, Bool, Date, LongText, Money, Move, Number, Ref, Select, Text, Workflow
from countersign.kernel import clock
from countersign.kernel.database.port import Database
from countersign.records import root_secret
from countersign.records.masking.vault import PersonalValue, Vault
from countersign.records.schema.rows import BATCH, RowTaskRunner
from countersign.records.schema.snapshot import RowTask
from tests.records.schema.conftest import MASTER, all_of, column_of, model, put, put_many, registry, upgrade

MANY = 2 * BATCH + 3


def _shown(title: str, total_minor: int) -> str:
    return f"{title} {total_minor}"


def _amount(count: int, price_minor: int) -> int:
    return count * price_minor


def _first(first: str) -> str:
    return first


def _both(first: str, last: str) -> str:
    return f"{first} {last}"


async def test_an_optional_field_is_added_and_empty(database: Database) -> None:
    await upgrade(database, model("lead", title=Text()))
    await put(database, "lead", title="One")

    await upgrade(database, model("lead", title=Text(), size=Number(default=7)))

    assert await all_of(database, "lead", "title", "size", "revision") == [("One", None, 1)]


async def test_a_required_field_is_filled_with_its_default(database: Database) -> None:
    await upgrade(database, model("lead", title=Text()))
    await put(database, "lead", title="One")

    with clock.fixed(clock.Instant(1_700_000_000_000_000)):
        await upgrade(
            database,
            model(
                "lead",
                title=Text(),
                is_open=Bool(required=True, default=True),
                source=Text(required=True, default="By Hand"),
                since=Date(required=True, default=TODAY),
            ),
        )

    columns = ("is_open", "source", "source__folded", "since")
    assert await all_of(database, "lead", *columns) == [(1, "By Hand", "by hand", "2023-11-14")]


async def test_a_field_that_becomes_required_is_filled_where_it_is_empty(database: Database) -> None:
    await upgrade(database, model("lead", source=Text(personal="PERSON")))
    await put(database, "lead", source="Web", source__folded="web", source__value=7)
    await put(database, "lead")

    await upgrade(database, model("lead", source=Text(personal="PERSON", required=True, default="Hand")))

    (value_id,) = [row[0] for row in await database.fetch("SELECT id FROM pii_value")]
    columns = ("source", "source__folded", "source__value")
    assert await all_of(database, "lead", *columns) == [("Web", "web", 7), ("Hand", "hand", value_id)]


async def test_records_begin_where_a_new_workflow_begins(database: Database) -> None:
    await upgrade(database, model("lead", title=Text()))
    await put(database, "lead", title="One")

    staged = model("lead", title=Text(), stage=Select("new", "won"), flow=Workflow("stage", win=Move("new", to="won")))
    await upgrade(database, staged)

    assert await column_of(database, "lead", "stage") == ["new"]


async def test_computed_fields_and_totals_are_created_after_their_source_fields(database: Database) -> None:
    await upgrade(database, model("bill", title=Text()), model("line", bill=Ref("bill"), count=Number()))
    first_bill, empty = await put(database, "bill", title="A"), await put(database, "bill", title="B")
    for number in (2, 3, None):
        await put(database, "line", bill=first_bill, count=number)

    sentences = await upgrade(
        database,
        model(
            "bill",
            title=Text(),
            shown=Text(computed=_shown),
            total_minor=Money(sum_of="line.amount_minor"),
        ),
        model(
            "line",
            bill=Ref("bill"),
            count=Number(),
            price_minor=Money(required=True, default=5),
            amount_minor=Money(computed=_amount),
        ),
    )

    assert len(set(sentences)) == len(sentences), "each is made once"
    assert await column_of(database, "line", "amount_minor") == [10, 15, None]
    columns = ("id", "total_minor", "shown", "shown__folded")
    assert await all_of(database, "bill", *columns) == [(first_bill, 25, "A 25", "a 25"), (empty, 0, "B 0", "b 0")]


async def test_a_field_computed_from_another_field_is_computed_again(database: Database) -> None:
    await upgrade(database, model("lead", first=Text(), last=Text(), name=Text(computed=_first)))
    await put(database, "lead", first="Ada", last="L", name="Ada", name__folded="ada")

    sentences = await upgrade(database, model("lead", first=Text(), last=Text(), name=Text(computed=_both)))

    assert sentences == ["compute lead.name", "fold lead.name for searching"]
    assert await all_of(database, "lead", "name", "name__folded") == [("Ada L", "ada l")]


async def test_a_select_that_becomes_text_keeps_its_values_and_can_be_searched(database: Database) -> None:
    await upgrade(database, model("lead", size=Select("Small", "Big", index=True)))
    await put(database, "lead", size="Big")

    await upgrade(database, model("lead", size=Text(index=True)))

    assert await all_of(database, "lead", "size", "size__folded") == [("Big", "big")]


async def test_values_of_a_field_that_becomes_personal_get_ids_in_the_vault(database: Database) -> None:
    await upgrade(database, model("lead", mail=Text(), notes=LongText()))
    rows = [(f"{number:024x}", f"p{number % 10}@example.com" if number % 7 else None) for number in range(MANY)]
    await put_many(database, "lead", [{"id": record_id, "mail": mail, "notes": "same"} for record_id, mail in rows])

    await upgrade(database, model("lead", mail=Text(personal="EMAIL"), notes=LongText(personal="NOTES")))

    rows_found = await all_of(database, "lead", "mail", "mail__value", "notes__value")
    ids = {mail: value for mail, value, _ in rows_found if mail}
    assert len(ids) == 10
    assert len(set(ids.values())) == 10
    assert all(value == ids.get(mail) for mail, value, _ in rows_found), (
        "equal values have one id, and no value has none"
    )
    assert len({notes for _, _, notes in rows_found}) == MANY, "free text is never linked"
    refs = dict(await database.fetch("SELECT id, refs FROM pii_value WHERE label = 'EMAIL'"))
    assert refs == {value: sum(mail == record_mail for record_mail, _, _ in rows_found) for mail, value in ids.items()}


async def test_an_upgrade_works_in_bounded_batches_each_starting_after_the_last_record_of_the_previous_batch(
    database: Database,
) -> None:
    lead = model("lead", title=Text(), size=Number(required=True, default=1))
    await upgrade(database, lead)
    ids = [f"{number:024x}" for number in range(BATCH + 1)]
    await put_many(database, "lead", [{"id": id_} for id_ in ids])
    rows, work = RowTaskRunner(registry(lead), Vault(b"s" * 32)), RowTask("default", "lead", "size")

    async with database.transaction() as transaction:
        first_end = await rows.batch(transaction, work, "")
        filled = await transaction.fetch_one("SELECT count(*) FROM lead WHERE size = 1")
        second_end = await rows.batch(transaction, work, first_end or "")
        third_end = await rows.batch(transaction, work, second_end or "")

    assert filled is not None
    assert filled[0] == BATCH
    assert (first_end, second_end, third_end) == (ids[-2], ids[-1], None)


async def test_an_upgrade_assigns_the_same_value_id_as_a_write(database: Database) -> None:
    await upgrade(database, model("lead", mail=Text()))
    await put(database, "lead", mail="ada@example.com")

    await upgrade(database, model("lead", mail=Text(personal="EMAIL")))

    vault = Vault(await root_secret.secret(database, MASTER))
    async with database.transaction() as transaction:
        (held_value,) = await vault.hold(transaction, [PersonalValue("EMAIL", "ada@example.com", True)])
    assert await column_of(database, "lead", "mail__value") == [held_value.id]


async def test_indexes_are_created_and_dropped_without_confirmation(database: Database) -> None:
    await upgrade(database, model("lead", title=Text(index=True), size=Number(unique=True), stage=Select("a", "b")))
    await put(database, "lead", title="One", size=1)

    await upgrade(database, model("lead", title=Text(), size=Number(), stage=Select("b", "a", "c", index=True)))

    assert await all_of(database, "lead", "title", "size") == [("One", 1)]
    rows = await database.fetch("SELECT 1 FROM lead WHERE size = 1")
    await put(database, "lead", title="Two", size=1)
    assert len(rows) == 1
