"""Which build of a product a pull may install: the one that its publisher says, not just the store."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from packaging.version import InvalidVersion, Version

from countersign.cli import output, pins, wire
from countersign.cli.connection import Server, segment
from countersign.cli.names import Product
from countersign.cli.output import Exit, Failure
from countersign.cli.pins import Pin
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


@dataclass(slots=True)
class Wanted:
    """What the person asked for; None leaves it to what the channel is at, and to this machine's platform."""

    product: Product
    channel: str
    version: str | None
    platform: str | None
    folder: Path

    @property
    def doing(self) -> str:
        """How a failure begins."""
        return f"cannot pull {self.product}" + (f" {self.version}" if self.version else "")


def believed(server: Server, found: wire.Product, wanted: Wanted) -> VerifiedRelease:
    """The release to install. The organisation's key is pinned the first time, and followed from then on.

    Raises:
        KeyChanged, SignatureRefused, RolledBack, Stale: as `trust.believed`; or the manifest is not the one that the
            statement names, or is older than what is installed.
        Failure: refused, unreachable, or there is no such build.
    """
    org, installed = wanted.product.org, state.read(wanted.folder)
    path = f"/products/{segment(found.slug)}/channels/{segment(wanted.channel)}"
    shown = server.get(path, ChannelState, wanted.doing)
    seen = 0
    if installed is not None and _is_of(installed.state, server, found, wanted):
        seen = installed.state.counter
    statement, keys = _statement(server, found, wanted, shown, seen)
    usual = _likely(wanted, installed)
    version, platforms = _choice(server, wanted, statement, usual)
    envelope, platform = _envelope(server, found, version, platforms, wanted.doing)
    payload = _payload(envelope, keys, statement, version, platform)
    manifest = _manifest(payload, found, org, version, platform)
    if installed is not None and version != statement.version:
        _require_newer(manifest, installed.manifest)
    sha256 = manifests.digest(payload)
    return VerifiedRelease(manifest, envelope, sha256, server.root, wanted.channel, statement.counter)


def _statement(
    server: Server, found: wire.Product, wanted: Wanted, shown: ChannelState, seen: int
) -> tuple[ChannelStatement, list[PublicKey]]:
    """What the channel is at, once it is believed, and the keys that sign builds; keys and counter are kept."""
    org, place = wanted.product.org, f"{found.id}/{wanted.channel}"
    pin = pins.pinned(server.root, org)
    if pin is not None:
        seen = max(seen, pin.counters.get(place, 0))
    key = None if pin is None else pin.key
    statement, now = trust.verify_channel(org, wanted.channel, shown, pinned=key, seen=seen, now=clock.now())
    if (statement.product_id, statement.product) != (found.id, found.slug):
        raise SignatureRefused("the statement is of another product")
    keys = _keys(shown, pin)
    pins.pin(server.root, org, Pin(now, {place: statement.counter}, [each for each in keys if each != now]))
    return statement, keys


def _is_of(known: state.InstallState, server: Server, found: wire.Product, wanted: Wanted) -> bool:
    asked = (server.root, wanted.product.org, found.slug, wanted.channel)
    return (known.server, known.org, known.product, known.channel) == asked


def _choice(server: Server, wanted: Wanted, statement: ChannelStatement, usual: list[str]) -> tuple[str, list[str]]:
    """Version and platforms of the build: the version that was asked for, or what the channel is at; where that has
    no build for this machine, the newest release before it that has one, which is then said. A build for another
    platform is taken only where there is no other.

    Raises:
        Failure: no release of the channel has a build for the platform.
    """
    if wanted.version not in (None, statement.version):
        return wanted.version, usual
    present = [platform for platform in usual if platform in statement.builds]
    if present:
        return statement.version, present[:1]
    named = usual[0] or "no platform in particular"
    earlier = None if wanted.version else _earlier(server, wanted, statement, usual)
    if earlier is not None:
        output.note(f"{statement.version} has no build for {named}; {earlier[0]} is the newest that has one.")
        return earlier
    return statement.version, [_only(wanted, statement, named)]


