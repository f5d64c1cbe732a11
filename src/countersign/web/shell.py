"""The HTML around a page: what it loads, what it may do, and what is there before a script runs."""

from html import escape
from typing import NamedTuple

from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.web.assets import Parts
from countersign.web.origin import cookie

HTML = "text/html; charset=utf-8"
LANGUAGES = ("en", "de")
THEMES = ("light", "dark")
LANGUAGE_COOKIE, THEME_COOKIE = "countersign-language", "countersign-theme"
# Scripts and styles are files of ours with a hash in their name: nothing is written into the page. Text never becomes
# code either, since no way to make it so can be used (Trusted Types).
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


class Rendered(NamedTuple):
    """A page as it is before any script: its title, more of its head, its body (both HTML), and its status."""

    title: str
    head: str = ""
    body: str = ""
    status: int = 200


def page(parts: Parts, rendered: Rendered, headers: Headers) -> Response:
    """The page for whoever sent these headers, in their language and colours."""
    theme = cookie(headers, THEME_COOKIE)
    themed = f' data-theme="{theme}"' if theme in THEMES else ""
    loaded = "".join(f'<link rel="stylesheet" href="{each}">' for each in parts.styles)
    loaded += "".join(f'<link rel="modulepreload" href="{each}">' for each in parts.preloads)
    if parts.icon:
        loaded += f'<link rel="icon" type="image/svg+xml" href="{parts.icon}">'
    text = (
        f'<!doctype html><html lang="{language(headers)}"{themed}><head><meta charset="utf-8">'
        f"<title>{escape(rendered.title)}</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{loaded}{rendered.head}'
        f'<script type="module" src="{parts.script}"></script></head>'
        f'<body><div id="app">{rendered.body}</div></body></html>'
    )
    return Response(rendered.status, text.encode(), HTML, HEADERS)


def language(headers: Headers) -> str:
    """The language that was chosen on a page, else the first of the browser's that there are words for."""
    chosen = cookie(headers, LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen
    for each in (headers.get("accept-language") or "").split(","):
        found = each.split(";")[0].strip().lower().partition("-")[0]
        if found in LANGUAGES:
            return found
    return LANGUAGES[0]
