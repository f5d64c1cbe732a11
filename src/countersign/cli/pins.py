"""The organisations' keys that this machine believes, and the newest statement it has seen of each channel."""

import os
from pathlib import Path

import msgspec

from countersign.cli import credentials
from countersign.cli.output import Failure
from countersign.updates.wire import PublicKey


class Pin(msgspec.Struct, frozen=True):
    """An organisation's key, and the highest counter seen by product id and channel."""

    key: PublicKey
    counters: dict[str, int] = {}


class _Pins(msgspec.Struct, frozen=True):
    servers: dict[str, dict[str, Pin]] = {}


def file() -> Path:
    """Where pins are kept: keys.json beside the kept tokens."""
    return credentials.file().with_name("keys.json")


def pinned(server: str, org: str) -> Pin | None:
    """What is pinned of the organisation at this server.

    Raises:
        Failure: the file cannot be read: without it an attacker's key would pass for the first one.
    """
    return _read().servers.get(server, {}).get(org)


def pin(server: str, org: str, found: Pin) -> None:
    """Keep the key and the counters for the organisation.

    Raises:
        Failure: the file cannot be read or written.
    """
    path = file()
    servers = _read().servers
    servers[server] = {**servers.get(server, {}), org: found}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        credentials.write_private(path, msgspec.json.format(msgspec.json.encode(_Pins(servers)), indent=1) + b"\n")
    except OSError as error:
        why = f"{path}: {error.strerror}"
        raise Failure("the key was not pinned", why=why, remedy="Make the directory writable.") from error


def _read() -> _Pins:
    path = file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Pins)
    except FileNotFoundError:
        return _Pins({})
    except (OSError, ValueError) as error:
        why = f"{path}: {os.strerror(error.errno or 0) if isinstance(error, OSError) else 'it is damaged'}"
        remedy = f"Restore it; without it no key is known. Remove {path} only to trust every publisher anew."
        raise Failure("the pinned keys cannot be read", why=why, remedy=remedy) from error
