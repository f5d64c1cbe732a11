"""The file of a module text, which the subcommands of `countersign connect` read and change."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from countersign.cli import configuration
from countersign.cli.admin.connect import require_database
from countersign.cli.output import Exit, Failure, refusal_failure
from countersign.connect import postgres, sqlite
from countersign.connect.schema import Database, relation_id
from countersign.declare import DeclarationError, Declared, Module, text, text_file
from countersign.declare.registry import Registry
from countersign.declare.text import ModuleText, TextError
from countersign.declare.text_file import NotReplaced, Replacement
from countersign.kernel.database.sqlite_read_only import COPY_IN_UTF_8, IN_UTF_16
from countersign.kernel.errors import Refused, is_disk_full
from countersign.records import base_models, modules

CANNOT_READ, CANNOT_WRITE = "cannot read the module", "cannot write the module"
CANNOT_CONNECT = "cannot read the database"


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A parsed and checked module text. `models` are its models with a table of an existing database."""

    path: Path
    content: str
    text: ModuleText
    models: Mapping[str, Declared]


def load(name: str) -> ModuleFile:
    """Read and check a module text without executing it.

    Raises:
        Failure: the file cannot be read, is no valid module text, or has no model with a table.
    """
    path = Path(name)
    content = _read(path)
    try:
        module_text = text.read(content, name)
    except TextError as error:
        raise _unreadable(f"{name}: {error}", "Correct the file.") from error
    try:
        models = adopted_models(module_text, name)
    except DeclarationError as error:
        raise _unreadable(str(error), "Correct the file.") from error
    if not models:
        why = f"{name} has no model with a table of an existing database"
        raise _unreadable(why, "Write one with `countersign connect URL`.")
    return ModuleFile(path, content, module_text, models)


def adopted_models(module_text: ModuleText, name: str) -> Mapping[str, Declared]:
    """Check all rules of a module text, and return its models with a table of an existing database.

    Raises:
        DeclarationError: a rule is violated.
    """
    module = text.build(module_text, name)
    try:
        registry = Registry((base_models.MODULE, module))
    except DeclarationError:
        # The module may need other modules that COUNTERSIGN_MODULES names.
        others = _other_modules(Path(name))
        if not others:
            raise
        registry = Registry((*others, module))
    own = {model.declared.name for model in module.models}
    return {name: model for name, model in registry.models.items() if model.table is not None and name in own}


def _other_modules(path: Path) -> tuple[Module, ...]:
    """Return the modules of COUNTERSIGN_MODULES without the module text at the path, or no modules if one of them is
    invalid.

    Raises:
        Failure: a setting cannot be used.
    """
    module_names = modules.module_names(configuration.load_unchecked().modules)
    others = [module_name for module_name in module_names if Path(module_name).absolute() != path.absolute()]
    try:
        return modules.found(others).modules if others else ()
    except DeclarationError:
        return ()


def _read(path: Path) -> str:
    try:
        return text_file.read(path)
    except FileNotFoundError:
        remedy = "Correct the path, or write the file with `countersign connect URL`."
        raise Failure(CANNOT_READ, why=f"{path} does not exist", remedy=remedy, exit_code=Exit.NOT_FOUND) from None
    except OSError as error:
        raise _unreadable(f"{path}: {error.strerror}", "Correct the path, or the file.") from error
    except TextError as error:
        raise _unreadable(f"{path}: {error}", "Correct the path, or the file.") from error


def _unreadable(why: str, remedy: str) -> Failure:
    return Failure(CANNOT_READ, why=why, remedy=remedy, exit_code=Exit.USAGE)


def save(file: ModuleFile, changed: ModuleText) -> None:
    """Check the rules of the changed module text, then replace the file atomically.

    Raises:
        Failure: a rule is violated, the file has changed since it was read, or it cannot be written.
    """
    content = text.write(changed)
    try:
        adopted_models(text.read(content), str(file.path))
    except (DeclarationError, TextError) as error:
        remedy = "Nothing is written. Edit the file so that it also fits afterwards, then run the command again."
        raise Failure(CANNOT_WRITE, why=str(error), remedy=remedy, exit_code=Exit.CONFLICT) from error
    try:
        with Replacement(file.path, file.content, content, waits=True) as replacement:
            replacement.commit()
    except NotReplaced as error:
        raise Failure(CANNOT_WRITE, why=str(error), remedy="Run the command again.", exit_code=Exit.CONFLICT) from error
    except OSError as error:
        why, is_full = f"{file.path}: {error.strerror}", is_disk_full(error)
        remedy = "Free space on the disk." if is_full else "Make the file and its folder writable."
        code = Exit.STORAGE_FULL if is_full else Exit.FAILED
        raise Failure(CANNOT_WRITE, why=why, remedy=remedy, exit_code=code) from error


def read_database(address: str, models: Mapping[str, Declared]) -> Database:
    """Read the schema of the database at the address, with the definitions of the tables of these models.

    Raises:
        Failure: the database does not exist, cannot be reached, or cannot be served.
    """
    require_database(address)
    compared = {relation_id(model.table.relation) for model in models.values() if model.table is not None}
    work = sqlite.read(address) if address.startswith(sqlite.SQLITE) else postgres.read(address, [], compared)
    try:
        database = asyncio.run(work)
    except Refused as refused:
        raise refusal_failure(CANNOT_CONNECT, refused) from refused
    if database.is_utf_16:
        raise Failure(CANNOT_CONNECT, why=IN_UTF_16, remedy=COPY_IN_UTF_8, exit_code=Exit.FAILED)
    return database