def _only(wanted: Wanted, statement: ChannelStatement, named: str) -> str:
    """The platform of the only build, where no platform was asked for.

    Raises:
        Failure: a platform was asked for, or there are several builds.
    """
    if len(statement.builds) == 1 and not wanted.platform:
        return next(iter(statement.builds))
    why = f"{statement.version} has no build for {named}"
    remedy = f"Say --platform; there is: {', '.join(sorted(filter(None, statement.builds)))}."
    if list(statement.builds) == [""]:
        remedy = f"Leave out --platform: {statement.version} has one build, for any platform."
    raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _earlier(
    server: Server, wanted: Wanted, statement: ChannelStatement, usual: list[str]
) -> tuple[str, list[str]] | None:
    """The newest other release of the channel with a build for one of the platforms; None without one."""
    path = f"/products/{segment(statement.product)}/releases"
    releases = server.get(f"{path}?{urlencode({'channel': wanted.channel})}", list[wire.Release], wanted.doing)
    for release in releases:
        if release.status is not None or release.version == statement.version:
            continue
        offered = {artifact.platform or "" for artifact in release.artifacts}
        for platform in usual:
            if platform in offered and _is_built(server, f"{path}/{segment(release.version)}", platform, wanted.doing):
                return release.version, [platform]
    return None


def _is_built(server: Server, path: str, platform: str, doing: str) -> bool:
    """Whether the release has a build for the platform."""
    query = f"?{urlencode({'platform': platform})}" if platform else ""
    try:
        server.get(f"{path}/manifest{query}", Envelope, doing)
    except Failure as failure:
        if failure.problem != "not_processed":
            raise
        return False
    return True


def _likely(wanted: Wanted, installed: state.Installation | None) -> list[str]:
    """The platform asked for; else that of the build that is installed, this machine's, and none in particular."""
    if wanted.platform:
        return [wanted.platform]
    here = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    there = [] if installed is None else [installed.manifest.platform or ""]
    return list(dict.fromkeys([*there, here, ""]))


def _envelope(
    server: Server, found: wire.Product, version: str, platforms: Sequence[str], doing: str
) -> tuple[Envelope, str]:
    """The signed manifest of the first of the platforms that has a build."""
    path = f"/products/{segment(found.slug)}/releases/{segment(version)}/manifest"
    for platform in platforms:
        query = f"?{urlencode({'platform': platform})}" if platform else ""
        try:
            return server.get(path + query, Envelope, doing), platform
        except Failure as failure:
            if failure.problem != "not_processed" or platform == platforms[-1]:
                raise
    raise AssertionError("there is a platform to ask for")


def _payload(
    envelope: Envelope, keys: Sequence[PublicKey], statement: ChannelStatement, version: str, platform: str
) -> bytes:
    """The manifest's bytes, signed by a key that the organisation has or had, and named by the statement where the
    channel is at this version."""
    payload = envelopes.verify(envelope, manifests.PAYLOAD_TYPE, {key.keyid: key for key in keys})
    if version == statement.version and statement.builds.get(platform) != manifests.digest(payload):
        raise SignatureRefused("the manifest is not the one that the channel's statement names")
    return payload


def _keys(shown: ChannelState, pin: Pin | None) -> list[PublicKey]:
    """The keys of the chain, which was followed before, that sign builds: a build is signed once, by the key of its
    time. The one that is pinned and those after it do; of those before it, whoever put them there, the ones that were
    believed before. The first time the whole chain is."""
    chain = [shown.root]
    for rotation in shown.rotations:
        payload = envelopes.verify(rotation, trust.ROTATION_TYPE, {chain[-1].keyid: chain[-1]})
        chain.append(msgspec.json.decode(payload, type=Rotation).key)
    if pin is None:
        return chain
    since = chain.index(pin.key)
    return [*(key for key in chain[:since] if key in pin.former), *chain[since:]]


def _manifest(payload: bytes, found: wire.Product, org: str, version: str, platform: str) -> Manifest:
    try:
        manifest = manifests.decode(payload)
    except msgspec.ValidationError as error:
        raise SignatureRefused(
            f"the manifest is of a form that is not known here: {error}", resolution="Use a newer version of this tool."
        ) from error
    if (manifest.org, manifest.product_id, manifest.version) != (org, found.id, version):
        raise SignatureRefused("the manifest is of another product or version")
    if (manifest.platform or "") != platform:
        raise SignatureRefused("the manifest is of another platform")
    return manifest


def _require_newer(wanted: Manifest, installed: Manifest) -> None:
    """Refuse a version that was asked for by name, is not what the channel is at, and is older than what is there."""
    if wanted.created_at < installed.created_at or _is_lower(wanted.version, installed.version):
        raise RolledBack(
            f"{wanted.version} is older than {installed.version}, which is installed, and the channel is not at it",
            resolution="Pull it into another folder, or ask the publisher to set the channel to it.",
        )


def _is_lower(one: str, other: str) -> bool:
    try:
        return Version(one) < Version(other)
    except InvalidVersion:
        return False
