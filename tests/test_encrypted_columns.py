"""Every column that is encrypted with the master key is declared, missing keys are named, and all values can be
re-encrypted with a new key."""

import ast
import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from countersign.backup import table_checksum
from countersign.kernel import reencryption
from countersign.kernel.database.port import Database
from countersign.kernel.reencryption import EncryptedColumn, KeyUsage
from countersign.kernel.security.encryption import DecryptionFailed
from countersign.kernel.security.masterkey import MasterKey, parse_master_key
from countersign.kernel.webhooks import receivers
from countersign.kernel.webhooks.outbox import Outbox
from countersign.records import app as records_app
from countersign.records import encrypted_columns as records_sealed
from countersign.records.approvals import changes as record_events
from countersign.settings import Settings
from countersign.store import app as store_app
from countersign.store import encrypted_columns as store_sealed
from countersign.store import signing_keys as signing
from countersign.store import webhook_events as store_events
from countersign.store.auth import organisations, people
from countersign.store.context import Store

ROOT_URL = "http://127.0.0.1:8480"
SOURCES = Path(__file__).parents[1] / "src"
OLD = "old:dGVzdCBtYXN0ZXIga2V5IG9mIDMyIGJ5dGVzIC0tIG8="
NEW = "new:bmV3ZXIgbWFzdGVyIGtleSBvZiAzMiBieXRlcyAtLSA="
THIRD = "third:dGhpcmQgbWFzdGVyIGtleSBvZiAzMiBieXRlcyAtLSA="
BOTH = f"{NEW},{OLD}"
RECEIVER = "https://receiver.example/hook"
OWNER = "owner@example.com"
ALL_COLUMNS = (*store_sealed.COLUMNS, *records_sealed.COLUMNS)


# The declarations ---------------------------------------------------------------------------------


def calls_without_own_purpose(text: str) -> list[int]:
    """Return the lines that encrypt with the master key for a purpose other than the module's PURPOSE. Return [0] if
    the module encrypts nothing."""
    tree = ast.parse(text)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("encrypt", "encryption.encrypt")
    ]
    if "kernel.security" not in text or not calls:
        return [0]
    return [call.lineno for call in calls if not (call.args and ast.unparse(call.args[-1]) == "PURPOSE")]


def encrypting_modules() -> list[str]:
    """Return every module that encrypts values with the master key."""
    module_names: list[str] = []
    for path in SOURCES.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        text = path.read_text()
        is_user = "security.encryption import" in text or "security import encryption" in text
        if is_user and name != "countersign.kernel.reencryption" and calls_without_own_purpose(text) != [0]:
            module_names.append(name)
    return sorted(module_names)


def test_every_encrypted_column_is_declared_by_its_code_and_listed_by_its_service() -> None:
    modules = encrypting_modules()

    assert len(modules) == len({id(column) for column in ALL_COLUMNS})
    for name in modules:
        module = importlib.import_module(name)
        is_listed = any(module.ENCRYPTED_COLUMN is column for column in ALL_COLUMNS)
        assert is_listed, f"{name}: list its ENCRYPTED_COLUMN in encrypted_columns.COLUMNS"
        assert module.ENCRYPTED_COLUMN.purpose == module.PURPOSE
        other_calls = calls_without_own_purpose(Path(module.__file__ or "").read_text())
        assert not other_calls, f"{name}: use one purpose for one column"


def test_sealing_for_another_purpose_is_found() -> None:
    start = "from countersign.kernel.security.encryption import encrypt\n"

    assert calls_without_own_purpose(start + "a = encrypt(master, b'', PURPOSE)") == []
    assert calls_without_own_purpose(start + "a = encrypt(master, b'', 'other')") == [2]
    assert calls_without_own_purpose(start + "a = decrypt(master, b'', PURPOSE)") == [0]


# The values in the databases -----------------------------------------------------------------------


