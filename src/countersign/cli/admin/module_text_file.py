"""The file of a module text, which the subcommands of `countersign connect` read and change."""

import asyncio
import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from countersign.cli.admin.connect import require_database
from countersign.cli.output import Exit, Failure, refusal_failure
from countersign.connect import postgres, sqlite
from countersign.connect.schema import Database
from countersign.declare import DeclarationError, Declared, text
from countersign.declare.registry import Registry
from countersign.declare.text import ModuleText, TextError
from countersign.kernel import ids
from countersign.kernel.errors import Refused
from countersign.records import base_models

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
    registry = Registry((base_models.MODULE, text.build(found, name)))
    return {name: each for name, each in registry.models.items() if each.table is not None}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            content = opened.read(text.MAX_BYTES + 1)
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
    if _read(file.path) != file.content:
        why = f"{file.path} has changed since it was read"
        raise Failure(CANNOT_WRITE, why=why, remedy="Run the command again.", exit_code=Exit.CONFLICT)
    if "\r\n" in file.content:
        content = content.replace("\n", "\r\n")
    # The file may be a symbolic link, which stays.
    path = file.path.resolve()
    temporary_path = path.with_name(f".{path.name}.{ids.new_uuid()}")
    try:
        found = path.stat()
        with open(os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as created:
            with contextlib.suppress(PermissionError):
                os.fchown(created.fileno(), found.st_uid, found.st_gid)
            os.fchmod(created.fileno(), stat.S_IMODE(found.st_mode))
            created.write(content.encode())
            created.flush()
            os.fsync(created.fileno())
        os.replace(temporary_path, path)
    except OSError as error:
        why = f"{file.path}: {error.strerror}"
        raise Failure(CANNOT_WRITE, why=why, remedy="Make the file writable.") from error
    finally:
        temporary_path.unlink(missing_ok=True)


def read_database(address: str) -> Database:
    """Read the schema of the database at the address.

    Raises:
        Failure: the database does not exist, or cannot be reached.
    """
    require_database(address)
    work = sqlite.read(address) if address.startswith(sqlite.SQLITE) else postgres.read(address, [])
    try:
        return asyncio.run(work)
    except Refused as refused:
        raise refusal_failure(CANNOT_CONNECT, refused) from refused
