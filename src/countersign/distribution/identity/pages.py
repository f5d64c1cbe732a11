"""The sign-in and set-up pages: plain HTML forms that work without scripts."""

from html import escape

from countersign.kernel.http.answer import Answer

HTML = "text/html; charset=utf-8"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:4rem auto;padding:0 1rem;color:#1b1f24}"
    "label{display:block;margin:1rem 0 .25rem}input{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}"
    "button{margin-top:1.5rem;padding:.6rem 1.2rem;font:inherit}p.error{color:#a40e26}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_HEADERS = (
    ("Content-Security-Policy", _POLICY),
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cache-Control", "no-store"),
)


def sign_in(return_to: str, error: str = "", status: int = 200) -> Answer:
    """The form for e-mail and password."""
    fields = (
        f'<input type="hidden" name="return_to" value="{escape(return_to)}">'
        + _field("email", "E-mail", "email", "username")
        + _field("password", "Password", "password", "current-password")
    )
    return _page("Sign in", fields, "Sign in", error, status)


def set_up(token: str, error: str = "", status: int = 200) -> Answer:
    """The form that makes the first organisation and its owner."""
    fields = (
        f'<input type="hidden" name="token" value="{escape(token)}">'
        + _field("slug", "Organisation (a-z, 0-9, -)", "text", "organization")
        + _field("name", "Organisation's name", "text", "organization")
        + _field("email", "Your e-mail", "email", "username")
        + _field("password", "Password, 10 characters or more", "password", "new-password")
    )
    return _page("Set up Countersign", fields, "Create", error, status)


def message(title: str, text: str, status: int = 200) -> Answer:
    """A page that says one thing."""
    return _document(title, f"<p>{escape(text)}</p>", status)


def _field(name: str, label: str, kind: str, autocomplete: str) -> str:
    return (
        f'<label for="{name}">{escape(label)}</label>'
        f'<input id="{name}" name="{name}" type="{kind}" autocomplete="{autocomplete}" required>'
    )


def _page(title: str, fields: str, action: str, error: str, status: int) -> Answer:
    shown = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    return _document(title, f'{shown}<form method="post">{fields}<button>{escape(action)}</button></form>', status)


def _document(title: str, body: str, status: int) -> Answer:
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Countersign</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return Answer(status, text.encode(), HTML, _HEADERS)
