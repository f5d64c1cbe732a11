"""Installs, updates or repairs a folder so that it matches a build, in one atomic step."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from countersign.kernel import ids
from countersign.kernel.errors import StorageFull
from countersign.updates import planner
from countersign.updates.api_types import Envelope
from countersign.updates.install import state, swap
from countersign.updates.install.fetch import ProgressCallback, Remote
from countersign.updates.install.file_builder import BuildStats, FileBuilder
from countersign.updates.install.integrity import Corruption, Integrity, check
from countersign.updates.install.state import Installation, InstallState
from countersign.updates.install.user_files import Tree, destinations, scan, user_folders, user_paths
from countersign.updates.install.validate_manifest import validate
from countersign.updates.install.workspace import Workspace, WorkspaceRefused, open_workspace
from countersign.updates.manifest import Manifest
from countersign.updates.planner import UpdatePlan

_SPARE_BYTES = 4 << 20
_BLOCK_BYTES = 4096


class VerifiedRelease(NamedTuple):
    """A verified manifest with its envelope, the SHA-256 of its payload, and its server and channel. `counter` is the
    counter of the channel's statement."""

    manifest: Manifest
    envelope: Envelope
    manifest_sha256: str
    server: str
    channel: str
    counter: int


@dataclass(frozen=True, slots=True)
class PullReport:
    """What a pull found and did. `corruptions` are the differences from the installed manifest; `aside` has the new
    path of each user file that was moved."""

    version: str
    former: str | None
    corruptions: list[Corruption]
    plan: UpdatePlan | None
    stats: BuildStats
    aside: dict[str, str]
    is_changed: bool


PlanCallback: TypeAlias = Callable[[UpdatePlan], None]
"""Called with the plan before anything is fetched or written."""


class PullOptions(NamedTuple):
    """Options of a pull: `verify` reads every file, `dry_run` stops after planning; two callbacks report progress."""

    verify: bool = False
    dry_run: bool = False
    announce: PlanCallback = lambda plan: None
    progress: ProgressCallback = lambda count: None


def pull(folder: Path, release: VerifiedRelease, remote: Remote, options: PullOptions) -> PullReport:
    """Install, update or repair the folder so that it matches the release. The folder is unchanged until the last step,
    the swap. The next pull resumes an interrupted pull.

    Raises:
        ManifestRefused: the manifest is invalid.
        WorkspaceLocked: another process installs into the folder.
        WorkspaceRefused: the folder cannot be installed into.
        StorageFull: the disk has too little free space.
        ContentMismatch: downloaded bytes do not match the signed manifest.
        OSError: a file cannot be read or written.
    """
    validate(release.manifest)
    with open_workspace(folder) as workspace:
        swap.recover(workspace)
        installation = state.read(workspace.target)
        _require_same_product(workspace, release, installation)
        tree = scan(workspace.target)
        integrity = check(workspace.target, tree, installation, release.manifest, verify=options.verify)
        former_version = None if installation is None else installation.manifest.version
        if _is_up_to_date(release, installation, integrity):
            if not options.dry_run:
                _update_counter(workspace, release, installation)
            workspace.clear_all()
            return PullReport(release.manifest.version, former_version, [], None, BuildStats(), {}, is_changed=False)
        return _install(workspace, release, _FolderScan(installation, tree, integrity), remote, options)


class _FolderScan(NamedTuple):
    installed: Installation | None
    tree: Tree
    found: Integrity


def _require_same_product(workspace: Workspace, release: VerifiedRelease, installation: Installation | None) -> None:
    if installation is None:
        return
    installed_manifest, release_manifest = installation.manifest, release.manifest
    if (installed_manifest.org, installed_manifest.product_id) != (release_manifest.org, release_manifest.product_id):
        raise WorkspaceRefused(
            f"{workspace.target} contains {installed_manifest.org}/{installed_manifest.product}, a different product"
        )


def _is_up_to_date(release: VerifiedRelease, installation: Installation | None, integrity: Integrity) -> bool:
    return (
        installation is not None
        and installation.manifest_sha256 == release.manifest_sha256
        and not integrity.corruptions
    )


