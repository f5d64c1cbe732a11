"""Which file of which release `countersign download` means."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from countersign.cli import output, wire
from countersign.cli.connection import Server, segment
from countersign.cli.names import Product
from countersign.cli.output import Exit, Failure


@dataclass(slots=True)
class Wanted:
    """What the person asked for; None leaves it to the newest, the stable channel, this machine's platform."""

    product: Product
    version: str | None
    channel: str | None
    platform: str | None
    file: str | None

    @property
    def doing(self) -> str:
        """How a failure begins."""
        return f"cannot download {self.product}" + (f" {self.version}" if self.version else "")


def choose(server: Server, wanted: Wanted) -> tuple[wire.Release, wire.Artifact]:
    """The release and its file.

    Raises:
        Failure: there is none, several fit, or the server refused.
    """
    found = owned_by(server, wanted.product, wanted.doing)
    releases = server.get(f"/products/{segment(found.slug)}/releases", list[wire.Release], wanted.doing)
    release = choose_release(releases, wanted)
    if release.status is not None:
        output.note(f"{wanted.product} {release.version} is {release.status}.")
    return release, choose_artifact(release.artifacts, wanted)


def owned_by(server: Server, product: Product, doing: str) -> wire.Product:
    """The product, when it belongs to the organisation that was named.

    Raises:
        Failure: there is no such product, or it belongs to another.
    """
    found = server.get(f"/products/{segment(product.slug)}", wire.Product, doing)
    if found.org == product.org:
        return found
    why = f"{found.slug} belongs to {found.org}, not to {product.org}"
    remedy = f"If that is the one you mean: {found.org}/{found.slug}"
    raise Failure(doing, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)


def choose_release(releases: Sequence[wire.Release], wanted: Wanted) -> wire.Release:
    """The named release, or the newest published one of the channel; `releases` are newest first.

    Raises:
        Failure: there is none.
    """
    channel = wanted.channel if wanted.version else wanted.channel or "stable"
    meant = [each for each in releases if _is_meant(each, wanted.version, channel)]
    if meant:
        return meant[0]
    on_channel = f" on the channel {channel}" if channel else ""
    why = f"it has no release {wanted.version}" if wanted.version else "nothing is published"
    known = ", ".join(f"{each.version} ({each.channel})" for each in releases[:10])
    remedy = f"There is: {known}. Say --version or --channel." if known else "It has no release yet."
    raise Failure(wanted.doing, why=why + on_channel, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _is_meant(release: wire.Release, version: str | None, channel: str | None) -> bool:
    if channel not in (None, release.channel):
        return False
    return release.status is None if version is None else release.version == version


def choose_artifact(artifacts: Sequence[wire.Artifact], wanted: Wanted) -> wire.Artifact:
    """The one file that was asked for: by name and platform, else the only one, else this machine's only one.

    Raises:
        Failure: none, or several.
    """
    ready = [each for each in artifacts if each.status == "ready" and each.sha256]
    fitting = _fitting(ready, wanted)
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(f"{each.filename} ({each.platform or 'any platform'})" for each in ready)
    why = "several files fit" if fitting else "no file of the release fits"
    remedy = f"{_options(ready, wanted)}; there is: {known}." if known else "The release has no files."
    exit_code = Exit.USAGE if fitting else Exit.NOT_FOUND
    raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=exit_code)


def _options(ready: list[wire.Artifact], wanted: Wanted) -> str:
    """What to say to name one of the files."""
    has_platforms = any(each.platform for each in ready)
    return "Leave out --platform" if wanted.platform and not has_platforms else "Say --platform or --file"


def _fitting(ready: list[wire.Artifact], wanted: Wanted) -> list[wire.Artifact]:
    named = [each for each in ready if wanted.file in (None, each.filename)]
    if wanted.platform is not None:
        return [each for each in named if each.platform == wanted.platform]
    here = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    return named if len(named) == 1 else [each for each in named if each.platform == here] or named
