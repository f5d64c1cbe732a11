"""Rules about modules as such: their names, and which others they need."""

import re
from collections.abc import Iterator, Mapping

from countersign.declare.module import Module
from countersign.declare.rules.whole import BASE, Whole, of_module

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


def modules_named(whole: Whole) -> Iterator[str]:
    """A module has a name in snake_case that no other has, and a version."""
    seen: set[str] = set()
    for module in whole.modules:
        if not _NAME.fullmatch(module.name):
            yield of_module(module, "the name must be lower-case letters, digits and single underscores: rename it")
        if module.name in seen:
            yield of_module(module, "there are two modules of this name: rename one")
        if not module.version.strip():
            yield of_module(module, 'it has no version: give it one, such as version="1.0.0"')
        seen.add(module.name)


def settings_named(whole: Whole) -> Iterator[str]:
    """A setting has its module's name before its own, and options, each once."""
    for module in whole.modules:
        for name in [each.name for each in module.settings]:
            prefix, _, rest = name.partition(".")
            if prefix != module.name or not _NAME.fullmatch(rest):
                yield of_module(module, f"the setting {name!r} must be called {module.name}.<name>: rename it")
        for each in module.settings:
            if not each.options or len(set(each.options)) != len(each.options):
                yield of_module(module, f"the setting {each.name!r} needs options, each named once: correct them")


def needs_are_there(whole: Whole) -> Iterator[str]:
    """Every module that a module needs is switched on."""
    names = {module.name for module in whole.modules}
    for module in whole.modules:
        for need in module.needs:
            if need not in names:
                yield of_module(
                    module,
                    f"it needs {need!r}, which is not switched on: add {need} to COUNTERSIGN_MODULES, or take it out "
                    "of needs",
                )


def needs_run_one_way(whole: Whole) -> Iterator[str]:
    """No module needs itself, directly or by way of others."""
    needs: Mapping[str, tuple[str, ...]] = {module.name: module.needs for module in whole.modules}
    for module in whole.modules:
        if module.name in _reached(needs, module):
            yield of_module(
                module, "it needs itself, by way of those it needs: move what both use into a module both need"
            )


def _reached(needs: Mapping[str, tuple[str, ...]], module: Module) -> set[str]:
    found: set[str] = set()
    left = list(module.needs)
    while left:
        name = left.pop()
        if name not in found and name != BASE:
            found.add(name)
            left += needs.get(name, ())
    return found