def _update_counter(workspace: Workspace, release: VerifiedRelease, installation: Installation | None) -> None:
    """Store the statement's counter if it is higher than the stored one."""
    if installation is None or installation.state.counter >= release.counter:
        return
    state.replace(workspace.target, _state(release, installation.state.id, installation.state.stamps))


def _install(
    workspace: Workspace, release: VerifiedRelease, folder_scan: _FolderScan, remote: Remote, options: PullOptions
) -> PullReport:
    manifest = release.manifest
    places = remote.places(is_start=_is_new_operation(workspace, release, folder_scan, options))
    offer = None
    if folder_scan.installed is not None and _is_other_build(release, folder_scan):
        offer = remote.offer(folder_scan.installed.manifest.version)
    plan = planner.plan(manifest, release.manifest_sha256, folder_scan.found.local, places, offer)
    old_manifest = None if folder_scan.installed is None else folder_scan.installed.manifest
    goals = destinations(user_paths(folder_scan.tree, old_manifest, folder_scan.found.local.files), manifest)
    moved_aside = {path: goal for path, goal in goals.items() if path != goal}
    former_version = None if old_manifest is None else old_manifest.version
    options.announce(plan)
    if options.dry_run:
        return PullReport(
            manifest.version,
            former_version,
            folder_scan.found.corruptions,
            plan,
            BuildStats(),
            moved_aside,
            is_changed=False,
        )
    _require_room(workspace, manifest, plan, folder_scan.tree)
    builder = FileBuilder(workspace, manifest, folder_scan.found.local, remote, options.progress)
    builder.build(plan, places)
    number = ids.new_uuid()
    stamps = swap.stage(workspace, manifest, plan, builder, folder_scan.tree.files)
    folders = destinations(user_folders(folder_scan.tree, old_manifest), manifest, are_folders=True)
    swap.carry(workspace, folder_scan.tree, goals, folders)
    state.write(workspace.stage, _state(release, number, stamps), release.envelope)
    swap.sync(workspace)
    swap.swap_in(workspace, number)
    swap.recover(workspace)
    workspace.clear_all()
    return PullReport(
        manifest.version,
        former_version,
        folder_scan.found.corruptions,
        plan,
        builder.stats,
        moved_aside,
        is_changed=True,
    )


def _is_other_build(release: VerifiedRelease, folder_scan: _FolderScan) -> bool:
    return folder_scan.installed is None or folder_scan.installed.manifest_sha256 != release.manifest_sha256


def _is_new_operation(
    workspace: Workspace, release: VerifiedRelease, folder_scan: _FolderScan, options: PullOptions
) -> bool:
    """Return whether this pull starts an installation or update. Repairs, dry runs and resumed pulls do not count."""
    return _is_other_build(release, folder_scan) and not options.dry_run and not workspace.is_begun


def _state(release: VerifiedRelease, number: str, stamps: dict[str, tuple[int, int]]) -> InstallState:
    manifest = release.manifest
    return InstallState(
        id=number,
        server=release.server,
        org=manifest.org,
        product=manifest.product,
        channel=release.channel,
        counter=release.counter,
        stamps=stamps,
    )


def _require_room(workspace: Workspace, manifest: Manifest, plan: UpdatePlan, tree: Tree) -> None:
    """Refuse an update that needs more space than the disk has, before anything is written."""
    needed_bytes = plan.write_bytes + _SPARE_BYTES
    files = len(manifest.files) + len(tree.files)
    if not swap.can_link(workspace):
        needed_bytes += sum(manifest.files[number].size for number in plan.kept)
        needed_bytes += sum(file_status.st_size for file_status in tree.files.values())
    needed_bytes += files * _BLOCK_BYTES
    room = os.statvfs(workspace.side)
    free_bytes = room.f_bavail * room.f_frsize
    if free_bytes < needed_bytes:
        raise StorageFull(
            f"{workspace.side.parent} has {free_bytes} bytes free, and the update needs {needed_bytes}",
            resolution="Delete files on that disk, then pull again. Nothing was changed.",
        )
    if room.f_files > 0 and room.f_favail < files:
        raise StorageFull(
            f"{workspace.side.parent} has room for {room.f_favail} more files, and the update needs {files}",
            resolution="Delete files on that disk, then pull again. Nothing was changed.",
        )
