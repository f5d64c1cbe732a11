"""The page of a set-up link. A person chooses a password on this page, and the first administrator also chooses a user
name."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.http import html
from countersign.kernel.http.response import Response
from countersign.records.access import invitations
from countersign.records.audit import chain
from countersign.records.commands.run import Engine
from countersign.records.http import RecordsRequest

MAX_FIELDS = 10


class InvitationPage:
    """The set-up page of an engine. `sign_in` is the address of the sign-in page, or empty if that page is not
    served."""

    def __init__(self, engine: Engine, sign_in: str) -> None:
        self._engine = engine
        self._sign_in = sign_in

    async def show(self, call: RecordsRequest) -> Response:
        """Return the form. For a link that cannot be used, return a page that names the remedy."""
        token = _members(call.target.partition("?")[2].encode("latin-1")).get("token", "")
        try:
            link = await invitations.find_link(self._engine.records.database, token)
        except invitations.InvitationUsed as refused:
            return await self._used_link_page(refused)
        return _form_page(token, link)

    async def submit(self, call: RecordsRequest) -> Response:
        """Set the password. If it is refused, show the form again with the reason. The link stays valid."""
        form_members = _members(call.body)
        token, records = form_members.get("token", ""), self._engine.records
        try:
            link = await invitations.find_link(records.database, token)
        except invitations.InvitationUsed as refused:
            return await self._used_link_page(refused)
        username = form_members.get("username") if link.user_id is None else None
        try:
            note = chain.audit_recorder(self._engine.chain, call.request_id)
            await invitations.redeem_setup(records, token, form_members.get("password", ""), username, note)
        except invitations.InvitationUsed as refused:
            return await self._used_link_page(refused)
        except Unavailable:
            raise
        except Refused as refused:
            return _form_page(token, link, f"{refused.detail}. {refused.remedy}", refused.status, username or "")
        name = username or link.username or ""
        if self._sign_in:
            return html.message_page(
                "Ready", html.translate("Sign in as {name}.", name=name), links=(("Sign in", self._sign_in),)
            )
        text = f"Sign in as {name}: POST {records.root_url}/api/auth/login with username and password."
        return html.message_page("Ready", text)

    async def _used_link_page(self, invitation_used: invitations.InvitationUsed) -> Response:
        """Return the page for a link that cannot be used. If the service is already set up, the page links to the
        sign-in page."""
        title = "This link no longer works"
        if not await invitations.has_people(self._engine.records.database):
            text = "It is incomplete or older than a day. Restart the service: it prints a new link for the set-up."
            return html.message_page(title, text, invitation_used.status)
        text = "If you have set your password with it, sign in. Otherwise ask an administrator for a new link."
        links = (("Sign in", self._sign_in),) if self._sign_in else ()
        return html.message_page(title, text, invitation_used.status, links=links)


def _members(raw: bytes) -> Mapping[str, str]:
    """Return the members of a query or a form. Malformed data give no members, so the form counts as incomplete."""
    try:
        return dict(parse_qsl(raw.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError:
        return {}


def _form_page(
    token: str, link: invitations.InvitationLink, error: str = "", status: int = 200, username: str = ""
) -> Response:
    password = html.field("password", "Password, 10 characters or more", "password", "new-password")
    fields = html.hidden_field("token", token)
    if link.user_id is None:
        fields += html.field("username", "User name", "text", "username", username)
        return html.form_page("Create the first administrator", fields + password, "Create", error, status)
    return html.form_page(
        html.translate("Welcome, {name}", name=link.username or ""), fields + password, "Set password", error, status
    )
