"""What the commands of `connect` do with a role that may do more than read: PostgreSQL runs functions of indexes, views
and policies, which others wrote, with the rights of the role that reads the rows."""

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


def relations_of(models: Mapping[str, Declared], database: Database) -> list[Relation]:
    """Return the tables of the models that the role sees."""
    found = [database.relation(each.table) for each in models.values() if each.table is not None]
    return [each for each in found if each is not None]


def require_narrow(database: Database, relations: Iterable[Relation], *, accepts_wide: bool) -> None:
    """Check that the role may read rows of these tables without lending wide rights to functions of the database.

    Raises:
        Failure: the role has wide rights, and `accepts_wide` is false.
    """
    if accepts_wide or not (why := _why(database, relations)):
        return
    remedy = f"Create a role with `countersign connect rights MODULE`, and use it. {OPTION} accepts this one."
    raise Failure(CANNOT_READ_ROWS, why=why, remedy=remedy, exit_code=Exit.REFUSED)


def may_read_rows(database: Database, relations: Iterable[Relation], *, accepts_wide: bool) -> bool:
    """Return whether values of these tables may be read for the guess. If not, print why, and what to do."""
    if accepts_wide or not (why := _why(database, relations)):
        return True
    output.note(printable(f"No values are looked at: {why}."))
    output.note(f"To look at values, use a role that has SELECT on the tables and nothing more, or pass {OPTION}.")
    return False


def _why(database: Database, relations: Iterable[Relation]) -> str:
    """Return why the role should not read rows of these tables, or an empty text."""
    rights = database.wide_rights_on(relations)
    if not rights:
        return ""
    code = "functions of indexes, views and policies would run with its rights"
    return f"the role {database.role} {' and '.join(rights)}, and {code}"
