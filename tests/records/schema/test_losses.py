"""Upgrades that would lose data are refused with the remedy, and run with an explicit option. Upgrades that are
impossible are refused with the reason."""

from collections.abc import Mapping
from typing import Any

import pytest

from countersign.declare import CALLER, Bool, Date, Model, Number, Ref, Select, Text
from countersign.kernel.database.port import Database
from countersign.records import root_secret
from countersign.records.masking.vault import PersonalValue, Vault
from countersign.records.schema.install import ConflictingData, DataLoss, installed
from tests.records.schema.conftest import (
    MASTER,
    all_of,
    column_of,
    model,
    plan_steps,
    put,
    shape,
    upgrade,
)


def _length_of_title(title: str) -> int:
    return len(title)


def _length(stage: str) -> int:
    return len(stage)


async def reported_losses(database: Database, *models: type[Model]) -> str:
    """Return the losses that a refused upgrade reports. The upgrade must not change anything."""
    state_before = (await shape(database), await installed(database))
    with pytest.raises(DataLoss) as refusal:
        await upgrade(database, *models)
    assert (await shape(database), await installed(database)) == state_before
    assert "countersign modules apply --destroy" in str(refusal.value)
    return str(refusal.value)


async def reported_obstacles(database: Database, *models: type[Model], destroy: bool = False) -> str:
    """Return the obstacles that a refused upgrade reports. The upgrade must not change anything, and the plan must
    report the same obstacles."""
    state_before = (await shape(database), await installed(database))
    with pytest.raises(ConflictingData) as refusal:
        await upgrade(database, *models, destroy=destroy)
    assert (await shape(database), await installed(database)) == state_before
    assert "; ".join((await plan_steps(database, *models)).obstacles) == str(refusal.value)
    return str(refusal.value)


async def test_a_dropped_field_is_refused_and_then_dropped_for_good(database: Database) -> None:
    remaining_model, full_model = model("lead", title=Text()), model("lead", title=Text(), size=Text(index=True))
    await upgrade(database, full_model)
    await put(database, "lead", title="One", size="Big")

    losses = await reported_losses(database, remaining_model)
    await upgrade(database, remaining_model, destroy=True)
    await upgrade(database, full_model)

    assert "drop lead.size with its values" in losses
    assert await all_of(database, "lead", "title", "size") == [("One", None)]


async def test_a_renamed_field_is_a_removed_and_an_added_field(database: Database) -> None:
    await upgrade(database, model("lead", title=Text()))
    await put(database, "lead", title="One")

    losses = await reported_losses(database, model("lead", name=Text()))
    await upgrade(database, model("lead", name=Text()), destroy=True)

    assert "drop lead.title with its values" in losses
    assert await column_of(database, "lead", "name") == [None]


async def test_a_dropped_model_is_refused_and_then_dropped_with_its_revisions(database: Database) -> None:
    lead, note = model("lead", title=Text()), model("note", lead=Ref("lead"))
    await upgrade(database, lead, note)
    await put(database, "note", lead=await put(database, "lead", title="One"))
    async with database.transaction() as transaction:
        for name in ("lead", "note"):
            await transaction.run(
                "INSERT INTO record_change (model, record_id, revision, fields) VALUES ($1, 'a', 1, 1)", name
            )

    losses = await reported_losses(database, lead)
    await upgrade(database, lead, destroy=True)

    assert "drop the table note with its records" in losses
    assert await column_of(database, "lead", "title") == ["One"]
    assert [row[0] for row in await database.fetch("SELECT model FROM record_change")] == ["lead"]


@pytest.mark.parametrize(
    ("old_field", "value", "new_field", "reason"),
    [
        (Text, "7", Number, "a text cannot become a number"),
        (Number, 7, Text, "a number cannot become a text"),
        (Text, "new", lambda: Select("new"), "a text cannot become a select"),
        (Text, "2026-01-01", Date, "a text cannot become a date"),
        (Number, 1, Bool, "a number cannot become a bool"),
        (lambda: Ref("lead"), None, lambda: Ref("other"), "a ref to lead cannot become a ref to other"),
        (Number, 1, lambda: Number(computed=_length_of_title), "a number cannot become a computed number"),
    ],
)
async def test_a_field_of_another_kind_begins_empty_on_request(
    database: Database, old_field: Any, value: int | str | None, new_field: Any, reason: str
) -> None:
    other_model = model("other", title=Text())
    await upgrade(database, other_model, model("lead", title=Text(), size=old_field()))
    await put(database, "lead", size=value)

    losses = await reported_losses(database, other_model, model("lead", title=Text(), size=new_field()))
    await upgrade(database, other_model, model("lead", title=Text(), size=new_field()), destroy=True)

    assert f"drop lead.size with its values, since {reason}" in losses
    assert await column_of(database, "lead", "size") == [None]


