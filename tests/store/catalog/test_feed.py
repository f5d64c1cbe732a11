"""The feed of a product: it contains what feed readers need, only published releases, and any text as valid XML."""

from xml.etree import ElementTree

from tests.store.world import World

NOTES = 'A & B <script>alert("x")</script> ]]> \x01\x0b\ud7ff\U0001f642'
NAMES = {"atom": "http://www.w3.org/2005/Atom"}


async def release(world: World, owner: str, version: str, channel: str, *, notes: str = "") -> None:
    body = {"version": version, "channel": channel, "notes": notes, "notes_only": True}
    assert (await world.call("POST", "/products/one/releases", owner, json=body)).is_success
    assert (await world.call("POST", f"/products/one/releases/{version}/publish", owner)).is_success


async def test_a_feed_has_published_releases_newest_first_for_every_caller(world: World) -> None:
    product = await world.product("north", "one", title="One < Two & \x1bThree")
    owner = await world.person("owner@north.example", north="owner")
    await release(world, owner, "1.0.0", "stable", notes=NOTES)
    await release(world, owner, "1.1.0", "beta")
    await release(world, owner, "1.2.0", "beta")
    await world.call("POST", "/products/one/releases/1.2.0/yank", owner, json={"reason": "broken"})
    await world.call("POST", "/products/one/releases", owner, json={"version": "2.0.0", "channel": "stable"})

    for token in (None, owner):
        answer = await world.call("GET", "/products/one/feed", token)
        feed = ElementTree.fromstring(answer.text)

        assert answer.headers["content-type"].startswith("application/atom+xml")
        assert feed.findtext("atom:id", namespaces=NAMES) == f"urn:uuid:{product}"
        titles = [match.text for match in feed.findall("atom:entry/atom:title", NAMES)]
        assert titles == ["One < Two & Three 1.1.0", "One < Two & Three 1.0.0"]
        assert feed.findall("atom:entry/atom:content", NAMES)[1].text == NOTES.replace("\x01\x0b", "")
        newest = feed.findtext("atom:entry/atom:updated", namespaces=NAMES)
        assert feed.findtext("atom:updated", namespaces=NAMES) == newest


async def test_a_feed_without_releases_is_complete_and_the_feed_of_a_draft_is_private(world: World) -> None:
    await world.product("north", "one")
    await world.product("north", "secret", status="draft")

    feed = ElementTree.fromstring((await world.call("GET", "/products/one/feed")).text)

    assert feed.findtext("atom:updated", namespaces=NAMES)
    assert not feed.findall("atom:entry", NAMES)
    hidden_response = await world.call("GET", "/products/secret/feed")
    assert (hidden_response.status_code, hidden_response.json()["code"]) == (404, "resource_not_found")


async def test_a_feed_is_asked_for_again_only_when_something_was_published(world: World) -> None:
    await world.product("north", "one")
    owner = await world.person("owner@north.example", north="owner")
    first_response = await world.call("GET", "/products/one/feed")
    conditional_headers = {"If-None-Match": first_response.headers["etag"]}

    second_response = await world.call("GET", "/products/one/feed", headers=conditional_headers)
    await release(world, owner, "1.0.0", "stable")
    later_response = await world.call("GET", "/products/one/feed", headers=conditional_headers)

    assert (second_response.status_code, later_response.status_code) == (304, 200)
