"""Plain HTML pages, in English and German, that work without scripts: a form, a message, a redirect. They load no files
except the font and the decorative pictures beside a form.

This module also renders a struct as JSON, text, HTML or YAML. A page whose title has no German translation is in
English.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from html import escape
from typing import Annotated, TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused
from countersign.kernel.http import response
from countersign.kernel.http.german import GERMAN
from countersign.kernel.http.response import JSON, Response

LANGUAGE: ContextVar[str] = ContextVar("language", default="en")
"""The language of pages: `en` or `de`; texts without a translation are in English."""
_FIRST_EMPTY = re.compile(r'(<input id="\w+" name="\w+" type="\w+" autocomplete="[\w-]+") required>')

HTML = "text/html; charset=utf-8"

Links: TypeAlias = Sequence[tuple[str, str]]
"""Texts and targets of links."""

# These pages load no files, so the colours and fonts of the design tokens (frontend/shared/tokens.css) are repeated.
_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--bg-2:#f6f8f7;--bg-3:#eef1f0;--text:#141b18;--text-2:#45504b;--text-3:#606b66;
--edge:#e3e7e5;--edge-2:#cdd4d1;--line:#7b8581;--accent:#0b6552;--hover:#084f40;--on-accent:#fff;--link:#0a6350;
--under:#9fd3c2;--bad:#b3202a;--bad-soft:#fdeaea}
@media (prefers-color-scheme:dark){:root{--bg:#131716;--bg-2:#0d100f;--bg-3:#1c2120;--text:#eef1f0;--text-2:#b6bfbb;
--text-3:#8f9a95;--edge:#262c2a;--edge-2:#38403d;--line:#6f7b76;--accent:#35bd9b;--hover:#52d0b0;--on-accent:#03211a;
--link:#5ed8b7;--under:#235a4c;--bad:#ff9c98;--bad-soft:#3d1618}}
@font-face{font-family:Geist;src:url(/assets/geist.woff2) format("woff2");font-weight:100 900;font-display:swap}
*,::before,::after{box-sizing:border-box}
body{margin:0;min-height:100vh;padding:clamp(1rem,9vh,6rem) 1rem;background:var(--bg-2);color:var(--text);
font:.875rem/1.5 Geist,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;overflow-wrap:anywhere;
-webkit-font-smoothing:antialiased}
h1,h2{font-weight:620;letter-spacing:-.014em;text-wrap:balance}
main{max-width:25rem;margin:0 auto;padding:clamp(1.25rem,5vw,2rem);background:var(--bg);border:1px solid var(--edge);
border-radius:16px;box-shadow:0 4px 14px rgb(20 27 24/.06)}
.brand{display:flex;align-items:center;justify-content:center;gap:9px;margin:0 auto 1.25rem;font-weight:640;
font-size:1.125rem;line-height:1;letter-spacing:-.02em}
.brand svg{width:1.75rem;height:1.75rem}
h1{margin:0 0 .75rem;font-size:1.5rem;line-height:1.2}
p{margin:.5rem 0;color:var(--text-2);text-wrap:pretty}.intro{color:var(--text-3)}
code{font:.92em ui-monospace,Menlo,Consolas,monospace}
label{display:block;margin:1rem 0 .3rem;font-size:.8125rem;font-weight:540}
input{width:100%;min-height:2.5rem;padding:.4rem .75rem;font:inherit;color:inherit;background:var(--bg);
border:1px solid var(--line);border-radius:6px}
input:hover{border-color:var(--text-3)}input[readonly]{background:var(--bg-3)}
button{width:100%;min-height:2.75rem;margin-top:1.25rem;padding:.4rem 1rem;font:inherit;font-size:1rem;font-weight:540;
color:var(--on-accent);background:var(--accent);border:1px solid transparent;border-radius:8px;cursor:pointer}
button:hover{background:var(--hover)}
a{color:var(--link);text-decoration-thickness:1px;text-decoration-color:var(--under);text-underline-offset:.18em}
a:hover{text-decoration-color:currentcolor}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.error{margin:1rem 0 0;padding:.7rem .85rem;color:var(--bad);background:var(--bad-soft);border-radius:8px}
dl{margin:1rem 0}dt{font-size:.8125rem;color:var(--text-3)}dd{margin:0 0 .6rem}ul{margin:.5rem 0;padding-left:1.25rem}
.choice{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.25rem}.choice button{flex:1;margin:0}
button.other{color:var(--text);background:var(--bg);border-color:var(--edge-2)}
button.other:hover{background:var(--bg-3)}form+p{margin-top:1.25rem;color:var(--text-3)}
output{display:block;margin:1.25rem 0;padding:.75rem;font:600 1.75rem/1.2 ui-monospace,monospace;letter-spacing:.2em;
text-indent:.2em;text-align:center;background:var(--bg-3);border-radius:8px}
.entries{margin:1rem 0 0;padding:0;list-style:none}.entries>li{padding:1rem 0;border-top:1px solid var(--edge)}
.entries>li:last-child{padding-bottom:0}.entries button{min-height:2rem;margin-top:.75rem;font-size:.8125rem}
h2{margin:0;font-size:1rem;line-height:1.3}.facts{font-size:.8125rem;color:var(--text-3)}
nav{margin-top:1.5rem;padding-top:1rem;border-top:1px solid var(--edge)}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:0;padding:0;list-style:none}
nav a{display:inline-block;padding:.2rem 0}
.pictures{display:none}
@media(min-width:901px){
.split{display:grid;grid-template:1fr auto auto 2fr/minmax(28rem,36vw) minmax(0,1fr);padding:0}
.split .brand{grid-area:2/1}.split main{grid-area:3/1;width:25rem}
.pictures{display:grid;grid-area:1/2/-1;grid-template-columns:repeat(3,1fr);gap:16px;align-content:center;
height:100vh;position:sticky;top:0;padding:0 16px;overflow:hidden}
.pictures img{display:block;width:100%;height:auto;aspect-ratio:16/9;object-fit:cover;border-radius:12px}
.pictures :nth-child(3n+2){translate:0 -50%}}
""".replace("\n", "")
_MARK = (
    '<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke-linecap="round">'
    '<rect width="24" height="24" rx="6.5" fill="var(--accent)"/>'
    '<path d="M5.5 14.2c2.4-6.6 4.3-7.7 4.6-5.6.2 1.7-1.3 4.7-.2 5 1.1.3 2-2.8 3.1-2.6.9.2.3'
    ' 2 1.3 2.2.9.2 1.7-.9 4.2-1.5" stroke="var(--on-accent)" stroke-width="1.7"/>'
    '<path d="M5.5 18.2h13" stroke="#ffb84d" stroke-width="1.8"/></svg>'
)
# The policy allows the style by its hash, so that no other style can be injected into the page.
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    # `form-action` must be last: `page` appends further origins.
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'"
)
POLICY = ("Content-Security-Policy", _POLICY)
"""The Content-Security-Policy header for pages that are made by `render_page` and sent by other modules."""

