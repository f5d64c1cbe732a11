"""`countersign push` and `publish`: upload a file or a packed directory to a release, and publish the release."""

import json
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from countersign.cli import output, progress
from countersign.cli.client import api_models, connection, upload
from countersign.cli.client.archive import Format, pack
from countersign.cli.client.connection import Server, release_hints, require_owned_by, segment
from countersign.cli.client.upload import BuildResult, Content, SavedUpload, UploadCache, UploadSession, read_content
from countersign.cli.options import CHANNELS, PLATFORMS, ProductName, parse_product, server_option
from countersign.cli.output import Exit, Failure
from countersign.kernel.errors import NotFound, is_disk_full

OLDER_HELP = "Publish a version that is lower than the current version of the channel."

PATIENCE_S = 180.0
"""How long a push waits for a server that cannot be reached, for example because it restarts."""


def require_not_lower(channels: Sequence[api_models.Channel], channel: str, version: str, failure_message: str) -> None:
    """Check that publishing the version does not move the channel back; `channels` are those of the product.

    Raises:
        Failure: the newest release of the channel has a higher version.
    """
    from countersign.store.catalog.versions import is_lower

    current_version = next((head.version for head in channels if head.channel == channel), None)
    if current_version is None or not is_lower(version, current_version):
        return
    reason = (
        f"the channel {channel} is at {current_version}, and {version} is lower: publishing it would move the "
        "channel back"
    )
    remedy = "Publish a higher version, or pass --older to move the channel back."
    raise Failure(failure_message, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)


@click.command()
@click.argument("product", callback=parse_product, metavar="ORG/PRODUCT")
@click.argument("version")
@click.option("--older", is_flag=True, help=OLDER_HELP)
@server_option
@output.json_option
def publish(product: ProductName, version: str, *, older: bool) -> None:
    """Make the draft release VERSION of ORG/PRODUCT public. The first release also makes the product public."""
    server = connection.selected_server()
    failure_message = f"cannot publish {product} {version}"
    catalog_product = require_owned_by(server, product, failure_message)
    path = f"/products/{segment(catalog_product.slug)}"
    if not older:
        drafts = server.get(f"{path}/drafts", list[api_models.Release], failure_message)
        for channel in (draft.channel for draft in drafts if draft.version == version):
            require_not_lower(catalog_product.channels, channel, version, failure_message)
    with release_hints(product.slug):
        reply = server.post(f"{path}/releases/{segment(version)}/publish", None, failure_message)
    release = connection.decode(reply, api_models.Release, failure_message)
    value = {"product": product.slug, "version": release.version, "channel": release.channel}
    summary = f"{product} {release.version} is public on the channel {release.channel}."
    output.print_result({**value, "published_at": release.published_at}, summary)