async def test_an_unused_option_is_removed_without_confirmation(database: Database) -> None:
    await upgrade(database, model("lead", stage=Select("new", "lost", index=True)))
    await put(database, "lead", stage="new")

    await upgrade(database, model("lead", stage=Select("new", index=True)))

    assert await column_of(database, "lead", "stage") == ["new"]


@pytest.mark.parametrize(("options", "replacement"), [({}, None), ({"default": "new", "required": True}, "new")])
async def test_removing_a_used_option_needs_confirmation_and_clears_the_values(
    database: Database, options: Mapping[str, Any], replacement: str | None
) -> None:
    computed_fields = {"length": Number(computed=_length)}
    await upgrade(database, model("lead", stage=Select("new", "lost", "gone", **options), **computed_fields))
    await put(database, "lead", stage="lost", length=4)
    await put(database, "lead", stage="new", length=3)

    losses = await reported_losses(database, model("lead", stage=Select("new", **options), **computed_fields))
    await upgrade(database, model("lead", stage=Select("new", **options), **computed_fields), destroy=True)

    assert "take lost, gone out of lead.stage" in losses
    assert await all_of(database, "lead", "stage", "length") == [(replacement, replacement and 3), ("new", 3)]


async def test_a_field_loses_an_option_and_becomes_required_at_once(database: Database) -> None:
    await upgrade(database, model("lead", stage=Select("new", "lost")))
    for stage in ("lost", "new", None):
        await put(database, "lead", stage=stage)

    await upgrade(database, model("lead", stage=Select("new", required=True, default="new")), destroy=True)

    assert await column_of(database, "lead", "stage") == ["new", "new", "new"]


async def test_an_option_used_in_a_required_field_is_removed_only_after_its_values_change(database: Database) -> None:
    await upgrade(database, model("lead", stage=Select("new", "lost", required=True)))
    await put(database, "lead", stage="lost")

    obstacles = await reported_obstacles(database, model("lead", stage=Select("new", required=True)), destroy=True)

    assert obstacles == (
        "lead.stage is required, and options that the upgrade removes (lost) are still used in 1 record: give these "
        "records another option first, or give the field a default"
    )


async def test_a_required_field_without_a_default_is_refused_while_records_exist(database: Database) -> None:
    user, title = model("user", title=Text()), {"title": Text()}
    new_lead = model(
        "lead", title=Text(), size=Number(required=True), owner=Ref("user", required=True, default=CALLER)
    )
    await upgrade(database, user, model("lead", **title))
    record_id = await put(database, "lead", title="One")

    obstacles = await reported_obstacles(database, user, new_lead)
    async with database.transaction() as transaction:
        await transaction.run("DELETE FROM lead WHERE id = $1", record_id)
    await upgrade(database, user, new_lead)

    assert obstacles == (
        "lead.size is required and 1 record would be without it: give it a default, or make it optional; "
        "lead.owner is required and 1 record would be without it: make it optional"
    )


async def test_a_field_becomes_required_once_every_record_has_a_value(database: Database) -> None:
    await upgrade(database, model("lead", size=Number()))
    await put(database, "lead", size=1)
    empty_ids = [await put(database, "lead") for _ in range(2)]

    obstacles = await reported_obstacles(database, model("lead", size=Number(required=True)))
    async with database.transaction() as transaction:
        await transaction.run_many("UPDATE lead SET size = 2 WHERE id = $1", [(lead_id,) for lead_id in empty_ids])
    await upgrade(database, model("lead", size=Number(required=True)))

    assert "lead.size is required and 2 records would be without it" in obstacles
    assert await column_of(database, "lead", "size") == [1, 2, 2]


