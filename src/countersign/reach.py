"""What of the file system this process may not reach, in words: the very file or directory, and as whom."""

import os
import pwd
from pathlib import Path


def denied(path: Path, error: OSError, doing: str = "read") -> str:
    """Why the path could not be read (written, made): the directory on the way there that is closed, else the path
    itself, the user who was refused, and the system's reason."""
    is_denied = isinstance(error, PermissionError)
    ways = reversed(path.absolute().parents) if is_denied else ()
    closed = next((each for each in ways if each.exists() and not _is_open(each)), None)
    refused = f"{path} cannot be {doing}" if closed is None else f"the directory {closed} cannot be entered"
    return f"{refused} as the user {user()}: {error.strerror or type(error).__name__}"


def user() -> str:
    """Whom this process runs as: the name, or the number of one without."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _is_open(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=os.access in os.supports_effective_ids)