@dataclass(slots=True)
class PushTarget:
    """The release that a push uploads a file to."""

    server: Server
    product: ProductName
    version: str
    channel: str
    platform: str | None
    notes: str | None
    status: str = "draft"
    """The status of the release: draft, published or yanked."""
    refuses_older: bool = False
    """Whether the push fails if the version is lower than the current version of the channel. This is so if the push
    publishes the release, unless --older is passed."""
    channels: list[api_models.Channel] = field(default_factory=list[api_models.Channel])
    """The newest release of each channel of the product."""

    @property
    def path(self) -> str:
        """The release's path below the API."""
        return f"/products/{segment(self.product.slug)}/releases/{segment(self.version)}"

    @property
    def failure_message(self) -> str:
        """The first words of a failure message."""
        return f"cannot push to {self.product} {self.version}"


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.argument("product", callback=parse_product, metavar="ORG/PRODUCT")
@click.option("--version", required=True, help="The release's version.")
@click.option("--channel", type=click.Choice(CHANNELS), default="stable", show_default=True)
@click.option("--platform", type=click.Choice(PLATFORMS), help="What the file runs on.")
@click.option("--notes", help="Release notes. Only for a new release.")
@click.option("--filename", metavar="NAME", help="The file's name in the store. Default: the name of PATH.")
@click.option(
    "--archive",
    "archive_format",
    type=click.Choice(("tar.gz", "zip")),
    help="Format of the archive into which a directory is packed.",
)
@click.option("--publish", "publishes", is_flag=True, help="Publish the release afterwards.")
@click.option("--older", is_flag=True, help=OLDER_HELP)
@click.option(
    "--build/--no-build",
    "builds",
    default=True,
    help="Have the store read the file and make a build of it, which `pull` installs.  [default: build]",
)
@server_option
@output.json_option
def push(
    *,
    path: Path,
    product: ProductName,
    version: str,
    channel: str,
    platform: str | None,
    notes: str | None,
    filename: str | None,
    archive_format: Format | None,
    publishes: bool,
    older: bool,
    builds: bool,
) -> None:
    """Upload PATH, a file or a directory, to a release of ORG/PRODUCT.

    If the release does not exist, a draft is created. A directory is first packed into an archive (zip for windows,
    otherwise tar.gz), which has the same bytes every time. After a lost connection or ctrl-C, run the same command
    again: it sends only what is missing.
    """
    if publishes and not builds:
        reason = "--publish publishes the release with its build, and --no-build makes none"
        remedy = "Leave out --no-build; or push without --publish, and publish once a job has made the build."
        raise Failure(f"cannot push to {product} {version}", why=reason, remedy=remedy, exit_code=Exit.USAGE)
    target = PushTarget(
        connection.selected_server(), product, version, channel, platform, notes, refuses_older=publishes and not older
    )
    target.server.patience_s = PATIENCE_S
    try:
        with _open_content(path, target, archive_format) as (file, name):
            content = read_content(file, filename or name)
            artifact = _deliver(target, content)
        build_result = _build(target, artifact, content) if builds else None
    except OSError as error:
        raise _file_failure(target, error) from error
    except KeyboardInterrupt as error:
        remedy = "Run the same command again: it continues where this run stopped."
        raise Failure("the push was interrupted", remedy=remedy, exit_code=Exit.INTERRUPTED) from error
    if publishes:
        target.server.post(f"{target.path}/publish", None, f"cannot publish {product} {version}")
        target.status = "published"
    _show_result(target, artifact, content, build_result, target.status)


def _show_result(
    target: PushTarget, artifact: api_models.Artifact, content: Content, build_result: BuildResult | None, status: str
) -> None:
    output.print_result(
        {
            "product": target.product.slug,
            "version": target.version,
            "channel": target.channel,
            "platform": artifact.platform,
            "artifact_id": artifact.id,
            "filename": artifact.filename,
            "size": content.size,
            "sha256": content.sha256,
            "published": status == "published",
            "build": msgspec.to_builtins(build_result),
        },
        f"{artifact.filename} is in {target.product} {target.version} ({status}); sha256 {content.sha256}",
    )
    if output.wants_json():
        return
    if build_result is not None:
        stored_text = f"{progress.size(build_result.stored)} stored" if build_result.stored else "nothing new to store"
        files = "1 file" if build_result.files == 1 else f"{build_result.files} files"
        output.note(f"Build of {files}, {progress.size(build_result.size)}, {stored_text}.")
    if status == "draft":
        output.note(f"When the release is complete: countersign publish {target.product} {target.version}")


def _build(target: PushTarget, artifact: api_models.Artifact, content: Content) -> BuildResult:
    """Have the store make the build of the file. If it fails, the file stays in the draft and nothing is published."""
    failure_message = f"{artifact.filename} is in {target.product} {target.version}, but no build could be made of it"
    return upload.build(target.server, artifact.id, content.size, failure_message)


def _file_failure(target: PushTarget, error: OSError) -> Failure:
    reason = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if is_disk_full(error):
        remedy = "Make space for the packed directory, or set TMPDIR to a volume with enough space."
        return Failure(target.failure_message, why=reason, remedy=remedy, exit_code=Exit.STORAGE_FULL)
    return Failure(target.failure_message, why=reason, remedy="Make the file readable, then push again.")


