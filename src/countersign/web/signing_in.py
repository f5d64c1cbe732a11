"""POST /signin and POST /signout of the work app: a user name and a password for a cookie that no script reads."""

from countersign.kernel.http.exchange import Exchange
from countersign.kernel.http.request import ASGIApp
from countersign.kernel.http.response import Response, json
from countersign.web import asking, origin
from countersign.web.entry import Handler
from countersign.web.origin import Home
from countersign.web.sessions import OwnSessions

ADDRESS = "/signin"
LARGEST_BODY = 16_384
_PRIVATE = ("Cache-Control", "no-store")
_PASSED_ON = (b"retry-after",)


def handlers(sessions: OwnSessions, home: Home, secure_setting: str) -> dict[tuple[str, str], Handler]:
    """What the pages of the work app answer themselves; `secure_setting` names the setting to correct where sign-in
    is refused because others could read along."""

    def refusal(exchange: Exchange) -> Response | None:
        if not home.may_sign_in:
            return _refused(f"sign-in is offered over https only: set {secure_setting} to the https address")
        if not origin.is_own_page(exchange.headers, home):
            return _refused("this must be sent by a page of this service")
        return None

    async def sign_in(service: ASGIApp, exchange: Exchange, scope: dict[str, object]) -> Response:
        """Exchange what the body holds (JSON: username, password) for the cookie; or what the API says to it.

        The session that the browser had before is ended: its cookie is gone, so nobody else could end it."""
        refused = refusal(exchange)
        if refused is not None:
            return refused
        body = await exchange.body(LARGEST_BODY) or b"{}"
        reply = await asking.ask(service, scope, "POST", "/api/auth/login", body=body)
        token = reply.members().get("token")
        if reply.status == 200 and isinstance(token, str):
            await _end(sessions, service, exchange, scope)
            return Response(204, headers=(sessions.started(token), _PRIVATE))
        passed = tuple((name.decode(), value.decode()) for name, value in reply.headers if name in _PASSED_ON)
        return Response(reply.status, reply.body, headers=(*passed, _PRIVATE))

    async def sign_out(service: ASGIApp, exchange: Exchange, scope: dict[str, object]) -> Response:
        """End the session, here and at the service."""
        refused = refusal(exchange)
        if refused is not None:
            return refused
        await _end(sessions, service, exchange, scope)
        return Response(204, headers=(sessions.ended(), _PRIVATE))

    return {("POST", ADDRESS): sign_in, ("POST", "/signout"): sign_out}


async def _end(sessions: OwnSessions, service: ASGIApp, exchange: Exchange, scope: dict[str, object]) -> None:
    """End the session of the request's cookie at the service; one that has ended already is none."""
    value = origin.cookie(exchange.headers, sessions.cookie_name)
    bearer = None if value is None else await sessions.bearer(service, scope, value)
    if bearer is not None:
        headers = (("Authorization", f"Bearer {bearer}"),)
        await asking.ask(service, scope, "POST", "/api/session/revoke", headers=headers, body=b"{}")


def _refused(why: str) -> Response:
    return json({"error": why}, 403, (_PRIVATE,))
