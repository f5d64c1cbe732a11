"""Generated covers: the bytes are the same for the same product, safe and small for any slug, and served like the
product."""

import hashlib
import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from countersign.store.catalog.covers import placeholder
from countersign.store.catalog.covers.primitives import HEIGHT, PALETTES, WIDTH
from tests.store.world import World

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "defs", "linearGradient", "radialGradient", "stop", "g", "rect", "circle", "path"}
GOLDEN = (
    (
        "harbour-of-small-lights",
        "game",
        ("cozy", "simulation"),
        "b9bfd178811c9591bb56dd357a9ea25c9f60c11402dafd6d04cefaa9c1266ac4",
    ),
    ("glass-orchard", "game", ("cozy", "farming"), "9466ae968ae526acc521589820c3845482b30a0ec39526476119d27d87aa974f"),
    ("copper-meridian", "game", ("racing",), "540ca2abec1233d36c13519cbd9b0801583ea77820f0ef83e10e2a417ae8d7c7"),
    ("neon-abbey", "game", ("action", "music"), "a4e3c8758f674ee06dce35bbcb66b70697648769b3b85456eca8c5d80a944f0a"),
    (
        "aurora-freight",
        "game",
        ("simulation", "trucks"),
        "1b20ebd501ee5bf8a508e64490be4096ec1a1baa7f86818bccd256c95271bbfc",
    ),
    ("underroot", "game", ("roguelike",), "d3822cf7a70e8e410888efd05e5615ceb44af4d2bb5bc6b41662fd7008c68362"),
    ("brightwater-rally", "game", (), "7f806104ad7f6ddc43e4d2d750737ce5ebb94e9ef7e3cf3d4e0f61b34985478e"),
    (
        "paper-cavalry",
        "game",
        ("strategy", "puzzle"),
        "3ca88142b4c841c788ec82bfb3b7b57d17d6c085f9045098f918e030ef6ad9e8",
    ),
    ("long-walk", "game", ("exploration",), "11d9c2f7ed3711f91e5932ebe77e6f94b50f202c35a9b4a395002dda40e7de75"),
    ("lantern", "game", ("farming",), "323025eeb30fb31f014b20372d4174c13eb498177bd36afad0a0eb72230ab623"),
    ("marginalia", "app", ("reading", "notes"), "c8a290e38a8e072c79f41b068d92aa6a895d56732728a8e6e5a2f38ebee9288a"),
    ("tidepool", "app", ("reading",), "61084cbe59248684df6c234e8d8e38fa46c976dd75537c1d1e60f2019a823366"),
    ("nightjar", "app", ("health",), "f8fbd5f7bd29d7d976660b2e525f6795479a3f328be709d8d01695d12e922ce8"),
    ("stillframe", "app", ("photo",), "4ab71c340f6c449c232208f47744276c6c2899996d4620cd4032276114e9888a"),
    ("breadcrumb", "app", ("outdoors", "maps"), "47c6fe3c5aca2eca8a2be51e44a40fd83039a49e94cf4a0e2433ea6f8bbf1feb"),
    ("ferrule", "tool", ("release",), "ed702510748356000a80b3aed90a42614b7dd407d41edcbbd60f75a124feedf0"),
    ("loupe", "tool", ("binary", "cli"), "3345a0e103094c0ba9c0fad4d560fca76d8b03c51c0dcbc51baf04eb81726983"),
    ("awl", "tool", ("cli",), "7cc07ba3413d7cd896035a4a1d91b21ca11bee3ef86ea3f3532038a7a78d636a"),
    ("dovetail", "tool", ("git",), "8f3d772c2ae47456c19c65d3b3f40eee64577a869e81483b9254cb2445270a15"),
    ("bellows", "tool", ("benchmark",), "2b539a9e992fb5cb5265be0e4f37902320ec3e9abe6249c63f77c822d03fe24a"),
)
"""Slug, kind, tags, and the SHA-256 of the cover. Every motif occurs."""

slugs = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?", fullmatch=True)
tags = st.lists(st.sampled_from([*sorted(placeholder.MOTIF_BY_TAG), "unknown"]), max_size=3)


@pytest.mark.parametrize(("slug", "kind", "tagged", "digest"), GOLDEN, ids=lambda value: str(value)[:24])
def test_a_cover_has_the_same_bytes_forever(slug: str, kind: str, tagged: tuple[str, ...], digest: str) -> None:
    assert hashlib.sha256(placeholder.draw(slug, kind, tagged)).hexdigest() == digest


def test_every_motif_is_among_the_golden_covers() -> None:
    assert {placeholder.motif_of(slug, kind, tagged) for slug, kind, tagged, _ in GOLDEN} == {*placeholder.MOTIFS}


