"""The six scopes (API document, Authentication) and the scopes of each role and credential."""

from typing import Literal, TypeAlias, get_args

Scope: TypeAlias = Literal[
    "read:products", "write:products", "read:releases", "write:releases", "read:library", "admin:org"
]
Role: TypeAlias = Literal["owner", "publisher", "viewer"]

WRITE_PRODUCTS, WRITE_RELEASES = "write:products", "write:releases"
ALL: tuple[str, ...] = get_args(Scope)
# Descriptions for the consent page.
MEANING: dict[str, str] = {
    "read:products": "see listings",
    "write:products": "publish and edit listings of your organisations",
    "read:releases": "see release histories",
    "write:releases": "publish releases and upload files of your organisations",
    "read:library": "see your library: what you own here, and download it",
    "admin:org": "administer your organisations",
}
READING = frozenset({"read:products", "read:releases", "read:library"})
DELEGABLE = frozenset(ALL) - {"admin:org"}
"""The scopes that a person can delegate to a client: all scopes except administration."""
OF_ROLE: dict[str, frozenset[str]] = {
    "owner": frozenset(ALL),
    "publisher": READING | {"write:products", "write:releases"},
    "viewer": READING,
}


def satisfies(granted_scopes: frozenset[str], scope: str) -> bool:
    """Whether the granted scopes include this one; admin:org satisfies every check in its own organisation."""
    return scope in granted_scopes or "admin:org" in granted_scopes


def words(scopes: frozenset[str]) -> str:
    """The scopes as the space-separated text of RFC 6749 §3.3, in the documented order."""
    return " ".join(scope for scope in ALL if scope in scopes)
