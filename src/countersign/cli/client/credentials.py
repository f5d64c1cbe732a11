"""Saves the tokens that commands send, one for each server, in a file that only its owner can read."""

import json
import os
import stat
from enum import StrEnum
from pathlib import Path

import msgspec

from countersign.cli.output import Exit, Failure
from countersign.kernel import ids


class Variable(StrEnum):
    """The environment variables with the credentials of a command."""

    BEARER = "COUNTERSIGN_TOKEN"
    CLIENT = "COUNTERSIGN_CLIENT_ID"
    PROOF = "COUNTERSIGN_CLIENT_SECRET"


def client_of_environment() -> tuple[str, str] | None:
    """Return the id and the secret of the OAuth client that the environment names, or None.

    Raises:
        Failure: one of the two is set and the other is not.
    """
    value_by_name = {name: os.environ.get(name, "") for name in (Variable.CLIENT, Variable.PROOF)}
    missing_names = [name for name, value in value_by_name.items() if not value]
    if len(missing_names) == 1:
        (present_name,) = value_by_name.keys() - missing_names
        remedy = (
            f"Set both to act as an OAuth client; unset {present_name} to act as the account of `countersign login`."
        )
        reason, failure = (
            f"{missing_names[0]} is missing, and {present_name} is set",
            "cannot sign in as the OAuth client",
        )
        raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.USAGE)
    return None if missing_names else (value_by_name[Variable.CLIENT], value_by_name[Variable.PROOF])


def credentials_file() -> Path:
    """Return the path of the saved tokens: credentials.json in the person's configuration directory (XDG)."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "countersign" / "credentials.json"


def load_token(server: str) -> str | None:
    """Return the saved token for the server, or None.

    Raises:
        Failure: the file cannot be read, other users can read it, or its content is not valid.
    """
    return _read(credentials_file()).get(server)


def remove_token(server: str) -> Path:
    """Remove the saved token of the server, and return the path of the file.

    Raises:
        Failure: the file cannot be read or written, other users can read it, or its content is not valid.
    """
    path = credentials_file()
    _write(path, {root: token for root, token in _read(path).items() if root != server}, "the token was not removed")
    return path


def save_token(server: str, token: str) -> Path:
    """Save the token for the server, replace an earlier one, and return the path of the file.

    Raises:
        Failure: the file cannot be read or written, other users can read it, or its content is not valid.
    """
    path = credentials_file()
    _write(path, {**_read(path), server: token}, "the token was not saved")
    return path


def _write(path: Path, tokens: dict[str, str], failure: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, json.dumps({"tokens": tokens}, indent=1).encode() + b"\n")
    except OSError as error:
        raise Failure(failure, why=f"{path}: {error.strerror}", remedy="Make the directory writable.") from error


def _read(path: Path) -> dict[str, str]:
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Failure(
            "the saved tokens cannot be read", why=f"{path}: {error.strerror}", remedy="Correct its owner or mode."
        ) from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise Failure(
            "the saved tokens are readable by others",
            why=f"{path} has mode {stat.S_IMODE(mode):04o}",
            remedy=f"Run: chmod 600 {path}; sign in again with a new token if others may have read it.",
            exit_code=Exit.REFUSED,
        )
    try:
        return msgspec.json.decode(content, type=dict[str, dict[str, str]])["tokens"]
    except (msgspec.DecodeError, KeyError) as error:
        raise Failure(
            "the saved tokens cannot be read", why=f"{path} is damaged", remedy=f"Remove {path} and sign in again."
        ) from error


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 atomically: readers see the old content or the new content, never a part.

    Raises:
        OSError: the file cannot be written; no partial file is left.
    """
    temporary_path = path.with_name(f"{path.name}.{ids.new_uuid()}")
    try:
        descriptor = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as private_file:
            private_file.write(content)
            private_file.flush()
            os.fsync(private_file.fileno())
        os.replace(temporary_path, path)
    finally:
        temporary_path.unlink(missing_ok=True)
