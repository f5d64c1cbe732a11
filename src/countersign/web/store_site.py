"""The site of the store: its configuration, and the pages that are rendered on the server, readable without scripts."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl, quote, urlencode

from countersign.web import page_shell, social_images, store_cards, store_social_images
from countersign.web.origin import PublicAddress
from countersign.web.page_shell import RenderedPage
from countersign.web.sessions import TokenExchangeSessions
from countersign.web.site_config import PageRequest, SiteConfig
from countersign.web.social_images import SocialImage, SocialImages

API = "/api/v1"
PAGE_SIZE = 24
MAX_FIELDS = 20
COUNTED = "kind,platform,access,since,tag"
FIRST_SHELF = 6
PUBLISHER_PAGE_SIZE = 60
FACETS = ("q", "kind", "platform", "org", "tag", "channel", "access", "published_since", "sort")
"""The parameters of the list that are passed to the API, in the order in which the script sends them."""

MARK = (
    '<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke-linecap="round">'
    '<rect width="24" height="24" rx="6.5" fill="var(--accent)"/>'
    '<path d="M5.5 14.2c2.4-6.6 4.3-7.7 4.6-5.6.2 1.7-1.3 4.7-.2 5 1.1.3 2-2.8 3.1-2.6.9.2.3'
    ' 2 1.3 2.2.9.2 1.7-.9 4.2-1.5" stroke="var(--on-accent)" stroke-width="1.7"/>'
    '<path d="M5.5 18.2h13" stroke="#ffb84d" stroke-width="1.8"/></svg>'
)
PLACES = (("/", "discover"), ("/browse", "browse"), ("/library", "library"), ("/following", "following"))
CATEGORIES = {"game": "GameApplication", "app": "BusinessApplication", "tool": "DeveloperApplication"}
TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "discover": "Discover",
        "browse": "Browse",
        "library": "Library",
        "following": "Following",
        "releases": "Release notes",
        "about": "About",
        "pictures": "Pictures",
        "products": "All products",
        "results": "Results for “{words}”",
        "store text": "Games, apps and tools to download and keep up to date.",
        "new": "New and updated",
        "all": "See all",
        "view": "View",
        "free": "Free",
        "entitled": "With a code",
        "sign in": "Sign in",
        "sign out": "Sign out",
        "maker": "Publisher",
        "license": "License",
        "platforms": "Platform",
        "yanked": "Withdrawn",
        "publisher text": "Products of {name}.",
        "missing": "Page not found",
        "missing text": "It may have been moved or deleted, or you don’t have access.",
    },
    "de": {
        "discover": "Entdecken",
        "browse": "Stöbern",
        "library": "Bibliothek",
        "following": "Abonniert",
        "releases": "Versionshinweise",
        "about": "Beschreibung",
        "pictures": "Bilder",
        "products": "Alle Produkte",
        "results": "Treffer für „{words}“",
        "store text": "Spiele, Apps und Werkzeuge zum Herunterladen, immer auf dem neuesten Stand.",
        "new": "Neu und aktualisiert",
        "all": "Alle ansehen",
        "view": "Ansehen",
        "free": "Kostenlos",
        "entitled": "Mit Code",
        "sign in": "Anmelden",
        "sign out": "Abmelden",
        "maker": "Anbieter",
        "license": "Lizenz",
        "platforms": "Plattform",
        "yanked": "Zurückgezogen",
        "publisher text": "Produkte von {name}.",
        "missing": "Seite nicht gefunden",
        "missing text": "Vielleicht verschoben, gelöscht oder ohne Zugriff für Sie.",
    },
}


def site_config(
    title: str, cookie_name: str, address: PublicAddress, *, link: str = "", fonts: Sequence[bytes] = ()
) -> SiteConfig:
    """The configuration of the store's site; `title` is the name of the store, `cookie_name` is the name of the session
    cookie, `link` is the Link header of each page, and `fonts` are the fonts of pictures for link previews."""
    images = SocialImages(fonts)
    return SiteConfig(
        name="store",
        title=title,
        sessions=TokenExchangeSessions(cookie_name, "/auth/session/token", address),
        service_paths=("/api/", "/auth/", "/.well-known/", "/problems/", "/sandbox/", "/mcp"),
        own_credentials_paths=("/api/v1/auth/",),
        session_change_paths=("/auth/",),
        renderers={
            "/": lambda request: render_home(request, title),
            "/browse": lambda request: render_product_list(request, title),
            "/products/{slug}": lambda request: render_product(request, title),
            "/publishers/{slug}": lambda request: render_publisher(request, title),
        },
        resources={
            "/og.png": lambda request: store_social_images.show_store(request, title, images),
            "/products/{slug}/og.png": lambda request: store_social_images.show_product(request, title, images),
            "/publishers/{slug}/og.png": lambda request: store_social_images.show_publisher(request, title, images),
        },
        link_header=link,
    )


class _Page(NamedTuple):
    words: Mapping[str, str]
    store: str
    is_signed_in: bool


async def _page(request: PageRequest, store: str) -> _Page:
    return _Page(TEXTS[page_shell.language(request.headers)], store, await request.is_signed_in())


async def render_home(request: PageRequest, store: str) -> RenderedPage | None:
    """Render the front page: the large product and the first shelf. With a query it is the list of products, which had
    this address before. Return None if the API returns an error, or the store is empty."""
    if request.query:
        return await render_product_list(request, store)
    reply = await request.get(f"{API}/store/home")
    if reply.status != 200:
        return None
    home = reply.members()
    products = cast("list[dict[str, Any]]", home.get("hero", []))
    if not products:
        return None
    page = await _page(request, store)
    shelves = cast("list[dict[str, Any]]", home.get("shelves", []))
    rows = "".join(
        store_cards.shelf(page.words["new"], shelf["query"], _others_first(shelf["items"], products), page.words)
        for shelf in shelves
        if shelf["id"] == "new"
    )
    title = f'<h1 class="hidden-text">{page.words["discover"]}</h1>'
    body = f'<div class="wrap discover">{title}{store_cards.hero(products, page.words)}{rows}</div>'
    root_url = request.address.root_url
    picture = _drawn_picture(root_url, "/", store_social_images.of_store(store))
    head = _described(store, page.words["store text"], f"{root_url}/", store, picture)
    return RenderedPage(store, head + store_cards.preload(products[0]), _framed(page, body, "/"))


async def render_product_list(request: PageRequest, store: str) -> RenderedPage | None:
    """Render the first page of products that match the query. Return None if the API returns an error, or the query has
    too many parameters."""
    try:
        query = dict(parse_qsl(request.query, max_num_fields=MAX_FIELDS))
    except ValueError:
        return None
    facets = {name: query[name] for name in FACETS if query.get(name)}
    target = f"{API}/products?{urlencode({'limit': str(PAGE_SIZE), 'facets': COUNTED, **facets})}"
    reply = await request.get(target)
    if reply.status != 200:
        return None
    product_list = reply.members()
    page = await _page(request, store)
    items = cast("list[dict[str, Any]]", product_list.get("items", []))
    search_words = query.get("q")
    title = page.words["results"].format(words=escape(search_words)) if search_words else page.words["products"]
    body = (
        f'<div class="wrap browse"><div class="facets-column"></div><div class="results-column">'
        f'<div class="page-head"><h1>{title}</h1></div><div class="toolbar"></div>'
        f'<ul class="cards">{store_cards.cards(items, page.words)}</ul></div></div>'
    )
    return RenderedPage(store, _data({target: product_list}), _framed(page, body, "/browse"))


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
    head = _meta(product, url, store, request.address.root_url) + _linked_data(product, releases, url)
    head += _data({address: product, listed_at: releases})
    head += store_cards.preload(product)
    lead, rest_of_summary = store_cards.lead_of(product["summary"] or "")
    summary = f'<p class="subtitle">{escape(lead)}</p>' if lead else ""
    about_html = f'<p class="prose about-lead">{escape(rest_of_summary)}</p>' if rest_of_summary else ""
    releases_html = "".join(_release(release, page) for release in releases)
    body = (
        f'<div class="wrap"><article class="product-page"><div class="product"><div class="product-head">'
        f'<div class="page-head"><h1>{escape(product["title"])}</h1></div>{summary}</div>'
        f'<div class="product-main">{_pictures(product, page)}'
        f"<section><h2>{page.words['about']}</h2>{about_html}"
        f'<p class="prose written">{escape(product.get("description") or "")}</p></section>'
        f'<section><h2>{page.words["releases"]}</h2><ol class="releases">{releases_html}</ol></section></div>'
        f'<aside class="product-side">{_facts(product, page)}</aside></div></article></div>'
    )
    return RenderedPage(f"{product['title']} · {store}", head, _framed(page, body))


async def render_publisher(request: PageRequest, store: str) -> RenderedPage | None:
    """Render a publisher with its products, or a page with status 404 if no publisher has this name. Only the script
    applies the order in the query."""
    slug = request.values["slug"]
    address = f"{API}/publishers/{quote(slug, safe='')}"
    reply = await request.get(address)
    if reply.status == 404:
        return await render_missing(request, store)
    if reply.status != 200:
        return None
    publisher = cast("dict[str, Any]", reply.members())
    parameters = {"limit": str(PUBLISHER_PAGE_SIZE), "facets": "kind", "org": publisher["slug"], "sort": "-updated_at"}
    listed_at = f"{API}/products?{urlencode(parameters)}"
    reply = await request.get(listed_at)
    if reply.status != 200:
        return None
    publisher_page = reply.members()
    products = cast("list[dict[str, Any]]", publisher_page.get("items", []))
    page = await _page(request, store)
    name, text = escape(publisher["name"]), publisher["text"] or ""
    in_banner = store_cards.in_banner(sorted(products, key=_released_at, reverse=True))
    root_url = request.address.root_url
    url = f"{root_url}/publishers/{quote(publisher['slug'])}"
    described_text = text or page.words["publisher text"].format(name=publisher["name"])
    picture = _publisher_picture(publisher, in_banner, store, root_url)
    head = _described(publisher["name"], described_text, url, store, picture)
    head += _data({address: publisher, listed_at: publisher_page})
    head += store_cards.preload(in_banner[0]) if in_banner else ""
    banner = "".join(store_cards.image(product, is_first=True) for product in in_banner)
    body = (
        f'<div class="wrap"><div class="publisher-page"><div class="banner">{banner}</div>'
        f'<div class="publisher-head">{store_cards.monogram(publisher["slug"], publisher["name"])}'
        f'<div class="grow"><div class="page-head"><h1>{name}</h1></div></div></div>'
        f'<div class="publisher-about"><p class="prose written">{escape(text)}</p></div>'
        f'<ul class="cards{store_cards.columns(len(products))}">{store_cards.cards(products, page.words)}</ul>'
        "</div></div>"
    )
    return RenderedPage(f"{publisher['name']} · {store}", head, _framed(page, body))


async def render_missing(request: PageRequest, store: str) -> RenderedPage:
    """Render the page for a product or publisher that does not exist, or that the visitor cannot see."""
    page = await _page(request, store)
    texts = page.words
    body = (
        f'<div class="page-head"><h1>{texts["missing"]}</h1></div><div class="state"><p>{texts["missing text"]}</p>'
        f'<a class="button" href="/browse">{texts["products"]}</a></div>'
    )
    return RenderedPage(f"{texts['missing']} · {store}", body=_framed(page, body), status=404)


def _others_first(items: Sequence[dict[str, Any]], visible_products: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first products of a shelf, newest first. Products that the page shows above the shelf come last."""
    ids = {product["id"] for product in visible_products}
    newest = sorted(items, key=_released_at, reverse=True)
    return sorted(newest, key=lambda product: product["id"] in ids)[:FIRST_SHELF]


