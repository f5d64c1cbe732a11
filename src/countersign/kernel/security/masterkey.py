"""The master key: how it is loaded or created, and several keys during a rotation."""

import base64
import binascii
import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from countersign.file_access import explain_permission_error
from countersign.file_sync import sync_folder
from countersign.kernel import ids
from countersign.kernel.errors import Refused
from countersign.settings import BadSetting, Settings

KEY_BYTES = 32
FILE_NAME = "master.key"
NEEDED_WITH_POSTGRESQL = "with PostgreSQL every node needs the same master key"
_DATABASES = "*.sqlite"
_MAX_FILE_BYTES = 16_384
_KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,32}")


class MasterKeyRefused(Refused):
    """The configured master key cannot be used. This is raised at the start, before anything is encrypted."""

    status = 500
    code = "master_key_refused"
    title = "Master key refused"
    resolution = (
        f"Provide the master key of this installation: {KEY_BYTES} bytes in base64. Another key cannot decrypt its "
        "stored values; docs/how-to/postgresql.md says how a new installation gets one."
    )


@dataclass(frozen=True)
class Key:
    """One 32-byte key with the id that encrypted values contain; `repr` hides its bytes."""

    id: str
    material: bytes = field(repr=False)


@dataclass(frozen=True)
class MasterKey:
    """The master keys. The first key encrypts and signs; all keys decrypt and verify."""

    keys: tuple[Key, ...]

    @property
    def current(self) -> Key:
        """The key that encrypts and signs."""
        return self.keys[0]

    def named(self, key_id: str) -> Key | None:
        """Return the key with this id, or None."""
        for key in self.keys:
            if key.id == key_id:
                return key
        return None


def master_key(settings: Settings) -> MasterKey:
    """Load the operator's master key. In a data directory with SQLite, a missing key is created.

    Raises:
        BadSetting: PostgreSQL is used and no key was given.
        MasterKeyRefused: the configured key is invalid, or readable by others.
    """
    if settings.database_url and not (settings.master_key or settings.master_key_file):
        raise BadSetting(f"{NEEDED_WITH_POSTGRESQL}. {missing_key_remedy(Path(settings.data))}")
    file = Path(settings.master_key_file) if settings.master_key_file else None
    return load_master_key(settings.master_key or None, file, Path(settings.data))


def missing_key_remedy(data: Path) -> str:
    """Return the text that names the settings for the key of an installation on PostgreSQL. Its databases may exist
    already, so a new key is never the remedy: it cannot decrypt stored values."""
    key_path = data.absolute() / FILE_NAME
    if key_path.exists():
        return f"Set COUNTERSIGN_MASTER_KEY_FILE={key_path}, which is the key of this data directory."
    return (
        "Set COUNTERSIGN_MASTER_KEY_FILE (or COUNTERSIGN_MASTER_KEY) to the key of this installation; after a move it "
        "is master.key in the old data directory. docs/how-to/postgresql.md says how a new installation gets one."
    )


def load_master_key(value: str | None, file: Path | None, data_directory: Path | None) -> MasterKey:
    """Load the master key from the value (`base64` or `id:base64,id:base64`), the file, or the data directory.

    In a data directory without databases a missing `master.key` is created durably with mode 0600; concurrent processes
    get the same key. The id of an unnamed key is the first 8 hexadecimal digits of its SHA-256.

    Raises:
        MasterKeyRefused: the value and the file are both given, or neither is and there is no data directory; the text
            is not base64 of 32 bytes; an id is repeated; the file is missing, not regular, or accessible to group or
            others; or databases exist without their key.
    """
    if value is not None and file is not None:
        raise MasterKeyRefused(
            "the master key is configured twice, as a value and as a file",
            resolution="Remove one of the two settings.",
        )
    if value is not None:
        return parse_master_key(value, "COUNTERSIGN_MASTER_KEY")
    if file is not None:
        return _read(file)
    if data_directory is None:
        raise MasterKeyRefused("no master key is configured, and there is no data directory to store one")
    key_path = data_directory / FILE_NAME
    if not key_path.exists():
        # Check again: another process may have created key and database meanwhile.
        if any(data_directory.glob(_DATABASES)) and not key_path.exists():
            raise MasterKeyRefused(
                f"{key_path}, the key of the databases in this directory, is missing",
                resolution="Restore your copy of the key: no other key decrypts the databases.",
            )
        _create(key_path)
    return _read(key_path)