@contextmanager
def _open_content(path: Path, target: PushTarget, archive_format: Format | None) -> Generator[tuple[BinaryIO, str]]:
    """Yield the open file to send and its name: the file at the path, or an archive of the directory.

    The archive is a temporary file without a name on the disk: nothing is left of it however the process ends."""
    if not path.is_dir():
        with path.open("rb") as file:
            yield file, path.name
        return
    form: Format = archive_format or ("zip" if target.platform == "windows" else "tar.gz")
    name = "-".join(filter(None, (target.product.slug, target.version, target.platform))) + f".{form}"
    with tempfile.TemporaryFile(prefix="countersign-") as packed_file:
        pack(path, packed_file, form)
        yield packed_file, name


def _deliver(target: PushTarget, content: Content) -> api_models.Artifact:
    """Create the draft, announce the file and send it; skip the steps that an earlier push has completed."""
    _require_product(target)
    existing_artifact = _prepare_release(target, content)
    if existing_artifact is not None:
        return existing_artifact
    upload_cache = UploadCache(target.server.root, f"{target.product}\0{target.version}", target.platform, content)
    upload_session, gaps = _start_upload(target, content, upload_cache)
    missing_bytes = sum(stop - start for start, stop in gaps)
    try:
        with progress.meter(content.filename, content.size, content.size - missing_bytes) as meter:
            artifact = upload_session.run(gaps, meter)
    except Failure as failure:
        if failure.exit_code not in (Exit.NOT_FOUND, Exit.CONFLICT, Exit.CHECKSUM):
            raise
        upload_cache.forget()
        # The server has ended the upload. If it succeeded, only the response that reported the success was lost.
        artifact = None if failure.exit_code == Exit.CHECKSUM else _prepare_release(target, content)
        if artifact is None:
            raise
    artifact = artifact or _prepare_release(target, content)
    upload_cache.forget()
    if artifact is None:
        reason = "all bytes were sent, but the server does not have the file"
        raise Failure(target.failure_message, why=reason, remedy="Push again.")
    if artifact.sha256 != content.sha256:
        reason = f"the server has sha256 {artifact.sha256}, the file {content.sha256}"
        raise Failure(target.failure_message, why=reason, remedy="Push under another version.", exit_code=Exit.CHECKSUM)
    return artifact


def _require_product(target: PushTarget) -> None:
    """Check that the product exists, and store its channels in the target.

    Raises:
        Failure: the product does not exist or is not visible to you, and the remedy is the command that creates it; or
            the product belongs to another organisation.
    """
    try:
        target.channels = require_owned_by(target.server, target.product, target.failure_message).channels
    except Failure as failure:
        if failure.problem != NotFound.code:
            raise
        title = target.product.slug.replace("-", " ").title()
        platforms = json.dumps([target.platform or "linux"])
        create_command = f"countersign api POST products -q org={target.product.org} -f slug={target.product.slug}"
        create_command += f" -f title='{title}' -f kind=app -j platforms='{platforms}'"
        remedy = f"Create the product, with a title and kind (app, game or tool) of your choice: {create_command}"
        reason = f"the organisation {target.product.org} has no product {target.product.slug}, or you may not see it"
        code, problem = failure.exit_code, failure.problem
        raise Failure(target.failure_message, why=reason, remedy=remedy, exit_code=code, problem=problem) from failure


def _prepare_release(target: PushTarget, content: Content) -> api_models.Artifact | None:
    """Return the file in the release, if its upload is complete; create a draft if the release does not exist.

    Raises:
        Failure: one of these is true:
            - The release is on a different channel.
            - The release is not published yet, `target.refuses_older` is true, and the version is lower than the
              current version of the channel.
            - The release is no longer a draft and does not have this file.
            - The release has a different file with the same name.
            - The release has this file for a different platform.
    """
    path = f"/products/{segment(target.product.slug)}/releases"
    release = _find_release(target)
    is_published = release is not None and release.status != "draft"
    if target.refuses_older and not is_published:
        require_not_lower(target.channels, target.channel, target.version, target.failure_message)
    if release is None:
        _create_draft(target, path)
        return None
    if release.channel != target.channel:
        reason = f"the release exists on the channel {release.channel}"
        remedy = f"Pass --channel {release.channel}, or push another version."
        raise Failure(target.failure_message, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)
    return _artifact_in_release(target, release, content)


