"""Pages that are one plain HTML form or one message: they work without scripts and load nothing."""

from collections.abc import Sequence
from html import escape

from countersign.kernel.http.answer import Answer

HTML = "text/html; charset=utf-8"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:4rem auto;padding:0 1rem;color:#1b1f24}"
    "label{display:block;margin:1rem 0 .25rem}input{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}"
    "button{margin-top:1.5rem;padding:.6rem 1.2rem;font:inherit}p.error{color:#a40e26}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
_HEADERS = (
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cache-Control", "no-store"),
)


def field(name: str, label: str, kind: str, autocomplete: str, value: str = "") -> str:
    """A required input with its label; `kind` is its HTML type."""
    filled = f' value="{escape(value)}"' if value else ""
    return (
        f'<label for="{name}">{escape(label)}</label>'
        f'<input id="{name}" name="{name}" type="{kind}" autocomplete="{autocomplete}"{filled} required>'
    )


def hidden(name: str, value: str) -> str:
    """An input that is sent and not shown."""
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def form(title: str, fields: str, action: str, error: str = "", status: int = 200) -> Answer:
    """A page with one form that posts to its own address; `action` stands on its button."""
    shown = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    return page(title, f'{shown}<form method="post">{fields}<button>{escape(action)}</button></form>', status)


def message(title: str, text: str, status: int = 200) -> Answer:
    """A page that says one thing."""
    return page(title, f"<p>{escape(text)}</p>", status)


def onward(title: str, text: str, target: str) -> Answer:
    """A page that leads to an address of this service by itself, and by a link."""
    head = f'<meta http-equiv="refresh" content="0; url={escape(target)}">'
    return page(title, f'<p>{escape(text)}</p><p><a href="{escape(target)}">Continue</a></p>', head=head)


def page(title: str, body: str, status: int = 200, *, head: str = "", sends_to: Sequence[str] = ()) -> Answer:
    """A page with this body, which is HTML. `sends_to` are the origins a form's answer may send the browser on to."""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Countersign</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style>{head}</head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    policy = ("Content-Security-Policy", " ".join((_POLICY, *sends_to)))
    return Answer(status, text.encode(), HTML, (policy, *_HEADERS))
