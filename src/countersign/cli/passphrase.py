"""The passphrase of backups: from a file, the environment or a terminal, never from the command line."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from countersign.cli.output import Exit, Failure

COMMAND = TypeVar("COMMAND", bound=Callable[..., Any])

VARIABLE = "COUNTERSIGN_BACKUP_PASSPHRASE"
SHORTEST = 12
LARGEST_FILE_BYTES = 4096

_REMEDY = f"Say --passphrase-file, set {VARIABLE}, or run it on a terminal, where it is asked for."


def option(command: COMMAND) -> COMMAND:
    """Give a command the option --passphrase-file."""
    text = f"File with the passphrase, mode 0600. Else {VARIABLE}, else it is asked for."
    return click.option("--passphrase-file", metavar="FILE", help=text)(command)


def given(file: str | None, doing: str, *, is_new: bool = False) -> str:
    """The passphrase; one that seals something new has a least length, and is asked for twice.

    Raises:
        Failure: none is given, its file is readable by others, or it is too short.
    """
    if file is not None:
        found = _of_file(Path(file), doing)
    elif value := os.environ.get(VARIABLE):
        found = value
    elif sys.stdin.isatty():
        found = str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=is_new, err=True))
    else:
        raise Failure(doing, why="no passphrase is given", remedy=_REMEDY, exit_code=Exit.USAGE)
    if is_new and len(found.strip()) < SHORTEST:
        remedy = "Take a longer one, such as five random words, or: openssl rand -base64 24"
        why = f"the passphrase has fewer than {SHORTEST} characters, blanks around it not counted"
        raise Failure(doing, why=why, remedy=remedy, exit_code=Exit.USAGE)
    return found


def _of_file(path: Path, doing: str) -> str:
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            why = f"{path} can be read by other users of this machine"
            raise Failure(doing, why=why, remedy=f"Run: chmod 600 {path}", exit_code=Exit.USAGE)
        with path.open("rb") as opened:
            content = opened.read(LARGEST_FILE_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = f"{path}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}"
        raise Failure(doing, why=why, remedy="Correct the path, or the file.", exit_code=Exit.USAGE) from error
    if len(content.encode()) > LARGEST_FILE_BYTES:
        why = f"{path} has more than {LARGEST_FILE_BYTES} bytes, and all of it would be the passphrase"
        raise Failure(doing, why=why, remedy="Name a file with the passphrase alone.", exit_code=Exit.USAGE)
    return content.removesuffix("\n").removesuffix("\r")
