"""The organisations' keys that this machine believes, and the newest statement it has seen of each channel."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from countersign.cli import credentials
from countersign.cli.output import Failure
from countersign.updates.api_types import PublicKey


class Pin(msgspec.Struct, frozen=True):
    """An organisation's key, the highest counter seen by product id and channel, and the keys that were believed
    before: they sign nothing new, and the builds they signed stay good."""

    key: PublicKey
    counters: dict[str, int] = {}
    former: list[PublicKey] = []


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
    """Keep the key and the counters for the organisation. What another process has pinned meanwhile stays: of
    counters the higher, of keys the later.

    Raises:
        Failure: the file cannot be read or written.
    """
    path = file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(path.with_name(f"{path.name}.lock")):
            servers = _read().servers
            known = servers.get(server, {})
            servers[server] = {**known, org: _together(known.get(org), found)}
            credentials.write_private(path, msgspec.json.format(msgspec.json.encode(_Pins(servers)), indent=1) + b"\n")
    except OSError as error:
        why = f"{path}: {error.strerror}"
        raise Failure("the key was not pinned", why=why, remedy="Make the directory writable.") from error


def _together(known: Pin | None, found: Pin) -> Pin:
    if known is None:
        return found
    counters = {place: max(seen, known.counters.get(place, 0)) for place, seen in found.counters.items()}
    key = known.key if found.key in known.former else found.key
    former = [each for each in dict.fromkeys((*known.former, *found.former)) if each != key]
    return Pin(key, {**known.counters, **counters}, former)


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """No other process is in this block meanwhile."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
