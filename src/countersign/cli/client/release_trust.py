"""Selects and verifies the build that a pull installs: its publisher must have signed it with a trusted key.

The keys that a publisher may sign with are pinned on this machine.
"""

import fcntl
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from packaging.version import InvalidVersion, Version

from countersign.cli import output
from countersign.cli.client import api_models, credentials
from countersign.cli.client.connection import Server, release_hints, segment
from countersign.cli.options import ProductName
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock
from countersign.updates import dsse as envelopes
from countersign.updates import manifest as manifests
from countersign.updates import trust
from countersign.updates.api_types import ChannelState, ChannelStatement, Envelope, PublicKey, Rotation
from countersign.updates.dsse import SignatureRefused
from countersign.updates.install import state
from countersign.updates.install.installer import VerifiedRelease
from countersign.updates.manifest import Manifest
from countersign.updates.trust import RolledBack


class Pin(msgspec.Struct, frozen=True):
    """An organisation's current key, the highest counter seen for each product and channel, and the former keys.

    A key in `former` signs no new builds, but the builds that it signed stay valid."""

    key: PublicKey
    counters: dict[str, int] = {}
    former: list[PublicKey] = []


class _Pins(msgspec.Struct, frozen=True):
    servers: dict[str, dict[str, Pin]] = {}


def pins_file() -> Path:
    """Return the path of the pins: keys.json in the directory of the saved tokens."""
    return credentials.credentials_file().with_name("keys.json")


def load_pin(server: str, org: str) -> Pin | None:
    """Return the pin of the organisation at this server, or None.

    Raises:
        Failure: the file cannot be read. If this error were ignored, an attacker's key could be pinned.
    """
    return _read_pins().servers.get(server, {}).get(org)


def store_pin(server: str, org: str, found: Pin) -> None:
    """Save the key and the counters of the organisation.

    Another process may have saved a pin in the meantime. In that case the higher counter and the later key are kept.

    Raises:
        Failure: the file cannot be read or written.
    """
    with _changed_pins("the key was not pinned") as servers:
        known = servers.get(server, {})
        servers[server] = {**known, org: _merge(known.get(org), found)}


def forget_pin(server: str, org: str) -> None:
    """Remove the pin of the organisation at this server: the next pull trusts the key that the server shows.

    Raises:
        Failure: the file cannot be read or written.
    """
    with _changed_pins("the pinned key was not forgotten") as servers:
        servers.get(server, {}).pop(org, None)


@contextmanager
def _changed_pins(failure: str) -> Generator[dict[str, dict[str, Pin]]]:
    """Yield the pins of each server, and save what the block makes of them; no other process changes them meanwhile.

    Raises:
        Failure: the file cannot be read or written.
    """
    path = pins_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _exclusive(path.with_name(f"{path.name}.lock")):
            servers = _read_pins().servers
            yield servers
            credentials.write_private(path, msgspec.json.format(msgspec.json.encode(_Pins(servers)), indent=1) + b"\n")
    except OSError as error:
        raise Failure(failure, why=f"{path}: {error.strerror}", remedy="Make the directory writable.") from error


def _merge(known: Pin | None, found: Pin) -> Pin:
    if known is None:
        return found
    counters = {place: max(seen, known.counters.get(place, 0)) for place, seen in found.counters.items()}
    key = known.key if found.key in known.former else found.key
    former = [each for each in dict.fromkeys((*known.former, *found.former)) if each != key]
    return Pin(key, {**known.counters, **counters}, former)


