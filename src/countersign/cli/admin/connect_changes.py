"""`countersign connect diff` and `accept`: show what has changed in a database since its module text was written, and
apply the changes to the module text."""

import asyncio
import shlex
import sys
import termios
from collections.abc import Collection, Sequence

import click

from countersign.cli import output
from countersign.cli.admin import module_text_file
from countersign.cli.admin.connect import SAMPLE_SIZE, database_address, url_file_option
from countersign.cli.admin.connect_wide_rights import (
    accept_wide_rights_option,
    may_read_rows,
    model_relations,
    require_narrow,
)
from countersign.cli.admin.module_text_file import CANNOT_CONNECT, ModuleFile
from countersign.cli.output import Exit, Failure, refusal_failure
from countersign.connect import fit, key_check, postgres, schema_changes, sqlite
from countersign.connect.schema import Database, Relation, Samples
from countersign.connect.schema_changes import ModelChange
from countersign.declare import DeclarationError
from countersign.declare.text import printable
from countersign.kernel.errors import Refused

CANNOT_ACCEPT = "cannot accept the changes"


@click.command()
@click.argument("module")
@click.argument("url", required=False)
@click.option("--exit-code", "is_exit_code", is_flag=True, help="End with exit code 1 if something has changed.")
@url_file_option
@accept_wide_rights_option
@output.json_option
def diff(
    *, module: str, url: str | None, url_file: str | None, is_exit_code: bool, accepts_wide: bool
) -> int:
    """Show the changes in the database at URL since the module text MODULE was written.

    In front of each line, + means new, - removed, ~ renamed, and ! hidden until you accept the change. Without URL and
    --url-file, the URL is the setting COUNTERSIGN_EXISTING_URL. The command only reads.
    """
    file = module_text_file.load(module)
    address = database_address(url, url_file)
    database = module_text_file.read_database(address, file.models)
    changes, tables = _changes(file, address, database, accepts_wide=accepts_wide)
    output.print_result({"file": module, "changes": [_as_json(each) for each in changes], "tables": tables})
    _show(changes, tables)
    if not changes and not tables:
        output.say(f"{module}: nothing has changed.")
    for line in _next_steps(changes, module, url, url_file):
        output.say(line)
    return Exit.FAILED if is_exit_code and (changes or tables) else Exit.OK


def _next_steps(changes: Sequence[ModelChange], module: str, url: str | None, url_file: str | None) -> list[str]:
    """Return the command that accepts the changes, and the models that it does not accept without a confirmation."""
    possible = [each for each in changes if each.changed is not None]
    if not possible:
        return []
    words = ["countersign", "connect", "accept", module]
    if url_file is not None:
        words += ["--url-file", url_file]
    elif url is not None:
        # The URL of a server may contain a password.
        words.append(url if url.startswith(sqlite.SQLITE) else "URL")
    found = [f"To accept the changes: {shlex.join(words)}"]
    if unproven := [each.model for each in possible if not each.is_proven]:
        found.append(f"Look first at the fields of {', '.join(unproven)}. Without a terminal, --model names each.")
    return found


@click.command()
@click.argument("module")
@click.argument("url", required=False)
@click.option("--model", "models", multiple=True, metavar="NAME", help="A model whose fields you have reviewed.")
@click.option("--yes", is_flag=True, help="Accept changes that need no review without asking.")
@url_file_option
@accept_wide_rights_option
@output.json_option
def accept(
    *, module: str, url: str | None, models: tuple[str, ...], yes: bool, url_file: str | None, accepts_wide: bool
) -> int:
    """Apply the changes in the database at URL to the module text MODULE.

    New columns are masked or left out, as by `connect`. A field whose column was removed becomes a comment. Names,
    labels and all your other edits are kept. A model must be confirmed with --model or on the terminal if its columns
    may have exchanged their names, or if its key or the kind of a field changes. The exit code is 5 if a model was not
    confirmed. The database is only read.
    """
    file = module_text_file.load(module)
    _require_known(file, models)
    address = database_address(url, url_file)
    database = module_text_file.read_database(address, file.models)
    require_narrow(database, model_relations(file.models, database), accepts_wide=accepts_wide)
    changes, tables = _changes(file, address, database, accepts_wide=accepts_wide)
    _show(changes, tables)
    chosen = _accepted_changes(changes, models, is_confirmed=yes)
    chosen = _without_repeated_keys(file, chosen, address, database)
    if chosen:
        module_text_file.save(file, schema_changes.accepted(file.text, chosen))
        output.say(f"Wrote {module}. Look at the new fields, and start the server again.")
    return _print_accepted(module, changes, chosen)


def _print_accepted(module: str, changes: Sequence[ModelChange], chosen: Sequence[ModelChange]) -> Exit:
    """Print the accepted changes, and return the exit code."""
    left = [each.model for each in changes if each not in chosen]
    shown = [_as_json(each) for each in changes]
    found = {"file": module, "changes": shown, "accepted": [each.model for each in chosen], "left": left}
    output.print_result(found, _last_line(module, changes, left))
    return Exit.CONFLICT if left else Exit.OK


