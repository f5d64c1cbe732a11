"""Sign-up, password reset and the link that both mail: /auth/signup, /auth/reset, /auth/prove."""

from countersign.distribution.accounts import letters, pages, proving
from countersign.distribution.accounts.proving import FirstProof, LinkSpent
from countersign.distribution.accounts.schemas import AskForm, AskQuery, ProveForm, ProveQuery
from countersign.distribution.context import Store
from countersign.distribution.identity import return_to, sessions
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.identity.sessions import ForeignOrigin, InsecureSignIn
from countersign.kernel.http.rate_limit import RateLimited
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Options, Route, route
from countersign.kernel.mail.message import is_address
from countersign.kernel.security import passwords
from countersign.kernel.security.passwords import WeakPassword

NO_ADDRESS = "This is not an e-mail address like name@example.com."

_PAGE: Options = {
    "refusals": (InsecureSignIn,),
    "produces": ("text/html; charset=utf-8", "text/html"),
    "quota": "token",
    "at_root": True,
}
_FORM: Options = {**_PAGE, "refusals": (InsecureSignIn, ForeignOrigin), "form": True}
_SIGNING_IN: Options = {**_FORM, "sends": {303: ("Location", "Set-Cookie")}}


async def show_sign_up(call: StoreRequest[AskQuery, Nothing]) -> Response:
    """Show the sign-up page."""
    sessions.require_secure(call.context)
    return pages.sign_up(return_to.local(call.query.return_to))


async def sign_up(call: StoreRequest[AskQuery, AskForm]) -> Response:
    """Mail a link to open an account, or word that there is one; the answer is the same."""
    _require_own_page(call)
    store, email, onwards = call.context, call.body.email.strip(), return_to.local(call.body.return_to)
    if not is_address(email):
        return pages.sign_up(onwards, NO_ADDRESS, 400, email)
    try:
        await letters.ask_sign_up(store, call.address, email, onwards)
    except RateLimited as refused:
        return _limited(pages.sign_up(onwards, f"{refused.detail}.", refused.status, email), refused)
    return pages.sent_sign_up(onwards, email, is_mailed=bool(store.settings.smtp_url))


async def show_reset(call: StoreRequest[AskQuery, Nothing]) -> Response:
    """Show the page that asks for a new password."""
    sessions.require_secure(call.context)
    return pages.reset(return_to.local(call.query.return_to))


async def reset(call: StoreRequest[AskQuery, AskForm]) -> Response:
    """Mail a link to a new password if anybody has the address; the answer is the same if nobody has."""
    _require_own_page(call)
    store, email, onwards = call.context, call.body.email.strip(), return_to.local(call.body.return_to)
    if not is_address(email):
        return pages.reset(onwards, NO_ADDRESS, 400, email)
    try:
        await letters.ask_reset(store, call.address, email, onwards)
    except RateLimited as refused:
        return _limited(pages.reset(onwards, f"{refused.detail}.", refused.status, email), refused)
    return pages.sent_reset(onwards, email, is_mailed=bool(store.settings.smtp_url))


async def show_prove(call: StoreRequest[ProveQuery, Nothing]) -> Response:
    """Show the page behind a mailed link, and change nothing: programs look at links before people do."""
    sessions.require_secure(call.context)
    try:
        link = await proving.require_unused(call.context, call.query.token)
    except LinkSpent as refused:
        return pages.spent(refused.status)
    return pages.prove(call.query.token, link.email)


async def prove(call: StoreRequest[ProveQuery, ProveForm], first_proof: FirstProof) -> Response:
    """Set the password, spend the link, sign in with a new session, and go on."""
    _require_own_page(call)
    store, token = call.context, call.body.token
    try:
        link = await proving.require_unused(store, token)
        try:
            hashed = await passwords.hash_password(call.body.password, link.email)
        except WeakPassword as refused:
            return pages.prove(token, link.email, f"{refused.detail}. {refused.remedy}", refused.status)
        proven = await proving.prove(store, token, hashed, first_proof)
    except LinkSpent as refused:
        return pages.spent(refused.status)
    # Whoever was signed in on this browser before is not the one who is now.
    await sessions.sign_out(store, call.headers)
    cookie = sessions.set_cookie(store, proven.session)
    return Response(303, headers=(cookie, ("Location", proven.return_to), ("Cache-Control", "no-store")))


def routes(first_proof: FirstProof) -> tuple[Route[Store], ...]:
    """The routes; `first_proof` is called when somebody proves an address for the first time."""

    async def prove_it(call: StoreRequest[ProveQuery, ProveForm]) -> Response:
        """Set the password behind a mailed link, and sign in."""
        return await prove(call, first_proof)

    asked, proved = {200: str, 400: str, 429: str}, {303: None, 400: str, 404: str}
    return (
        route("GET", "/auth/signup", show_sign_up, query=AskQuery, answers={200: str}, **_PAGE),
        route("POST", "/auth/signup", sign_up, query=AskQuery, body=AskForm, answers=asked, **_FORM),
        route("GET", "/auth/reset", show_reset, query=AskQuery, answers={200: str}, **_PAGE),
        route("POST", "/auth/reset", reset, query=AskQuery, body=AskForm, answers=asked, **_FORM),
        route("GET", "/auth/prove", show_prove, query=ProveQuery, answers={200: str, 404: str}, **_PAGE),
        route("POST", "/auth/prove", prove_it, query=ProveQuery, body=ProveForm, answers=proved, **_SIGNING_IN),
    )


def _require_own_page(call: StoreRequest[AskQuery, AskForm] | StoreRequest[ProveQuery, ProveForm]) -> None:
    sessions.require_secure(call.context)
    sessions.require_same_origin(call.context, call.headers)


def _limited(page: Response, refused: RateLimited) -> Response:
    page.headers = (*page.headers, *refused.headers.items())
    return page
