"""Pictures for link previews: which picture the metadata of a page refers to, and what is drawn for a page
without its own picture."""

import asyncio
import html
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from PIL import Image

from countersign.kernel.http.request import Receive, Send
from countersign.web import social_images, store_site, store_social_images
from countersign.web.assets import Assets
from countersign.web.social_images import SocialImage, SocialImages
from tests.servers.countersign import Running
from tests.web.conftest import HERE, SESSION, browsing, store_entry

ACCEPTS_HTML = {"Accept": "text/html"}
IMAGE = SocialImage("Star Harbour", "Star Harbour", "A port between stars.", "Lumen", "The Store", "#3b5a86")


def product(**changes: Any) -> dict[str, Any]:
    """Return a product as the API shows it, with the members that its picture needs."""
    return {
        "slug": "star-harbour",
        "title": "Star Harbour",
        "summary": "A port between stars.",
        "publisher": {"slug": "lumen", "name": "Lumen"},
        "cover": {"url": "/cover.svg", "color": "#3b5a86", "placeholder": True, "alt": ""},
        "media": [],
        **changes,
    }


class Catalog:
    """A service whose API has one public product, and one product that only people with a session see."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.public = product()
        self.icon, self.icon_type = b"", b"image/png"

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request (ASGI 3)."""
        names = {name for name, _ in scope["headers"]}
        self.asked.append(scope["path"])
        status, body, kind = 404, b'{"title":"Not found"}', b"application/problem+json"
        if scope["path"] == "/auth/session/token":
            status, body = 200, b'{"access_token":"bearer","expires_in":900}'
        elif scope["path"] == "/api/v1/media/icon":
            status, body, kind = 200, self.icon, self.icon_type
        elif scope["path"].endswith("/products/star-harbour") or b"authorization" in names:
            status, body, kind = 200, json.dumps(self.public).encode(), b"application/json"
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": body, "more_body": False})


@asynccontextmanager
async def catalog_client(catalog: Catalog) -> AsyncIterator[httpx.AsyncClient]:
    """Provide a client of the store's pages in front of the catalog."""
    async with browsing(catalog, store_entry(HERE)) as client:
        yield client


def picture_of(body: bytes) -> Image.Image:
    """Return the decoded picture."""
    with Image.open(io.BytesIO(body)) as opened_image:
        assert opened_image.format == "PNG"
        return opened_image.convert("RGB")


async def test_a_public_product_has_a_picture_of_1200_by_630_pixels() -> None:
    async with catalog_client(Catalog()) as client:
        answer = await client.get("/products/star-harbour/og.png")
        head_response = await client.head("/products/star-harbour/og.png")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["cache-control"] == "public, no-cache"
    assert picture_of(answer.content).size == (1200, 630)
    assert head_response.content == b""
    assert head_response.headers["etag"] == answer.headers["etag"]


async def test_a_product_that_is_not_public_has_no_picture_even_for_its_members() -> None:
    async with catalog_client(Catalog()) as client:
        cookies = {"countersign": SESSION}
        direct = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()), "Sec-Fetch-Site": "none"}
        answer = await client.get("/products/secret/og.png", headers=direct)

    assert answer.status_code == 404
    assert answer.headers["cache-control"] == "no-store"
    assert b"Star Harbour" not in answer.content


async def test_a_changed_product_has_another_tag_and_another_address() -> None:
    catalog = Catalog()
    async with catalog_client(catalog) as client:
        old = await client.get("/products/star-harbour/og.png")
        same_answer = await client.get("/products/star-harbour/og.png", headers={"If-None-Match": old.headers["etag"]})
        old_image = store_social_images.of_product(product(), "The Store")
        old_path = store_social_images.path_of("/products/star-harbour", old_image)
        catalog.public = product(title="Star Harbour II")
        new = await client.get("/products/star-harbour/og.png", headers={"If-None-Match": old.headers["etag"]})
        new_image = store_social_images.of_product(catalog.public, "The Store")
        new_path = store_social_images.path_of("/products/star-harbour", new_image)
        versioned = await client.get(new_path)
        outdated = await client.get(old_path)

    assert (same_answer.status_code, same_answer.content) == (304, b"")
    assert new.status_code == 200
    assert new.headers["etag"] != old.headers["etag"]
    assert old_path != new_path
    assert versioned.headers["cache-control"] == "public, max-age=86400"
    assert outdated.headers["cache-control"] == "public, no-cache"


async def test_the_icon_of_the_product_is_in_its_picture() -> None:
    catalog = Catalog()
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "#ff00ff").save(file, "PNG")
    catalog.icon = file.getvalue()
    catalog.public = product(media=[{"kind": "icon", "url": "/api/v1/media/icon"}])
    async with catalog_client(catalog) as client:
        answer = await client.get("/products/star-harbour/og.png")

    colours = picture_of(answer.content).getcolors(1 << 20)
    assert colours is not None
    assert (255, 0, 255) in {colour for _, colour in colours}
    assert "/api/v1/media/icon" in catalog.asked


async def test_an_icon_that_cannot_be_drawn_is_left_out() -> None:
    catalog = Catalog()
    catalog.icon, catalog.icon_type = b"<svg/>", b"image/svg+xml"
    catalog.public = product(media=[{"kind": "icon", "url": "/api/v1/media/icon"}])
    async with catalog_client(catalog) as client:
        icon_picture = await client.get("/products/star-harbour/og.png")
        catalog.public = product()
        plain_picture = await client.get("/products/star-harbour/og.png")

    assert icon_picture.content == plain_picture.content


