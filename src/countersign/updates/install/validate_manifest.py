"""Checks a manifest before it is installed: every path stays inside the folder, and the values are consistent."""

from countersign.archives import paths as archive_links
from countersign.archives.limits import Budget, Limits
from countersign.archives.paths import ArchivePaths, casefold_path
from countersign.archives.refusals import ArchiveRefused
from countersign.kernel.errors import Refused
from countersign.updates import chunks
from countersign.updates.manifest import Manifest

STATE_FOLDER = ".countersign"
"""The folder of the installation's own state."""


class ManifestRefused(Refused):
    """A signed manifest that breaks a rule of installation."""

    status = 422
    code = "manifest_refused"
    title = "Manifest refused"
    resolution = "Ask the publisher for another build."


def validate(manifest: Manifest, limits: Limits | None = None) -> None:
    """Refuse a manifest with paths outside its folder, colliding paths, or inconsistent values.

    A signature proves the origin of a manifest, not that it is safe.

    Raises:
        ManifestRefused: the manifest breaks a rule; the refusal names the path and the rule.
    """
    limits = Limits() if limits is None else limits
    try:
        _check_paths(manifest, limits)
    except ArchiveRefused as error:
        raise ManifestRefused(error.detail) from error
    for path in (*(file.path for file in manifest.files), *(link.path for link in manifest.links), *manifest.folders):
        if casefold_path(path.split("/")[0]) == STATE_FOLDER:
            raise ManifestRefused(f"{path!a}: {STATE_FOLDER} is reserved for the state of the installation")
    if any(not 0 < chunk.size <= chunks.MAX_BYTES for chunk in manifest.chunks):
        raise ManifestRefused(f"a chunk must have 1 to {chunks.MAX_BYTES} bytes")
    _check_files(manifest, limits)


def _check_paths(manifest: Manifest, limits: Limits) -> None:
    names = ArchivePaths(limits)
    for file in manifest.files:
        names.take(file.path, "file")
    for link in manifest.links:
        names.take(link.path, "link")
        archive_links.check_target(link.path, link.target, limits)
    for folder in manifest.folders:
        names.take(folder, "folder")
    archive_links.check_links({link.path: link.target for link in manifest.links}, Budget(limits, 0))


def _check_files(manifest: Manifest, limits: Limits) -> None:
    total = 0
    for file in manifest.files:
        total += file.size
        if file.mode not in (0o644, 0o755):
            raise ManifestRefused(f"{file.path!a}: the mode {file.mode:o} is neither 644 nor 755")
        if file.size < 0 or total > limits.total_bytes:
            raise ManifestRefused(f"{file.path!a}: with it the build has more than {limits.total_bytes} bytes")
        if any(not 0 <= chunk_position < len(manifest.chunks) for chunk_position in file.chunks):
            raise ManifestRefused(f"{file.path!a}: it refers to a chunk that is not in the manifest")
        if sum(manifest.chunks[chunk_position].size for chunk_position in file.chunks) != file.size:
            raise ManifestRefused(f"{file.path!a}: the sizes of its chunks do not add up to its size")
