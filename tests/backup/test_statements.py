"""An archive's statements may create tables, rules and indexes, and nothing else."""

import pytest

from countersign.backup.schema_validation import require_plain
from countersign.backup.snapshot import Table
from countersign.kernel.security.age import Damaged

CREATE = "CREATE TABLE lead (id text COLLATE \"C\" NOT NULL, n numeric(10,2) DEFAULT 0, s text DEFAULT 'a; b(c)'::text)"
RULES = (
    "ALTER TABLE lead ADD CONSTRAINT lead_pkey PRIMARY KEY (id)",
    "ALTER TABLE lead ADD CONSTRAINT c CHECK (((octet_length(s) <= 20) AND (s = ANY (ARRAY['x'::text, 'y'::text]))))",
    "CREATE UNIQUE INDEX i ON records.lead USING btree (lower(s), id) WHERE (n IS NOT NULL)",
)
REFERENCES = ('ALTER TABLE lead ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES records."user"(id) ON DELETE CASCADE',)


def table(create: str = CREATE, finish: tuple[str, ...] = RULES, references: tuple[str, ...] = REFERENCES) -> Table:
    """Return a table as an archive describes it."""
    return Table("lead", create, ("id", "n", "s"), finish, references)


def test_statements_that_a_table_needs_are_allowed() -> None:
    require_plain(table())


@pytest.mark.parametrize(
    "create",
    [
        "COMMIT",
        f"{CREATE}; CREATE ROLE backdoor SUPERUSER LOGIN",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "CREATE TABLE lead (id) AS (TABLE pg_authid)",
        "CREATE TABLE lead (id) AS SELECT pg_read_file('secret')",
        "CREATE TABLE lead (id text DEFAULT pg_read_file('secret'))",
        "CREATE TABLE lead (id text DEFAULT \"pg_read_file\"('secret'))",
        "CREATE TABLE lead (id text DEFAULT pg_catalog.lo_export(1, 'x'))",
        "CREATE TABLE lead (id text) INHERITS (other)",
        "CREATE TABLE lead (id text /* ) */ )",
        "CREATE TABLE lead (id text DEFAULT $$x$$)",
    ],
)
def test_a_statement_that_does_more_than_make_a_table_is_refused(create: str) -> None:
    with pytest.raises(Damaged):
        require_plain(table(create))


@pytest.mark.parametrize(
    "rule",
    [
        "ALTER TABLE lead OWNER TO somebody",
        "ALTER TABLE lead ADD CONSTRAINT c CHECK ((set_config('role', 'postgres', false) IS NOT NULL))",
        "CREATE INDEX i ON lead USING btree (id); DROP SCHEMA records CASCADE",
        "CREATE INDEX i ON lead USING btree (pg_sleep(9))",
        "CREATE TRIGGER t BEFORE INSERT ON lead EXECUTE FUNCTION f()",
    ],
)
def test_a_rule_that_is_invalid_is_refused(rule: str) -> None:
    with pytest.raises(Damaged):
        require_plain(table(finish=(rule,)))
