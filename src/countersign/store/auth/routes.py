"""Sign-in, sign-out, set-up, and the token of a signed-in session: /auth/*."""

from countersign.kernel.errors import Refused
from countersign.kernel.http import html, response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.kernel.security import passwords
from countersign.store.auth import people, sessions, sign_in_pages
from countersign.store.auth.authentication import Unauthenticated
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.schemas import (
    SessionTokenRequest,
    SetUpForm,
    SetUpQuery,
    SignInForm,
    SignInQuery,
    TokenResponse,
)
from countersign.store.auth.tokens import InvalidScope


async def exchange_session(call: StoreRequest[Nothing, SessionTokenRequest]) -> Response:
    """Exchange the signed-in session (cookie and Origin) for a bearer token."""
    sessions.require_same_origin(call.context, call.headers)
    await call.context.versions()
    return response.json(await sessions.exchange(call.context, call.headers, call.body.scope))


async def show_sign_in(call: StoreRequest[SignInQuery, Nothing]) -> Response:
    """Show the sign-in page."""
    sessions.require_secure(call.context)
    covers = await sign_in_pages.newest_covers(call.context)
    return sign_in_pages.sign_in_page(sign_in_pages.local_path(call.query.return_to), covers=covers)


async def sign_in(call: StoreRequest[SignInQuery, SignInForm]) -> Response:
    """Sign a person in, and redirect to where they came from."""
    sessions.require_secure(call.context)
    sessions.require_same_origin(call.context, call.headers)
    return_to = sign_in_pages.local_path(call.body.return_to)
    try:
        token = await sessions.sign_in(
            call.context, call.body.email, call.body.password, call.headers.get("user-agent")
        )
    except sessions.WrongCredentials as refused:
        covers = await sign_in_pages.newest_covers(call.context)
        return sign_in_pages.sign_in_page(return_to, refused.detail, refused.status, call.body.email, covers=covers)
    return sign_in_pages.after_sign_in(return_to, sessions.set_cookie(call.context, token))


async def sign_out(call: StoreRequest[Nothing, Nothing]) -> Response:
    """End the session, and every token issued from it."""
    sessions.require_same_origin(call.context, call.headers)
    await sessions.sign_out(call.context, call.headers)
    headers = (sessions.set_cookie(call.context, ""), ("Location", "/auth/signin"), ("Cache-Control", "no-store"))
    return Response(303, headers=headers)


async def show_set_up(call: StoreRequest[SetUpQuery, Nothing]) -> Response:
    """Show the page of the one-time set-up link."""
    sessions.require_secure(call.context)
    try:
        await people.require_unused_link(call.context, call.query.token)
    except people.SetupLinkSpent as refused:
        return sign_in_pages.expired_set_up_page(
            refused.status, has_people=await people.has_people(call.context.database)
        )
    return sign_in_pages.set_up_page(call.query.token)


async def set_up(call: StoreRequest[SetUpQuery, SetUpForm]) -> Response:
    """Create the first organisation and its owner, and use the link up."""
    store, form = call.context, call.body
    sessions.require_secure(store)
    sessions.require_same_origin(store, call.headers)
    try:
        await people.require_unused_link(store, form.token)
        password_hash = await passwords.hash_password(form.password, form.email, form.slug, form.name)
        async with store.database.transaction() as transaction:
            await people.use_link(transaction, form.token, form.slug, form.name, form.email, password_hash)
    except people.SetupLinkSpent as refused:
        return sign_in_pages.expired_set_up_page(refused.status, has_people=await people.has_people(store.database))
    except Refused as refused:
        if refused.status >= 500:
            raise
        error, typed_values = (
            f"{refused.detail} {refused.remedy}",
            {"slug": form.slug, "name": form.name, "email": form.email},
        )
        return sign_in_pages.set_up_page(form.token, error, refused.status, **typed_values)
    text = html.translate("The organisation is created. Sign in as {email}.", email=form.email)
    return html.message_page("Ready", text, links=(("Sign in", "/auth/signin"),))


_HTML = ("text/html; charset=utf-8", "text/html")

ROUTES = (
    route(
        "POST",
        "/auth/session/token",
        exchange_session,
        body=SessionTokenRequest,
        answers={200: TokenResponse},
        refusals=(Unauthenticated, InvalidScope, sessions.ForeignOrigin),
        secret=True,
        quota="token",
        at_root=True,
        session=True,
        example={"scope": "read:library"},
    ),
    route(
        "GET",
        "/auth/signin",
        show_sign_in,
        query=SignInQuery,
        answers={200: str},
        refusals=(sessions.InsecureSignIn,),
        produces=_HTML,
        at_root=True,
    ),
    route(
        "POST",
        "/auth/signin",
        sign_in,
        query=SignInQuery,
        body=SignInForm,
        answers={303: None, 401: str},
        refusals=(sessions.InsecureSignIn, sessions.ForeignOrigin),
        form=True,
        quota="token",
        produces=_HTML,
        at_root=True,
        sends={303: ("Location", "Set-Cookie")},
    ),
    route(
        "POST",
        "/auth/signout",
        sign_out,
        answers={303: None},
        refusals=(sessions.ForeignOrigin,),
        form=True,
        quota="token",
        produces=_HTML,
        at_root=True,
        sends={303: ("Location", "Set-Cookie")},
    ),
    route(
        "GET",
        "/auth/setup",
        show_set_up,
        query=SetUpQuery,
        answers={200: str, 404: str},
        refusals=(sessions.InsecureSignIn,),
        quota="token",
        produces=_HTML,
        at_root=True,
    ),
    route(
        "POST",
        "/auth/setup",
        set_up,
        query=SetUpQuery,
        body=SetUpForm,
        answers={200: str, 404: str},
        refusals=(sessions.InsecureSignIn, sessions.ForeignOrigin),
        form=True,
        quota="token",
        produces=_HTML,
        at_root=True,
    ),
)