def _released_at(product: Mapping[str, Any]) -> str:
    return product["latest"]["published_at"] if product["latest"] else ""


def _framed(page: _Page, body: str, address: str = "") -> str:
    """The body with the header of every page, for visitors without scripts; `address` is that of the current place."""
    sign_in = f'<a class="button strong" href="/auth/signin">{page.words["sign in"]}</a>'
    if page.is_signed_in:
        button = f'<button class="button">{page.words["sign out"]}</button>'
        sign_in = f'<form method="post" action="/auth/signout">{button}</form>'
    places = "".join(
        f'<a href="{path}"{" aria-current=page" if path == address else ""}>{page.words[name]}</a>'
        for path, name in PLACES
    )
    return (
        f'<header class="top-bar"><div class="wrap"><a class="brand" href="/">{MARK}{escape(page.store)}</a>'
        f'<nav>{places}</nav><span class="right">{sign_in}</span></div></header><main id="main">{body}</main>'
    )


def _pictures(product: Mapping[str, Any], page: _Page) -> str:
    """The first picture large, and the others small. A video is shown by the product's cover until it plays."""
    screenshots = [media_file for media_file in product["media"] if media_file["kind"] == "screenshot"]
    first_html, small_pictures = store_cards.image(product, is_first=True), screenshots
    if screenshots and not product["has_trailer"]:
        first_html, small_pictures = (
            f'<img src="{escape(screenshots[0]["url"])}" alt="{escape(screenshots[0]["alt"])}">',
            screenshots[1:],
        )
    other_html = "".join(
        f'<li><img src="{escape(small_picture["url"])}" alt="{escape(small_picture["alt"])}" loading="lazy"></li>'
        for small_picture in small_pictures
    )
    # The row scrolls on narrow screens: the keyboard reaches it.
    row = (
        f'<ul class="thumbs" tabindex="0" aria-label="{page.words["pictures"]}">{other_html}</ul>' if other_html else ""
    )
    return f'<div><div class="stage">{first_html}</div>{row}</div>'


