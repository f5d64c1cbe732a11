"""Loads the enabled modules: `base`, and the modules that the operator selects. Modules are found by the entry points
of installed packages, or read from the files of module texts, which are never executed."""

import os
import sys
import traceback
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

from countersign import declare
from countersign.declare import DeclarationError, Module, text, text_file
from countersign.declare.registry import Registry
from countersign.records import base_models

GROUP = "countersign.modules"
TEXT_SUFFIX = ".py"

_OURS = Path(declare.__file__).parents[1]


def module_names(setting: str) -> tuple[str, ...]:
    """Return the module names in the setting `modules`, which is a comma-separated list. A name that ends in .py is the
    path of a module text."""
    return tuple(name.strip() for name in setting.split(",") if name.strip())


def installed_modules() -> dict[str, str]:
    """Map the name of each module that an installed package provides to the value of its entry point."""
    return {point.name: point.value for point in entry_points(group=GROUP)}


def found(selected_names: Sequence[str]) -> Registry:
    """Return a checked registry of `base` and the selected modules.

    Raises:
        DeclarationError: a selected module is not installed, is not a `Module`, or has an invalid declaration, or a
            module text cannot be read. The error names the remedy.
    """
    entry_points = _entry_points(tuple((folder, _modified_at(folder)) for folder in sys.path))
    other_modules = (_module(name, entry_points) for name in selected_names if name != base_models.MODULE.name)
    return _registry((base_models.MODULE, *other_modules))


@lru_cache(maxsize=4)
def _entry_points(_folders: tuple[tuple[str, int], ...]) -> EntryPoints:
    """Return the entry points of the modules in all folders of `sys.path`.

    This reads a file of every installed package, so the result is cached. The arguments are the cache key: each folder
    with its modification time.
    """
    return entry_points(group=GROUP)


def _modified_at(folder: str) -> int:
    """Return the modification time of the folder in nanoseconds, or 0 if the folder does not exist.

    Installing or removing a package changes this time.
    """
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _registry(selected_modules: tuple[Module, ...]) -> Registry:
    """Return the registry of the modules. The result is cached, so that the same modules are checked only once."""
    return Registry(selected_modules)


def _module(name: str, entry_points: EntryPoints) -> Module:
    if name.endswith(TEXT_SUFFIX):
        path = Path(name).absolute()
        return _module_text(path, _modified_at(str(path)))
    points = [point for point in entry_points if point.name == name]
    if not points:
        known_names = ", ".join(sorted({point.name for point in entry_points})) or "none"
        raise DeclarationError(
            f"COUNTERSIGN_MODULES names {name!r}, which no installed package offers (installed: "
            f"{known_names}): install its "
            "package, or leave it out"
        )
    try:
        loaded_object: object = points[0].load()
    except Exception as error:  # third-party code can raise anything; the text names the line in that code
        text = f"{_failing_line(error)}{type(error).__name__}: {error}"
        raise DeclarationError(f"module {name!r} ({points[0].value}) cannot be imported: {text}") from error
    if not isinstance(loaded_object, Module) or loaded_object.name != name:
        raise DeclarationError(f"{points[0].value} must be a Module called {name!r}: correct its entry point")
    return loaded_object


@lru_cache(maxsize=4)
def _module_text(path: Path, _changed: int) -> Module:
    """Return the module of a module text. The time of its last change is a part of the cache key."""
    try:
        return text.build(text.read(text_file.read(path), str(path)), str(path))
    except OSError as error:
        raise DeclarationError(f"{path}: the module text cannot be read: {error.strerror or error}") from error
    except text.TextError as error:
        raise DeclarationError(f"{path}: {error}") from error


def _failing_line(error: Exception) -> str:
    """Return the file and line where the module's own code failed, or an empty text if none of its code ran."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_own_code(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def _is_own_code(filename: str) -> bool:
    return filename.startswith("<") or Path(filename).is_relative_to(_OURS) or "importlib" in Path(filename).parts