async def test_duplicates_prevent_a_unique_field_and_their_value_is_not_reported(database: Database) -> None:
    await upgrade(database, model("lead", mail=Text(personal="EMAIL")))
    duplicate_ids = [await put(database, "lead", mail="secret@example.com") for _ in range(2)]
    await put(database, "lead")
    await put(database, "lead")

    obstacles = await reported_obstacles(database, model("lead", mail=Text(personal="EMAIL", unique=True)))
    async with database.transaction() as transaction:
        await transaction.run("UPDATE lead SET mail = 'b' WHERE id = $1", duplicate_ids[0])
    await upgrade(database, model("lead", mail=Text(personal="EMAIL", unique=True)))

    assert all(duplicate_id in obstacles for duplicate_id in duplicate_ids)
    assert "change all but one of them" in obstacles
    assert "secret" not in obstacles


async def test_one_default_for_many_cannot_be_unique(database: Database) -> None:
    await upgrade(database, model("lead", title=Text()))
    for _ in range(2):
        await put(database, "lead")

    with pytest.raises(ConflictingData, match=r"several records, for example .*, have the same value"):
        await upgrade(database, model("lead", title=Text(), size=Number(required=True, default=1, unique=True)))


@pytest.mark.parametrize("after", [[model("lead", title=Text())], [model("lead", title=Text(), mail=Text())], []])
async def test_the_vault_forgets_values_of_fields_that_are_no_longer_personal(
    database: Database, after: list[type[Model]]
) -> None:
    await upgrade(database, model("lead", title=Text(), mail=Text(personal="EMAIL"), notes=Text(personal="NOTES")))
    vault = Vault(await root_secret.secret(database, MASTER))
    async with database.transaction() as transaction:
        email = PersonalValue("EMAIL", "a", True)
        stored_values = await vault.hold(transaction, [email, email, email, PersonalValue("NOTES", "a", False)])
        alias = await vault.create_alias_id(transaction, "EMAIL", "domain")
    first_lead = await put(database, "lead", mail="a", mail__value=stored_values[0].id)
    await put(database, "lead", mail="a", mail__value=stored_values[1].id, notes="a", notes__value=stored_values[3].id)
    async with database.transaction() as transaction:
        await vault.add_alias(transaction, "lead", first_lead, "mail", "domain", alias.id)

    losses = await reported_losses(database, *after)
    await upgrade(database, *after, destroy=True)

    assert "forget the EMAIL values of lead.mail in the vault and their copies in the audit" in losses
    # The third reference belongs to another owner.
    assert [tuple(row) for row in await database.fetch("SELECT label, refs FROM pii_value")] == [("EMAIL", 1)]
    assert await database.fetch("SELECT 1 FROM pii_alias") == []


async def test_another_label_gives_every_value_another_id(database: Database) -> None:
    await upgrade(database, model("lead", mail=Text(personal="EMAIL")))
    vault = Vault(await root_secret.secret(database, MASTER))
    async with database.transaction() as transaction:
        (stored_value,) = await vault.hold(transaction, [PersonalValue("EMAIL", "a", True)])
    await put(database, "lead", mail="a", mail__value=stored_value.id)

    await reported_losses(database, model("lead", mail=Text(personal="CONTACT")))
    await upgrade(database, model("lead", mail=Text(personal="CONTACT")), destroy=True)

    (value,) = await column_of(database, "lead", "mail__value")
    rows = [tuple(row) for row in await database.fetch("SELECT id, label, hash, refs FROM pii_value")]
    assert rows == [(value, "CONTACT", None, 1)]
    assert value != stored_value.id


async def test_models_and_fields_without_a_record_are_removed_without_confirmation(database: Database) -> None:
    lead, note = model("lead", title=Text()), model("note", lead=Ref("lead"), text=Text(personal="TEXT"))
    await upgrade(database, model("lead", title=Text(), size=Text(personal="TEXT")), note)

    plan = await plan_steps(database, lead)
    await upgrade(database, lead)

    assert plan.losses == ()
    assert set((await installed(database)).tables) == {"lead"}
    assert (await installed(database)).tables["lead"].column("size") is None


async def test_a_field_without_values_of_a_model_with_records_needs_confirmation(database: Database) -> None:
    await upgrade(database, model("lead", title=Text(), size=Text()), model("note", text=Text()))
    await put(database, "lead", title="One")

    losses = await reported_losses(database, model("lead", title=Text()))

    assert "drop lead.size with its values" in losses
    assert "drop the table note" not in losses