@dataclass
class OpenServices:
    """Both services, opened with the same master keys."""

    settings: Settings
    store: Store
    service: records_app.RecordsService

    @property
    def databases(self) -> tuple[tuple[Database, Sequence[EncryptedColumn]], ...]:
        """Return the database of each service with its encrypted columns."""
        return (
            (self.store.database, store_sealed.COLUMNS),
            (self.service.records.database, records_sealed.COLUMNS),
        )

    async def key_usage(self, master: MasterKey) -> list[KeyUsage]:
        """Return how many values of each column are encrypted with each key."""
        return [
            usage
            for database, columns in self.databases
            for column in columns
            for usage in await reencryption.key_usage(database, column, master)
        ]

    async def reencrypt(self, master: MasterKey) -> list[int]:
        """Re-encrypt all values, and return the number of values of each column that changed."""
        return [
            await reencryption.reencrypt(database, column, master)
            for database, columns in self.databases
            for column in columns
        ]

    async def tables_with_key(self, key_id: str) -> list[list[str]]:
        """Return, for each database, the tables in which any value begins like a value encrypted with this key."""
        head = bytes((1, len(key_id))) + key_id.encode()
        return [await _tables_with(database, head) for database, _ in self.databases]


async def _tables_with(database: Database, head: bytes) -> list[str]:
    tables: set[str] = set()
    for table, statement in await table_checksum.table_reads(database):
        async with aclosing(database.stream(statement)) as batches:
            async for rows in batches:
                if any(isinstance(value, bytes) and value.startswith(head) for row in rows for value in row):
                    tables.add(table)
    return sorted(tables)


async def open_services(stack: AsyncExitStack, settings: Settings, keys: str) -> OpenServices:
    """Open both services with these master keys until the stack is closed."""
    service_settings = replace(settings, master_key=keys)
    store = await stack.enter_async_context(store_app.open_store(service_settings, ROOT_URL, is_loopback=True))
    service = await stack.enter_async_context(records_app.open_records(service_settings, ROOT_URL, is_loopback=True))
    return OpenServices(service_settings, store, service)


async def open_filled_services(stack: AsyncExitStack, settings: Settings) -> OpenServices:
    """Open both services with the old key, and write a value of every encrypted column. OWNER owns an organisation."""
    services = await open_services(stack, settings, OLD)
    async with services.store.database.transaction() as transaction:
        org = await organisations.create_organisation(transaction, "acme", "Acme")
        person = await people.create_person(transaction, OWNER, None)
        await people.set_role(transaction, org.id, person.email, "owner")
    await signing.ensure_key(services.store, org.id)
    await _add_receiver(store_events.outbox_of(services.store), org.id)
    await _add_receiver(record_events.outbox_of(services.service.records), record_events.OWNER)
    return services


@pytest.fixture
async def both_services(tmp_path: Path, database_url: str) -> AsyncIterator[OpenServices]:
    """Open both services, with a value in every encrypted column."""
    url = database_url if database_url.startswith("postgres") else ""
    async with AsyncExitStack() as stack:
        settings = Settings(data=str(tmp_path / "data"), database_url=url, database_pool=2, reserve_mib=0)
        yield await open_filled_services(stack, settings)


async def _add_receiver(box: Outbox, owner: str) -> str:
    async with box.database.transaction() as transaction:
        webhook, _ = await receivers.add(transaction, box, owner, RECEIVER, ())
    return webhook.id


async def test_every_sealed_value_is_in_a_declared_column(both_services: OpenServices) -> None:
    usages = await both_services.key_usage(both_services.store.master)

    declared = [sorted(column.table for column in columns) for _, columns in both_services.databases]
    assert await both_services.tables_with_key("old") == declared, "declare each encrypted column, and fill it here"
    assert [(usage.key_id, usage.unopened) for usage in usages] == [("old", 0)] * len(ALL_COLUMNS)


