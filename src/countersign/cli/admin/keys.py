"""`countersign keys`: rotate the key that signs tokens, re-encrypt stored secrets, list the master keys in use."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import click

from countersign.cli import configuration, output
from countersign.cli.admin import lock, open_records, open_store
from countersign.cli.admin.open_store import Tables
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock, reencryption
from countersign.kernel.database import migrate
from countersign.kernel.database.port import Database
from countersign.kernel.reencryption import KeyUsage
from countersign.kernel.security.jose import KeyRing
from countersign.kernel.security.masterkey import MasterKey, master_key
from countersign.settings import Settings
from countersign.store import lifespan
from countersign.store.auth import tokens

CANNOT_ROTATE = "cannot rotate the signing key"
CANNOT_REENCRYPT = "cannot re-encrypt the stored secrets"
CANNOT_SHOW_STATUS = "cannot show which keys are needed"


class OpenDatabase(NamedTuple):
    """A service's tables, and the database that they are in."""

    tables: Tables
    database: Database

    async def key_usage(self, master: MasterKey) -> list[KeyUsage]:
        """Return the number of encrypted values for each table and key. Table names are those of `verify --tables`."""
        usages = [
            usage
            for column in self.tables.columns
            for usage in await reencryption.key_usage(self.database, column, master)
        ]
        return [usage._replace(table=f"{self.tables.schema}.{usage.table}") for usage in usages]


class KeyStatus(NamedTuple):
    """The status of a master key: the number of values encrypted with it, and whether it is still needed."""

    key_id: str
    values: int
    state: Literal["seals", "needed", "unneeded", "missing"]

    @property
    def words(self) -> str:
        """A sentence for the operator."""
        usage = f"{self.values} value{'' if self.values == 1 else 's'} encrypted with it"
        return {
            "seals": f"Key {self.key_id} encrypts new values: {usage}.",
            "needed": f"Key {self.key_id} is needed: {usage}. `countersign keys reencrypt` encrypts them again.",
            "unneeded": f"Key {self.key_id} is not needed: no value is encrypted with it.",
            "missing": f"Key {self.key_id} is missing: {usage}. Add it to the master keys, after the first.",
        }[self.state]


class ReencryptionResult(NamedTuple):
    """The number of re-encrypted values of each table, and the number of values encrypted with each key afterwards."""

    counts: dict[str, int]
    master: MasterKey
    usages: list[KeyUsage]


@click.group()
def keys() -> None:
    """The master keys, which encrypt stored secrets, and the keys that sign the store's tokens."""


@keys.command("rotate")
@click.option("--drop-previous", is_flag=True, help="Also revoke all tokens of earlier keys. Use this if one leaked.")
@data_option
@output.json_option
def rotate_keys(drop_previous: bool, data: str | None) -> None:
    """Sign the store's tokens with a new key. Running servers use the new key from their next request on.

    An earlier key stays published, and its tokens stay valid, until the last token that it signed has expired. Stored
    secrets are not changed: `keys reencrypt` encrypts them with another master key.
    """
    settings = configuration.load(data=data)
    ring = open_records.run_coroutine(_rotate(settings, drop_previous=drop_previous), CANNOT_ROTATE)
    end_by_key = {kid: clock.rfc3339(value.ends_at or clock.now()) for kid, value in ring.previous.items()}
    lines = [f"Signing with {ring.kid}."]
    for kid, moment in end_by_key.items():
        lines.append(f"Key {kid} stays published until {moment}, when its last token has expired.")
    if drop_previous:
        lines.append("Every earlier token is revoked.")
    result = {"kid": ring.kid, "previous": list(end_by_key), "published_until": end_by_key}
    output.print_result(result, "\n".join(lines))


@keys.command("reencrypt")
@data_option
@output.json_option
def reencrypt(data: str | None) -> None:
    """Encrypt every stored secret again with the first master key. The services may be running.

    Tokens and the keys that sign them are not changed. If the command is interrupted, run it again: it continues.
    """
    settings = configuration.load(data=data)
    results = open_records.run_coroutine(_reencrypt(settings), CANNOT_REENCRYPT)
    lines = [f"{table}: {count} re-encrypted" for table, count in results.counts.items()]
    _show({"reencrypted": results.counts}, lines, results.master, results.usages)


@keys.command("status")
@data_option
@output.json_option
def status(data: str | None) -> None:
    """Show which master keys are still needed, and how many values of which tables need them. Nothing is changed.

    The exit code is 1 if a key is missing, or if a value cannot be decrypted.
    """
    settings = configuration.load(data=data)
    master, usages = open_records.run_coroutine(_status(settings), CANNOT_SHOW_STATUS)
    lines = [f"{usage.table}: {usage.values} under {usage.key_id or '?'}" for usage in usages]
    _show({}, lines, master, usages)


