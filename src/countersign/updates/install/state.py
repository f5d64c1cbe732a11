"""The state of an installation, in its folder .countersign: the signed manifest, and stamps of its intact files."""

import base64
import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from countersign.updates import manifest as manifests
from countersign.updates.api_types import Envelope
from countersign.updates.install.validate_manifest import STATE_FOLDER
from countersign.updates.manifest import Manifest

MANIFEST, STATE = "manifest.json", "state.json"
MAX_BYTES = 512 << 20


class InstallState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an installation.

    `counter` is the highest verified counter of the channel's statement. `stamps` has the size and mtime (in
    nanoseconds) that each file had when it was intact. `id` identifies this run of the installer.
    """

    id: str
    server: str
    org: str
    product: str
    channel: str
    counter: int
    stamps: dict[str, tuple[int, int]]


class Installation(NamedTuple):
    """An installation: its state, and the manifest with its envelope and its payload's SHA-256."""

    state: InstallState
    envelope: Envelope
    manifest: Manifest
    manifest_sha256: str


def read(root: Path) -> Installation | None:
    """Read the state of the installation. Return None if it is missing or invalid; then every file must be read.

    Raises:
        OSError: the state exists, but cannot be read.
    """
    state_folder = root / STATE_FOLDER
    if root.is_symlink() or state_folder.is_symlink():
        return None
    try:
        envelope = msgspec.json.decode(_read_file(state_folder / MANIFEST), type=Envelope)
        state = msgspec.json.decode(_read_file(state_folder / STATE), type=InstallState)
        payload = base64.b64decode(envelope.payload, validate=True)
        manifest = manifests.decode(payload)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return Installation(state, envelope, manifest, manifests.digest(payload))


def write(root: Path, state: InstallState, envelope: Envelope) -> None:
    """Write and fsync both files in a new installation folder that is not yet in use.

    Raises:
        OSError: the files cannot be written.
    """
    state_folder = root / STATE_FOLDER
    state_folder.mkdir(mode=0o755)
    for name, value in ((MANIFEST, envelope), (STATE, state)):
        with (state_folder / name).open("xb") as file:
            file.write(msgspec.json.encode(value))
            file.flush()
            os.fsync(file.fileno())


def replace(root: Path, state: InstallState) -> None:
    """Replace the state of an installation in use atomically: readers see the old state or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    state_folder = root / STATE_FOLDER
    temporary_path = state_folder / (STATE + ".new")
    with temporary_path.open("wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    temporary_path.replace(state_folder / STATE)


def _read_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as file:
        return file.read(MAX_BYTES)