async def test_only_the_new_key_decrypts_after_a_full_reencryption(both_services: OpenServices) -> None:
    org = (await both_services.store.database.fetch("SELECT id FROM organisation"))[0][0]
    secrets_before = [
        await signing.ensure_key(both_services.store, org),
        both_services.service.records.secret,
        both_services.store.tokens.ring.jwks(),
    ]

    changed_counts = await both_services.reencrypt(parse_master_key(BOTH, "test"))
    second_counts = await both_services.reencrypt(parse_master_key(BOTH, "test"))

    assert changed_counts == [1] * len(ALL_COLUMNS)
    assert second_counts == [0] * len(ALL_COLUMNS)
    assert await both_services.tables_with_key("old") == [[], []]
    async with AsyncExitStack() as stack:
        services_after = await open_services(stack, both_services.settings, NEW)
        assert [
            await signing.ensure_key(services_after.store, org),
            services_after.service.records.secret,
            services_after.store.tokens.ring.jwks(),
        ] == secrets_before
        assert {
            (usage.key_id, usage.unopened) for usage in await services_after.key_usage(services_after.store.master)
        } == {("new", 0)}
        for database, columns in services_after.databases:
            await reencryption.require_keys(database, columns, services_after.store.master)


async def test_every_missing_key_is_named(both_services: OpenServices) -> None:
    store_columns, records_columns = both_services.databases
    for column in store_sealed.COLUMNS[1:]:
        await reencryption.reencrypt(both_services.store.database, column, parse_master_key(BOTH, "test"))

    with pytest.raises(DecryptionFailed) as refusal:
        await reencryption.require_keys(*store_columns, parse_master_key(THIRD, "test"))

    assert "new, old" in refusal.value.detail
    assert "third" in refusal.value.detail
    assert "new, old" in refusal.value.remedy
    assert "not damaged" in refusal.value.remedy
    await reencryption.require_keys(*records_columns, parse_master_key(f"{THIRD},{OLD}", "test"))


async def test_a_value_that_cannot_be_decrypted_is_counted_and_not_changed(both_services: OpenServices) -> None:
    database, column = both_services.store.database, store_sealed.COLUMNS[1]
    org = (await database.fetch("SELECT id FROM organisation"))[0][0]
    other_org = await _another_organisation(both_services.store)
    async with database.transaction() as transaction:
        await transaction.run("UPDATE signing_key SET sealed = $1 WHERE org_id = $2", b"\x07damaged", org)
    master = parse_master_key(BOTH, "test")

    changed_count = await reencryption.reencrypt(database, column, master)

    assert changed_count == 1
    assert await reencryption.key_usage(database, column, master) == [
        KeyUsage("signing_key", "", 1, 1),
        KeyUsage("signing_key", "new", 1, 0),
    ]
    await reencryption.require_keys(database, (column,), master)
    assert (await signing.ensure_key(replace(both_services.store, master=master), other_org)).private


async def _another_organisation(store: Store) -> str:
    async with store.database.transaction() as transaction:
        organisation = await organisations.create_organisation(transaction, "other", "Other")
    await signing.ensure_key(store, organisation.id)
    return organisation.id


async def test_a_value_changed_during_reencryption_is_not_overwritten(both_services: OpenServices) -> None:
    box = record_events.outbox_of(both_services.service.records)
    column = receivers.ENCRYPTED_COLUMN
    ((value_before, webhook_id),) = await box.database.fetch(column.page, 1, *column.first_key)

    async with box.database.transaction() as transaction:
        secret = await receivers.rotate(transaction, box, record_events.OWNER, webhook_id)
    async with box.database.transaction() as transaction:
        changed_count = await transaction.run(
            column.replace, value_before, b"re-encrypted from the previous value", webhook_id
        )

    ((value_after, _),) = await box.database.fetch(column.page, 1, *column.first_key)
    assert changed_count == 0
    assert receivers.signing_secrets(box.master, bytes(value_after))[0] == secret


async def test_values_of_many_pages_are_all_found_once(both_services: OpenServices) -> None:
    box = record_events.outbox_of(both_services.service.records)
    for number in range(2 * reencryption.BATCH_SIZE):
        await _add_receiver(box, f"owner {number}")
    master = parse_master_key(BOTH, "test")

    changed_count = await reencryption.reencrypt(box.database, receivers.ENCRYPTED_COLUMN, master)

    assert changed_count == 2 * reencryption.BATCH_SIZE + 1
    usage = await reencryption.key_usage(box.database, receivers.ENCRYPTED_COLUMN, master)
    assert usage == [KeyUsage("webhook", "new", changed_count, 0)]