@contextmanager
def _exclusive(lock: Path) -> Generator[None]:
    """Hold the lock file, so that no other process runs the block at the same time."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_pins() -> _Pins:
    path = pins_file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Pins)
    except FileNotFoundError:
        return _Pins({})
    except (OSError, ValueError) as error:
        why = f"{path}: {os.strerror(error.errno or 0) if isinstance(error, OSError) else 'it is damaged'}"
        remedy = f"Restore {path}: without it, no key is pinned. Remove it only to trust every publisher again."
        raise Failure("the pinned keys cannot be read", why=why, remedy=remedy) from error


@dataclass(slots=True)
class PullRequest:
    """The options of a pull. None means the current version of the channel, or the platform of this machine."""

    product: ProductName
    channel: str
    version: str | None
    platform: str | None
    folder: Path

    @property
    def failure(self) -> str:
        """The first words of a failure message."""
        return f"cannot pull {self.product}" + (f" {self.version}" if self.version else "")


def trusted_release(server: Server, found: api_models.CatalogProduct, wanted: PullRequest) -> VerifiedRelease:
    """Return the release to install. The organisation's key is pinned at the first pull and followed afterwards.

    Raises:
        KeyChanged, StaleStatement: see `trust.verify_channel`.
        SignatureRefused, RolledBack: see `trust.verify_channel`; or the statement names another manifest, or the
            requested version is older than the installed version.
        Failure: the server refuses the request or cannot be reached, or the build does not exist.
    """
    org, installed = wanted.product.org, state.read(wanted.folder)
    path = f"/products/{segment(found.slug)}/channels/{segment(wanted.channel)}"
    shown = server.get(path, ChannelState, wanted.failure)
    seen = 0
    if installed is not None and _is_same_channel(installed.state, server, found, wanted):
        seen = installed.state.counter
    statement, keys = _trusted_statement(server, found, wanted, shown, seen)
    usual = _preferred_platforms(wanted, installed)
    version, platforms = _select_build(server, wanted, statement, usual)
    envelope, platform = _fetch_envelope(server, found, version, platforms, wanted.failure)
    payload = _verified_payload(envelope, keys, statement, version, platform)
    manifest = _decode_manifest(payload, found, org, version, platform)
    if installed is not None and version != statement.version:
        _require_newer(manifest, installed.manifest)
    sha256 = manifests.digest(payload)
    return VerifiedRelease(manifest, envelope, sha256, server.root, wanted.channel, statement.counter)


def _trusted_statement(
    server: Server, found: api_models.CatalogProduct, wanted: PullRequest, shown: ChannelState, seen: int
) -> tuple[ChannelStatement, list[PublicKey]]:
    """Verify the channel's statement, save its counter and keys, and return it with the keys that may sign builds."""
    org, place = wanted.product.org, f"{found.id}/{wanted.channel}"
    pin = load_pin(server.root, org)
    if pin is not None:
        seen = max(seen, pin.counters.get(place, 0))
    key = None if pin is None else pin.key
    statement, now = trust.verify_channel(
        org, wanted.channel, shown, pinned_key=key, seen_counter=seen, now=clock.now()
    )
    if (statement.product_id, statement.product) != (found.id, found.slug):
        raise SignatureRefused("the statement belongs to another product")
    keys = _trusted_keys(shown, pin)
    store_pin(server.root, org, Pin(now, {place: statement.counter}, [each for each in keys if each != now]))
    return statement, keys


def _is_same_channel(
    known: state.InstallState, server: Server, found: api_models.CatalogProduct, wanted: PullRequest
) -> bool:
    asked = (server.root, wanted.product.org, found.slug, wanted.channel)
    return (known.server, known.org, known.product, known.channel) == asked


def _select_build(
    server: Server, wanted: PullRequest, statement: ChannelStatement, usual: list[str]
) -> tuple[str, list[str]]:
    """Return the version of the build to install, and its possible platforms.

    The version is the requested version, or else the current version of the channel. If the current version has no
    build for this machine, the newest other release that has such a build is used, and a note is printed. A build for
    a different platform is used only if it is the only build.

    Raises:
        Failure: no release of the channel has a build for the platform.
    """
    if wanted.version not in (None, statement.version):
        return wanted.version, usual
    present = [platform for platform in usual if platform in statement.builds]
    if present:
        return statement.version, present[:1]
    named = usual[0] or "no platform in particular"
    earlier = None if wanted.version else _earlier_build(server, wanted, statement, usual)
    if earlier is not None:
        output.note(f"{statement.version} has no build for {named}; {earlier[0]} is the newest that has one.")
        return earlier
    return statement.version, [_only_platform(wanted, statement, named)]


