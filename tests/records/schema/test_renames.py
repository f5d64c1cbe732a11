"""A renamed field keeps its values, its tokens, its bit and its grants."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import msgspec

from countersign.declare import Text
from countersign.kernel.database.port import Database
from countersign.records import app
from countersign.records.access.view import Caller, View
from countersign.records.commands import record_writer
from countersign.records.commands.run import Actor, Run
from countersign.records.schema import install
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office
from tests.records.schema.conftest import all_of, model, plan_steps, put, upgrade


async def test_a_renamed_field_keeps_its_values_and_its_bit(database: Database) -> None:
    await upgrade(database, model("card", first=Text(), old=Text(personal="PERSON", index=True)))
    await put(database, "card", old="Ada", old__folded="ada", old__value=7)
    bit = (await install.bits(database))["card"]["old"]
    renamed_model = model("card", first=Text(), new=Text(personal="PERSON", index=True, former_name="old"))

    plan = await plan_steps(database, renamed_model)
    sentences = await upgrade(database, renamed_model)

    assert plan.losses == ()
    assert sentences == [step.sentence for step in plan.steps]
    assert {"rename card.old to card.new", "rename card.old__value to card.new__value"} <= set(sentences)
    assert await all_of(database, "card", "new", "new__folded", "new__value") == [("Ada", "ada", 7)]
    assert (await install.bits(database))["card"]["new"] == bit
    assert await upgrade(database, renamed_model) == []


async def test_a_database_after_renames_has_the_schema_of_a_new_database(database: Database) -> None:
    await upgrade(database, model("card", old=Text(unique=True)))
    renamed_model = model("card", new=Text(unique=True, former_name="old"))
    await upgrade(database, renamed_model)
    table_before = (await install.installed(database)).tables["card"]

    await upgrade(database, destroy=True)
    await upgrade(database, renamed_model)

    assert (await install.installed(database)).tables["card"] == table_before


@asynccontextmanager
async def _opened(office_settings: OfficeSettings) -> AsyncGenerator[Office]:
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield Office(client, office_settings.tokens, service)


async def _turn_back(office: Office, token_id: str) -> None:
    """Turn the office into an older installation in which agent tokens had a field `title`, with a token and a grant
    from that time."""
    database, engine = office.service.records.database, office.service.engine
    snapshot_before = await install.installed(database)
    table = snapshot_before.tables["agent_token"]
    columns = [
        msgspec.structs.replace(column, name=column.name.replace("label", "title"), former_name="")
        for column in table.columns
    ]
    bits = {name.replace("label", "title"): bit for name, bit in table.bits.items()}
    tables = {**snapshot_before.tables, "agent_token": msgspec.structs.replace(table, columns=columns, bits=bits)}
    async with database.transaction() as transaction:
        run = Run(engine, Caller("person", "", "", "", View({})), database, Actor("")).within(transaction)
        change = {"title": [None, "made then"]}
        await record_writer.record_audit(
            run, "agent_token.create", engine.registry.models["agent_token"], token_id, change
        )
        await transaction.run(
            'UPDATE "grant" SET clear = $1, "rows" = $2 WHERE model = $3',
            "title,expires_at",
            '[{"field":"title","op":"ne","value":"hidden"}]',
            "agent_token",
        )
        for ending in ("", "__folded"):
            await transaction.run(f'ALTER TABLE "agent_token" RENAME COLUMN "label{ending}" TO "title{ending}"')
        await install.record_snapshot(transaction, install.ALL, install.Snapshot(tables, snapshot_before.versions))


async def test_an_installation_whose_agent_tokens_have_a_title_is_upgraded(office_settings: OfficeSettings) -> None:
    async with _opened(office_settings) as office:
        grant = {"model": "agent_token", "commands": "get,list", "clear": "label,expires_at"}
        await office.person("dora", grant)
        agent = await office.agent("alice", label="bot")
        hidden_agent = await office.agent("alice", label="hidden")
        token_id = (await office.first_record("agent_token", label="bot"))["id"]
        agent_tokens = await office.value("dora", "agent_token.list")
        snapshot_before = await install.installed(office.service.records.database)
        await _turn_back(office, token_id)

    async with _opened(office_settings) as office:
        assert (await install.installed(office.service.records.database)) == snapshot_before
        assert await office.value(agent, "lead.search", limit=1)
        assert await office.value(hidden_agent, "lead.search", limit=1)
        assert await office.value("dora", "agent_token.list") == [
            agent_token for agent_token in agent_tokens if agent_token["label"] != "hidden"
        ]
        entry_filter = [{"field": "record_id", "op": "eq", "value": token_id}]
        entries = await office.value("root", "audit_entry.list", filter=entry_filter)
        assert sorted(entry["changes"]["label"][1] for entry in entries) == ["bot", "made then"]
        assert "title" not in await office.first_record("agent_token", label="bot")
