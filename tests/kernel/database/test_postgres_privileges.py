"""A database role with too few privileges: every refusal contains the statement that grants the privilege, and this
statement is sufficient."""

from itertools import count

import asyncpg
import pytest

from countersign.kernel.database import migrate
from countersign.kernel.database.open import open_database
from countersign.kernel.database.postgres_admin import privileges_at
from countersign.kernel.database.postgres_privileges import PrivilegeMissing, Privileges
from countersign.kernel.errors import NotEmpty, Unavailable
from tests.servers.postgres import Cluster

MIGRATIONS = "countersign.store.migrations"
_numbers = count(1)


class UnprivilegedRole:
    """A role without privileges on its own database, and a superuser who grants privileges."""

    def __init__(self, cluster: Cluster, url: str) -> None:
        self._owners_url = url
        self.role = f"Poor-{next(_numbers)}"
        self.other = f"other_{next(_numbers)}"
        cluster.sql(f'CREATE ROLE "{self.role}" LOGIN', f"CREATE ROLE {self.other}")
        self.url = url.replace("postgres@", f"{self.role}@", 1)

    async def give(self, *statements: str) -> None:
        """Run the statements as the superuser."""
        connection = await asyncpg.connect(self._owners_url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    async def rights(self) -> Privileges:
        """Return the privileges of the role."""
        (privileges,) = await privileges_at(self.url, ["shop"])
        return privileges

    async def upgraded(self) -> list[str]:
        """Open the database and upgrade it."""
        database = await open_database(self.url, schema="shop", pool=1)
        try:
            return await migrate.upgrade(database, MIGRATIONS)
        finally:
            await database.close()


@pytest.fixture
def unprivileged_role(postgres_cluster: Cluster, postgres_url: str) -> UnprivilegedRole:
    """A role without privileges."""
    return UnprivilegedRole(postgres_cluster, postgres_url)


async def test_each_missing_right_is_reported_with_the_statement_that_grants_the_right(
    unprivileged_role: UnprivilegedRole
) -> None:
    with pytest.raises(PrivilegeMissing) as schemaless:
        await unprivileged_role.upgraded()
    await unprivileged_role.give("CREATE SCHEMA shop")
    with pytest.raises(PrivilegeMissing) as unusable:
        await unprivileged_role.upgraded()
    await unprivileged_role.give(f'GRANT USAGE ON SCHEMA shop TO "{unprivileged_role.role}"')
    with pytest.raises(PrivilegeMissing) as tableless:
        await unprivileged_role.upgraded()
    statement = tableless.value.remedy.partition("run: ")[2]
    await unprivileged_role.give(statement)
    migrations_run = await unprivileged_role.upgraded()

    assert "GRANT CREATE ON DATABASE test_" in schemaless.value.remedy
    assert schemaless.value.remedy.endswith(f' TO "{unprivileged_role.role}";')
    assert unusable.value.remedy.endswith(f'GRANT USAGE, CREATE ON SCHEMA shop TO "{unprivileged_role.role}";')
    assert statement == f'GRANT CREATE ON SCHEMA shop TO "{unprivileged_role.role}";'
    assert migrations_run[0] == "0001_initial"


async def test_the_right_to_make_a_schema_is_enough(unprivileged_role: UnprivilegedRole) -> None:
    with pytest.raises(PrivilegeMissing) as refusal:
        (await unprivileged_role.rights()).require_use()
    await unprivileged_role.give(refusal.value.remedy.partition("run: ")[2])

    (await unprivileged_role.rights()).require_new()
    migrations_run = await unprivileged_role.upgraded()

    rights = await unprivileged_role.rights()
    rights.require_upgrade()
    assert migrations_run
    assert rights.has_tables
    with pytest.raises(NotEmpty):
        rights.require_new()


async def test_nothing_is_made_by_asking(unprivileged_role: UnprivilegedRole) -> None:
    await unprivileged_role.give(
        f'GRANT CREATE ON DATABASE {unprivileged_role.url.rpartition("/")[2]} TO "{unprivileged_role.role}"'
    )

    repeated_rights = [await unprivileged_role.rights(), await unprivileged_role.rights()]

    assert [
        (repeated_right.has_schema, repeated_right.has_tables, repeated_right.is_empty)
        for repeated_right in repeated_rights
    ] == [(False, False, True)] * 2


async def test_tables_of_another_role_are_neither_written_nor_altered(unprivileged_role: UnprivilegedRole) -> None:
    await unprivileged_role.give(
        f"CREATE SCHEMA shop AUTHORIZATION {unprivileged_role.other}",
        f'GRANT USAGE, CREATE ON SCHEMA shop TO "{unprivileged_role.role}"',
        f"SET ROLE {unprivileged_role.other}",
        "CREATE TABLE shop.thing (id int)",
    )
    database = await open_database(unprivileged_role.url, schema="shop", pool=1)
    with pytest.raises(Unavailable) as denial:
        await database.fetch("SELECT id FROM thing")
    await database.close()

    rights = await unprivileged_role.rights()
    with pytest.raises(PrivilegeMissing) as unwritable:
        rights.require_write()
    with pytest.raises(NotEmpty) as refusal:
        rights.require_new()
    await unprivileged_role.give(unwritable.value.remedy.partition("run: ")[2])
    rights = await unprivileged_role.rights()
    rights.require_write()
    with pytest.raises(PrivilegeMissing) as unaltered_error:
        rights.require_upgrade()

    assert "countersign doctor" in denial.value.detail
    assert f"to the role {unprivileged_role.other}" in refusal.value.detail
    assert unprivileged_role.other in unaltered_error.value.detail
    assert f'OWNER TO "{unprivileged_role.role}"' in unaltered_error.value.remedy


async def test_a_move_into_a_schema_of_another_role_is_refused(unprivileged_role: UnprivilegedRole) -> None:
    await unprivileged_role.give(
        f"CREATE SCHEMA shop AUTHORIZATION {unprivileged_role.other}",
        f'GRANT USAGE, CREATE ON SCHEMA shop TO "{unprivileged_role.role}"',
    )

    rights = await unprivileged_role.rights()
    rights.require_upgrade()
    with pytest.raises(NotEmpty) as refusal:
        rights.require_new()
    await unprivileged_role.give(refusal.value.remedy.partition("run: ")[2])
    with pytest.raises(PrivilegeMissing) as unmade:
        (await unprivileged_role.rights()).require_new()
    await unprivileged_role.give(unmade.value.remedy.partition("run: ")[2])

    (await unprivileged_role.rights()).require_new()
