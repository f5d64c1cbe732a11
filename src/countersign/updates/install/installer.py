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
from countersign.updates.install.fetch import Progress, Remote
from countersign.updates.install.file_builder import BuildStats, FileBuilder
from countersign.updates.install.integrity import Corruption, Integrity, check
from countersign.updates.install.state import Installed, State
from countersign.updates.install.user_files import Tree, destinations, scan, user_folders, user_paths
from countersign.updates.install.validate_manifest import validate
from countersign.updates.install.workspace import Workspace, WorkspaceRefused, open_workspace
from countersign.updates.manifest import Manifest
from countersign.updates.planner import Plan

_SPARE_BYTES = 4 << 20
_BLOCK_BYTES = 4096


class Release(NamedTuple):
    """What is to be installed: a manifest that was believed, its envelope and its payload's SHA-256; and where it came
    from. `counter` is that of the channel's statement."""

    manifest: Manifest
    envelope: Envelope
    manifest_sha256: str
    server: str
    channel: str
    counter: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a pull found and did. `wounds` is what was not as the installed manifest says; `aside` where things of the
    user's went that stood in the way."""

    version: str
    former: str | None
    wounds: list[Corruption]
    plan: Plan | None
    built: BuildStats
    aside: dict[str, str]
    is_changed: bool


Announce: TypeAlias = Callable[[Plan], None]
"""Is told what will be fetched and written before anything is."""


class PullOptions(NamedTuple):
    """How a pull is done: whether every file is read, whether it ends with the plan, and who is told what."""

    verify: bool = False
    dry_run: bool = False
    announce: Announce = lambda plan: None
    progress: Progress = lambda count: None


def pull(folder: Path, release: Release, remote: Remote, way: PullOptions) -> Report:
    """Bring the folder to the release. Until the very last step the folder is as it was; a pull that ends early,
    however it ends, is gone on with by the next one.

    Raises:
        ManifestRefused: the manifest would write elsewhere.
        PlaceTaken, PlaceRefused: somebody else installs here, or nobody can.
        StorageFull: there is not enough room.
        FetchedWrong: the store's bytes are not those that the publisher signed.
        OSError: a file cannot be read or written.
    """
    validate(release.manifest)
    with open_workspace(folder) as place:
        swap.recover(place)
        installed = state.read(place.target)
        _require_same_product(place, release, installed)
        tree = scan(place.target)
        found = check(place.target, tree, installed, release.manifest, verify=way.verify)
        former = None if installed is None else installed.manifest.version
        if _is_installed(release, installed, found):
            if not way.dry_run:
                _note(place, release, installed)
            place.clear_all()
            return Report(release.manifest.version, former, [], None, BuildStats(), {}, is_changed=False)
        return _change(place, release, _Installation(installed, tree, found), remote, way)


class _Installation(NamedTuple):
    installed: Installed | None
    tree: Tree
    found: Integrity


def _require_same_product(place: Workspace, release: Release, installed: Installed | None) -> None:
    if installed is None:
        return
    there, wanted = installed.manifest, release.manifest
    if (there.org, there.product_id) != (wanted.org, wanted.product_id):
        raise WorkspaceRefused(f"{place.target} has {there.org}/{there.product}, another product")


def _is_installed(release: Release, installed: Installed | None, found: Integrity) -> bool:
    return installed is not None and installed.manifest_sha256 == release.manifest_sha256 and not found.wounds


def _note(place: Workspace, release: Release, installed: Installed | None) -> None:
    """Remember the statement's counter, where it is all that is new."""
    if installed is None or installed.state.counter >= release.counter:
        return
    state.replace(place.target, _state(release, installed.state.id, installed.state.stamps))


def _change(place: Workspace, release: Release, now: _Installation, remote: Remote, way: PullOptions) -> Report:
    manifest = release.manifest
    places = remote.places(begins=_is_new_operation(place, release, now, way))
    offer = None
    if now.installed is not None and _is_other_build(release, now):
        offer = remote.offer(now.installed.manifest.version)
    plan = planner.plan(manifest, release.manifest_sha256, now.found.local, places, offer)
    old = None if now.installed is None else now.installed.manifest
    goals = destinations(user_paths(now.tree, old, now.found.local.files), manifest)
    aside = {path: goal for path, goal in goals.items() if path != goal}
    former = None if old is None else old.version
    way.announce(plan)
    if way.dry_run:
        return Report(manifest.version, former, now.found.wounds, plan, BuildStats(), aside, is_changed=False)
    _require_room(place, manifest, plan, now.tree)
    building = FileBuilder(place, manifest, now.found.local, remote, way.progress)
    building.build(plan, places)
    number = ids.new_uuid()
    stamps = swap.stage(place, manifest, plan, building, now.tree.files)
    folders = destinations(user_folders(now.tree, old), manifest, are_folders=True)
    swap.carry(place, now.tree, goals, folders)
    state.write(place.stage, _state(release, number, stamps), release.envelope)
    swap.sync(place)
    swap.swap_in(place, number)
    swap.recover(place)
    place.clear_all()
    return Report(manifest.version, former, now.found.wounds, plan, building.built, aside, is_changed=True)


def _is_other_build(release: Release, now: _Installation) -> bool:
    return now.installed is None or now.installed.manifest_sha256 != release.manifest_sha256


def _is_new_operation(place: Workspace, release: Release, now: _Installation, way: PullOptions) -> bool:
    """Whether an installation or update begins: a repair, a try-out and what goes on after a cut are none."""
    return _is_other_build(release, now) and not way.dry_run and not place.is_begun


def _state(release: Release, number: str, stamps: dict[str, tuple[int, int]]) -> State:
    manifest = release.manifest
    return State(
        id=number,
        server=release.server,
        org=manifest.org,
        product=manifest.product,
        channel=release.channel,
        counter=release.counter,
        stamps=stamps,
    )


def _require_room(place: Workspace, manifest: Manifest, plan: Plan, tree: Tree) -> None:
    """Refuse before anything is written what would not fit in the end."""
    needed = plan.write_bytes + _SPARE_BYTES
    files = len(manifest.files) + len(tree.files)
    if not swap.can_link(place):
        needed += sum(manifest.files[number].size for number in plan.kept)
        needed += sum(found.st_size for found in tree.files.values())
    needed += files * _BLOCK_BYTES
    room = os.statvfs(place.side)
    free = room.f_bavail * room.f_frsize
    if free < needed:
        raise StorageFull(
            f"{place.side.parent} has {free} bytes free, and the update needs {needed}",
            resolution="Free space there, then pull again; nothing was changed.",
        )
    if room.f_files > 0 and room.f_favail < files:
        raise StorageFull(
            f"{place.side.parent} has room for {room.f_favail} more files, and the update needs {files}",
            resolution="Remove files there, then pull again; nothing was changed.",
        )