def _artifact_in_release(
    target: PushTarget, release: api_models.Release, content: Content
) -> api_models.Artifact | None:
    """Return the file in the release if its upload is complete, else None.

    Raises:
        Failure: the release is no longer a draft and does not have this file, or it has a different file with the same
            name, or the file for a different platform.
    """
    artifact = {artifact.filename: artifact for artifact in release.artifacts if artifact.status == "ready"}.get(
        content.filename
    )
    target.status = release.status or "published"
    if artifact is not None and artifact.sha256 == content.sha256:
        _require_platform(target, artifact)
        return artifact
    if target.status != "draft":
        reason = f"{target.version} is {target.status} already: its files can no longer change"
        remedy, code = "Push the files under a new version.", Exit.CONFLICT
        raise Failure(target.failure_message, why=reason, remedy=remedy, exit_code=code, problem="release_published")
    if artifact is None:
        return None
    reason = f"the release has a different file named {artifact.filename}, with sha256 {artifact.sha256}"
    remedy = "Push under another version or with another --filename."
    raise Failure(target.failure_message, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)


def _require_platform(target: PushTarget, artifact: api_models.Artifact) -> None:
    """Check that the file in the release is for the platform of this push.

    Raises:
        Failure: the file in the release and the file of this push are not for the same platform. "Any platform" counts
            as a platform of its own.
    """
    if artifact.platform == target.platform:
        return
    artifact_platform, push_platform = (
        f"for {platform}" if platform else "for any platform" for platform in (artifact.platform, target.platform)
    )
    reason = f"the release has the file {artifact.filename} {artifact_platform}, and this push is {push_platform}"
    platform_advice = f"Pass --platform {artifact.platform}" if artifact.platform else "Leave out --platform"
    remedy = f"{platform_advice}; or push under another --filename, or another version."
    raise Failure(target.failure_message, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)


def _find_release(target: PushTarget) -> api_models.Release | None:
    """Return the draft of the version, else its published release, else None.

    If neither exists, print a note about a version that differs only by trailing zeros."""
    from countersign.store.catalog.versions import without_zeros

    product_path, twin = f"/products/{segment(target.product.slug)}", ""
    for collection in ("drafts", "releases"):
        path = f"{product_path}/{collection}"
        for release in target.server.get(path, list[api_models.Release], target.failure_message):
            if release.version == target.version:
                return release
            if without_zeros(release.version) == without_zeros(target.version):
                twin = release.version
    if twin:
        output.note(
            f"There is a release {twin}: {target.version} is a different version (they differ by a trailing .0)."
        )
    return None


def _create_draft(target: PushTarget, path: str) -> None:
    """Create the draft of the release, unless somebody else has created it in the meantime."""
    body = {"version": target.version, "channel": target.channel}
    if target.notes is not None:
        body["notes"] = target.notes
    try:
        target.server.post(path, body, target.failure_message)
    except Failure as failure:
        if failure.problem != "release_exists":
            raise


def _start_upload(
    target: PushTarget, content: Content, upload_cache: UploadCache
) -> tuple[UploadSession, list[tuple[int, int]]]:
    """Return the upload and its missing byte ranges. An upload that the server still has is continued."""
    saved_upload = upload_cache.recall()
    if saved_upload is not None:
        upload_session = UploadSession(target.server, saved_upload.upload_url, content, target.failure_message)
        try:
            return upload_session, upload_session.missing()
        except Failure as failure:
            if failure.exit_code not in (Exit.NOT_FOUND, Exit.CONFLICT):
                raise
            upload_cache.forget()
    body: dict[str, object] = {"filename": content.filename, "size": content.size, "sha256": content.sha256}
    if target.platform is not None:
        body["platform"] = target.platform
    reply = target.server.post(f"{target.path}/artifacts", body, target.failure_message)
    new_upload = connection.decode(reply, api_models.Upload, target.failure_message)
    url = target.server.reachable_url(new_upload.upload_url)
    upload_cache.remember(SavedUpload(new_upload.artifact_id, url))
    return UploadSession(target.server, url, content, target.failure_message), [(0, content.size)]
