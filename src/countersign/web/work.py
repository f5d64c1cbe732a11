"""The pages of the work app: they sign in themselves, and know every model from /api/meta."""

from countersign.web import signing_in
from countersign.web.entry import Entry
from countersign.web.origin import Home
from countersign.web.sessions import OwnSessions

COOKIE = "countersign-work"
SIGN_IN = signing_in.ADDRESS
"""The page at which people sign in."""


def entry(home: Home, secure_setting: str) -> Entry:
    """The work app's pages; `secure_setting` names the setting that holds the service's public address."""
    sessions = OwnSessions(COOKIE, home)
    return Entry(
        name="work",
        title="Countersign",
        sessions=sessions,
        apart=("/api/", "/mcp", "/setup"),
        bare=("/api/auth/login",),
        own=signing_in.handlers(sessions, home, secure_setting),
    )