def _facts(product: Mapping[str, Any], page: _Page) -> str:
    maker = f'<a href="/publishers/{quote(product["org"])}">{escape(product["publisher"]["name"])}</a>'
    facts = {"maker": maker, "platforms": store_cards.platforms(product), "license": escape(product["license"] or "")}
    rows = "".join(f"<div><dt>{page.words[name]}</dt><dd>{value}</dd></div>" for name, value in facts.items() if value)
    access = page.words["free" if product["access"] == "free" else "entitled"]
    return (
        f'<div class="get panel-box"><div class="get-head"><h2>{access}</h2></div></div>'
        f'<dl class="panel-box fact-list">{rows}</dl>'
    )


def _release(release: Mapping[str, Any], page: _Page) -> str:
    files = "".join(
        f'<li><a href="{API}/artifacts/{artifact["id"]}">{escape(artifact["filename"])}</a> '
        f"<span>{artifact['size']:,} B</span> <code>{artifact['sha256'] or ''}</code></li>"
        for artifact in release.get("artifacts") or ()
    )
    published_day = (release["published_at"] or "")[:10]
    is_yanked = release.get("status") == "yanked"
    yanked = f"<p>{page.words['yanked']}: {escape(release.get('yank_reason') or '')}</p>" if is_yanked else ""
    # Show Markdown as text, which is readable without rendering.
    return (
        f'<li class="release"><h3>{escape(release["version"])} <span>{release["channel"]}</span> '
        f'<time datetime="{release["published_at"] or ""}">{published_day}</time></h3>{yanked}'
        f'<p class="prose written">{escape(release.get("notes") or "")}</p><ul>{files}</ul></li>'
    )


