"""Checks whether the role of a `connect` command has wide rights. PostgreSQL runs the functions of indexes, views and
policies, which other people wrote, with the privileges of the role that reads the rows."""

from collections.abc import Iterable, Mapping

import click

from countersign.cli import output
from countersign.cli.output import Exit, Failure
from countersign.connect.schema import Database, Relation
from countersign.declare import Declared
from countersign.declare.text import printable

CANNOT_READ_ROWS = "cannot read rows with this role"
OPTION = "--accept-wide-rights"

accept_wide_rights_option = click.option(
    OPTION, "accepts_wide", is_flag=True,
    help="Read rows also as a superuser, an owner of the tables, or a role with other wide rights.",
)  # fmt: skip


def model_relations(models: Mapping[str, Declared], database: Database) -> list[Relation]:
    """Return the relations of the models' tables, without tables that the role does not see."""
    found = [database.relation(each.table) for each in models.values() if each.table is not None]
    return [each for each in found if each is not None]


def require_narrow(database: Database, relations: Iterable[Relation], *, accepts_wide: bool) -> None:
    """Check that functions of the database do not get wide rights when the role reads rows of these tables.

    Raises:
        Failure: the role has wide rights, and `accepts_wide` is false.
    """
    if accepts_wide or not (why := _refusal_reason(database, relations)):
        return
    remedy = f"Create a role with `countersign connect rights MODULE`, and use it. {OPTION} accepts this one."
    raise Failure(CANNOT_READ_ROWS, why=why, remedy=remedy, exit_code=Exit.REFUSED)


def may_read_rows(database: Database, relations: Iterable[Relation], *, accepts_wide: bool) -> bool:
    """Return whether values of these tables may be read for the guess. If not, print the reason and the remedy."""
    if accepts_wide or not (why := _refusal_reason(database, relations)):
        return True
    output.note(printable(f"No values are looked at: {why}."))
    output.note(f"To look at values, use a role that has SELECT on the tables and nothing more, or pass {OPTION}.")
    return False


def _refusal_reason(database: Database, relations: Iterable[Relation]) -> str:
    """Return the reason why the role should not read rows of these tables, or an empty text."""
    rights = database.wide_rights_on(relations)
    if not rights:
        return ""
    code = "functions of indexes, views and policies would run with its rights"
    return f"the role {database.role} {' and '.join(rights)}, and {code}"
