"""`countersign connect watch`: print the SQL that makes a database record the changes of other applications."""

from collections.abc import Sequence

import click

from countersign.cli import output
from countersign.cli.admin import module_text_file
from countersign.connect import rights as role_rights
from countersign.connect import watch as watch_sql
from countersign.declare.table import relation_names


@click.command()
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
@click.option(
    "--role", default="countersign_reader", show_default=True, metavar="NAME", help="Role with which the server writes."
)
@click.option("--remove", is_flag=True, help="Print the SQL that removes the triggers and all recorded changes.")
@output.json_option
def watch(*, modules: Sequence[str], role: str, remove: bool) -> None:
    """Print the SQL for triggers that record changes of other applications in the tables of the module texts MODULE.

    Name all files that a server uses. The owner of the tables must run the SQL, and run it again after each change of a
    file. The server then adds each change to the audit: the time, the database role, the record and the names of its
    changed fields. The SQL contains no password, and the command needs no database. SQLite files have no roles.
    """
    if not role_rights.is_role_name(role):
        raise click.UsageError(f"{role!r} is not a name for a role: at most 63 bytes, without backslash and pg_")
    files = [module_text_file.load(each) for each in modules]
    models = [model for file in files for model in file.models.values()]
    if any(model.table is not None and len(relation_names(model.table.relation)) == 1 for model in models):
        output.note("No table of the files has a schema: the SQL takes public. A SQLite file has no roles.")
    name = ", ".join(each.path.name for each in files)
    statements = watch_sql.REMOVAL if remove else watch_sql.script(models, role, name)
    output.print_result({"files": list(modules), "role": role, "sql": statements}, statements.rstrip())