_HEADERS = (
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cache-Control", "no-store"),
)


class _GermanText(str):
    """A translated text."""

    __slots__ = ()


def translate(text: str, **values: str) -> str:
    """Return the text in the language of the page, with its `{names}` replaced by the values."""
    german = GERMAN.get(text) if LANGUAGE.get() == "de" else None
    if german is None:
        return text.format(**values) if values else text
    return _GermanText(german.format(**values) if values else german)


def field(name: str, label: str, kind: str, autocomplete: str, value: str = "") -> str:
    """Return a required input with its label as HTML. `kind` is its HTML type."""
    value_attribute = f' value="{escape(value)}"' if value else ""
    return (
        f'<label for="{name}">{escape(translate(label))}</label>'
        f'<input id="{name}" name="{name}" type="{kind}" autocomplete="{autocomplete}"{value_attribute} required>'
    )


def readonly_field(name: str, label: str, autocomplete: str, value: str) -> str:
    """Return a read-only input as HTML. People and password managers see it, and it is not submitted."""
    return (
        f'<label for="{name}">{escape(translate(label))}</label>'
        f'<input id="{name}" autocomplete="{autocomplete}" value="{escape(value)}" readonly>'
    )


def hidden_field(name: str, value: str) -> str:
    """Return a hidden input as HTML."""
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def time_element(instant: Instant) -> str:
    """Return a time element as HTML. It shows the time to the minute, and an attribute contains the exact time."""
    text = clock.rfc3339(instant)
    return f'<time datetime="{text}">{text[:16].replace("T", " ")} UTC</time>'


def form_page(
    title: str,
    fields: str,
    action: str,
    error: str = "",
    status: int = 200,
    *,
    intro: str = "",
    links: Links = (),
    pictures: Sequence[str] = (),
) -> Response:
    """Return a page with one form that posts to its own address. `action` is the label of its button, `intro` precedes
    the fields, and `links` follow the form. The first empty field has the focus. For `pictures`, see `page`."""
    alert = f'<p class="error" role="alert">{escape(translate(_capitalized(error)))}</p>' if error else ""
    introduction = f'<p class="intro">{escape(translate(intro))}</p>' if intro else ""
    fields = _FIRST_EMPTY.sub(r"\1 autofocus required>", fields, count=1)
    button = f"<button>{escape(translate(action))}</button>"
    body = f'{introduction}{alert}<form method="post">{fields}{button}</form>{link_list(links)}'
    # Name the error in the title, so that screen readers announce it first.
    return page(title, body, status, prefix=translate("Error: ") if error else "", pictures=pictures)


def message_page(
    title: str, text: str, status: int = 200, *, links: Links = (), pictures: Sequence[str] = ()
) -> Response:
    """Return a page with a paragraph for each line of `text`. For `pictures`, see `page`."""
    paragraphs = "".join(f"<p>{escape(translate(line))}</p>" for line in text.split("\n") if line)
    return page(title, paragraphs + link_list(links), status, pictures=pictures)


def refusal_page(refused: Refused) -> Response:
    """Return a page with the error and the remedy of a refusal."""
    answer = problem_page(
        refused.status, refused.title, refused.detail, refused.remedy, refused.headers.get("Retry-After")
    )
    answer.headers = (*answer.headers, *refused.headers.items())
    return answer


