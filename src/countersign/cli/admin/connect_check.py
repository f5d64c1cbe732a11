"""`countersign connect check` and `rights`: check whether a module text fits its database, and print the SQL for the
role."""

import asyncio
from collections.abc import Collection, Sequence

import click

from countersign.cli import output
from countersign.cli.admin import connect_deletions, module_text_file
from countersign.cli.admin.connect import SHOWN, database_address, url_file_option
from countersign.cli.admin.connect_wide_rights import accept_wide_rights_option, model_relations, require_narrow
from countersign.cli.admin.module_text_file import CANNOT_CONNECT, ModuleFile
from countersign.cli.output import Exit, refusal_failure
from countersign.connect import fit, key_check, watch
from countersign.connect import rights as role_rights
from countersign.connect.fit import Misfit
from countersign.connect.rights import Excess
from countersign.connect.schema import Database, Relation
from countersign.declare.review import undecided_columns
from countersign.declare.table import relation_names
from countersign.declare.text import printable
from countersign.kernel import clock
from countersign.kernel.errors import Refused

GRANT_THEM = "GRANT to the role what the view, or the policies of the table, read and execute"
NAME_IT = 'name the setting in session of the module, such as session={"app.tenant": "user.tenant"}'
READ_THEM = "read its rows with psql as this role, and correct the database"
KEYS_TIMEOUT_S = 30.0
"""The time after which no further key is checked for duplicates."""


@click.command()
@click.argument("module")
@click.argument("url", required=False)
@url_file_option
@accept_wide_rights_option
@output.json_option
def check(*, module: str, url: str | None, url_file: str | None, accepts_wide: bool) -> int:
    """Check whether the module text MODULE fits the database at URL.

    Each line names an error and its remedy; the exit code is then 1. Tables that are not connected but can prevent
    deletions are listed as well; they do not change the exit code. Without URL and --url-file, the URL is the setting
    COUNTERSIGN_EXISTING_URL. The command only reads.
    """
    file = module_text_file.load(module)
    address = database_address(url, url_file)
    database = module_text_file.read_database(address, file.models)
    require_narrow(database, model_relations(file.models, database), accepts_wide=accepts_wide)
    try:
        found, excess = asyncio.run(_compare(address, file, database))
        obstacles = asyncio.run(connect_deletions.obstacles(address, file.models, database))
        unwatched = asyncio.run(_unwatched(address, file, database))
    except Refused as refused:
        raise refusal_failure(CANNOT_CONNECT, refused) from refused
    look = [each.place for each in undecided_columns(file.text)]
    result = _as_json(file, found, obstacles, look, database.role, excess)
    output.print_result({**result, "unwatched": unwatched})
    for each in (*found, *obstacles):
        output.say(printable(f"{each.place}: {each.text}: {each.remedy}"))
    role = "" if excess is None else f" Role {database.role}: {_describe_role(excess, found)}."
    output.say(printable(f"{module}: {_describe_fit(file, found)} the database. {len(look)} to look at.{role}"))
    if unwatched is not None:
        output.say(printable(f"Changes of other applications: {_describe_watching(unwatched)}."))
    return Exit.FAILED if found else Exit.OK


async def _unwatched(address: str, file: ModuleFile, database: Database) -> list[str] | None:
    """Return the tables in which changes of other applications are not recorded, or None if no table is written."""
    if database.is_sqlite or not any(each.table is not None and each.table.writable for each in file.models.values()):
        return None
    return await watch.unwatched(address, file.models.values(), database.role)


def _describe_watching(unwatched: Sequence[str]) -> str:
    if not unwatched:
        return "recorded in all tables"
    shown = ", ".join([*unwatched[:SHOWN], *(["…"] if len(unwatched) > SHOWN else [])])
    tables = "table" if len(unwatched) == 1 else "tables"
    return f"not recorded in {len(unwatched)} {tables} ({shown}); see connect watch"


def _describe_fit(file: ModuleFile, found: Sequence[Misfit]) -> str:
    """Return the number of models that fit, as a clause of the summary."""
    count = len(file.models)
    models = f"{count - len({each.model for each in found})} of {count}" if found else str(count)
    return f"{models} {'model fits' if models == '1' else 'models fit'}"


async def _compare(
    address: str, file: ModuleFile, database: Database
) -> tuple[list[Misfit], Excess | None]:
    """Return the misfits, and the privileges of the role that the file does not need."""
    found = [*fit.misfits(file.models, database), *await _unreadable(address, file, database)]
    found += await _repeated_keys(address, file, database, {each.model for each in found})
    return found, None if database.is_sqlite else await role_rights.excess(address, file.models, database)


async def _unreadable(address: str, file: ModuleFile, database: Database) -> list[Misfit]:
    """Return the models that the role cannot read although it has the privileges on their columns."""
    found: list[Misfit] = []
    failures = {} if database.is_sqlite else await key_check.failures(address, fit.readable(file.models, database))
    for name, code in failures.items():
        if not _needs_session(file, code):
            found.append(Misfit(name, *_unreadable_reason(code)))
    return found


def _needs_session(file: ModuleFile, code: str) -> bool:
    """Return whether a statement may have failed because a policy needs a value of the person who calls."""
    options = dict(file.text.module.options)
    return ("session" in options or "session_roles" in options) and code in key_check.NEEDS_SESSION


