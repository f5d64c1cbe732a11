"""`countersign download`: a release's file, continued after a cut and checked before it has its name."""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO

import click

from countersign.cli import connection, names, output, progress, wire
from countersign.cli.connection import Server, segment
from countersign.cli.names import CHANNELS, PLATFORMS, Product
from countersign.cli.output import Exit, Failure
from countersign.cli.progress import Meter
from countersign.cli.target import server_option
from countersign.cli.transport import Response, Unreachable, explain

PIECE_BYTES = 256 << 10
ATTEMPTS = 8


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


@click.command()
@click.argument("product", callback=names.product, metavar="ORG/PRODUCT")
@click.option("--version", help="The release's version. Default: the newest of the channel.")
@click.option("--channel", type=click.Choice(CHANNELS), help="Default: stable, unless --version is given.")
@click.option("--platform", type=click.Choice(PLATFORMS), help="Default: this machine's, where there are several.")
@click.option("--file", metavar="NAME", help="The file's name in the release, where there are several.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="File or directory to write to.")
@click.option("--force", is_flag=True, help="Replace an existing file that has other bytes.")
@server_option
@output.json_option
def download(
    *,
    product: Product,
    version: str | None,
    channel: str | None,
    platform: str | None,
    file: str | None,
    target: Path | None,
    force: bool,
) -> None:
    """Fetch a file of a release of ORG/PRODUCT.

    The bytes go to FILE.part, are checked against the release's SHA-256, and get their name only then. After a cut
    or ctrl-C run the same command again: it fetches only what is missing.
    """
    wanted = Wanted(product, version, channel, platform, file)
    server = connection.chosen()
    release, artifact = _choose(server, wanted)
    path = _target(target, artifact, wanted)
    try:
        if not _is_there(path, artifact, wanted, force=force):
            Fetching(server, artifact, path, wanted.doing).run()
    except OSError as error:
        exit_code = Exit.STORAGE_FULL if error.errno in output.NO_ROOM else Exit.FAILED
        why = f"{error.filename or path}: {error.strerror or error}"
        remedy = "Free space or choose another place with -o, then run the same command again."
        raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=exit_code) from error
    except KeyboardInterrupt as error:
        remedy = "Run the same command again: it continues where this one ended."
        raise Failure("the download was interrupted", remedy=remedy, exit_code=Exit.INTERRUPTED) from error
    value = {"product": product.slug, "version": release.version, "channel": release.channel}
    value |= {"path": str(path), "filename": artifact.filename, "platform": artifact.platform or ""}
    output.answer(
        {**value, "size": artifact.size, "sha256": artifact.sha256},
        f"{path} is {product} {release.version}; sha256 {artifact.sha256}",
    )


def _choose(server: Server, wanted: Wanted) -> tuple[wire.Release, wire.Artifact]:
    found = server.get(f"/products/{segment(wanted.product.slug)}", wire.Product, wanted.doing)
    if found.org != wanted.product.org:
        why = f"{found.slug} belongs to {found.org}, not to {wanted.product.org}"
        remedy = f"If that is the one you mean: {found.org}/{found.slug}"
        raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)
    path = f"/products/{segment(wanted.product.slug)}/releases"
    release = choose_release(server.get(path, list[wire.Release], wanted.doing), wanted)
    if release.status is not None:
        output.note(f"{wanted.product} {release.version} is {release.status}.")
    return release, choose_artifact(release.artifacts, wanted)


def choose_release(releases: Sequence[wire.Release], wanted: Wanted) -> wire.Release:
    """The named release, or the newest published one of the channel; `releases` are newest first.

    Raises:
        Failure: there is none.
    """
    if wanted.version is not None:
        named = [each for each in releases if each.version == wanted.version]
        fitting = [each for each in named if wanted.channel in (None, each.channel)]
        why = f"it has no release {wanted.version}" + (f" on {wanted.channel}" if named else "")
    else:
        channel = wanted.channel or "stable"
        fitting = [each for each in releases if each.channel == channel and each.status is None]
        why = f"nothing is published on the channel {channel}"
    if fitting:
        return fitting[0]
    known = ", ".join(f"{each.version} ({each.channel})" for each in releases[:10])
    remedy = f"There is: {known}. Say --version or --channel." if known else "It has no release yet."
    raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)


def choose_artifact(artifacts: Sequence[wire.Artifact], wanted: Wanted) -> wire.Artifact:
    """The one file that was asked for: by name and platform, else the only one, else this machine's only one.

    Raises:
        Failure: none, or several.
    """
    ready = [each for each in artifacts if each.status == "ready" and each.sha256]
    fitting = [each for each in ready if wanted.file in (None, each.filename)]
    if wanted.platform is not None:
        fitting = [each for each in fitting if each.platform == wanted.platform]
    elif len(fitting) > 1:
        fitting = [each for each in fitting if each.platform == _here()] or fitting
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(f"{each.filename} ({each.platform or 'any platform'})" for each in ready)
    why = "several files fit" if fitting else "no file of the release fits"
    remedy = f"Say --platform or --file; there is: {known}." if known else "The release has no files."
    exit_code = Exit.USAGE if fitting else Exit.NOT_FOUND
    raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=exit_code)


