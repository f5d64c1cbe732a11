"""`countersign download`: select a file of a release, download it, resume if interrupted, and check its SHA-256."""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from countersign.cli import output, progress
from countersign.cli.client import api_models, connection
from countersign.cli.client.connection import Server, require_owned_by, segment
from countersign.cli.client.transport import Response, Unreachable, read
from countersign.cli.options import CHANNELS, PLATFORMS, ProductName, parse_product, server_option
from countersign.cli.output import Exit, Failure
from countersign.cli.progress import Meter
from countersign.kernel.errors import is_disk_full

PIECE_BYTES = 256 << 10
ATTEMPTS = 8


@dataclass(slots=True)
class ArtifactRequest:
    """The options of a download. None means the newest version, the stable channel or this machine's platform."""

    product: ProductName
    version: str | None
    channel: str | None
    platform: str | None
    file: str | None

    @property
    def failure(self) -> str:
        """The first words of a failure message."""
        return f"cannot download {self.product}" + (f" {self.version}" if self.version else "")


def select_artifact(server: Server, request: ArtifactRequest) -> tuple[api_models.Release, api_models.Artifact]:
    """Return the requested release and its requested file.

    Raises:
        Failure: no file matches, several files match, or the server refuses a request or cannot be reached.
    """
    catalog_product = require_owned_by(server, request.product, request.failure)
    releases = server.get(
        f"/products/{segment(catalog_product.slug)}/releases", list[api_models.Release], request.failure
    )
    release = select_release(releases, request)
    if release.status is not None:
        output.note(f"{request.product} {release.version} is {release.status}.")
    return release, select_file(release.artifacts, request)


def select_release(releases: Sequence[api_models.Release], request: ArtifactRequest) -> api_models.Release:
    """Return the named release, or the newest published release of the channel. `releases` must be newest first.

    Raises:
        Failure: no release matches.
    """
    channel = request.channel if request.version else request.channel or "stable"
    meant = [release for release in releases if _matches(release, request.version, channel)]
    if meant:
        return meant[0]
    on_channel = f" on the channel {channel}" if channel else ""
    reason = f"it has no release {request.version}" if request.version else "nothing is published"
    known_versions = ", ".join(f"{release.version} ({release.channel})" for release in releases[:10])
    remedy = f"It has: {known_versions}. Pass --version or --channel." if known_versions else "It has no release yet."
    raise Failure(request.failure, why=reason + on_channel, remedy=remedy, exit_code=Exit.NOT_FOUND)


def _matches(release: api_models.Release, version: str | None, channel: str | None) -> bool:
    if channel not in (None, release.channel):
        return False
    return release.status is None if version is None else release.version == version


def select_file(artifacts: Sequence[api_models.Artifact], request: ArtifactRequest) -> api_models.Artifact:
    """Return the file with the requested name and platform.

    If several files match and no platform was requested, return the only file for this machine's platform.

    Raises:
        Failure: no file matches, or several files match.
    """
    ready_artifacts = [artifact for artifact in artifacts if artifact.status == "ready" and artifact.sha256]
    matching_artifacts = _matching(ready_artifacts, request)
    if len(matching_artifacts) == 1:
        return matching_artifacts[0]
    known_files = ", ".join(
        f"{ready_artifact.filename} ({ready_artifact.platform or 'any platform'})" for ready_artifact in ready_artifacts
    )
    reason = "several files fit" if matching_artifacts else "no file of the release fits"
    remedy = (
        f"{_selection_hint(ready_artifacts, request)}; the release has: {known_files}."
        if known_files
        else "The release has no files."
    )
    exit_code = Exit.USAGE if matching_artifacts else Exit.NOT_FOUND
    raise Failure(request.failure, why=reason, remedy=remedy, exit_code=exit_code)


def _selection_hint(ready_artifacts: list[api_models.Artifact], request: ArtifactRequest) -> str:
    """Return a sentence that names the options to select one of the files with."""
    has_platforms = any(ready_artifact.platform for ready_artifact in ready_artifacts)
    return "Leave out --platform" if request.platform and not has_platforms else "Pass --platform or --file"


def _matching(ready_artifacts: list[api_models.Artifact], request: ArtifactRequest) -> list[api_models.Artifact]:
    named_artifacts = [artifact for artifact in ready_artifacts if request.file in (None, artifact.filename)]
    if request.platform is not None:
        return [named_artifact for named_artifact in named_artifacts if named_artifact.platform == request.platform]
    own_platform = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    return (
        named_artifacts
        if len(named_artifacts) == 1
        else [artifact for artifact in named_artifacts if artifact.platform == own_platform] or named_artifacts
    )


