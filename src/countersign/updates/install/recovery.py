"""The change of places, and what is left to do after one that was interrupted."""

import os
from pathlib import Path

from countersign.updates.install import state, swap
from countersign.updates.install.belongings import belongings, destinations
from countersign.updates.install.place import Place
from countersign.updates.install.tree import scan


def change_places(place: Place, number: str) -> None:
    """Put the stage in the installation's place; `number` is the id in the stage's state. From here on an interrupted
    pull is finished by `recover`.

    Raises:
        OSError: it cannot be done; the installation is as it was.
    """
    with place.swap.open("x") as file:
        file.write(number)
        file.flush()
        os.fsync(file.fileno())
    swap.sync_folder(place.side)
    if not place.target.exists():
        place.stage.rename(place.target)
    elif not swap.exchange(place.stage, place.target):
        place.clear(place.retired)
        place.target.rename(place.retired)
        place.stage.rename(place.target)
    swap.sync_folder(place.target.parent)
    swap.sync_folder(place.side)


def recover(place: Place) -> None:
    """Bring an interrupted pull to an end, if there is one: when the new version is in its place, what the user has put
    beside the old one meanwhile goes over to it; when it is not, the old one is as it was.

    Raises:
        OSError: something cannot be moved.
    """
    if place.swap.is_file():
        number = place.swap.read_text()
        if not place.target.exists() and place.stage.is_dir() and _id(place.stage) == number:
            # Between the two steps of a system that cannot exchange folders.
            place.stage.rename(place.target)
            swap.sync_folder(place.target.parent)
        elif not place.target.exists() and place.retired.is_dir():
            place.retired.rename(place.target)
            swap.sync_folder(place.target.parent)
        if _id(place.target) == number:
            for former in (place.retired, place.stage):
                _bring_over(former, place.target)
        # Before the old version is removed: what an interruption leaves of it must not be taken for the user's.
        place.clear(place.swap)
        swap.sync_folder(place.side)
    place.clear(place.stage, place.retired, place.unpacked)


def _id(root: Path) -> str:
    found = state.read(root)
    return "" if found is None else found.state.id


def _bring_over(former: Path, target: Path) -> None:
    """Move what the user has put into the old version, or changed there, after it was carried over."""
    tree, new = scan(former), state.read(target)
    if tree.is_empty or new is None:
        return
    old = state.read(former)
    manifest = None if old is None else old.manifest
    whole = {file.path for file in new.manifest.files if _is_same(former / file.path, target / file.path)}
    for path, goal in destinations(belongings(tree, manifest, whole), new.manifest).items():
        _move(former / path, target / goal, is_file=path in tree.files)


def _move(here: Path, there: Path, *, is_file: bool) -> None:
    """Move it where nothing is, or an earlier state of the same file."""
    if not os.path.lexists(there):
        there.parent.mkdir(parents=True, exist_ok=True)
        here.rename(there)
    elif is_file and not _is_same(here, there) and _is_newer(here, there):
        here.rename(there)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.lexists(one) and os.path.lexists(other) and os.path.samestat(one.lstat(), other.lstat())


def _is_newer(one: Path, other: Path) -> bool:
    return one.lstat().st_mtime_ns > other.lstat().st_mtime_ns