def _only_platform(wanted: PullRequest, statement: ChannelStatement, named: str) -> str:
    """Return the platform of the only build, if no platform was requested.

    Raises:
        Failure: a platform was requested, or there are several builds.
    """
    if len(statement.builds) == 1 and not wanted.platform:
        return next(iter(statement.builds))
    why = f"{statement.version} has no build for {named}"
    remedy = f"Pass --platform with one of: {', '.join(sorted(filter(None, statement.builds)))}."
    if list(statement.builds) == [""]:
        remedy = f"Leave out --platform: {statement.version} has one build, for any platform."
    raise Failure(wanted.failure, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _earlier_build(
    server: Server, wanted: PullRequest, statement: ChannelStatement, usual: list[str]
) -> tuple[str, list[str]] | None:
    """Return the newest other release of the channel with a build for one of the platforms, or None."""
    path = f"/products/{segment(statement.product)}/releases"
    releases = server.get(f"{path}?{urlencode({'channel': wanted.channel})}", list[api_models.Release], wanted.failure)
    for release in releases:
        if release.status is not None or release.version == statement.version:
            continue
        offered = {artifact.platform or "" for artifact in release.artifacts}
        for platform in usual:
            address = f"{path}/{segment(release.version)}"
            if platform in offered and _is_built(server, address, platform, wanted.failure):
                return release.version, [platform]
    return None


def _is_built(server: Server, path: str, platform: str, failure: str) -> bool:
    """Return whether the release has a build for the platform."""
    query = f"?{urlencode({'platform': platform})}" if platform else ""
    try:
        server.get(f"{path}/manifest{query}", Envelope, failure)
    except Failure as failed:
        if failed.problem != "not_processed":
            raise
        return False
    return True


def _preferred_platforms(wanted: PullRequest, installed: state.Installation | None) -> list[str]:
    """Return the requested platform; else the installed build's platform, this machine's platform, and any platform."""
    if wanted.platform:
        return [wanted.platform]
    here = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    there = [] if installed is None else [installed.manifest.platform or ""]
    return list(dict.fromkeys([*there, here, ""]))


def _fetch_envelope(
    server: Server, found: api_models.CatalogProduct, version: str, platforms: Sequence[str], failure: str
) -> tuple[Envelope, str]:
    """Return the signed manifest of the first platform that has a build."""
    path = f"/products/{segment(found.slug)}/releases/{segment(version)}/manifest"
    for platform in platforms:
        query = f"?{urlencode({'platform': platform})}" if platform else ""
        try:
            with release_hints(found.slug):
                return server.get(path + query, Envelope, failure), platform
        except Failure as failed:
            if failed.problem != "not_processed" or platform == platforms[-1]:
                raise
    raise AssertionError("there is a platform to ask for")


def _verified_payload(
    envelope: Envelope, keys: Sequence[PublicKey], statement: ChannelStatement, version: str, platform: str
) -> bytes:
    """Verify the signature of the manifest and return the bytes of the manifest.

    One of `keys` must have signed the manifest. If the channel is at this version, the channel's statement must also
    name the manifest."""
    payload = envelopes.verify(envelope, manifests.PAYLOAD_TYPE, {key.keyid: key for key in keys})
    if version == statement.version and statement.builds.get(platform) != manifests.digest(payload):
        raise SignatureRefused("the channel's statement names another manifest")
    return payload


def _trusted_keys(shown: ChannelState, pin: Pin | None) -> list[PublicKey]:
    """Verify the chain of keys, and return the keys whose signatures on builds are trusted.

    A build is signed only once, with the key that is current at that time, so former keys must stay trusted. The
    trusted keys are the pinned key, all later keys, and those earlier keys that were pinned before. Without a pin, the
    whole chain is trusted."""
    chain = [shown.root]
    for rotation in shown.rotations:
        payload = envelopes.verify(rotation, trust.ROTATION_TYPE, {chain[-1].keyid: chain[-1]})
        chain.append(msgspec.json.decode(payload, type=Rotation).key)
    if pin is None:
        return chain
    since = chain.index(pin.key)
    return [*(key for key in chain[:since] if key in pin.former), *chain[since:]]


def _decode_manifest(
    payload: bytes, found: api_models.CatalogProduct, org: str, version: str, platform: str
) -> Manifest:
    try:
        manifest = manifests.decode(payload)
    except msgspec.ValidationError as error:
        raise SignatureRefused(
            f"the format of the manifest is unknown: {error}", resolution="Use a newer version of this tool."
        ) from error
    if (manifest.org, manifest.product_id, manifest.version) != (org, found.id, version):
        raise SignatureRefused("the manifest belongs to another product or version")
    if (manifest.platform or "") != platform:
        raise SignatureRefused("the manifest belongs to another platform")
    return manifest


def _require_newer(wanted: Manifest, installed: Manifest) -> None:
    """Refuse a requested version that is not the current one of the channel and is older than the installed one."""
    if wanted.created_at < installed.created_at or _is_lower(wanted.version, installed.version):
        raise RolledBack(
            f"{wanted.version} is older than the installed {installed.version}, and not the channel's current version",
            resolution="Pull it into another folder, or ask the publisher to move the channel back to it.",
        )


def _is_lower(one: str, other: str) -> bool:
    try:
        return Version(one) < Version(other)
    except InvalidVersion:
        return False
