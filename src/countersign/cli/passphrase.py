"""The passphrase of a backup: the option --passphrase-file, and how the passphrase is read and checked."""

import os
import stat
import sys
from pathlib import Path

import click

from countersign.cli.options import COMMAND
from countersign.cli.output import Exit, Failure

BACKUP_VARIABLE = "COUNTERSIGN_BACKUP_PASSPHRASE"
MIN_LENGTH = 12
MAX_FILE_BYTES = 4096

_REMEDY = f"Pass --passphrase-file, set {BACKUP_VARIABLE}, or run it on a terminal, where it is asked for."


def passphrase_option(command: COMMAND) -> COMMAND:
    """Give a command the option --passphrase-file."""
    text = f"File with the passphrase, mode 0600. Else {BACKUP_VARIABLE}, else it is asked for."
    return click.option("--passphrase-file", metavar="FILE", help=text)(command)


def read_passphrase(file: str | None, failure: str, *, is_new: bool = False) -> str:
    """Read the passphrase from the file, the environment or the terminal.

    With `is_new`, the passphrase encrypts a new backup: it must have a minimum length, and is asked for twice.

    Raises:
        Failure: no passphrase is given, its file is readable by other users, or the passphrase is too short.
    """
    if file is not None:
        passphrase = _read_file(Path(file), failure)
    elif value := os.environ.get(BACKUP_VARIABLE):
        passphrase = value
    elif sys.stdin.isatty():
        passphrase = str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=is_new, err=True))
    else:
        raise Failure(failure, why="no passphrase is given", remedy=_REMEDY, exit_code=Exit.USAGE)
    if is_new and len(passphrase.strip()) < MIN_LENGTH:
        remedy = "Choose a longer passphrase, such as five random words, or: openssl rand -base64 24"
        reason = f"the passphrase has fewer than {MIN_LENGTH} characters, not counting blanks around it"
        raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.USAGE)
    return passphrase


def _read_file(path: Path, failure: str) -> str:
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            reason = f"{path} can be read by other users of this machine"
            raise Failure(failure, why=reason, remedy=f"Run: chmod 600 {path}", exit_code=Exit.USAGE)
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = f"{path}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}"
        raise Failure(failure, why=reason, remedy="Correct the path, or the file.", exit_code=Exit.USAGE) from error
    if len(content.encode()) > MAX_FILE_BYTES:
        reason = f"{path} has more than {MAX_FILE_BYTES} bytes, and all of it would be the passphrase"
        raise Failure(
            failure, why=reason, remedy="Name a file that contains only the passphrase.", exit_code=Exit.USAGE
        )
    return content.removesuffix("\n").removesuffix("\r")
