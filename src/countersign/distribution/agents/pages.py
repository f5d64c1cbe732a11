"""The claim page: what an agent asks for, who asked, and the person's decision; it works without scripts."""

from html import escape

from countersign.distribution.agents.registrations import Registration
from countersign.distribution.identity import scopes
from countersign.kernel import clock
from countersign.kernel.http import forms
from countersign.kernel.http.answer import Answer


def decision(
    registration: Registration,
    email: str,
    csrf: str,
    *,
    asks_for_code: bool,
    provider: str,
    store: str,
    error: str = "",
) -> Answer:
    """The page on which a person takes an agent as theirs, or declines."""
    rows = [
        ("Your account", email),
        ("The agent calls itself", registration.agent),
        ("It asked at", clock.rfc3339(registration.created_at)),
        ("From the address", registration.address or "a server"),
    ]
    if provider:
        rows.append(("Asserted by", provider))
    asked = "".join(f"<li>{escape(scopes.MEANING[scope])}</li>" for scope in scopes.ALL if scope in registration.scopes)
    field = (
        '<label for="user_code">The code your agent shows you</label>'
        '<input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" '
        'spellcheck="false" placeholder="XXXX-XXXX" maxlength="20">'
        if asks_for_code
        else "<p>After you allow it, this page shows six digits to give to your agent.</p>"
    )
    shown = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    body = (
        f"{shown}<p>An agent wants to act for you at {escape(store)}. "
        "<strong>Allow it only if you started this yourself, just now.</strong> Nobody from here will ever ask you "
        "to type a code that reached you by mail, chat or telephone.</p>"
        f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in rows)}</dl>"
        f"<p>It will be able to:</p><ul>{asked}</ul>"
        f'<form method="post">{forms.hidden("csrf", csrf)}{field}'
        '<div class="choice"><button name="confirm" value="yes">Allow</button>'
        '<button name="decline" value="yes" class="other">Decline</button></div></form>'
        "<p>You can disconnect it at any time on the page of your connected agents.</p>"
    )
    return forms.page("An agent asks", body, 400 if error else 200)


def digits(code: str) -> Answer:
    """The code the person reads to the agent."""
    body = (
        "<p>Give this code to your agent. It works once, for a few minutes.</p>"
        f'<p class="code"><output>{escape(code)}</output></p>'
        "<p>Nobody else needs it: do not tell it to anyone who asks for it.</p>"
    )
    return forms.page("Your code", body, 200)


def allowed() -> Answer:
    """The agent is connected."""
    return forms.message("Connected", "The agent can act for you now. You may close this page.")


def declined() -> Answer:
    """The agent was turned away."""
    return forms.message("Declined", "The agent was turned away. You may close this page.")
