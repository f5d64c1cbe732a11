"""Modes of strangers: what of them is kept."""

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

_SPECIAL = 0o7000
_ANY = 0o777
_RUN = 0o111


def checked_mode(mode: int, name: str, limits: Limits, *, is_folder: bool) -> int:
    """0o755 for what may be run by anyone and for folders, else 0o644.

    Raises:
        ArchiveRefused: `special-mode` or `no-permission`, in the profile `strict`.
    """
    if limits.profile == "strict":
        if mode & _SPECIAL:
            raise ArchiveRefused("special-mode", "it is setuid, setgid or sticky", entry=name)
        if not mode & _ANY:
            raise ArchiveRefused("no-permission", "it gives no permission to anyone", entry=name)
    return 0o755 if is_folder or mode & _RUN else 0o644