def parse_master_key(text: str, source: str) -> MasterKey:
    """Parse the keys in the text, in their order; refusals name `source` as the origin of the text.

    Raises:
        MasterKeyRefused: a part is not base64 of 32 bytes or has a malformed id, or an id or key is repeated.
    """
    keys = tuple(_parse_key(key_text.strip(), source) for key_text in text.strip().split(","))
    if len({key.id for key in keys}) != len(keys) or len({key.material for key in keys}) != len(keys):
        raise MasterKeyRefused(f"{source} names the same key or key id twice", resolution="Remove the second one.")
    return MasterKey(keys)


def is_key_id(text: str) -> bool:
    """Return whether the text is a valid key id."""
    return _KEY_ID.fullmatch(text) is not None


def encode_master_key(master: MasterKey) -> str:
    """Return the keys in the format of `parse_master_key`, each with its id, for an encrypted backup."""
    return ",".join(f"{key.id}:{base64.b64encode(key.material).decode()}" for key in master.keys)


def _parse_key(text: str, source: str) -> Key:
    name, colon, encoded_key = text.rpartition(":")
    if colon and not is_key_id(name):
        raise MasterKeyRefused(
            f"{source} contains a malformed key id",
            resolution="Use 1 to 32 letters, digits, dots, dashes, underscores.",
        )
    standard = encoded_key.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        material = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise MasterKeyRefused(f"{source} contains a key that is not base64") from None
    if len(material) != KEY_BYTES:
        raise MasterKeyRefused(f"{source} contains a key of {len(material)} bytes, {KEY_BYTES} are required")
    return Key(name or hashlib.sha256(material).hexdigest()[:8], material)


def _read(path: Path) -> MasterKey:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise MasterKeyRefused(
            f"the master key: {explain_permission_error(path, error)}",
            resolution="Correct its path, owner or mode.",
        ) from error
    try:
        _check_mode(path, os.fstat(descriptor).st_mode)
        content = os.read(descriptor, _MAX_FILE_BYTES)
    finally:
        os.close(descriptor)
    return parse_master_key(content.decode("ascii", "replace"), f"the key file {path}")


def _check_mode(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise MasterKeyRefused(f"the key file {path} is not a regular file", resolution="Correct its path.")
    if mode & 0o077:
        raise MasterKeyRefused(
            f"the key file {path} is accessible to others (mode {stat.S_IMODE(mode):04o})",
            resolution=f"Run: chmod 600 {path}. If others may have read it, see docs/how-to/rotate-keys.md.",
        )


def _create(path: Path) -> None:
    """Write the file under another name, then link it, so that readers never see an incomplete key."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary_path = path.with_name(f"{path.name}.{ids.new_uuid()}")
        descriptor = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as key_file:
                key_file.write(base64.b64encode(ids.random_bytes(KEY_BYTES)) + b"\n")
                key_file.flush()
                os.fsync(descriptor)
            _link_if_missing(temporary_path, path)
        finally:
            temporary_path.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise MasterKeyRefused(
            f"the master key: {explain_permission_error(path, error, 'made')}",
            resolution="Allow that user to write to the data directory, or set COUNTERSIGN_MASTER_KEY.",
        ) from error


def _link_if_missing(temporary_path: Path, path: Path) -> None:
    try:
        os.link(temporary_path, path)
    except FileExistsError:
        # Another process was first. Both processes read the key of that process next.
        return