def _here() -> str:
    return {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")


def _target(target: Path | None, artifact: wire.Artifact, wanted: Wanted) -> Path:
    """Where the file goes. A name that came from the server never chooses a directory."""
    if target is not None and not target.is_dir():
        return target
    name = artifact.filename
    if name in ("", ".", "..") or any(sign in name for sign in "/\\\0") or not name.isprintable():
        why = f"the release calls its file {name!r}, which is no file name here"
        raise Failure(wanted.doing, why=why, remedy="Name the file to write with -o FILE.")
    return (target or Path()) / name


def _is_there(path: Path, artifact: wire.Artifact, wanted: Wanted, *, force: bool) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        same = hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256
    if same or force:
        return same
    remedy = "Say --force to replace it, or choose another place with -o."
    raise Failure(wanted.doing, why=f"{path} exists with other bytes", remedy=remedy, exit_code=Exit.CONFLICT)


class Fetching:
    """One download under way."""

    def __init__(self, server: Server, artifact: wire.Artifact, path: Path, doing: str) -> None:
        self._server = server
        self._artifact = artifact
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._doing = doing
        self._url = f"{server.base}/artifacts/{segment(artifact.id)}"

    def run(self) -> None:
        """Fetch what is missing, check the whole, give it its name.

        Raises:
            Failure: refused, the server stays away, or the bytes are not those that were announced.
            OSError: the file cannot be written.
        """
        size = self._artifact.size
        continued = self._part.stat().st_size if self._part.exists() else 0
        if continued > size:
            self._part.unlink()
            continued = 0
        with progress.meter(self._artifact.filename, size, continued) as meter:
            digest = self._fetch(meter)
            if digest != self._artifact.sha256 and continued:
                # What was there from an earlier time was of another file: once more, from the start.
                self._part.unlink()
                digest = self._fetch(meter)
        if digest != self._artifact.sha256:
            self._part.unlink()
            why = f"the bytes have sha256 {digest}, the release says {self._artifact.sha256}; nothing was kept"
            raise Failure(self._doing, why=why, remedy="Download again.", exit_code=Exit.CHECKSUM)
        os.replace(self._part, self._path)

    def _fetch(self, meter: Meter) -> str:
        """Fill FILE.part; the SHA-256 of all of it. Ends after ATTEMPTS in a row without a byte."""
        failures = 0
        with self._part.open("a+b") as file:
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256")
            while (position := file.seek(0, os.SEEK_END)) < self._artifact.size:
                try:
                    with self._ask(position) as response:
                        if response.status != 206 and position:
                            file.truncate(0)
                            digest = hashlib.sha256()
                        self._copy(response, file, digest.update, meter)
                except Unreachable as error:
                    failures = failures + 1 if file.tell() <= position else 1
                    if failures == ATTEMPTS:
                        raise self._server.unreachable(self._doing, str(error)) from error
                    connection.wait(connection.pause_s(failures + 1))
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _ask(self, position: int) -> Response:
        """The answer that brings the bytes from `position` on, or all of them when the file changed (If-Range)."""
        headers: dict[str, str] = {}
        if position:
            headers = {"Range": f"bytes={position}-", "If-Range": f'"{self._artifact.sha256}"'}
        response = self._server.stream(self._url, headers, self._doing)
        begins = (response.getheader("Content-Range") or "").startswith(f"bytes {position}-")
        if response.status == 416 or (response.status == 206 and not begins):
            response.close()
            why = f"the server has other bytes than the {self._artifact.size} that were announced"
            raise Failure(self._doing, why=why, remedy=f"Remove {self._part}, try again.", exit_code=Exit.CHECKSUM)
        return response

    def _copy(self, response: Response, file: IO[bytes], update: Callable[[bytes], None], meter: Meter) -> None:
        done = file.tell()
        while piece := _read(response):
            done += len(piece)
            if done > self._artifact.size:
                why = f"the server sends more than the {self._artifact.size} bytes that were announced"
                raise Failure(self._doing, why=why, remedy="Try again.", exit_code=Exit.CHECKSUM)
            file.write(piece)
            update(piece)
            meter.at(done)
        if done < self._artifact.size:
            raise Unreachable("the connection ended in the middle of the file")


def _read(response: Response) -> bytes:
    """The next bytes of the answer; none at its end.

    Raises:
        Unreachable: the connection was cut.
    """
    try:
        return response.read(PIECE_BYTES)
    except (OSError, HTTPException) as error:
        raise Unreachable(explain(error)) from error
