"""Plain HTML pages, in English and German, that work without scripts and load nothing: a form, a message, a redirect.

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
:root{color-scheme:light dark;--ground:#f3f5f1;--card:#fff;--text:#13211d;--quiet:#4a5a55;--line:#71807a;--edge:#dce3df;
--accent:#0b5a4b;--strong:#073f34;--on-accent:#fff;--soft:#e1efea;--signature:#a85f06;--signed:#f6c276;--bad:#9d152a;
--bad-soft:#fcebed}
@media (prefers-color-scheme:dark){:root{--ground:#0d1412;--card:#141d1a;--text:#e7eeeb;--quiet:#a6b5af;--line:#74847d;
--edge:#27332f;--accent:#82d6c0;--strong:#abe8d8;--on-accent:#04211b;--soft:#15322b;--signature:#f3b664;--signed:#7a4300;
--bad:#ffb3bb;--bad-soft:#391a20}}
*,::before,::after{box-sizing:border-box}
body{margin:0;min-height:100vh;padding:clamp(1rem,6vh,5rem) 1rem;background:var(--ground);color:var(--text);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;overflow-wrap:anywhere}
h1,h2,.brand{font-family:ui-serif,"Iowan Old Style",Palatino,"Palatino Linotype","URW Palladio L",P052,Georgia,serif;
font-weight:600;letter-spacing:-.01em;text-wrap:balance}
main{max-width:27rem;margin:0 auto;padding:clamp(1.25rem,5vw,2.25rem);background:var(--card);
border:1px solid var(--edge);border-radius:.875rem}
.brand{display:flex;align-items:center;gap:.5rem;max-width:27rem;margin:0 auto 1rem;font-size:1.125rem;line-height:1}
.brand svg{width:1.75rem;height:1.75rem}
h1{margin:0 0 1rem;font-size:1.75rem;line-height:1.2}
h1::after{content:"";display:block;width:3.25rem;height:2px;margin-top:.75rem;background:var(--signature)}
p{margin:.5rem 0;text-wrap:pretty}.intro{color:var(--quiet)}code{font:.875em ui-monospace,Menlo,Consolas,monospace}
label{display:block;margin:1.1rem 0 .35rem;font-weight:550}
input{width:100%;padding:.65rem .75rem;font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);
border-radius:.5rem}
input:hover{border-color:var(--accent)}input[readonly]{background:var(--ground)}
button{position:relative;width:100%;margin-top:1.6rem;padding:.65rem 1rem .95rem;font:inherit;font-weight:550;
color:var(--on-accent);background:var(--accent);border:1px solid transparent;border-radius:.5rem;cursor:pointer}
button::after{content:"";position:absolute;left:1rem;right:1rem;bottom:.45rem;height:2px;border-radius:1px;
background:var(--signed);transform:scaleX(.28);transform-origin:left;transition:transform .32s ease-out}
button:hover::after,button:focus-visible::after{transform:none}button:hover{background:var(--strong)}
a{color:var(--accent);text-decoration-thickness:1px;text-underline-offset:.18em}a:hover{color:var(--strong)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.error{margin:1rem 0 0;padding:.7rem .85rem;color:var(--bad);background:var(--bad-soft);border-left:4px solid;
border-radius:0 .5rem .5rem 0}
dl{margin:1rem 0}dt{font-size:.8125rem;color:var(--quiet)}dd{margin:0 0 .6rem}ul{margin:.5rem 0;padding-left:1.25rem}
.choice{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.6rem}.choice button{flex:1;margin:0}
button.other{padding:.65rem 1rem;color:var(--accent);background:var(--card);border-color:var(--line)}
button.other::after{content:none}
button.other:hover{background:var(--soft);color:var(--strong)}form+p{margin-top:1.25rem;color:var(--quiet)}
output{display:block;margin:1.25rem 0;padding:.75rem;font:600 2rem/1.2 ui-monospace,monospace;letter-spacing:.2em;
text-indent:.2em;text-align:center;background:var(--ground);border-radius:.5rem}
.entries{margin:1.25rem 0 0;padding:0;list-style:none}.entries>li{padding:1.1rem 0;border-top:1px solid var(--edge)}
.entries>li:last-child{padding-bottom:0}.entries button{margin-top:.75rem;padding:.5rem 1rem}
h2{margin:0;font-size:1.1875rem;line-height:1.3}.facts{font-size:.8125rem;color:var(--quiet)}
nav{margin-top:1.6rem;padding-top:1.1rem;border-top:1px solid var(--edge)}
nav ul{display:flex;flex-wrap:wrap;gap:.5rem 1.5rem;margin:0;padding:0;list-style:none}
nav a{display:inline-block;padding:.15rem 0}
@media (prefers-reduced-motion:reduce){button::after{transition:none}}
""".replace("\n", "")
_MARK = (
    '<svg viewBox="0 0 32 32" aria-hidden="true" fill="none" stroke-linecap="round" stroke-linejoin="round">'
    '<g stroke="var(--signature)" stroke-width="2.2"><path d="M4 13l4.5 4.5M8.5 13L4 17.5"/>'
    '<path d="M11 19.5c3-1 5.5-13 8-12.5s-3 10.5-.5 11 3.5-5.5 5-5 .5 4.5 4 4"/></g>'
    '<path d="M3 24h26" stroke="currentColor" stroke-width="2"/></svg>'
)
# The policy allows the style by its hash, so that no other style can be injected into the page.
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    # `form-action` must be last: `page` appends further origins.
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
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
    """The text in the language of the page, with its `{names}` replaced by the values."""
    words = GERMAN.get(text) if LANGUAGE.get() == "de" else None
    if words is None:
        return text.format(**values) if values else text
    return _GermanText(words.format(**values) if values else words)


