"""Pictures for link previews of the store: of the front page, of a product and of a publisher.

Only what everybody may see is drawn: the API is called without the visitor's session.
"""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from countersign.kernel.http.response import Response
from countersign.web import social_images, store_cards
from countersign.web.site_config import PageRequest
from countersign.web.social_images import SocialImage, SocialImages

API = "/api/v1"
ICON_TYPES = ("image/png", "image/jpeg", "image/webp", "image/avif")


def of_store(store: str) -> SocialImage:
    """Return what the picture of the front page shows."""
    return SocialImage(title=store, name=store, text="", by="", site=store)


def of_product(product: Mapping[str, Any], store: str) -> SocialImage:
    """Return what the picture of a product shows."""
    return SocialImage(
        title=product["title"],
        name=_name(product["slug"]),
        text=store_cards.lead_of(product["summary"] or "")[0],
        by=product["publisher"]["name"],
        site=store,
        color=product["cover"]["color"],
        icon_url=next((medium["url"] for medium in product["media"] if medium["kind"] == "icon"), ""),
    )


def of_publisher(publisher: Mapping[str, Any], store: str) -> SocialImage:
    """Return what the picture of a publisher shows."""
    text = store_cards.lead_of(publisher["text"] or "")[0]
    return SocialImage(title=publisher["name"], name=_name(publisher["slug"]), text=text, by="", site=store)


def path_of(page: str, image: SocialImage) -> str:
    """Return the path of the picture of a page. It changes with what the picture shows."""
    return f"{page.rstrip('/')}/og.png?v={image.version}"


async def show_store(request: PageRequest, store: str, images: SocialImages) -> Response:
    """Show the picture of the front page."""
    return await _shown(request, of_store(store), images)


async def show_product(request: PageRequest, store: str, images: SocialImages) -> Response:
    """Show the picture of a public product."""
    reply = await request.get_public(f"{API}/products/{quote(request.values['slug'], safe='')}")
    if reply.status != 200:
        return reply.passed_on()
    return await _shown(request, of_product(cast("dict[str, Any]", reply.members()), store), images)


async def show_publisher(request: PageRequest, store: str, images: SocialImages) -> Response:
    """Show the picture of a publisher with public products."""
    reply = await request.get_public(f"{API}/publishers/{quote(request.values['slug'], safe='')}")
    if reply.status != 200:
        return reply.passed_on()
    return await _shown(request, of_publisher(cast("dict[str, Any]", reply.members()), store), images)


async def _shown(request: PageRequest, image: SocialImage, images: SocialImages) -> Response:
    not_modified_response = social_images.not_modified(image, request.headers, request.query)
    if not_modified_response is not None:
        return not_modified_response
    png = await images.png(image, await _icon(request, image.icon_url) if image.icon_url else None)
    headers = social_images.caching_headers(image, request.query)
    return Response(200, png, social_images.PNG, headers, social_images.etag(image))


async def _icon(request: PageRequest, url: str) -> bytes | None:
    """Return the icon, or None if it cannot be read or is a vector image."""
    reply = await request.get_public(url)
    return reply.body if reply.status == 200 and reply.header(b"content-type") in ICON_TYPES else None


def _name(slug: str) -> str:
    return " ".join(word.capitalize() for word in slug.split("-"))