@settings(max_examples=60, deadline=None)
@given(slug=slugs, kind=st.sampled_from(["game", "app", "tool"]), tagged=tags)
@example(slug="script", kind="game", tagged=[])
@example(slug="zyzzyva-9", kind="tool", tagged=["lint"])
def test_any_cover_is_small_well_formed_and_without_its_input(slug: str, kind: str, tagged: list[str]) -> None:
    svg = placeholder.draw(slug, kind, tagged)

    assert len(svg) <= 24 * 1024
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) == (str(WIDTH), str(HEIGHT))
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in ELEMENTS
        assert not (element.text or "").strip()
        assert not any(name.startswith("on") or name.endswith("href") or name == "style" for name in element.attrib)
        assert element.get("id") in (None, *"sgohbv")
        assert all(re.fullmatch(r"[-\d.a-zA-Z #(),]*", value) for value in element.attrib.values())
    longest = max(slug.split("-"), key=len)
    assert len(longest) < 8 or longest.encode() not in svg


@settings(max_examples=40, deadline=None)
@given(slug=slugs, motif=st.sampled_from(sorted(placeholder.MOTIFS)))
def test_every_motif_is_small_enough_for_any_slug(slug: str, motif: str) -> None:
    tagged = [next((tag for tag, name in placeholder.MOTIF_BY_TAG.items() if name == motif), "unknown")]

    assert len(placeholder.draw(f"zz{slug}", "tool", tagged)) <= 24 * 1024


def sun_of(svg: bytes, palette: int) -> float | None:
    """Return the visible x coordinate of the first disc in the colour of the glow."""
    match = re.search(rf'<circle cx="([\d.]+)"[^>]* fill="{PALETTES[palette].glow}" opacity="\.92"', svg.decode())
    if match is None:
        return None
    x = float(match[1])
    return WIDTH - x if "matrix(-1 0 0 1 640 0)" in svg.decode() else x


def test_focus_is_where_the_disc_is() -> None:
    focuses: set[str] = set()
    for number in range(60):
        slug = f"game-{number}"
        described_cover = placeholder.describe(slug, "game", [])
        x = sun_of(placeholder.draw(slug, "game", []), (placeholder.hash_of(slug) >> 8) % 12)
        if x is not None:
            focuses.add(described_cover.focus)
            expected_focus = "left" if x < WIDTH * 0.4 else "right" if x > WIDTH * 0.6 else "center"
            assert described_cover.focus == expected_focus, slug
        assert re.fullmatch("#[0-9a-f]{6}", described_cover.color)
    assert focuses == {"left", "center", "right"}


def test_few_covers_are_kept_in_memory() -> None:
    for number in range(placeholder.MAX_CACHED + 20):
        placeholder.draw(f"kept-{number}", "app", [])

    assert placeholder.cache_info().currsize <= placeholder.MAX_CACHED


async def test_a_cover_is_served_immutable_under_its_version_only(world: World) -> None:
    await world.product("north", "one", tags=["cozy"])
    version = placeholder.describe("one", "game", ["cozy"]).version

    for query, caching in (
        (f"?v={version}", "public, max-age=31536000, immutable"),
        ("?v=other", "public, no-cache"),
        ("", "public, no-cache"),
    ):
        answer = await world.call("GET", f"/products/one/cover.svg{query}")
        assert answer.status_code == 200
        assert answer.content == placeholder.draw("one", "game", ["cozy"])
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.headers["cache-control"] == caching
        assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'none'; sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"
        conditional_headers = {"If-None-Match": answer.headers["etag"]}
        assert (
            await world.call("GET", f"/products/one/cover.svg{query}", headers=conditional_headers)
        ).status_code == 304


async def test_the_cover_of_a_draft_is_seen_only_by_members(world: World) -> None:
    await world.product("north", "secret", status="draft")
    owner = await world.person("owner@north.example", north="owner")

    hidden_answer, missing = [await world.call("GET", f"/products/{slug}/cover.svg") for slug in ("secret", "missing")]
    shown_response = await world.call("GET", "/products/secret/cover.svg", owner)

    assert (hidden_answer.status_code, hidden_answer.json()["code"]) == (missing.status_code, missing.json()["code"])
    assert hidden_answer.status_code == 404
    assert (shown_response.status_code, shown_response.headers["cache-control"]) == (200, "private, no-cache")


async def test_covers_do_not_count_against_the_quota(world: World) -> None:
    await world.product("north", "one")

    assert "ratelimit-limit" not in (await world.call("GET", "/products/one/cover.svg")).headers