def _meta(product: Mapping[str, Any], url: str, store: str, root_url: str) -> str:
    text = product.get("summary") or product.get("description") or ""
    feed = f"{API}/products/{quote(product['slug'])}/feed"
    picture = _own_picture(product, root_url) or _drawn_picture(
        root_url, f"/products/{quote(product['slug'])}", store_social_images.of_product(product, store)
    )
    description = _described(product["title"], text, url, store, picture)
    return f'<link rel="alternate" type="application/atom+xml" href="{feed}">{description}'


class _Picture(NamedTuple):
    """The picture of a page for link previews: its absolute address, what it shows in words, and, if it is drawn for
    link previews, its width and height in pixels."""

    url: str
    alt: str
    size: tuple[int, int] | None = None


def _described(title: str, text: str, url: str, store: str, picture: _Picture) -> str:
    """What search engines and link previews show of a page. The addresses are absolute."""
    properties = {
        "og:type": "website",
        "og:site_name": store,
        "og:title": title,
        "og:description": text,
        "og:url": url,
        "og:image": picture.url,
        "og:image:alt": picture.alt,
    }
    if picture.size is not None:
        width, height = picture.size
        properties |= {"og:image:type": social_images.PNG, "og:image:width": str(width), "og:image:height": str(height)}
    tags = "".join(f'<meta property="{name}" content="{escape(value)}">' for name, value in properties.items())
    card = '<meta name="twitter:card" content="summary_large_image">'
    return (
        f'<link rel="canonical" href="{escape(url)}"><meta name="description" content="{escape(text)}">{tags}{card}'
    )


