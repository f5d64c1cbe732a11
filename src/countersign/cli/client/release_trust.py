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


def store_pin(server: str, org: str, new_pin: Pin) -> None:
    """Save the key and the counters of the organisation.

    Another process may have saved a pin in the meantime. In that case the higher counter and the later key are kept.

    Raises:
        Failure: the file cannot be read or written.
    """
    with _changed_pins("the key was not pinned") as servers:
        known_pins = servers.get(server, {})
        servers[server] = {**known_pins, org: _merge(known_pins.get(org), new_pin)}


def forget_pin(server: str, org: str) -> None:
    """Remove the pin of the organisation at this server: the next pull trusts the key that the server shows.

    Raises:
        Failure: the file cannot be read or written.
    """
    with _changed_pins("the pinned key was not forgotten") as servers:
        servers.get(server, {}).pop(org, None)


@contextmanager
def _changed_pins(failure: str) -> Generator[dict[str, dict[str, Pin]]]:
    """Yield the pins of each server, and save them with the changes of the block. The file is locked
    during the block.

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


def _merge(known_pin: Pin | None, new_pin: Pin) -> Pin:
    if known_pin is None:
        return new_pin
    counters = {
        counter_name: max(counter, known_pin.counters.get(counter_name, 0))
        for counter_name, counter in new_pin.counters.items()
    }
    key = known_pin.key if new_pin.key in known_pin.former else new_pin.key
    former_keys = [
        former_key for former_key in dict.fromkeys((*known_pin.former, *new_pin.former)) if former_key != key
    ]
    return Pin(key, {**known_pin.counters, **counters}, former_keys)


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
        reason = f"{path}: {os.strerror(error.errno or 0) if isinstance(error, OSError) else 'it is damaged'}"
        remedy = f"Restore {path}: without it, no key is pinned. Remove it only to trust every publisher again."
        raise Failure("the pinned keys cannot be read", why=reason, remedy=remedy) from error


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


def trusted_release(
    server: Server, catalog_product: api_models.CatalogProduct, request: PullRequest
) -> VerifiedRelease:
    """Return the release to install. The organisation's key is pinned at the first pull and followed afterwards.

    Raises:
        KeyChanged, StaleStatement: see `trust.verify_channel`.
        SignatureRefused, RolledBack: see `trust.verify_channel`; or the statement names another manifest, or the
            requested version is older than the installed version.
        Failure: the server refuses the request or cannot be reached, or the build does not exist.
    """
    org, installation = request.product.org, state.read(request.folder)
    path = f"/products/{segment(catalog_product.slug)}/channels/{segment(request.channel)}"
    channel_state = server.get(path, ChannelState, request.failure)
    seen_counter = 0
    if installation is not None and _is_same_channel(installation.state, server, catalog_product, request):
        seen_counter = installation.state.counter
    statement, keys = _trusted_statement(server, catalog_product, request, channel_state, seen_counter)
    preferred_platforms = _preferred_platforms(request, installation)
    version, platforms = _select_build(server, request, statement, preferred_platforms)
    envelope, platform = _fetch_envelope(server, catalog_product, version, platforms, request.failure)
    payload = _verified_payload(envelope, keys, statement, version, platform)
    manifest = _decode_manifest(payload, catalog_product, org, version, platform)
    if installation is not None and version != statement.version:
        _require_newer(manifest, installation.manifest)
    sha256 = manifests.digest(payload)
    return VerifiedRelease(manifest, envelope, sha256, server.root, request.channel, statement.counter)


def _trusted_statement(
    server: Server,
    catalog_product: api_models.CatalogProduct,
    request: PullRequest,
    channel_state: ChannelState,
    known_counter: int,
) -> tuple[ChannelStatement, list[PublicKey]]:
    """Verify the channel's statement, save its counter and keys, and return it with the keys that may sign builds."""
    org, counter_name = request.product.org, f"{catalog_product.id}/{request.channel}"
    pin = load_pin(server.root, org)
    if pin is not None:
        known_counter = max(known_counter, pin.counters.get(counter_name, 0))
    key = None if pin is None else pin.key
    statement, now = trust.verify_channel(
        org, request.channel, channel_state, pinned_key=key, seen_counter=known_counter, now=clock.now()
    )
    if (statement.product_id, statement.product) != (catalog_product.id, catalog_product.slug):
        raise SignatureRefused("the statement belongs to another product")
    keys = _trusted_keys(channel_state, pin)
    store_pin(server.root, org, Pin(now, {counter_name: statement.counter}, [key for key in keys if key != now]))
    return statement, keys


def _is_same_channel(
    install_state: state.InstallState, server: Server, catalog_product: api_models.CatalogProduct, request: PullRequest
) -> bool:
    requested_channel = (server.root, request.product.org, catalog_product.slug, request.channel)
    return (install_state.server, install_state.org, install_state.product, install_state.channel) == requested_channel


