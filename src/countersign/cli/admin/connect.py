"""`countersign connect`: read the schema of an existing database, and write a module text for its tables."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from countersign.cli import configuration, output
from countersign.cli.admin.connect_wide_rights import accept_wide_rights_option, may_read_rows
from countersign.cli.output import Exit, Failure, refusal_failure
from countersign.connect import demo_database, draft, names, postgres, sqlite
from countersign.connect.draft import Draft, Report
from countersign.connect.schema import Database, Samples
from countersign.declare import text
from countersign.declare.rules.modules import is_name
from countersign.kernel import clock, connection_urls
from countersign.kernel.errors import Refused
from countersign.records import base_models

CANNOT_CONNECT, CANNOT_WRITE = "cannot read the database", "cannot write the module"
CANNOT_CREATE = "cannot create the demonstration database"
URL_SETTING = "COUNTERSIGN_EXISTING_URL"
SAMPLE_SIZE, MAX_SAMPLE_SIZE = 200, 1_000
MAX_URL_FILE_BYTES = 4096
SHOWN = 5
"""The maximum number of names in a line of the summary."""

_KIND_NAMES = {
    "table": ("table", "tables"), "partitioned": ("partitioned table", "partitioned tables"),
    "partition": ("partition", "partitions"), "view": ("view", "views"),
    "materialized": ("materialized view", "materialized views"), "foreign": ("foreign table", "foreign tables"),
    "inherited": ("parent table", "parent tables"), "extension": ("table of an extension", "tables of extensions"),
}  # fmt: skip


url_file_option = click.option(
    "--url-file", metavar="FILE", help="File with the URL, so that a list of processes does not show its password."
)


@click.command()
@click.argument("url", required=False)
@url_file_option
@click.option("--schema", "schemas", multiple=True, metavar="S", help="Only this schema; may be given several times.")
@click.option("--table", "tables", multiple=True, metavar="T", help="Only this table or view; may be repeated.")
@click.option("--name", metavar="NAME", help="Name of the module. Default: the name of the database.")
@click.option("--out", metavar="FILE", help="File to write, which must not exist. Default: NAME.py.")
@click.option(
    "--sample", type=click.IntRange(0, MAX_SAMPLE_SIZE), default=SAMPLE_SIZE, show_default=True,
    help="Number of values of each text column to read for the guess; 0 reads none.",
)  # fmt: skip
@click.option(
    "--demo-database", "is_demo", is_flag=True,
    help="First create a small fictitious shop at URL: in a new SQLite file, or in an empty PostgreSQL database.",
)  # fmt: skip
@click.option("--try", "is_try", is_flag=True, help="Connect for a trial that only reads: SELECT is sufficient.")
@accept_wide_rights_option
@output.json_option
def connect(
    *,
    url: str | None,
    url_file: str | None,
    schemas: tuple[str, ...],
    tables: tuple[str, ...],
    name: str | None,
    out: str | None,
    sample: int,
    is_demo: bool,
    is_try: bool,
    accepts_wide: bool,
) -> None:
    """Write a module text for the tables of the database at URL: postgresql://… or sqlite:///FILE.

    The command only reads, except with --demo-database. Without URL and --url-file, the URL is the setting
    COUNTERSIGN_EXISTING_URL, or else COUNTERSIGN_DATABASE_URL. Text that may be personal is masked, and secrets are
    left out; the file says why. The file contains no password, and an existing file is never overwritten.
    """
    if is_demo:
        _require_url(url, url_file)
    address = database_address(url, url_file)
    module = name or names.module_name(_database_name(address))
    if not is_name(module):
        raise click.UsageError(f"{module!r} is not a module name: lower-case letters, digits and single underscores")
    path = Path(out or f"{module}.py")
    _require_new(path)
    if is_demo:
        _create_demo_database(address)
    require_database(address)
    started_s = clock.monotonic_s()
    database, samples = _run(address, schemas, tables, sample, accepts_wide=accepts_wide)
    took_s = clock.monotonic_s() - started_s
    origin = f"{_describe_database(address)}{_in_schemas(database)}, {clock.rfc3339(clock.now())[:10]}"
    reserved = [model.declared.name for model in base_models.MODULE.models]
    module_draft = draft.draft(database, samples, name=module, origin=origin, tables=tables, reserved=reserved)
    _write(path, module_draft)
    output.print_result(_as_json(module, path, database, module_draft.report))
    columns = sum(bool(values) for values in samples.values())
    _summarize(database, module_draft.report, took_s, f"up to {sample} values of {columns} text columns", is_try)
    output.say(f"Wrote {path}. Read it, decide on what is masked, and try it:")
    output.say(f"  countersign connect review {path}")
    given = f"{URL_SETTING}_FILE={url_file}" if url_file else f"{URL_SETTING}=…"
    output.say(f"  {given} countersign serve records --modules {_module_entry(path)} --try")


def _require_url(url: str | None, url_file: str | None) -> None:
    """Require a URL in the command, because the settings may name a database that is in use."""
    if url is None and url_file is None:
        raise click.UsageError("--demo-database needs the URL of a new database, as argument or in --url-file")


def database_address(url: str | None, url_file: str | None) -> str:
    """Return the URL of the database from the argument, the file or the setting.

    Raises:
        Failure: the file cannot be read, or no URL is given.
        UsageError: both an argument and a file are given, or the URL cannot be parsed.
    """
    if url is not None and url_file is not None:
        raise click.UsageError("give the URL or --url-file, not both")
    if url_file is not None:
        address = _read_url(Path(url_file))
    else:
        settings = configuration.load_unchecked()
        address = url or settings.existing_url or settings.database_url
    if not address:
        remedy = f"Pass --url-file FILE, or set {URL_SETTING}."
        raise Failure(CANNOT_CONNECT, why="no URL is given", remedy=remedy, exit_code=Exit.USAGE)
    if address.startswith(connection_urls.POSTGRES_SCHEMES):
        _require_postgres(address, is_argument=url is not None)
    elif not address.startswith(sqlite.SQLITE):
        raise click.UsageError("the URL of the database begins with postgresql:// or sqlite:///")
    return address


def require_database(address: str) -> None:
    """Check that the SQLite file at the address exists.

    Raises:
        Failure: it does not.
    """
    if address.startswith(sqlite.SQLITE) and not Path(address.removeprefix(sqlite.SQLITE)).is_file():
        why, remedy = "the file does not exist", "Write the URL like sqlite:////absolute/file.db."
        raise Failure(CANNOT_CONNECT, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _create_demo_database(address: str) -> None:
    """Create the demonstration shop at the URL.

    Raises:
        Failure: there is a file or a table already, or the database cannot be reached or written.
    """
    try:
        if address.startswith(sqlite.SQLITE):
            demo_database.create_sqlite(Path(address.removeprefix(sqlite.SQLITE)))
        else:
            asyncio.run(demo_database.create_postgres(address))
    except FileExistsError as error:
        why = f"{error.filename2 or error.filename} exists"
        remedy = "Name a new file, or leave out --demo-database to connect this one."
        raise Failure(CANNOT_CREATE, why=why, remedy=remedy, exit_code=Exit.CONFLICT) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise Failure(CANNOT_CREATE, why=why, remedy="Name a file in a folder that you may write.") from error
    except Refused as refused:
        raise refusal_failure(CANNOT_CREATE, refused) from refused


def _require_postgres(address: str, *, is_argument: bool) -> None:
    """Check that the URL can be parsed, and warn of a password in an argument."""
    try:
        parts = connection_urls.require_readable(address, "the URL")
        connection_urls.require_postgres(address, "the URL")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if is_argument and (parts.password or "password=" in parts.query):
        output.note("The list of processes shows the password in the URL to others: use --url-file instead.")


def _read_url(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_URL_FILE_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = f"{path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
        raise Failure(CANNOT_CONNECT, why=why, remedy="Correct the path, or the file.", exit_code=Exit.USAGE) from error


def _database_name(address: str) -> str:
    if address.startswith(sqlite.SQLITE):
        return Path(address.removeprefix(sqlite.SQLITE)).stem
    return connection_urls.require_readable(address, "the URL").path.strip("/")


def _describe_database(address: str) -> str:
    """Describe the database without user, password, and folders of this machine."""
    if address.startswith(sqlite.SQLITE):
        return f"the SQLite file {Path(address.removeprefix(sqlite.SQLITE)).name}"
    return f"postgresql://{connection_urls.postgres_location(address)}"


def _in_schemas(database: Database) -> str:
    schemas = sorted({relation.schema for relation in database.relations if relation.schema})
    return f" ({'schema' if len(schemas) == 1 else 'schemas'} {', '.join(schemas)})" if schemas else ""


def _run(
    address: str, schemas: Sequence[str], tables: Sequence[str], sample: int, *, accepts_wide: bool
) -> tuple[Database, Samples]:
    """Read the schema and the samples. With a role that has wide rights, samples are read only if `accepts_wide` is
    set.

    Raises:
        Failure: the database cannot be reached, or does not have one of the tables.
    """

    async def work() -> tuple[Database, Samples]:
        if address.startswith(sqlite.SQLITE):
            database = await sqlite.read(address)
        else:
            database = await postgres.read(address, schemas)
        _require_tables(database, tables)
        adopted = draft.adopted(database, tables)
        if not sample or not may_read_rows(database, adopted, accepts_wide=accepts_wide):
            return database, {}
        engine = sqlite if address.startswith(sqlite.SQLITE) else postgres
        return database, await engine.samples(address, adopted, sample)

    try:
        return asyncio.run(work())
    except Refused as refused:
        raise refusal_failure(CANNOT_CONNECT, refused) from refused


def _require_tables(database: Database, tables: Sequence[str]) -> None:
    known = {name for relation in database.relations for name in (relation.place, relation.name)}
    for table in tables:
        if table not in known:
            remedy = "Correct --table, or give the role SELECT on it. A table is called NAME or SCHEMA.NAME."
            why = f"the role sees no table or view {table!r}"
            raise Failure(CANNOT_CONNECT, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _require_new(path: Path) -> None:
    if path.exists():
        raise _file_exists(path)


def _write(path: Path, module_draft: Draft) -> None:
    """Write the module text to a new file.

    Raises:
        Failure: the draft has no model, the text is too long, or the file exists or cannot be written.
    """
    if not module_draft.report.models:
        remedy = "Name other tables with --table or schemas with --schema, or give the role SELECT on the tables."
        why = _count_left_out(module_draft.report) or "the role may read no table"
        raise Failure(CANNOT_WRITE, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)
    content = text.write(module_draft.text)
    if len(content.encode()) > text.MAX_BYTES:
        why = f"the module has more than {text.MAX_BYTES} bytes"
        raise Failure(CANNOT_WRITE, why=why, remedy="Choose some tables with --schema or --table.")
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(content)
    except FileExistsError:
        raise _file_exists(path) from None
    except OSError as error:
        why = f"{path}: {error.strerror}"
        raise Failure(CANNOT_WRITE, why=why, remedy="Choose another file with --out.") from error


def _file_exists(path: Path) -> Failure:
    remedy = "Choose another file with --out, or another name with --name."
    why = f"{path} exists, and an existing file is never overwritten"
    return Failure(CANNOT_WRITE, why=why, remedy=remedy, exit_code=Exit.CONFLICT)


def _as_json(module: str, path: Path, database: Database, report: Report) -> dict[str, object]:
    return {
        "module": module,
        "file": str(path),
        "database": {"product": database.product, "name": database.name, "role": database.role},
        "models": report.models,
        "left_out": [{"relation": place, "reason": reason} for place, reason in report.left_out],
        "personal": dict(report.personal),
        "secret": report.secret,
        "look": report.look,
    }


def _summarize(database: Database, report: Report, took_s: float, looked: str, is_try: bool) -> None:
    kinds = Counter(relation.kind for relation in database.relations)
    read = ", ".join(f"{count} {_KIND_NAMES.get(kind, (kind, kind))[count != 1]}" for kind, count in kinds.items())
    output.say(f"Connected: {database.product}, database {database.name}{_describe_role(database, is_try)}")
    output.say(f"Read: {read}, in {took_s:.2f} s; looked at {looked}")
    personal = ", ".join(f"{label} {count}" for label, count in report.personal.most_common())
    for label, count, examples in (
        ("models", len(report.models), _shortened_list(report.models)),
        ("left out", len(report.left_out), _count_left_out(report)),
        ("personal", report.personal.total(), personal),
        ("secret", len(report.secret), _shortened_list(report.secret)),
        ("to look at", len(report.look), "masked or left out until you decide" if report.look else ""),
    ):
        output.say(f"  {label:<12}{count:>4}   {examples}".rstrip())


def _describe_role(database: Database, is_try: bool) -> str:
    """Describe the role, with a warning about a superuser, because a trial needs only SELECT."""
    if not database.role:
        return ""
    rights = "a superuser: trying needs SELECT only" if database.is_superuser else "not a superuser"
    schema = "may create a schema" if database.may_create_schema else "may not create a schema"
    facts = [rights, *([] if is_try else [schema]), *(["a replica"] if database.is_replica else [])]
    return f", as {database.role} ({'; '.join(facts)})"


def _module_entry(path: Path) -> str:
    """Return the path as an entry of COUNTERSIGN_MODULES. An entry with a separator is a file."""
    return str(path) if path.is_absolute() else f"./{path}"


def _shortened_list(names: Sequence[str]) -> str:
    return ", ".join([*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])])


def _count_left_out(report: Report) -> str:
    """Return each reason with the number of relations that were left out for it."""
    reasons = Counter(reason.partition(":")[0] for _, reason in report.left_out)
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