def field(name: str, label: str, kind: str, autocomplete: str, value: str = "") -> str:
    """A required input with its label; `kind` is its HTML type."""
    filled = f' value="{escape(value)}"' if value else ""
    return (
        f'<label for="{name}">{escape(translate(label))}</label>'
        f'<input id="{name}" name="{name}" type="{kind}" autocomplete="{autocomplete}"{filled} required>'
    )


def readonly_field(name: str, label: str, autocomplete: str, value: str) -> str:
    """A read-only input for people and password managers, which is not submitted."""
    return (
        f'<label for="{name}">{escape(translate(label))}</label>'
        f'<input id="{name}" autocomplete="{autocomplete}" value="{escape(value)}" readonly>'
    )


def hidden_field(name: str, value: str) -> str:
    """A hidden input."""
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def time_element(instant: Instant) -> str:
    """A time element: the time to the minute, with its exact value as an attribute."""
    text = clock.rfc3339(instant)
    return f'<time datetime="{text}">{text[:16].replace("T", " ")} UTC</time>'


def form_page(
    title: str, fields: str, action: str, error: str = "", status: int = 200, *, intro: str = "", links: Links = ()
) -> Response:
    """A page with one form that posts to its own address; `action` is the label of its button, `intro` precedes the
    fields, `links` follow them. The first empty field has the focus."""
    told = f'<p class="error" role="alert">{escape(translate(_capitalized(error)))}</p>' if error else ""
    begun = f'<p class="intro">{escape(translate(intro))}</p>' if intro else ""
    fields = _FIRST_EMPTY.sub(r"\1 autofocus required>", fields, count=1)
    button = f"<button>{escape(translate(action))}</button>"
    body = f'{begun}{told}<form method="post">{fields}{button}</form>{link_list(links)}'
    # Name the error in the title, so that screen readers announce it first.
    return page(title, body, status, prefix=translate("Error: ") if error else "")


def message_page(title: str, text: str, status: int = 200, *, links: Links = ()) -> Response:
    """A page with a message, with a paragraph for each line of `text`."""
    paragraphs = "".join(f"<p>{escape(translate(line))}</p>" for line in text.split("\n") if line)
    return page(title, paragraphs + link_list(links), status)


def refusal_page(refused: Refused) -> Response:
    """A refusal as a page: the error and the remedy."""
    answer = problem_page(
        refused.status, refused.title, refused.detail, refused.remedy, refused.headers.get("Retry-After")
    )
    answer.headers = (*answer.headers, *refused.headers.items())
    return answer


def problem_page(status: int, title: str, detail: str, remedy: str, wait_s: str | None) -> Response:
    """A problem as a page; `wait_s` is the value of the header Retry-After."""
    shown = f'<p role="alert">{escape(translate(_capitalized(detail)).removesuffix("."))}.</p>' if detail else ""
    if wait_s is not None and wait_s.isdecimal():
        remedy = _wait(int(wait_s))
    if remedy:
        shown += f"<p>{escape(remedy)}</p>"
    return page(title or "Refused", shown, status)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wait(seconds: int) -> str:
    if seconds < 120:
        return translate("Try again in {n} seconds.", n=str(seconds))
    return translate("Try again in {n} minutes.", n=str(-(-seconds // 60)))


def redirect_page(title: str, text: str, target: str) -> Response:
    """A page that redirects to an address of this service. It also shows the address as a link."""
    head = f'<meta http-equiv="refresh" content="0; url={escape(target)}">'
    body = f'<p>{escape(translate(text))}</p><p><a href="{escape(target)}">{escape(translate("Continue"))}</a></p>'
    return page(title, body, head=head)


def link_list(links: Links) -> str:
    """Return the links at the end of a page as HTML, or an empty text if there are no links."""
    items = "".join(f'<li><a href="{escape(address)}">{escape(translate(words))}</a></li>' for words, address in links)
    return f'<nav aria-label="{escape(translate("More"))}"><ul>{items}</ul></nav>' if items else ""


def page(
    title: str, body: str, status: int = 200, *, head: str = "", sends_to: Sequence[str] = (), prefix: str = ""
) -> Response:
    """A page with this HTML body. `sends_to` are the origins that the response to a form may redirect to; `prefix`
    precedes the title in the window's title, not on the page."""
    policy = ("Content-Security-Policy", " ".join((_POLICY, *sends_to)))
    return Response(status, render_page(title, body, head=head, prefix=prefix), HTML, (policy, *_HEADERS))


def render_page(title: str, body: str, *, head: str = "", prefix: str = "") -> bytes:
    """The text of a page with this body, which is HTML."""
    title = translate(title)
    spoken = "de" if isinstance(title, _GermanText) else "en"
    text = (
        f'<!doctype html><html lang="{spoken}"><head><meta charset="utf-8">'
        f"<title>{prefix}{escape(title)} · Countersign</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{_STYLE}</style>{head}</head>'
        f'<body><header class="brand">{_MARK}Countersign</header>'
        f"<main><h1>{escape(title)}</h1>{body}</main></body></html>"
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
    """The object in the requested format, not cacheable."""
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


def _lines(members: dict[str, object], written: Callable[[object], str]) -> bytes:
    return "".join(f"{name}: {written(member)}\n" for name, member in members.items()).encode()


def _plain(member: object) -> str:
    """A member as text: strings unchanged, other values as JSON."""
    return member if isinstance(member, str) else _scalar(member)


def _scalar(member: object) -> str:
    """A member as YAML; every JSON value is also a YAML value (YAML 1.2 §1.3)."""
    return response.encode(member).decode()
