"""No symbolic link of an archive leads out of the tree, by itself or by way of others."""

import pytest

from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.links import LONGEST_CHAIN, check_links, check_target
from countersign.archives.refusals import ArchiveRefused

LIMITS = Limits()


def check(links: dict[str, str]) -> None:
    """Judge the links as the reader does: each by itself, then all together."""
    for path, target in links.items():
        check_target(path, target, LIMITS)
    check_links(links, Gauge(LIMITS, 1))


@pytest.mark.parametrize(
    ("rule", "links"),
    [
        ("link-target", {"a": ""}),
        ("link-target", {"a": "b\\c"}),
        ("link-target", {"a": "C:x"}),
        ("link-target", {"a": "b\0c"}),
        ("link-target", {"a": "b\u202ec"}),
        ("link-absolute", {"a": "/etc"}),
        ("link-absolute", {"a": "//host/x"}),
        ("path-too-long", {"a": "b/" * 600}),
        ("link-escape", {"a": ".."}),
        ("link-escape", {"x/a": "../../b"}),
        ("link-escape", {"x/a": "../y/../../x/a"}),
        ("link-escape", {"a": "x/y", "b": "a/../../.."}),
        ("link-escape", {"d/e/a": "../..", "b": "d/e/a/.."}),
        ("link-escape", {"p/q": ".", "p/r": "q/q/q/../.."}),
        ("link-escape", {"D/E/A": "../..", "b": "d/e/a/.."}),
        ("link-chain", {"a": "a"}),
        ("link-chain", {"a": "b", "b": "a"}),
        ("link-chain", {"a": "b/c", "b": "a"}),
        ("link-chain", {f"l{n}": f"l{n + 1}" for n in range(LONGEST_CHAIN + 2)}),
        ("link-chain", {"l0": "x"} | {f"l{n + 1}": f"l{n}/../l{n}" for n in range(200)}),
    ],
)
def test_a_link_that_leads_elsewhere_is_refused(rule: str, links: dict[str, str]) -> None:
    with pytest.raises(ArchiveRefused) as refused:
        check(links)

    assert refused.value.rule == rule


@pytest.mark.parametrize(
    "links",
    [
        {"a": "b"},
        {"a": "missing/file"},
        {"x/y/a": "../../b"},
        {"x/a": "../y/./b/"},
        {"lib.so": "lib.so.1", "lib.so.1": "lib.so.1.2"},
        {"Current": "Versions/A", "Versions/Current": "A", "Tool": "Versions/Current/Tool"},
        {f"l{n}": f"l{n + 1}" for n in range(LONGEST_CHAIN)},
    ],
)
def test_a_link_that_stays_inside_is_taken(links: dict[str, str]) -> None:
    check(links)
