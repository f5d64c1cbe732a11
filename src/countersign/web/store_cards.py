"""Renders cards, shelves and the large product of the store's pages as HTML for the first view. The script renders them
again with facts that only the browser has: which products are new to the visitor, and which the visitor owns."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

PLATFORMS = {"windows": "Windows", "macos": "macOS", "linux": "Linux", "android": "Android", "ios": "iOS", "web": "Web"}
MONOGRAM_COLOURS = 6
MAX_IN_BANNER, MAX_COLUMNS = 5, 5
FIRST_CARDS = 10
"""The number of cards whose covers are loaded at once. Other covers are loaded when they are scrolled into view."""

MIN_LEAD_LENGTH = 20
"""The minimum length of the sentence below a product's title, without its last character."""
_SENTENCE_END = re.compile(r"[.!?] +")


def lead_of(summary: str) -> tuple[str, str]:
    """Return the first sentence of a summary, which is shown below the title, and the rest, which is shown above the
    description. The script splits summaries in the same way."""
    for end in _SENTENCE_END.finditer(summary, MIN_LEAD_LENGTH):
        if summary[end.end() : end.end() + 1].isupper():
            return summary[: end.start() + 1], summary[end.end() :]
    return summary, ""


def card(product: Mapping[str, Any], texts: Mapping[str, str], level: int, *, is_first: bool) -> str:
    """Return a product as a card. `level` is the level of its heading."""
    access = f'<span class="access free">{texts["free"]}</span>'
    if product["access"] != "free":
        access = f'<span class="access">{texts["entitled"]}</span>'
    return (
        f'<li class="card"><div class="cover">{image(product, is_first=is_first)}</div>'
        f'<h{level}><a class="cut" href="/products/{quote(product["slug"])}">{escape(product["title"])}</a></h{level}>'
        f'<p class="by cut">{escape(product["publisher"]["name"])}</p>'
        f'<p class="meta"><span class="hidden-text">{platforms(product)}</span><span></span>{access}</p></li>'
    )


def cards(products: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> str:
    """Return the products of a list as cards."""
    return "".join(card(product, texts, 2, is_first=index < FIRST_CARDS) for index, product in enumerate(products))


def shelf(title: str, query: str, products: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> str:
    """Return a row of products with its heading."""
    cards_html = "".join(card(product, texts, 3, is_first=True) for product in products)
    return (
        f'<section class="shelf"><div class="shelf-head"><h2>{title}</h2>'
        f'<a class="right" href="/browse?{escape(query)}">{texts["all"]}</a></div>'
        f'<div class="shelf-frame"><ul class="shelf-row">{cards_html}</ul></div></section>'
    )


def hero(products: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> str:
    """Return the first product as a large card, and all products as a queue beside it."""
    first_product = products[0]
    cover = first_product["cover"]
    turned_class = " turned" if cover["placeholder"] and cover["focus"] == "left" else ""
    summary = f"<p>{escape(lead_of(first_product['summary'])[0])}</p>" if first_product["summary"] else ""
    queue = "".join(
        f'<li><button type="button"{" aria-current=true" if index == 0 else ""}>{image(product, is_first=True)}'
        f'<span class="grow"><span class="name">{escape(product["title"])}</span></span></button></li>'
        for index, product in enumerate(products)
    )
    return (
        f'<section class="hero"><article class="feature{turned_class}">{image(first_product, is_first=True)}'
        f'<div class="feature-text"><p class="eyebrow">{escape(first_product["publisher"]["name"])}</p>'
        f"<h2>{escape(first_product['title'])}</h2>{summary}"
        '<div class="row"><a class="button large light" '
        f'href="/products/{quote(first_product["slug"])}">{texts["view"]}</a>'
        f'</div></div></article><ul class="queue">{queue}</ul></section>'
    )


def image(product: Mapping[str, Any], *, is_first: bool) -> str:
    """Return the cover of a product. It has no alternative text, because the title of the product is beside it."""
    lazy = "" if is_first else ' loading="lazy"'
    return f'<img src="{escape(product["cover"]["url"])}" alt="" width="640" height="360"{lazy}>'


def in_banner(products: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the first products whose covers have different colours. Their covers are the banner of a publisher's
    page."""
    by_colour: dict[str, Mapping[str, Any]] = {}
    for product in products:
        by_colour.setdefault(product["cover"]["color"], product)
    return list(by_colour.values())[:MAX_IN_BANNER]


def columns(count: int) -> str:
    """Return the CSS class for four columns if they fill the last row of cards better than five columns."""
    return " four" if count > MAX_COLUMNS and (count - 1) % 4 / 4 > (count - 1) % 5 / 5 else ""


def monogram(slug: str, name: str) -> str:
    """Return the first letter of a publisher's name on the colour that the script computes as well."""
    number = 0
    for letter in slug:
        number = (number * 131 + ord(letter)) & 0xFFFFFFFF
    colour, letter = (number >> 8) % MONOGRAM_COLOURS, escape(name[:1].upper())
    return f'<span class="monogram xl m{colour}" data-letters="{letter}"></span>'


def preload(product: Mapping[str, Any]) -> str:
    """Return the preload link for a cover that is visible at once."""
    return f'<link rel="preload" as="image" fetchpriority="high" href="{escape(product["cover"]["url"])}">'


def platforms(product: Mapping[str, Any]) -> str:
    """The names of the platforms of a product."""
    return escape(", ".join(PLATFORMS[platform] for platform in product["platforms"]))