async def test_the_cache_is_bounded_and_draws_a_picture_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_titles: list[str] = []

    def draw(image: SocialImage, icon: bytes | None, fonts: object) -> bytes:
        drawn_titles.append(image.title)
        return b"x" * 1_000

    monkeypatch.setattr(social_images, "draw", draw)
    monkeypatch.setattr(social_images, "MAX_CACHED_BYTES", 3_000)
    images = SocialImages()
    numbered = [SocialImage(str(number), "", "", "", "") for number in range(5)]

    await asyncio.gather(*(images.png(numbered[0], None) for _ in range(4)))
    for social_image in numbered:
        await images.png(social_image, None)
    await images.png(numbered[4], None)
    await images.png(numbered[0], None)

    assert drawn_titles == ["0", "1", "2", "3", "4", "0"]


@pytest.mark.parametrize("fonts", ["built", "none"])
@pytest.mark.parametrize("color", ["#ffffff", "#000000", "#c77700"])
def test_letters_are_readable_on_each_colour(fonts: str, color: str) -> None:
    files = Assets.of_package().fonts() if fonts == "built" else []
    drawn_picture = picture_of(social_images.draw(IMAGE._replace(color=color), None, files))
    empty = IMAGE._replace(color=color, title=" ", name=" ", text="", by="")
    blank = picture_of(social_images.draw(empty, None, files))

    title = drawn_picture.crop((60, 330, 700, 430))
    assert title.tobytes() != blank.crop((60, 330, 700, 430)).tobytes()
    assert max(sum(blank.getpixel((x, y))) / 3 for x in range(60, 1200, 20) for y in range(200, 630, 20)) <= 110
    assert any(min(title.getpixel((x, y))) > 240 for x in range(0, 640, 2) for y in range(0, 100, 2))


def test_letters_that_the_fonts_have_not_are_not_drawn_as_boxes() -> None:
    files = Assets.of_package().fonts()

    without_letters_picture = social_images.draw(IMAGE._replace(title="星の港"), None, files)
    with_symbol = social_images.draw(IMAGE._replace(title="Star Harbour 🚀"), None, files)

    assert without_letters_picture == with_symbol == social_images.draw(IMAGE, None, files)


def test_long_texts_are_cut_and_do_not_reach_the_edge() -> None:
    files = Assets.of_package().fonts()
    long_image = IMAGE._replace(title="Wide " * 60, text="word " * 60, by="M" * 200)
    drawn_picture = picture_of(social_images.draw(long_image, None, files))
    blank = picture_of(social_images.draw(long_image._replace(title=" ", name=" ", text="", by=""), None, files))

    margins = [(0, 0, 60, 630), (1150, 0, 1200, 630), (0, 600, 1200, 630)]
    assert all(drawn_picture.crop(margin).tobytes() == blank.crop(margin).tobytes() for margin in margins)
    assert drawn_picture.tobytes() != blank.tobytes()


def test_a_cover_of_its_own_is_the_picture_in_a_format_that_link_previews_show() -> None:
    copies = [(320, "image/webp"), (1280, "image/avif"), (640, "image/webp")]
    srcset = [{"url": f"/api/v1/media/{width}", "width": width, "type": kind} for width, kind in copies]
    shown_product = product(
        cover={"url": "/c", "color": "#3b5a86", "placeholder": False, "alt": "A port", "srcset": srcset}
    )

    picture = store_site._own_picture(shown_product, "https://store.example")

    assert picture is not None
    assert picture == ("https://store.example/api/v1/media/640", "A port", None)


def property_of(page: str, name: str) -> str:
    match = re.search(rf'<meta property="{re.escape(name)}" content="([^"]*)">', page)
    assert match is not None, name
    return html.unescape(match[1])


def test_each_page_for_visitors_names_a_picture_that_link_previews_show(
    demo: Running, requires_built_pages: None
) -> None:
    slugs = [
        listed_product["slug"] for listed_product in httpx.get(f"{demo.url}/api/v1/products?limit=5").json()["items"]
    ]
    for path in ("/", "/publishers/northwind-games", *(f"/products/{slug}" for slug in slugs)):
        page = httpx.get(f"{demo.url}{path}", headers=ACCEPTS_HTML).text

        assert f'<link rel="canonical" href="{demo.url}{path}">' in page
        assert '<meta name="twitter:card" content="summary_large_image">' in page
        assert property_of(page, "og:url") == f"{demo.url}{path}"
        assert len(property_of(page, "og:description")) > 20
        assert property_of(page, "og:image:alt")
        answer = httpx.get(property_of(page, "og:image"))
        assert answer.headers["content-type"] in ("image/png", "image/jpeg", "image/webp"), path
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert picture.width >= 600
        if "og:image:width" in page:
            assert answer.headers["cache-control"] == "public, max-age=86400"
            assert property_of(page, "og:image:width") == str(picture.width)


def test_an_unknown_product_or_publisher_has_no_picture(demo: Running) -> None:
    for path in ("/products/none/og.png", "/publishers/none/og.png"):
        assert httpx.get(f"{demo.url}{path}").status_code == 404, path
