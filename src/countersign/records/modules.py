"""Which modules are switched on: `base`, and those the operator names, found through their entry points."""

import os
import sys
import traceback
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

from countersign import declare
from countersign.declare import DeclarationError, Module
from countersign.declare.registry import Registry
from countersign.records import base_models

GROUP = "countersign.modules"

_OURS = Path(declare.__file__).parents[1]


def names(setting: str) -> tuple[str, ...]:
    """The names in the setting `modules`, separated by commas."""
    return tuple(part.strip() for part in setting.split(",") if part.strip())


def installed() -> dict[str, str]:
    """The modules that installed packages offer: by name, where each is found."""
    return {point.name: point.value for point in entry_points(group=GROUP)}


def found(selected: Sequence[str]) -> Registry:
    """The wanted modules with `base`, checked.

    Raises:
        DeclarationError: one is not installed, is no module, or is declared wrongly; the text names the remedy.
    """
    offered = _offered(tuple((folder, _changed(folder)) for folder in sys.path))
    others = (_module(name, offered) for name in selected if name != base_models.MODULE.name)
    return _registry((base_models.MODULE, *others))


@lru_cache(maxsize=4)
def _offered(_folders: tuple[tuple[str, int], ...]) -> EntryPoints:
    """The modules in these folders, which are all of `sys.path`, each with its time of change. It reads a file of every
    package that is installed."""
    return entry_points(group=GROUP)


def _changed(folder: str) -> int:
    """The folder's time of change in nanoseconds, which installing or removing a package changes; 0 for no folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _registry(selected: tuple[Module, ...]) -> Registry:
    """The modules put together; the same ones are checked once."""
    return Registry(selected)


def _module(name: str, offered: EntryPoints) -> Module:
    points = [point for point in offered if point.name == name]
    if not points:
        known = ", ".join(sorted({point.name for point in offered})) or "none"
        raise DeclarationError(
            f"COUNTERSIGN_MODULES names {name!r}, which no installed package offers (installed: {known}): install its "
            "package, or leave it out"
        )
    try:
        loaded: object = points[0].load()
    except Exception as error:  # whatever a stranger's code does wrong; told with the place in that code
        text = f"{_place(error)}{type(error).__name__}: {error}"
        raise DeclarationError(f"module {name!r} ({points[0].value}) cannot be imported: {text}") from error
    if not isinstance(loaded, Module) or loaded.name != name:
        raise DeclarationError(f"{points[0].value} must be a Module called {name!r}: correct its entry point")
    return loaded


def _place(error: Exception) -> str:
    """The last line of the module's own code that was reached; nothing when none was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def _is_ours(filename: str) -> bool:
    return filename.startswith("<") or Path(filename).is_relative_to(_OURS) or "importlib" in Path(filename).parts
