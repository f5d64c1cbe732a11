"""Explains which file or directory this process may not access, and as which user."""

import os
import pwd
from pathlib import Path


def explain_permission_error(path: Path, error: OSError, action: str = "read") -> str:
    """Explain why the path could not be read (or written, or made).

    The text names the first parent directory that cannot be entered, or else the path itself; the user of the process;
    and the system's reason.
    """
    is_denied = isinstance(error, PermissionError)
    parents = reversed(path.absolute().parents) if is_denied else ()
    closed_folder = next((parent for parent in parents if parent.exists() and not _can_enter(parent)), None)
    refusal_text = (
        f"{path} cannot be {action}" if closed_folder is None else f"the directory {closed_folder} cannot be entered"
    )
    return f"{refusal_text} as the user {current_user()}: {error.strerror or type(error).__name__}"


def current_user() -> str:
    """The name of the user that this process runs as, or the user's number if it has no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _can_enter(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=os.access in os.supports_effective_ids)
