"""No symbolic link of an archive leads out of the tree, neither by itself nor through other links."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.archives import paths as archive_links
from countersign.archives.limits import MAX_CHAINED_LINKS, Budget, Limits
from countersign.archives.paths import check_links, check_target
from countersign.archives.refusals import ArchiveRefused

LIMITS = Limits()


def check(links: dict[str, str]) -> None:
    """Check the links as the reader does: each by itself, then all together."""
    for path, target in links.items():
        check_target(path, target, LIMITS)
    check_links(links, Budget(LIMITS, 1))


@pytest.mark.parametrize(
    ("rule", "links"),
    [
        ("link-target", {"a": ""}),
        ("too-deep", {"a": "d/../" * LIMITS.depth + "d/b"}),
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
        ("link-chain", {f"l{n}": f"l{n + 1}" for n in range(MAX_CHAINED_LINKS + 2)}),
        ("link-chain", {f"l{n}": f"l{n + 1}" for n in reversed(range(MAX_CHAINED_LINKS + 2))}),
        ("link-chain", {"l0": "x"} | {f"l{n + 1}": f"l{n}/../l{n}" for n in range(200)}),
    ],
)
def test_a_link_that_leads_elsewhere_is_refused(rule: str, links: dict[str, str]) -> None:
    with pytest.raises(ArchiveRefused) as refusal:
        check(links)

    assert refusal.value.rule == rule


@pytest.mark.parametrize(
    "links",
    [
        {"a": "b"},
        {"a": "missing/file"},
        {"x/y/a": "../../b"},
        {"x/a": "../y/./b/"},
        {"lib.so": "lib.so.1", "lib.so.1": "lib.so.1.2"},
        {"Current": "Versions/A", "Versions/Current": "A", "Tool": "Versions/Current/Tool"},
        {f"l{n}": f"l{n + 1}" for n in range(MAX_CHAINED_LINKS)},
    ],
)
def test_a_link_that_stays_inside_is_accepted(links: dict[str, str]) -> None:
    check(links)


def leaves(path: str, links: Mapping[str, str]) -> bool:
    """Return whether the link leads out of the tree or passes too many other links, resolved name by name."""
    folder_parts, ahead, passed = path.split("/")[:-1], links[path].split("/")[::-1], 0
    while ahead:
        name = ahead.pop()
        if name == ".." and not folder_parts:
            return True
        if name == "..":
            folder_parts.pop()
        elif name not in ("", "."):
            link_target = links.get("/".join([*folder_parts, name]))
            passed += link_target is not None
            if passed > MAX_CHAINED_LINKS:
                return True
            folder_parts += [name] if link_target is None else []
            ahead += [] if link_target is None else link_target.split("/")[::-1]
    return False


NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)
TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=6).map("/".join)


@given(st.dictionaries(NAMES, TARGETS, min_size=1, max_size=6))
def test_links_are_refused_if_following_them_leaves_the_folder(links: dict[str, str]) -> None:
    # No path goes through a link here: the reader refuses such an archive earlier.
    above = {path.rsplit("/", depth)[0] for path in links for depth in (1, 2) if path.count("/") >= depth}
    inner = {path: target for path, target in links.items() if path not in above}

    try:
        check_links(inner, Budget(Limits(), 1))
    except ArchiveRefused:
        assert any(leaves(path, inner) for path in inner)
    else:
        assert not any(leaves(path, inner) for path in inner)


def test_each_name_is_read_once_for_any_number_of_links_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names_seen: list[str] = []
    monkeypatch.setattr(archive_links, "casefold_path", lambda name: names_seen.append(name) or name)
    far = "d/../" * 200
    links = {f"l{n}": f"{far}l{n + 1}" for n in range(MAX_CHAINED_LINKS - 1)}
    links |= {f"m{n}": f"{far}l0" for n in range(200)}

    check_links(links, Budget(Limits(), 1))

    assert len(names_seen) == sum(len(path.split("/")) + 201 for path in links)


def test_a_link_may_lead_all_the_way_up_and_down_again() -> None:
    up, down = "../" * LIMITS.depth, "d/" * LIMITS.depth

    check({"d/" * LIMITS.depth + "a": up + down + "b"})