@click.command()
@click.argument("product", callback=parse_product, metavar="ORG/PRODUCT")
@click.option("--version", help="The release's version. Default: the newest of the channel.")
@click.option("--channel", type=click.Choice(CHANNELS), help="Default: stable, unless --version is given.")
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    help="Default: the platform of this machine, if the release has files for several.",
)
@click.option(
    "--file",
    metavar="NAME",
    help="Name of the file to download. Required if the release has several files for the platform.",
)
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="File or directory to write to.")
@click.option("--force", is_flag=True, help="Replace an existing file that has different content.")
@server_option
@output.json_option
def download(
    *,
    product: ProductName,
    version: str | None,
    channel: str | None,
    platform: str | None,
    file: str | None,
    target: Path | None,
    force: bool,
) -> None:
    """Download a file of a release of ORG/PRODUCT.

    The bytes are written to FILE.part, which is renamed to FILE when its SHA-256 is verified. After a lost
    connection or ctrl-C, run the same command again: it downloads only what is missing.
    """
    request = ArtifactRequest(product, version, channel, platform, file)
    server = connection.selected_server()
    release, artifact = select_artifact(server, request)
    path = _target_path(target, artifact, request)
    try:
        if not _is_downloaded(path, artifact, request, force=force):
            Download(server, artifact, path, request.failure).run()
    except OSError as error:
        exit_code = Exit.STORAGE_FULL if is_disk_full(error) else Exit.FAILED
        reason = f"{error.filename or path}: {error.strerror or error}"
        remedy = "Make space or choose another path with -o, then run the same command again."
        raise Failure(request.failure, why=reason, remedy=remedy, exit_code=exit_code) from error
    except KeyboardInterrupt as error:
        remedy = "Run the same command again: it continues where this one ended."
        raise Failure("the download was interrupted", remedy=remedy, exit_code=Exit.INTERRUPTED) from error
    value = {"product": product.slug, "version": release.version, "channel": release.channel}
    value |= {"path": str(path), "filename": artifact.filename, "platform": artifact.platform or ""}
    output.print_result(
        {**value, "size": artifact.size, "sha256": artifact.sha256},
        f"{path} is {product} {release.version}; sha256 {artifact.sha256}",
    )


def _target_path(target: Path | None, artifact: api_models.Artifact, request: ArtifactRequest) -> Path:
    """Return the path to write the file to. A file name from the server never selects a directory."""
    if target is not None and not target.is_dir():
        return target
    name = artifact.filename
    if name in ("", ".", "..") or any(sign in name for sign in "/\\\0") or not name.isprintable():
        reason = f"the release calls its file {name!r}, which is not a valid file name"
        raise Failure(request.failure, why=reason, remedy="Name the file to write with -o FILE.")
    return (target or Path()) / name


def _is_downloaded(path: Path, artifact: api_models.Artifact, request: ArtifactRequest, *, force: bool) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        is_same = hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256
    if is_same or force:
        return is_same
    remedy = "Pass --force to replace it, or choose another path with -o."
    raise Failure(request.failure, why=f"{path} exists with other bytes", remedy=remedy, exit_code=Exit.CONFLICT)


class Download:
    """A download in progress."""

    def __init__(self, server: Server, artifact: api_models.Artifact, path: Path, failure: str) -> None:
        self._server = server
        self._artifact = artifact
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._failure = failure
        self._url = f"{server.base}/artifacts/{segment(artifact.id)}"

    def run(self) -> None:
        """Download the missing bytes, check the SHA-256 of the file, then rename it to its final name.

        Raises:
            Failure: the server refuses the request or cannot be reached, or the SHA-256 of the bytes is wrong.
            OSError: the file cannot be written.
        """
        size = self._artifact.size
        downloaded_bytes = self._part.stat().st_size if self._part.exists() else 0
        if downloaded_bytes > size:
            self._part.unlink()
            downloaded_bytes = 0
        with progress.meter(self._artifact.filename, size, downloaded_bytes) as meter:
            digest = self._fetch(meter)
            if digest != self._artifact.sha256 and downloaded_bytes:
                # Download again from the start: FILE.part of the earlier run may have been part of a different file.
                self._part.unlink()
                digest = self._fetch(meter)
        if digest != self._artifact.sha256:
            self._part.unlink()
            reason = f"the bytes have sha256 {digest}, the release says {self._artifact.sha256}; nothing was kept"
            raise Failure(self._failure, why=reason, remedy="Download again.", exit_code=Exit.CHECKSUM)
        os.replace(self._part, self._path)

    def _fetch(self, meter: Meter) -> str:
        """Complete FILE.part and return its SHA-256. Fail after ATTEMPTS attempts in a row that receive no byte."""
        try:
            return self._append(meter)
        except Failure:
            # A refused download leaves no empty file.
            if not self._part.stat().st_size:
                self._part.unlink()
            raise

    def _append(self, meter: Meter) -> str:
        failures = 0
        with open(self._part, "a+b", opener=_open_without_links) as file:
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
                        raise self._server.unreachable(self._failure, str(error)) from error
                    connection.wait(connection.pause_s(failures + 1))
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _ask(self, position: int) -> Response:
        """Request the bytes from `position` on. If the file has changed, the server sends the whole file (If-Range)."""
        headers: dict[str, str] = {}
        if position:
            headers = {"Range": f"bytes={position}-", "If-Range": f'"{self._artifact.sha256}"'}
        response = self._server.stream(self._url, headers, self._failure)
        is_partial = (response.getheader("Content-Range") or "").startswith(f"bytes {position}-")
        if response.status == 416 or (response.status == 206 and not is_partial):
            response.close()
            reason = f"the server has other bytes than the {self._artifact.size} that were announced"
            raise Failure(self._failure, why=reason, remedy=f"Remove {self._part}, try again.", exit_code=Exit.CHECKSUM)
        return response

    def _copy(self, response: Response, file: IO[bytes], update: Callable[[bytes], None], meter: Meter) -> None:
        received_bytes = file.tell()
        while piece := read(response, PIECE_BYTES):
            received_bytes += len(piece)
            if received_bytes > self._artifact.size:
                reason = f"the server sends more than the {self._artifact.size} bytes that were announced"
                raise Failure(self._failure, why=reason, remedy="Try again.", exit_code=Exit.CHECKSUM)
            file.write(piece)
            update(piece)
            meter.at(received_bytes)
        if received_bytes < self._artifact.size:
            raise Unreachable("the connection ended in the middle of the file")


def _open_without_links(path: str, flags: int) -> int:
    # Do not follow symbolic links. In a folder that others can write to, a link at this path could make the download
    # overwrite another file of the user.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
