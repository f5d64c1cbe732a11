"""The site of the work app: its configuration, and POST /signin and /signout, which set and delete an HttpOnly cookie.

The app has its own sign-in page, and reads every model from /api/meta.
"""

from countersign.kernel.http.exchange import Exchange
from countersign.kernel.http.request import ASGIApp
from countersign.kernel.http.response import Response, json
from countersign.web import api_client, origin
from countersign.web.origin import PublicAddress
from countersign.web.sessions import CookieSessions
from countersign.web.site_config import Handler, SiteConfig

COOKIE = "countersign-work"
SIGN_IN = "/signin"
"""The address of the sign-in page and of its form."""
MAX_BODY_BYTES = 16_384
_PRIVATE = ("Cache-Control", "no-store")
_FORWARDED = (b"retry-after",)


def site_config(address: PublicAddress, address_setting: str) -> SiteConfig:
    """The configuration of the work app; `address_setting` names the setting with the public address of the service."""
    sessions = CookieSessions(COOKIE, address)
    return SiteConfig(
        name="work",
        title="Countersign",
        sessions=sessions,
        service_paths=("/api/", "/mcp", "/setup"),
        own_credentials_paths=("/api/auth/login",),
        handlers=handlers(sessions, address, address_setting),
    )


def handlers(sessions: CookieSessions, address: PublicAddress, address_setting: str) -> dict[tuple[str, str], Handler]:
    """The handlers of the work app; `address_setting` names the setting to correct if sign-in is refused because the
    connection is not secure."""

    def refusal(exchange: Exchange) -> Response | None:
        if not address.may_sign_in:
            return _refused(f"sign-in is offered over https only: set {address_setting} to the https address")
        if not origin.is_same_origin(exchange.headers, address):
            return _refused("the request must come from a page of this service")
        return None

    async def sign_in(service: ASGIApp, exchange: Exchange, scope: dict[str, object]) -> Response:
        """Exchange user name and password in the body (JSON) for the cookie, or return the response of the API.

        The previous session of the browser is ended as well, because without its cookie no one could end it later."""
        refusal_response = refusal(exchange)
        if refusal_response is not None:
            return refusal_response
        body = await exchange.body(MAX_BODY_BYTES) or b"{}"
        reply = await api_client.call_api(service, scope, "POST", "/api/auth/login", body=body)
        token = reply.members().get("token")
        if reply.status == 200 and isinstance(token, str):
            await _end(sessions, service, exchange, scope)
            return Response(204, headers=(sessions.set_cookie(token), _PRIVATE))
        forwarded_headers = tuple(
            (name.decode(), value.decode()) for name, value in reply.headers if name in _FORWARDED
        )
        return Response(reply.status, reply.body, headers=(*forwarded_headers, _PRIVATE))

    async def sign_out(service: ASGIApp, exchange: Exchange, scope: dict[str, object]) -> Response:
        """End the session, in the browser and at the service."""
        refusal_response = refusal(exchange)
        if refusal_response is not None:
            return refusal_response
        await _end(sessions, service, exchange, scope)
        return Response(204, headers=(sessions.delete_cookie(), _PRIVATE))

    return {("POST", SIGN_IN): sign_in, ("POST", "/signout"): sign_out}


async def _end(sessions: CookieSessions, service: ASGIApp, exchange: Exchange, scope: dict[str, object]) -> None:
    """End the session of the request's cookie at the service, if it has not ended already."""
    value = origin.cookie(exchange.headers, sessions.cookie_name)
    bearer = None if value is None else await sessions.bearer(service, scope, value)
    if bearer is not None:
        headers = (("Authorization", f"Bearer {bearer}"),)
        await api_client.call_api(service, scope, "POST", "/api/session/revoke", headers=headers, body=b"{}")


def _refused(reason: str) -> Response:
    return json({"error": reason}, 403, (_PRIVATE,))
