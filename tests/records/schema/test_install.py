"""Tables are created from declarations: in an empty database, once, and as the plan announces."""

import pytest

from countersign.declare import Bool, DeclarationError, Ref, Select, Text
from countersign.declare.registry import Registry
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.port import Database
from countersign.records import base_models, modules
from countersign.records.schema import install
from tests.records.schema.conftest import MASTER, column_of, model, plan_steps, put, registry, shape, upgrade

SHIPPED = ("party", "crm", "billing", "helpdesk")


def lead() -> type:
    """Return a model to install."""
    return model("lead", title=Text(required=True, index=True), stage=Select("new", "done", index=True))


async def test_the_shipped_modules_are_installed_from_empty_and_then_nothing_is_left_to_do(database: Database) -> None:
    shipped = modules.found(SHIPPED)

    steps = await install.upgrade(database, shipped, MASTER)
    first_shape = await shape(database)
    second_steps = await install.upgrade(database, shipped, MASTER)

    assert steps
    assert second_steps == []
    assert (await install.plan_upgrade(database, shipped)).steps == ()
    assert await shape(database) == first_shape
    assert set((await install.bits(database))["lead"]) == set(shipped.models["lead"].fields)


async def test_an_empty_table_exists_for_every_model(database: Database) -> None:
    await install.upgrade(database, modules.found(SHIPPED), MASTER)

    for name in modules.found(SHIPPED).models:
        assert await column_of(database, name, "id") == []


async def test_the_plan_is_what_is_done_and_changes_nothing(database: Database) -> None:
    shape_before = await shape(database)

    plan = await plan_steps(database, lead())
    untouched = await shape(database)
    sentences = await upgrade(database, lead())

    assert untouched == shape_before
    assert [step.sentence for step in plan.steps] == sentences
    assert (plan.losses, plan.obstacles) == ((), ())


async def test_the_text_of_the_plan_names_the_changes(database: Database) -> None:
    # SQLite needs a separate index for descending order only for states.
    stage = "(CASE \"stage\" WHEN 'new' THEN 0 WHEN 'done' THEN 1 END)"
    downwards = ["DESC NULLS LAST"] if database.dialect == "postgres" else []
    state_downward = "DESC NULLS LAST" if database.dialect == "postgres" else "DESC"
    await upgrade(database, lead())
    await put(database, "lead", title="One", stage="new")

    plan = await plan_steps(
        database, model("lead", title=Text(personal="PERSON"), won=Bool(required=True)), model("note", lead=Ref("lead"))
    )

    assert [step.sentence for step in plan.steps] == [
        "create the table note",
        'drop the index of lead by "title", id',
        *(f'drop the index of lead by "title" {downward}, id' for downward in downwards),
        'drop the index of lead by "stage", id',
        f"drop the index of lead by {stage}, id",
        f"drop the index of lead by {stage} {state_downward}, id",
        "drop lead.stage with its values",
        "add lead.title__value",
        "add lead.won",
        "add note.lead",
        "give the values of lead.title ids in the vault",
        "fill lead.won where it is empty",
        'index lead by "title__value"',
        "note the fields of lead",
        'index note by "lead", id',
        *(f'index note by "lead" {downward}, id' for downward in downwards),
    ]
    assert plan.losses == ("drop lead.stage with its values",)


async def test_dropped_bits_are_never_given_to_another_field(database: Database) -> None:
    await upgrade(database, model("lead", title=Text(), size=Text()))
    await upgrade(database, model("lead", title=Text()), destroy=True)
    await upgrade(database, model("lead", title=Text(), other=Text(), size=Text()))

    assert (await install.bits(database))["lead"] == {"title": 0, "other": 2, "size": 3}


async def test_more_fields_than_bits_are_refused_with_the_remedy(database: Database) -> None:
    many_fields = model("lead", **{f"field_{number}": Bool() for number in range(63)})

    with pytest.raises(DeclarationError, match="make a second model"):
        await upgrade(database, many_fields)


async def test_a_change_of_only_the_version_is_recorded(database: Database) -> None:
    await install.upgrade(database, registry(lead(), version="1"), MASTER)

    steps = await install.upgrade(database, registry(lead(), version="2"), MASTER)

    assert [step.sentence for step in steps] == ["note the versions: trial 2"]
    assert (await install.installed(database)).versions == {"trial": "2"}


async def test_a_database_of_newer_code_is_refused(database: Database) -> None:
    await upgrade(database, lead())
    async with database.transaction() as transaction:
        await transaction.run(
            "INSERT INTO schema_migration (number, name, sha256, applied_at) VALUES (9999, 'later', '', 0)"
        )

    with pytest.raises(SchemaMismatch, match="newer version"):
        await plan_steps(database, lead())
    with pytest.raises(SchemaMismatch, match="newer version"):
        await upgrade(database, lead())


async def test_refs_in_a_circle_are_installed_and_removed(database: Database) -> None:
    circle = [model("egg", hen=Ref("hen")), model("hen", egg=Ref("egg"), mother=Ref("hen"))]
    await upgrade(database, *circle, lead())
    hen = await put(database, "hen")
    egg = await put(database, "egg", hen=hen)
    async with database.transaction() as transaction:
        await transaction.run('UPDATE "hen" SET egg = $1, mother = $2', egg, hen)

    await upgrade(database, lead(), destroy=True)

    remaining_shape = await shape(database)
    assert "egg" not in remaining_shape
    assert "hen" not in remaining_shape


async def test_the_engine_alone_is_a_registry(database: Database) -> None:
    await install.upgrade(database, Registry([base_models.MODULE]), MASTER)

    assert await column_of(database, "user", "id") == []