def _last_line(module: str, changes: Sequence[ModelChange], left: Sequence[str]) -> str:
    """Return the last line of the output, about changes that were not accepted, or an empty text."""
    if left:
        return f"Not taken over: {', '.join(left)}."
    return "" if changes else f"{module}: nothing to accept."


def _require_known(file: ModuleFile, models: Collection[str]) -> None:
    unknown = next((each for each in models if each not in file.models), None)
    if unknown is not None:
        why = f"{file.path} has no model {unknown} with a table"
        raise Failure(CANNOT_ACCEPT, why=why, remedy="Correct --model.", exit_code=Exit.NOT_FOUND)


def _accepted_changes(
    changes: Sequence[ModelChange], models: Collection[str], *, is_confirmed: bool
) -> list[ModelChange]:
    """Return the changes that can be applied and that the person accepts."""
    possible = [each for each in changes if each.changed is not None]
    return [each for each in possible if _is_accepted(each, models, is_confirmed=is_confirmed)]


def _is_accepted(change: ModelChange, models: Collection[str], *, is_confirmed: bool) -> bool:
    """Return whether the person accepts the change, by an option or by an answer on the terminal."""
    question = f"Take the changes of {change.model} over?"
    if not change.is_proven:
        output.note(printable(f"{change.model}: agents read in clear: {', '.join(change.clear) or 'no field'}."))
    if change.model in models or (change.is_proven and is_confirmed):
        return True
    if not change.is_proven:
        question = f"Have you looked at the fields of {change.model}, and is that correct?"
    if sys.stdin.isatty():
        # Ignore text that was typed before the question.
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return click.confirm(question, err=True)
    option = f"--model {change.model}" if not change.is_proven else "--yes"
    output.note(f"{change.model}: not confirmed: look at its fields, and pass {option}.")
    return False


def _show(changes: Sequence[ModelChange], tables: Sequence[str]) -> None:
    for each in changes:
        for line in each.lines:
            output.say(f"{each.model}: {line}")
    for table in tables:
        option = f"--table {shlex.quote(table)} --out FILE"
        remedy = f"write its model with connect {option}, and move the class into this file"
        output.say(printable(f"{table}: + the table is not in the file: {remedy}"))


def _as_json(change: ModelChange) -> dict[str, object]:
    return {
        "model": change.model,
        "lines": list(change.lines),
        "acceptable": change.changed is not None,
        "needs_look": not change.is_proven,
        "clear": list(change.clear),
    }


def _without_repeated_keys(
    file: ModuleFile, chosen: Sequence[ModelChange], address: str, database: Database
) -> list[ModelChange]:
    """Return the changes, except those of tables in which two rows have the same key."""
    accepted = schema_changes.accepted(file.text, chosen)
    try:
        models = module_text_file.adopted_models(accepted, str(file.path))
    except DeclarationError:
        # `save` reports the violated rule.
        return list(chosen)
    unproven = fit.unproven_keys(models, database)
    found: list[ModelChange] = []
    for each in chosen:
        relation, key = unproven.get(each.model, (None, ()))
        try:
            is_repeated = relation is not None and asyncio.run(key_check.has_repeated_key(address, relation, key))
        except Refused as refused:
            raise refusal_failure(CANNOT_CONNECT, refused) from refused
        if relation and is_repeated is True:
            rows = f"several rows of {relation.place} have the same {', '.join(key)}"
            output.note(printable(f"{each.model}: {rows}: write another key into its Table(…)."))
        else:
            found.append(each)
    return found


def _changes(
    file: ModuleFile, address: str, database: Database, *, accepts_wide: bool
) -> tuple[list[ModelChange], list[str]]:
    """Return the changes of the models, and the tables that the file does not name. With a role that has wide rights,
    values of new columns are read only if `accepts_wide` is set.

    Raises:
        Failure: the database cannot be reached.
    """
    histories = schema_changes.histories_of(file.text, file.models, database)
    relations = schema_changes.relations_with_new_columns(file.text, file.models, database, histories)
    if relations and not may_read_rows(database, relations, accepts_wide=accepts_wide):
        relations = ()
    try:
        samples = asyncio.run(_samples(relations, database, address))
    except Refused as refused:
        raise refusal_failure(CANNOT_CONNECT, refused) from refused
    changes = schema_changes.changes(file.text, file.models, database, samples, histories)
    return changes, schema_changes.new_tables(file.text, file.models, database)


async def _samples(relations: Sequence[Relation], database: Database, address: str) -> Samples:
    """Return samples of the values in these tables."""
    engine = sqlite if database.is_sqlite else postgres
    return await engine.samples(address, relations, SAMPLE_SIZE) if relations else {}
