"""The file of a module text, which the subcommands of `countersign connect` read and change."""

import asyncio
import contextlib
import fcntl
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from countersign.cli import configuration
from countersign.cli.admin.connect import require_database
from countersign.cli.output import Exit, Failure, refusal_failure
from countersign.connect import postgres, sqlite
from countersign.connect.schema import Database, relation_id
from countersign.declare import DeclarationError, Declared, Module, text
from countersign.declare.registry import Registry
from countersign.declare.text import ModuleText, TextError
from countersign.kernel.errors import Refused, is_disk_full
from countersign.records import base_models, modules

CANNOT_READ, CANNOT_WRITE = "cannot read the module", "cannot write the module"
CANNOT_CONNECT = "cannot read the database"


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A module text that was read and checked. `models` are its models with a table."""

    path: Path
    content: str
    text: ModuleText
    models: Mapping[str, Declared]


def load(name: str) -> ModuleFile:
    """Read and check a module text. It is not executed.

    Raises:
        Failure: the file cannot be read, is no valid module text, or has no model with a table.
    """
    path = Path(name)
    content = _read(path)
    try:
        found = text.read(content, name)
    except TextError as error:
        raise _unreadable(f"{name}: {error}", "Correct the file.") from error
    try:
        models = adopted_models(found, name)
    except DeclarationError as error:
        raise _unreadable(str(error), "Correct the file.") from error
    if not models:
        why = f"{name} has no model with a table of an existing database"
        raise _unreadable(why, "Write one with `countersign connect URL`.")
    return ModuleFile(path, content, found, models)


def adopted_models(found: ModuleText, name: str) -> Mapping[str, Declared]:
    """Return the models with a table of a module text, all of whose rules are checked.

    Raises:
        DeclarationError: a rule is violated.
    """
    module = text.build(found, name)
    try:
        registry = Registry((base_models.MODULE, module))
    except DeclarationError:
        # The module may need others, which the setting names.
        others = _other_modules(Path(name))
        if not others:
            raise
        registry = Registry((*others, module))
    own = {each.declared.name for each in module.models}
    return {name: each for name, each in registry.models.items() if each.table is not None and name in own}


def _other_modules(path: Path) -> tuple[Module, ...]:
    """Return the modules of COUNTERSIGN_MODULES without the module text at the path, or none if one is wrong.

    Raises:
        Failure: a setting cannot be used.
    """
    module_names = modules.names(configuration.load_unchecked().modules)
    others = [each for each in module_names if Path(each).absolute() != path.absolute()]
    try:
        return modules.found(others).modules if others else ()
    except DeclarationError:
        return ()


def _read(path: Path) -> str:
    try:
        # A pipe must not be waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unreadable(f"{path}: it is not a file", "Correct the path.")
            content = file.read(text.MAX_BYTES + 1)
        if len(content) > text.MAX_BYTES:
            why = f"{path}: it has more than {text.MAX_BYTES} bytes"
            raise _unreadable(why, "Divide it into several modules.")
        # Some editors of Windows begin a file with a byte order mark.
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        remedy = "Correct the path, or write the file with `countersign connect URL`."
        raise Failure(CANNOT_READ, why=f"{path} does not exist", remedy=remedy, exit_code=Exit.NOT_FOUND) from None
    except (OSError, UnicodeDecodeError) as error:
        why = f"{path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
        raise _unreadable(why, "Correct the path, or the file.") from error


def _unreadable(why: str, remedy: str) -> Failure:
    return Failure(CANNOT_READ, why=why, remedy=remedy, exit_code=Exit.USAGE)


def save(file: ModuleFile, changed: ModuleText) -> None:
    """Replace the module text, whose rules are checked first. Readers see the old file or the new one, never a part.

    Raises:
        Failure: a rule is violated, the file has changed since it was read, or it cannot be written.
    """
    content = text.write(changed)
    try:
        adopted_models(text.read(content), str(file.path))
    except (DeclarationError, TextError) as error:
        remedy = "Nothing is written. Edit the file so that it also fits afterwards, then run the command again."
        raise Failure(CANNOT_WRITE, why=str(error), remedy=remedy, exit_code=Exit.CONFLICT) from error
    if "\r\n" in file.content:
        content = content.replace("\n", "\r\n")
    # The file may be a symbolic link, which stays.
    path = file.path.resolve()
    try:
        # Another command that writes the file waits here, and then sees that it has changed.
        with path.open("rb") as locked_file:
            fcntl.flock(locked_file, fcntl.LOCK_EX)
            if _read(file.path) != file.content:
                why = f"{file.path} has changed since it was read"
                raise Failure(CANNOT_WRITE, why=why, remedy="Run the command again.", exit_code=Exit.CONFLICT)
            _replace(path, content.encode())
    except OSError as error:
        why, is_full = f"{file.path}: {error.strerror}", is_disk_full(error)
        remedy = "Free space on the disk." if is_full else "Make the file and its folder writable."
        code = Exit.STORAGE_FULL if is_full else Exit.FAILED
        raise Failure(CANNOT_WRITE, why=why, remedy=remedy, exit_code=code) from error


def _replace(path: Path, content: bytes) -> None:
    """Replace a file that is locked by one with this content and the same owner, mode and attributes."""
    temporary_path = path.with_name(f".{path.name}.unfinished")
    old_status = path.stat()
    # A process that was killed may have left one.
    temporary_path.unlink(missing_ok=True)
    try:
        with open(os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new_file:
            with contextlib.suppress(PermissionError):
                os.fchown(new_file.fileno(), old_status.st_uid, old_status.st_gid)
            os.fchmod(new_file.fileno(), stat.S_IMODE(old_status.st_mode))
            _copy_attributes(path, temporary_path)
            new_file.write(content)
            new_file.flush()
            os.fsync(new_file.fileno())
        os.replace(temporary_path, path)
    finally:
        temporary_path.unlink(missing_ok=True)


def _copy_attributes(path: Path, other: Path) -> None:
    """Copy the extended attributes, such as the list of those who may read the file, as far as the system has them."""
    with contextlib.suppress(OSError, AttributeError):
        for name in os.listxattr(path):
            with contextlib.suppress(OSError):
                os.setxattr(other, name, os.getxattr(path, name))


def read_database(address: str, models: Mapping[str, Declared]) -> Database:
    """Read the schema of the database at the address, with the definitions of the tables of these models.

    Raises:
        Failure: the database does not exist, or cannot be reached.
    """
    require_database(address)
    compared = {relation_id(each.table.relation) for each in models.values() if each.table is not None}
    work = sqlite.read(address) if address.startswith(sqlite.SQLITE) else postgres.read(address, [], compared)
    try:
        return asyncio.run(work)
    except Refused as refused:
        raise refusal_failure(CANNOT_CONNECT, refused) from refused