def _own_picture(product: Mapping[str, Any], root_url: str) -> _Picture | None:
    """The largest WebP copy of the product's own cover, or None. Most link previews show neither AVIF nor the SVG of a
    placeholder cover."""
    copies = [copy for copy in product["cover"]["srcset"] if copy["type"] == "image/webp"]
    if not copies:
        return None
    largest_copy = max(copies, key=lambda copy: copy["width"])
    return _Picture(f"{root_url}{largest_copy['url']}", product["cover"]["alt"] or product["title"])


def _publisher_picture(
    publisher: Mapping[str, Any], in_banner: Sequence[Mapping[str, Any]], store: str, root_url: str
) -> _Picture:
    """The cover of one of the publisher's products, or else a drawn picture."""
    own_pictures = [_own_picture(product, root_url) for product in in_banner]
    drawn = store_social_images.of_publisher(publisher, store)
    drawn_picture = _drawn_picture(root_url, f"/publishers/{quote(publisher['slug'])}", drawn)
    return next((picture for picture in own_pictures if picture is not None), drawn_picture)


def _drawn_picture(root_url: str, path: str, image: SocialImage) -> _Picture:
    """The picture that is drawn for the page at the path."""
    url = f"{root_url}{store_social_images.path_of(path, image)}"
    return _Picture(url, image.title, (social_images.WIDTH, social_images.HEIGHT))


def _linked_data(product: Mapping[str, Any], releases: Sequence[Mapping[str, Any]], url: str) -> str:
    """Structured data for search engines (schema.org, SoftwareApplication)."""
    newest_release = next((release for release in releases if release["published_at"]), None)
    data = {
        "@context": "https://schema.org",
        "@type": ["SoftwareApplication", CATEGORIES.get(product["kind"], "WebApplication")],
        "name": product["title"],
        "description": product.get("description") or "",
        "url": url,
        "operatingSystem": ", ".join(product["platforms"]),
        "isAccessibleForFree": product["access"] == "free",
        "license": product["license"],
        "softwareVersion": newest_release and newest_release["version"],
        "datePublished": newest_release and newest_release["published_at"],
        "image": [media_file["url"] for media_file in product["media"]],
    }
    filled_data = {name: value for name, value in data.items() if value not in (None, [], "")}
    return f'<script type="application/ld+json">{_json(filled_data)}</script>'


def _data(replies: Mapping[str, object]) -> str:
    """The responses of the API, so that the script need not request them again."""
    return f'<script type="application/json" id="replies">{_json(replies)}</script>'


def _json(value: object) -> str:
    """Encode the value as JSON that cannot end its script element. Browsers do not execute these elements."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