def _unreadable_reason(code: str) -> tuple[str, str]:
    """Return the reason why the role cannot read a table on which it has the privileges, and the remedy."""
    if code == key_check.UNKNOWN_SETTING:
        return f"a policy of its table reads a setting that has no value (SQLSTATE {code})", NAME_IT
    if code == key_check.NOT_PERMITTED:
        return f"its table cannot be read (SQLSTATE {code})", GRANT_THEM
    return f"its table cannot be read (SQLSTATE {code})", READ_THEM


async def _repeated_keys(
    address: str, file: ModuleFile, database: Database, known: Collection[str]
) -> list[Misfit]:
    """Return the models whose key two rows share or whose keys could not be compared in time, except the models in
    `known`."""
    found: list[Misfit] = []
    started_s = clock.monotonic_s()
    for name, (relation, key) in fit.unproven_keys(file.models, database).items():
        if name in known:
            continue
        if clock.monotonic_s() - started_s > KEYS_TIMEOUT_S:
            text = f"no unique index covers the key, and it was not compared within {KEYS_TIMEOUT_S:.0f} s with others"
            found.append(Misfit(f"{name}.table", text, "check it in a module text with fewer models"))
            continue
        is_repeated = await key_check.has_repeated_key(address, relation, key)
        if isinstance(is_repeated, str) and _needs_session(file, is_repeated):
            continue
        if isinstance(is_repeated, str):
            found.append(Misfit(f"{name}.table", *_uncompared_reason(relation, key, is_repeated)))
        elif is_repeated:
            text = f"several rows of {relation.place} have the same {', '.join(key)}"
            found.append(Misfit(f"{name}.table", text, "name another key"))
    return found


def _uncompared_reason(relation: Relation, key: Sequence[str], code: str) -> tuple[str, str]:
    """Return the reason why the keys of the rows cannot be compared, and the remedy."""
    if code == key_check.NO_EQUALITY:
        return f"values of the type of the key ({', '.join(key)}) cannot be compared", "name another key"
    if code != key_check.TIMED_OUT:
        return f"its rows cannot be read (SQLSTATE {code})", READ_THEM
    text = f"no unique index covers the key, and its rows cannot be compared in {key_check.TIMEOUT_S:.0f} s"
    is_view = relation.kind in ("view", "materialized")
    return text, "name another key" if is_view else "add a unique index, or name another key"


def _describe_role(excess: Excess, found: Sequence[Misfit]) -> str:
    """Compare the privileges of the role with those that the file needs."""
    needed = "lacks what the lines above say" if any("GRANT" in each.remedy.upper() for each in found) else ""
    more = [*excess.reasons]
    if excess.columns:
        count = len(excess.columns)
        shown = ", ".join([*excess.columns[:SHOWN], *(["…"] if count > SHOWN else [])])
        noun = "column that the file does not name" if count == 1 else "columns that the file does not name"
        more.append(f"it may read {count} {noun} ({shown})")
    if excess.public_count:
        more.append(f"{excess.public_count} of them by rights of PUBLIC, which only REVOKE … FROM PUBLIC takes back")
    if more:
        return f"{needed or 'has all it needs'}, and more: {'; '.join(more)}; see connect rights"
    return f"{needed or 'has all it needs'}, and nothing more"


def _misfit_line(each: Misfit) -> dict[str, str]:
    return {"place": each.place, "text": each.text, "remedy": each.remedy}


def _as_json(
    file: ModuleFile,
    found: Sequence[Misfit],
    obstacles: Sequence[Misfit],
    look: Sequence[str],
    role: str,
    excess: Excess | None,
) -> dict[str, object]:
    held = None if excess is None else {"name": role, "more": excess.reasons, "columns": excess.columns}
    return {
        "file": str(file.path),
        "models": len(file.models),
        "fitting": len(file.models) - len({each.model for each in found}),
        "misfits": list(map(_misfit_line, found)),
        "deletions": list(map(_misfit_line, obstacles)),
        "look": list(look),
        "role": held,
    }


@click.command()
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
@click.option("--role", default="countersign_reader", show_default=True, metavar="NAME", help="Name of the role.")
@output.json_option
def rights(*, modules: Sequence[str], role: str) -> None:
    """Print the SQL for a PostgreSQL role with exactly the privileges that the module texts MODULE need.

    Name all files that a server uses with the role: privileges on other tables and columns are revoked.

    A role with CREATEROLE must run the first part, which creates the role. The owner of the tables must run the second
    part, and run it again after each change of a file. The SQL contains no password, and the command needs no database.
    SQLite files have no roles.
    """
    if not role_rights.is_role_name(role):
        raise click.UsageError(f"{role!r} is not a name for a role: at most 63 bytes, without backslash and pg_")
    files = [module_text_file.load(each) for each in modules]
    models = [model for file in files for model in file.models.values()]
    tables = [each.table.relation for each in models if each.table is not None]
    if all(len(relation_names(each)) == 1 for each in tables):
        output.note("No table of the files has a schema: the SQL takes public. A SQLite file has no roles.")
    statements = role_rights.grants(models, role, ", ".join(each.path.name for each in files))
    output.print_result({"files": list(modules), "role": role, "sql": statements}, statements.rstrip())
