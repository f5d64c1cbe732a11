"""Which modules are switched on: `base`, and those the operator names, found through their entry points."""

from collections.abc import Sequence
from importlib.metadata import entry_points

from countersign.declare import DeclarationError, Module
from countersign.declare.registry import Registry
from countersign.records import base

GROUP = "countersign.modules"


def names(setting: str) -> tuple[str, ...]:
    """The names in the setting `modules`, separated by commas."""
    return tuple(part.strip() for part in setting.split(",") if part.strip())


def installed() -> dict[str, str]:
    """The modules that installed packages offer: by name, where each is found."""
    return {point.name: point.value for point in entry_points(group=GROUP)}


def found(wanted: Sequence[str]) -> Registry:
    """The wanted modules with `base`, checked.

    Raises:
        DeclarationError: one is not installed, is no module, or is declared wrongly; the text names the remedy.
    """
    return Registry([base.MODULE, *(_module(name) for name in wanted if name != base.MODULE.name)])


def _module(name: str) -> Module:
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    if not points:
        known = ", ".join(sorted(installed())) or "none"
        raise DeclarationError(
            f"COUNTERSIGN_MODULES names {name!r}, which no installed package offers (installed: {known}): install its "
            "package, or leave it out"
        )
    try:
        loaded: object = points[0].load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise DeclarationError(f"module {name!r} ({points[0].value}) cannot be imported: {error}") from error
    if not isinstance(loaded, Module) or loaded.name != name:
        raise DeclarationError(f"{points[0].value} must be a Module called {name!r}: correct its entry point")
    return loaded
