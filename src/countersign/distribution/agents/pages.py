"""The claim page: what an agent asks for, who asked, and the person's decision; it works without scripts."""

from html import escape
from typing import NamedTuple

from countersign.distribution.agents.claim import WrongAccount
from countersign.distribution.agents.registrations import Registration
from countersign.distribution.identity import return_to, scopes
from countersign.kernel.http import html
from countersign.kernel.http.response import Response

_CODE_FIELD = (
    '<label for="user_code">The code your agent shows you</label>'
    '<input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" '
    'spellcheck="false" placeholder="XXXX-XXXX" maxlength="20">'
)
_DIGITS_COME = "<p>After you allow it, this page shows six digits to give to your agent.</p>"
_CONNECTED = ("Your connected agents", "/auth/agents")


class Advice(NamedTuple):
    """What should make a person look twice."""

    is_first_agent: bool
    is_first_provider: bool


def decision(
    registration: Registration,
    email: str,
    csrf: str,
    *,
    asks_for_code: bool,
    provider: str,
    advice: Advice,
    not_held: frozenset[str],
    store: str,
    error: str = "",
) -> Response:
    """The page on which a person takes an agent as theirs, or declines. Of an agent that asks for scopes that the
    person does not hold, it only offers to tell the agent so."""
    shown = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    asked = in_words(registration.scopes)
    field, confirm = _CODE_FIELD if asks_for_code else _DIGITS_COME, "Allow"
    if not_held:
        field, confirm = _cannot_allow(not_held), "Tell the agent to ask for less"
    body = (
        f"<p>An agent wants to act for you at {escape(store)}. "
        "<strong>Allow it only if you started this yourself, just now.</strong> Nobody from here will ever ask you "
        "to type a code that reached you by mail, chat or telephone.</p>"
        f"{_who(registration, email, provider)}{_firsts(advice, provider)}<p>It asks to:</p>{asked}"
        f'<form method="post">{html.hidden_field("csrf", csrf)}{shown}{field}'
        '<div class="choice"><button name="confirm" value="yes">' + confirm + "</button>"
        '<button name="decline" value="yes">Decline</button></div></form>'
        '<p>You can disconnect it at any time on <a href="/auth/agents">the page of your connected agents</a>.</p>'
    )
    return _unreferred(html.page("Allow this agent?", body, 400 if error else 200, prefix="Error: " if error else ""))


def in_words(held: frozenset[str]) -> str:
    """A list of what the scopes allow, in words."""
    return "<ul>" + "".join(f"<li>{escape(scopes.MEANING[each])}</li>" for each in scopes.ALL if each in held) + "</ul>"


def _cannot_allow(not_held: frozenset[str]) -> str:
    return (
        f"<p><strong>You cannot allow it:</strong> your account may not do this itself:</p>{in_words(not_held)}"
        "<p>An owner of your organisation can make you a publisher. Or the agent asks for less.</p>"
    )


def _who(registration: Registration, email: str, provider: str) -> str:
    rows = [
        ("Your account", escape(email)),
        ("The agent calls itself", escape(registration.agent)),
        ("It asked at", html.time_element(registration.created_at)),
        ("From the address", escape(registration.address or "a server")),
        ("Asserted by", escape(provider)),
    ]
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in rows if text)}</dl>"


def _firsts(advice: Advice, provider: str) -> str:
    told = ""
    if advice.is_first_agent:
        told += "<p><strong>You have let no agent in with this account so far.</strong></p>"
    if advice.is_first_provider:
        told += f"<p><strong>{escape(provider)} speaks for you here for the first time.</strong></p>"
    return told


def digits(code: str) -> Response:
    """The code the person reads to the agent."""
    body = (
        "<p>Give this code to your agent. It works once, for a few minutes.</p>"
        f'<p class="code"><output>{escape(code)}</output></p>'
        "<p>Nobody else needs it: do not tell it to anyone who asks for it.</p>"
    )
    return _unreferred(html.page("Your code", body, 200))


def _unreferred(answer: Response) -> Response:
    """The page's own address, which holds the attempt's token, is told to nobody, ourselves included."""
    others = tuple(pair for pair in answer.headers if pair[0] != "Referrer-Policy")
    answer.headers = (*others, ("Referrer-Policy", "no-referrer"))
    return answer


def asks_for_too_much() -> Response:
    """The answer to a person who cannot allow the agent: the next poll tells the agent why."""
    text = "Nothing was connected. The agent learns that your account may not do what it asks for."
    return html.message_page("Not connected", text, 400, links=(_CONNECTED,))


def allowed() -> Response:
    """The agent is connected."""
    return html.message_page(
        "Connected", "The agent can act for you now. You may close this page.", links=(_CONNECTED,)
    )


def declined() -> Response:
    """The agent was turned away."""
    return html.message_page("Declined", "The agent was turned away. You may close this page.", links=(_CONNECTED,))


def another_account(refused: WrongAccount, email: str, target: str) -> Response:
    """Who came is not whom the agent named; signing in as somebody else leads back to `target`."""
    text = (
        f"The agent asked somebody else than {email}, as whom you are signed in.\nIf you did not start it, let it be."
    )
    links = (("Sign in with another account", return_to.through("/auth/signin", target)),)
    return html.message_page(refused.title, text, refused.status, links=links)
