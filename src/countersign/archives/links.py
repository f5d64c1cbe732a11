"""Symbolic links of strangers: where they lead, through every other link of the archive."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.names import characters_fault, folded
from countersign.archives.refusals import ArchiveRefused

LONGEST_CHAIN = 16
"""Most links that are passed when one is followed."""

_Form: TypeAlias = Callable[[str], str]


def check_target(path: str, target: str, limits: Limits) -> None:
    """Refuse where a link points to, as far as its text tells.

    Raises:
        ArchiveRefused: `link-target`, `link-absolute`, `path-too-long` or `link-escape`.
    """
    if not target:
        raise ArchiveRefused("link-target", "the link points to nothing", entry=path)
    if target.startswith("/"):
        raise ArchiveRefused("link-absolute", f"the link points to the absolute path {target!a}", entry=path)
    if fault := characters_fault(target):
        raise ArchiveRefused("link-target", f"the link points to {target!a}: {fault.detail}", entry=path)
    if len(target.encode()) > limits.path_bytes:
        raise ArchiveRefused("path-too-long", f"where it points to has more than {limits.path_bytes}", entry=path)
    _follow(path, target, {}, str)


def check_links(links: Mapping[str, str], gauge: Gauge) -> None:
    """Refuse links (path to target) of which one leads outside by way of the others, or nowhere.

    They are followed twice: as names are written, and as a system without upper and lower case compares them.

    Raises:
        ArchiveRefused: `link-escape` or `link-chain`.
    """
    alike = {folded(path): target for path, target in links.items()}
    for path, target in links.items():
        gauge.tick()
        _follow(path, target, links, str)
        _follow(path, target, alike, folded)


def _follow(path: str, target: str, links: Mapping[str, str], form: _Form) -> None:
    """Walk from the link's folder along the target, name by name, through the links that are met."""
    # The path of each folder on the way, so that a step costs one path and not all of their names.
    here: list[str] = []
    for name in path.split("/")[:-1]:
        here.append(_below(here, form(name)))
    ahead = target.split("/")[::-1]
    passed = 0
    while ahead:
        name = ahead.pop()
        if name == "..":
            if not here:
                raise ArchiveRefused("link-escape", f"the link leads out of the tree by {target!a}", entry=path)
            here.pop()
        elif name not in ("", "."):
            here.append(_below(here, form(name)))
            further = links.get(here[-1])
            if further is not None:
                passed += 1
                if passed > LONGEST_CHAIN:
                    raise ArchiveRefused("link-chain", f"following it passes more than {passed - 1}", entry=path)
                here.pop()
                ahead += further.split("/")[::-1]


def _below(folders: list[str], name: str) -> str:
    return f"{folders[-1]}/{name}" if folders else name