def problem_page(status: int, title: str, detail: str, remedy: str, wait_s: str | None) -> Response:
    """Return a page about a problem. `wait_s` is the value of the header Retry-After."""
    paragraphs = f'<p role="alert">{escape(translate(_capitalized(detail)).removesuffix("."))}.</p>' if detail else ""
    if wait_s is not None and wait_s.isdecimal():
        remedy = _wait(int(wait_s))
    if remedy:
        paragraphs += f"<p>{escape(remedy)}</p>"
    return page(title or "Refused", paragraphs, status)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wait(seconds: int) -> str:
    if seconds < 120:
        return translate("Try again in {n} seconds.", n=str(seconds))
    return translate("Try again in {n} minutes.", n=str(-(-seconds // 60)))


def redirect_page(title: str, text: str, target: str) -> Response:
    """Return a page that redirects to an address of this service. The page also contains a link to the address."""
    head = f'<meta http-equiv="refresh" content="0; url={escape(target)}">'
    body = f'<p>{escape(translate(text))}</p><p><a href="{escape(target)}">{escape(translate("Continue"))}</a></p>'
    return page(title, body, head=head)


def link_list(links: Links) -> str:
    """Return the links at the end of a page as HTML, or an empty text if there are no links."""
    items = "".join(f'<li><a href="{escape(address)}">{escape(translate(words))}</a></li>' for words, address in links)
    return f'<nav aria-label="{escape(translate("More"))}"><ul>{items}</ul></nav>' if items else ""


def page(
    title: str,
    body: str,
    status: int = 200,
    *,
    head: str = "",
    sends_to: Sequence[str] = (),
    prefix: str = "",
    pictures: Sequence[str] = (),
) -> Response:
    """Return a page with this HTML body. `sends_to` are the origins that the response to a form may redirect to.
    `prefix` precedes the title in the title of the window, but not on the page. `pictures` are the addresses of
    decorative pictures of this service, which a wide window shows beside the page."""
    image_policy = "img-src 'self'; " if pictures else ""
    policy = ("Content-Security-Policy", " ".join((image_policy + _POLICY, *sends_to)))
    text = render_page(title, body, head=head, prefix=prefix, pictures=pictures)
    return Response(status, text, HTML, (policy, *_HEADERS))


def render_page(title: str, body: str, *, head: str = "", prefix: str = "", pictures: Sequence[str] = ()) -> bytes:
    """Return the bytes of a page with this HTML body."""
    title = translate(title)
    language = "de" if isinstance(title, _GermanText) else "en"
    # A window that is too narrow to show the pictures does not load them, because they are lazy.
    images = "".join(
        f'<img src="{escape(address)}" alt="" width="640" height="360" loading="lazy">' for address in pictures
    )
    # If the policy permits pictures, browsers also request an icon.
    icon = '<link rel="icon" type="image/svg+xml" href="/logo.svg">' if images else ""
    text = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f"<title>{prefix}{escape(title)} · Countersign</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{_STYLE}</style>{icon}{head}</head>'
        f'<body{" class=split" if images else ""}><header class="brand">{_MARK}Countersign</header>'
        f"<main><h1>{escape(title)}</h1>{body}</main>"
        f"{f'<div class=pictures aria-hidden=true>{images}</div>' if images else ''}</body></html>"
    )
    return text.encode()


PLAIN_TEXT = "text/plain; charset=utf-8"
YAML = "application/yaml"

FORMATS = (JSON, "text/plain", "text/html", YAML)
"""The media types that `render_format` can return. Its route lists them in `produces`."""


class FormatQuery(msgspec.Struct, forbid_unknown_fields=True):
    """`format` is json, text, html or yaml; anything else is served as json (decisions 11)."""

    format: Annotated[
        str,
        msgspec.Meta(description="The form of the answer.", examples=["json", "text", "html", "yaml"]),
    ] = "json"


def render_format(value: msgspec.Struct, form: str, status: int = 200) -> Response:
    """Return a response with the object in the requested format. The response must not be cached."""
    members: dict[str, object] = msgspec.to_builtins(value)
    headers = (("Cache-Control", "no-store"),)
    if form == "text":
        return Response(status, _lines(members, _plain), PLAIN_TEXT, headers)
    if form == "yaml":
        return Response(status, _lines(members, _scalar), YAML, headers)
    if form == "html":
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_plain(member))}</dd>" for name, member in members.items())
        return Response(status, render_page("At a glance", f"<dl>{rows}</dl>"), HTML, (POLICY, *headers))
    return response.json(value, status, headers)


def _lines(members: dict[str, object], format_value: Callable[[object], str]) -> bytes:
    return "".join(f"{name}: {format_value(member)}\n" for name, member in members.items()).encode()


def _plain(member: object) -> str:
    """Return a member as text. Strings are unchanged, and other values are JSON."""
    return member if isinstance(member, str) else _scalar(member)


def _scalar(member: object) -> str:
    """Return a member as YAML. JSON values are also YAML values (YAML 1.2 §1.3)."""
    return response.encode(member).decode()
