"""Fills a records service with hundreds of thousands of leads, with their columns and vault rows, and with their
callers."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from contenders.records import settings
from processes import Cluster

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database, Value
from countersign.kernel.security import passwords
from countersign.records import app, user_creation
from countersign.records.access import agent_tokens, sessions
from countersign.records.access.agent_tokens import TokenRequest
from countersign.records.access.view import Caller, View
from countersign.records.audit.chain import ChainEntry
from countersign.records.commands import workflow
from countersign.records.commands.run import Actor, Run
from countersign.records.commands.select import insert_statement, insert_values
from countersign.records.masking.vault import PersonalValue
from countersign.records.schema.install import installed

STAGES = ("new", "qualified", "proposed", "won", "lost")
BATCH = 1_000
NOTED_EACH = 97
PASSWORD = "a long password"
RESTRICTED = {
    "model": "lead",
    "commands": "get,list,search",
    "clear": "title,stage,expected_close,expected_revenue_minor",
    "masked": "contact_name,contact_email,notes",
    "rows": '[{"field":"stage","op":"ne","value":"lost"}]',
}


@dataclass
class Seeded:
    """A filled service: its database and data directory, the ids of some leads, and the bearer tokens of its
    callers."""

    database_url: str
    data: Path
    leads: list[str]
    tokens: dict[str, str]


@contextmanager
def new(
    database: str, leads: int, folder: Path, cluster: Cluster | None, name: str = "records"
) -> Iterator[Seeded]:
    """Fill a service with this number of leads in a database of this name. Delete its data when the block ends."""
    data = folder / f"{name}-{database}"
    url = f"sqlite:///{data}/records.sqlite"
    if database == "postgres":
        assert cluster is not None
        cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        url = cluster.url(name)
    try:
        yield asyncio.run(_filled(url, data, leads))
    finally:
        shutil.rmtree(data, ignore_errors=True)


async def _filled(url: str, data: Path, leads: int) -> Seeded:
    password_hash = await passwords.hash_password(PASSWORD)
    async with app.open_records(settings(str(data), url), "http://bench", is_loopback=True) as service:
        caller = Caller("person", "", "", "", View({}))
        async with service.records.database.transaction() as transaction:
            run = Run(service.engine, caller, transaction, Actor("0" * 24), transaction)
            manager = await user_creation.add_user(run, "manager", "Mia", None, ["sales_manager"], password_hash)
            clerk = await user_creation.add_user(run, "clerk", "Cy", None, [], password_hash)
            effects = workflow.EffectContext(run, service.records.registry.models["role"], "", {}, "seed")
            role = await effects.create("role", title="restricted")
            await effects.create("user_role", user=clerk, role=role)
            await effects.create("grant", role=role, **RESTRICTED)
        sample_ids: list[str] = []
        async with _without_indexes(service.records.database):
            for start in range(0, leads, BATCH):
                sample_ids += await _batch(service, range(start, min(start + BATCH, leads)), manager)
        tokens = {name: await sessions.sign_in(service.records, name, PASSWORD) for name in ("manager", "clerk")}
        for name in ("manager", "clerk"):
            tokens[f"agent of {name}"] = await _agent(service, tokens[name])
        return Seeded(url, data, sample_ids, tokens)


def add_audit(seed_data: Seeded, entries: int) -> None:
    """Append this number of entries to the audit. The entries concern the leads of `seed_data`, one after the other."""
    asyncio.run(_add_audit(seed_data, entries))


async def _add_audit(seed_data: Seeded, entries: int) -> None:
    async with app.open_records(
        settings(str(seed_data.data), seed_data.database_url), "http://bench", is_loopback=True
    ) as service:
        for start in range(0, entries, BATCH):
            async with service.records.database.transaction() as transaction:
                for number in range(start, min(start + BATCH, entries)):
                    record_id = seed_data.leads[number % len(seed_data.leads)]
                    await service.engine.chain.append(transaction, _audit_entry(number, record_id))


def _audit_entry(number: int, record_id: str) -> ChainEntry:
    return ChainEntry(
        at=clock.now(),
        user_id="0" * 24,
        agent_token=None,
        agent=None,
        command="lead.update",
        model="lead",
        record_id=record_id,
        fields="title",
        changes=f'{{"title":["Order {number:07d}","Order {number:07d} of a lead"]}}',
        plan_id=None,
        request_id="seed",
    )


@asynccontextmanager
async def _without_indexes(database: Database) -> AsyncGenerator[None]:
    """Remove the indexes of leads while the block fills the table, and create them afterwards."""
    async with database.transaction() as transaction:
        indexes = (await installed(transaction)).tables["lead"].indexes
        for index_name in indexes:
            await transaction.run(f'DROP INDEX "{index_name.name}"')
    yield
    for index_name in indexes:
        async with database.transaction() as transaction:
            await transaction.run(f'CREATE INDEX "{index_name.name}" ON lead {index_name.statement}')


async def _agent(service: app.RecordsService, token: str) -> str:
    from countersign.kernel.http.request import Headers

    caller = await service.callers.caller_of(Headers([(b"authorization", f"Bearer {token}".encode())]))
    assert caller is not None
    async with service.records.database.transaction() as transaction:
        issued_token = await agent_tokens.issue_token(
            transaction, service.records, caller, TokenRequest(("*",), "bench")
        )
    return issued_token.token


async def _batch(service: app.RecordsService, numbers: range, owner: str) -> list[str]:
    model = service.records.registry.models["lead"]
    lead_ids: list[str] = []
    async with service.records.database.transaction() as transaction:
        personal_values = [value for number in numbers for value in _personal(number)]
        value_keys = await service.engine.vault.hold(transaction, personal_values)
        rows: list[list[Value]] = []
        for position, number in enumerate(numbers):
            record_id = ids.new_record_id()
            names = ("contact_name", "contact_email", "notes")
            value_ids = {name: value_keys[3 * position + offset].id for offset, name in enumerate(names)}
            rows.append(insert_values(model, record_id, values_of(number, owner), value_ids))
            if number % NOTED_EACH == 0:
                lead_ids.append(record_id)
        await transaction.run_many(insert_statement(model), rows)
    return lead_ids


def _personal(number: int) -> tuple[PersonalValue, ...]:
    return (
        PersonalValue("PERSON", f"Ada Lovelace {number // 3}", True),
        PersonalValue("EMAIL", f"contact{number // 3}@mail.example", True),
        PersonalValue("NOTES", f"Call back about order {number}", False),
    )


def values_of(number: int, owner: str) -> dict[str, str | int | None]:
    """Return the values of the lead with this number. Fields that are not in the result are empty."""
    name, email, notes = (value.text for value in _personal(number))
    return {
        "title": f"Order {number:07d} of a lead",
        "stage": STAGES[number % 5],
        "expected_revenue_minor": number * 7919 % 10_000_000,
        "contact_name": name,
        "contact_email": email,
        "owner": owner,
        "source": ("web", "fair", None)[number % 3],
        "expected_close": f"202{number % 10}-{number % 12 + 1:02d}-{number % 28 + 1:02d}" if number % 7 else None,
        "notes": notes,
    }
