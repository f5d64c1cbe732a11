"""The HTML document of a page: the assets it loads, its security headers, and the content before scripts run."""

from html import escape
from typing import NamedTuple

from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.web.assets import LANGUAGES, EntryAssets
from countersign.web.origin import cookie

HTML = "text/html; charset=utf-8"
THEMES = ("light", "dark")
LANGUAGE_COOKIE, THEME_COOKIE = "countersign-language", "countersign-theme"
# Scripts and styles are files with a hash in their name, never inline. Trusted Types keep text from becoming code.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "object-src 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "geolocation=(), microphone=(), payment=()"),
    ("Cache-Control", "private, no-cache"),
    ("Vary", "Cookie, Accept, Accept-Language"),
)


class RenderedPage(NamedTuple):
    """A page rendered on the server: its title, additional HTML of its head, the HTML of its body, and its status."""

    title: str
    head: str = ""
    body: str = ""
    status: int = 200


def page(assets: EntryAssets, rendered_page: RenderedPage, headers: Headers) -> Response:
    """The HTML document, in the language and theme of the visitor."""
    theme = cookie(headers, THEME_COOKIE)
    theme_attribute = f' data-theme="{theme}"' if theme in THEMES else ""
    links = "".join(f'<link rel="stylesheet" href="{style}">' for style in assets.styles)
    links += "".join(f'<link rel="modulepreload" href="{preload}">' for preload in assets.preloads)
    if assets.font:
        links += f'<link rel="preload" as="font" type="font/woff2" href="{assets.font}" crossorigin>'
    if assets.icon:
        links += f'<link rel="icon" type="image/svg+xml" href="{assets.icon}">'
    page_language = language(headers)
    scripts = f'<script type="module" src="{assets.script}"></script>'
    if page_language in assets.messages:
        # Deferred scripts and modules run in document order: the texts are set before the app starts.
        scripts = f'<script defer src="{assets.messages[page_language]}"></script>{scripts}'
    text = (
        f'<!doctype html><html lang="{page_language}"{theme_attribute}><head><meta charset="utf-8">'
        f"<title>{escape(rendered_page.title)}</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{links}{rendered_page.head}'
        f"{scripts}</head>"
        f'<body><div id="app">{rendered_page.body}</div></body></html>'
    )
    return Response(rendered_page.status, text.encode(), HTML, HEADERS)


def language(headers: Headers) -> str:
    """Return the language that the visitor chose on a page, or else the first of the browser's languages that is
    supported."""
    chosen_language = cookie(headers, LANGUAGE_COOKIE)
    if chosen_language in LANGUAGES:
        return chosen_language
    for preference in (headers.get("accept-language") or "").split(","):
        preferred_language = preference.split(";")[0].strip().lower().partition("-")[0]
        if preferred_language in LANGUAGES:
            return preferred_language
    return LANGUAGES[0]