def _select_build(
    server: Server, request: PullRequest, statement: ChannelStatement, preferred_platforms: list[str]
) -> tuple[str, list[str]]:
    """Return the version of the build to install, and its possible platforms.

    The version is the requested version, or else the current version of the channel. If the current version has no
    build for this machine, the newest other release that has such a build is used, and a note is printed. A build for
    a different platform is used only if it is the only build.

    Raises:
        Failure: no release of the channel has a build for the platform.
    """
    if request.version not in (None, statement.version):
        return request.version, preferred_platforms
    built_platforms = [platform for platform in preferred_platforms if platform in statement.builds]
    if built_platforms:
        return statement.version, built_platforms[:1]
    platform_name = preferred_platforms[0] or "no platform in particular"
    earlier_build = None if request.version else _earlier_build(server, request, statement, preferred_platforms)
    if earlier_build is not None:
        output.note(
            f"{statement.version} has no build for {platform_name}; {earlier_build[0]} is the newest that has one."
        )
        return earlier_build
    return statement.version, [_only_platform(request, statement, platform_name)]


def _only_platform(request: PullRequest, statement: ChannelStatement, platform_name: str) -> str:
    """Return the platform of the only build, if no platform was requested.

    Raises:
        Failure: a platform was requested, or there are several builds.
    """
    if len(statement.builds) == 1 and not request.platform:
        return next(iter(statement.builds))
    reason = f"{statement.version} has no build for {platform_name}"
    remedy = f"Pass --platform with one of: {', '.join(sorted(filter(None, statement.builds)))}."
    if list(statement.builds) == [""]:
        remedy = f"Leave out --platform: {statement.version} has one build, for any platform."
    raise Failure(request.failure, why=reason, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _earlier_build(
    server: Server, request: PullRequest, statement: ChannelStatement, preferred_platforms: list[str]
) -> tuple[str, list[str]] | None:
    """Return the newest other release of the channel with a build for one of the platforms, or None."""
    path = f"/products/{segment(statement.product)}/releases"
    query = urlencode({"channel": request.channel})
    releases = server.get(f"{path}?{query}", list[api_models.Release], request.failure)
    for release in releases:
        if release.status is not None or release.version == statement.version:
            continue
        release_platforms = {artifact.platform or "" for artifact in release.artifacts}
        for platform in preferred_platforms:
            address = f"{path}/{segment(release.version)}"
            if platform in release_platforms and _is_built(server, address, platform, request.failure):
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


def _preferred_platforms(request: PullRequest, installation: state.Installation | None) -> list[str]:
    """Return the requested platform; else the installed build's platform, this machine's platform, and any platform."""
    if request.platform:
        return [request.platform]
    own_platform = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    installed_platforms = [] if installation is None else [installation.manifest.platform or ""]
    return list(dict.fromkeys([*installed_platforms, own_platform, ""]))


def _fetch_envelope(
    server: Server, catalog_product: api_models.CatalogProduct, version: str, platforms: Sequence[str], failure: str
) -> tuple[Envelope, str]:
    """Return the signed manifest of the first platform that has a build."""
    path = f"/products/{segment(catalog_product.slug)}/releases/{segment(version)}/manifest"
    for platform in platforms:
        query = f"?{urlencode({'platform': platform})}" if platform else ""
        try:
            with release_hints(catalog_product.slug):
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


def _trusted_keys(channel_state: ChannelState, pin: Pin | None) -> list[PublicKey]:
    """Verify the chain of keys, and return the keys whose signatures on builds are trusted.

    A build is signed only once, with the key that is current at that time, so former keys must stay trusted. The
    trusted keys are the pinned key, all later keys, and those earlier keys that were pinned before. Without a pin, the
    whole chain is trusted."""
    chain = [channel_state.root]
    for rotation in channel_state.rotations:
        payload = envelopes.verify(rotation, trust.ROTATION_TYPE, {chain[-1].keyid: chain[-1]})
        chain.append(msgspec.json.decode(payload, type=Rotation).key)
    if pin is None:
        return chain
    pin_index = chain.index(pin.key)
    return [*(key for key in chain[:pin_index] if key in pin.former), *chain[pin_index:]]


def _decode_manifest(
    payload: bytes, catalog_product: api_models.CatalogProduct, org: str, version: str, platform: str
) -> Manifest:
    try:
        manifest = manifests.decode(payload)
    except msgspec.ValidationError as error:
        raise SignatureRefused(
            f"the format of the manifest is unknown: {error}", resolution="Use a newer version of this tool."
        ) from error
    if (manifest.org, manifest.product_id, manifest.version) != (org, catalog_product.id, version):
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


def _is_lower(version: str, other_version: str) -> bool:
    try:
        return Version(version) < Version(other_version)
    except InvalidVersion:
        return False
