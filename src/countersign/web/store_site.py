"""The site of the store: its configuration, and the pages that are rendered on the server, readable without scripts."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl, quote, urlencode

from countersign.web import page_shell
from countersign.web.origin import PublicAddress
from countersign.web.page_shell import RenderedPage
from countersign.web.sessions import TokenExchangeSessions
from countersign.web.site_config import PageRequest, SiteConfig

API = "/api/v1"
PAGE_SIZE = 24
MAX_FIELDS = 20
FACETS = ("q", "kind", "platform", "org", "tag", "channel", "access", "published_since", "sort")
"""The parameters of the list that are passed to the API, in the order in which the script sends them."""

CATEGORIES = {"game": "GameApplication", "app": "BusinessApplication", "tool": "DeveloperApplication"}
TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "releases": "Releases",
        "products": "Products",
        "sign in": "Sign in",
        "sign out": "Sign out",
        "agents": "Connected agents",
        "maker": "Publisher:",
        "yanked": "Withdrawn",
        "missing": "Page not found",
        "missing text": "It may have been moved or deleted, or you don’t have access.",
    },
    "de": {
        "releases": "Versionen",
        "products": "Produkte",
        "sign in": "Anmelden",
        "sign out": "Abmelden",
        "agents": "Verbundene Agenten",
        "maker": "Anbieter:",
        "yanked": "Zurückgezogen",
        "missing": "Seite nicht gefunden",
        "missing text": "Vielleicht verschoben, gelöscht oder ohne Zugriff für Sie.",
    },
}


def site_config(title: str, cookie_name: str, address: PublicAddress, *, link: str = "") -> SiteConfig:
    """The configuration of the store's site; `title` is the name of the store, `cookie_name` is the name of the session
    cookie, and `link` is the Link header of each page."""
    return SiteConfig(
        name="store",
        title=title,
        sessions=TokenExchangeSessions(cookie_name, "/auth/session/token", address),
        service_paths=("/api/", "/auth/", "/.well-known/", "/problems/", "/sandbox/", "/mcp"),
        own_credentials_paths=("/api/v1/auth/",),
        session_change_paths=("/auth/",),
        renderers={
            "/": lambda request: render_product_list(request, title),
            "/products/{slug}": lambda request: render_product(request, title),
        },
        link_header=link,
    )


class _Page(NamedTuple):
    words: Mapping[str, str]
    store: str
    is_signed_in: bool


async def _page(request: PageRequest, store: str) -> _Page:
    return _Page(TEXTS[page_shell.language(request.headers)], store, await request.is_signed_in())


async def render_product_list(request: PageRequest, store: str) -> RenderedPage | None:
    """Render the first page of products that match the query. Return None if the API returns an error, or the query has
    too many parameters."""
    try:
        query = dict(parse_qsl(request.query, max_num_fields=MAX_FIELDS))
    except ValueError:
        return None
    parameters = {"limit": str(PAGE_SIZE), **{name: query[name] for name in FACETS if query.get(name)}}
    target = f"{API}/products?{urlencode(parameters)}"
    reply = await request.get(target)
    if reply.status != 200:
        return None
    found = reply.members()
    page = await _page(request, store)
    items = cast("list[dict[str, Any]]", found.get("items", []))
    cards = "".join(
        f'<li class="card"><h2><a href="/products/{quote(each["slug"])}">{escape(each["title"])}</a></h2>'
        f"<p>{escape(each.get('description') or '')}</p></li>"
        for each in items
    )
    body = f'<h1>{page.words["products"]}</h1><ul class="cards">{cards}</ul>'
    return RenderedPage(store, _data({target: found}), _framed(page, body))


async def render_product(request: PageRequest, store: str) -> RenderedPage | None:
    """Render a product with its releases, or a page with status 404 if the visitor cannot see the product."""
    address = f"{API}/products/{quote(request.values['slug'], safe='')}"
    reply = await request.get(address)
    if reply.status == 404:
        return await render_missing(request, store)
    if reply.status != 200:
        return None
    product = cast("dict[str, Any]", reply.members())
    listed_at = f"{address}/releases"
    reply = await request.get(listed_at)
    if reply.status != 200:
        return None
    releases: list[dict[str, Any]] = json.loads(reply.body)
    page = await _page(request, store)
    url = f"{request.address.root_url}/products/{quote(product['slug'])}"
    head = _meta(product, url, store) + _linked_data(product, releases, url)
    head += _data({address: product, listed_at: releases})
    description = escape(product.get("description") or "")
    body = (
        f'<article class="product"><h1>{escape(product["title"])}</h1><p class="prose written">{description}</p>'
        f"{_pictures(product)}{_facts(product, page)}"
        f"<h2>{page.words['releases']}</h2>{''.join(_release(each, page) for each in releases)}</article>"
    )
    return RenderedPage(f"{product['title']} · {store}", head, _framed(page, body))


async def render_missing(request: PageRequest, store: str) -> RenderedPage:
    """Render the page for a product that does not exist, or that the visitor cannot see."""
    page = await _page(request, store)
    words = page.words
    body = f'<h1>{words["missing"]}</h1><p>{words["missing text"]}</p><p><a href="/">{words["products"]}</a></p>'
    return RenderedPage(f"{words['missing']} · {store}", body=_framed(page, body), status=404)


def _framed(page: _Page, body: str) -> str:
    """The body with the header of every page, for visitors without scripts."""
    sign_in = f'<a href="/auth/signin">{page.words["sign in"]}</a>'
    if page.is_signed_in:
        button = f'<button class="button">{page.words["sign out"]}</button>'
        sign_in = f'<form method="post" action="/auth/signout">{button}</form>'
    return (
        f'<header class="top"><a class="brand" href="/">{escape(page.store)}</a>'
        f'<nav><ul><li><a href="/auth/agents">{page.words["agents"]}</a></li></ul></nav>'
        f'<div class="end">{sign_in}</div></header><main id="main">{body}</main>'
    )


def _pictures(product: Mapping[str, Any]) -> str:
    found = [each for each in product["media"] if each["kind"] in ("cover", "screenshot")]
    listed = "".join(
        f'<li><img class="picture" src="{escape(each["url"])}" alt="{escape(each["alt"])}" loading="lazy"></li>'
        for each in found
    )
    return f'<ul class="gallery">{listed}</ul>' if found else ""


def _facts(product: Mapping[str, Any], page: _Page) -> str:
    maker = f'<a href="/?org={quote(product["org"])}">{escape(product["org"])}</a>'
    facts = " · ".join(escape(each) for each in (", ".join(product["platforms"]), product["license"]) if each)
    return f"<p>{page.words['maker']} {maker} · {facts}</p>"


def _release(release: Mapping[str, Any], page: _Page) -> str:
    files = "".join(
        f'<li><a href="{API}/artifacts/{each["id"]}">{escape(each["filename"])}</a> '
        f"<span>{each['size']:,} B</span> <code>{each['sha256'] or ''}</code></li>"
        for each in release.get("artifacts") or ()
    )
    when = (release["published_at"] or "")[:10]
    is_yanked = release.get("status") == "yanked"
    yanked = f"<p>{page.words['yanked']}: {escape(release.get('yank_reason') or '')}</p>" if is_yanked else ""
    # Show Markdown as text, which is readable without rendering.
    return (
        f'<section class="release"><h3>{escape(release["version"])} <span>{release["channel"]}</span> '
        f'<time datetime="{release["published_at"] or ""}">{when}</time></h3>{yanked}'
        f'<p class="prose written">{escape(release.get("notes") or "")}</p><ul>{files}</ul></section>'
    )


def _meta(product: Mapping[str, Any], url: str, store: str) -> str:
    description = product.get("description") or ""
    pictures = [each["url"] for each in product["media"] if each["kind"] in ("cover", "screenshot")]
    properties = {
        "og:type": "website",
        "og:site_name": store,
        "og:title": product["title"],
        "og:description": description,
        "og:url": url,
        **({"og:image": pictures[0]} if pictures else {}),
    }
    tags = "".join(f'<meta property="{name}" content="{escape(value)}">' for name, value in properties.items())
    return (
        f'<link rel="canonical" href="{escape(url)}">'
        f'<link rel="alternate" type="application/atom+xml" href="{API}/products/{quote(product["slug"])}/feed">'
        f'<meta name="description" content="{escape(description)}">{tags}'
    )


def _linked_data(product: Mapping[str, Any], releases: Sequence[Mapping[str, Any]], url: str) -> str:
    """Structured data for search engines (schema.org, SoftwareApplication)."""
    newest = next((each for each in releases if each["published_at"]), None)
    data = {
        "@context": "https://schema.org",
        "@type": ["SoftwareApplication", CATEGORIES.get(product["kind"], "WebApplication")],
        "name": product["title"],
        "description": product.get("description") or "",
        "url": url,
        "operatingSystem": ", ".join(product["platforms"]),
        "isAccessibleForFree": product["access"] == "free",
        "license": product["license"],
        "softwareVersion": newest and newest["version"],
        "datePublished": newest and newest["published_at"],
        "image": [each["url"] for each in product["media"]],
    }
    filled = {name: value for name, value in data.items() if value not in (None, [], "")}
    return f'<script type="application/ld+json">{_json(filled)}</script>'


def _data(replies: Mapping[str, object]) -> str:
    """The responses of the API, so that the script need not request them again."""
    return f'<script type="application/json" id="replies">{_json(replies)}</script>'


def _json(value: object) -> str:
    """Encode the value as JSON that cannot end its script element. Browsers do not execute these elements."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