def _show(value: dict[str, object], lines: list[str], master: MasterKey, usages: list[KeyUsage]) -> None:
    """Print what was done and the status of every key.

    Exit with code 1 if a key is missing or a value cannot be decrypted.
    """
    statuses = list(key_statuses(master, usages))
    value |= {"keys": [status._asdict() for status in statuses], "sealed": [usage._asdict() for usage in usages]}
    output.print_result(value, "\n".join([*lines, *(status.words for status in statuses)]))
    undecryptable = _undecryptable(master, usages)
    for usage in undecryptable:
        key_id = usage.key_id or "?"
        output.note(f"{usage.table}: {usage.unopened} values of key {key_id} cannot be decrypted with this key.")
    if undecryptable:
        output.note("Another key has that id now, or the values are damaged: `countersign verify` checks everything.")
    if undecryptable or statuses[-1].state == "missing":
        sys.exit(Exit.FAILED)


def _undecryptable(master: MasterKey, usages: list[KeyUsage]) -> list[KeyUsage]:
    """Return the values that cannot be decrypted although their key is given, or that name no key."""
    return [usage for usage in usages if usage.unopened and (not usage.key_id or master.named(usage.key_id))]


def key_statuses(master: MasterKey, usages: Sequence[KeyUsage]) -> Iterator[KeyStatus]:
    """Yield the status of every given key, in the given order, then of every missing key."""
    rows_by_key: Counter[str] = Counter()
    for usage in usages:
        if usage.key_id:
            rows_by_key[usage.key_id] += usage.values
    yield KeyStatus(master.current.id, rows_by_key[master.current.id], "seals")
    for key in master.keys[1:]:
        yield KeyStatus(key.id, rows_by_key[key.id], "needed" if rows_by_key[key.id] else "unneeded")
    for key_id in sorted(rows_by_key.keys() - {key.id for key in master.keys}):
        yield KeyStatus(key_id, rows_by_key[key_id], "missing")


async def _rotate(settings: Settings, *, drop_previous: bool) -> KeyRing:
    async with open_databases(settings) as databases:
        await require_upgraded(settings, databases, CANNOT_ROTATE)
        store_database = next((database for database in databases if database.tables.schema == lifespan.SCHEMA), None)
        if store_database is None:
            reason = f"{settings.data} has no store, and only a store signs tokens"
            remedy = "Pass --data with the directory of a store. `keys reencrypt` works for the records service, too."
            raise Failure(CANNOT_ROTATE, why=reason, remedy=remedy, exit_code=Exit.NOT_FOUND)
        master = await asyncio.to_thread(master_key, settings)
        _require_servers_have_key(settings, master, CANNOT_ROTATE)
        return await tokens.rotate_keys(store_database.database, master, drop_previous=drop_previous)


async def _reencrypt(settings: Settings) -> ReencryptionResult:
    counts: dict[str, int] = {}
    async with open_databases(settings) as databases:
        await require_upgraded(settings, databases, CANNOT_REENCRYPT)
        master = await asyncio.to_thread(master_key, settings)
        _require_servers_have_key(settings, master, CANNOT_REENCRYPT)
        for service_database in databases:
            for column in service_database.tables.columns:
                changed_rows = await reencryption.reencrypt(service_database.database, column, master)
                counts[f"{service_database.tables.schema}.{column.table}"] = changed_rows
        usages = [usage for service_database in databases for usage in await service_database.key_usage(master)]
        return ReencryptionResult(counts, master, usages)


async def _status(settings: Settings) -> tuple[MasterKey, list[KeyUsage]]:
    async with open_databases(settings) as databases:
        await require_upgraded(settings, databases, CANNOT_SHOW_STATUS)
        master = await asyncio.to_thread(master_key, settings)
        return master, [usage for database in databases for usage in await database.key_usage(master)]


async def require_upgraded(settings: Settings, databases: Sequence[OpenDatabase], failure: str) -> None:
    """Check that there are databases, and that they have no pending migrations.

    Raises:
        Failure: no service has a database.
        SchemaMismatch: a database is not up to date.
    """
    if not databases:
        remedy = "Pass --data with the directory that is served; `org create` and `serve` make a new one."
        raise open_store.missing_database(settings, failure, remedy, " of either service")
    for service_database in databases:
        await migrate.require_applied(
            service_database.database, service_database.tables.migrations, service_database.tables.schema
        )


def _require_servers_have_key(settings: Settings, master: MasterKey, failure: str) -> None:
    """Check that the server of this data directory has the master key; servers on other nodes are not checked."""
    served_key_ids = lock.serving_key_ids(Path(settings.data))
    if served_key_ids is not None and master.current.id not in served_key_ids:
        reason = (
            f"the running services do not have the master key {master.current.id}, and could not decrypt its values"
        )
        remedy = "Restart the services, then run the command again."
        raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)


@asynccontextmanager
async def open_databases(settings: Settings) -> AsyncGenerator[list[OpenDatabase]]:
    """Open the existing databases of both services while the block lasts. No migration is applied.

    Raises:
        Unavailable: a database cannot be opened or reached.
        ValueError: the setting is not a database address.
    """
    databases: list[OpenDatabase] = []
    async with AsyncExitStack() as stack:
        for tables in (open_store.TABLES, open_records.TABLES):
            database = await stack.enter_async_context(tables.open_existing(settings))
            if database is not None:
                databases.append(OpenDatabase(tables, database))
        yield databases
