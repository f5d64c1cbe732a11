"""The browser and the system that a User-Agent header names (RFC 9110 §10.1.5).

Only the two names are stored. A library with thousands of patterns would name more than a person needs to recognize a
device, and would need updates for new models of telephones.
"""

from typing import NamedTuple

# Browsers name the browsers that they resemble as well, so the order matters: the first match is the name.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)


class Device(NamedTuple):
    """The names of a browser and its system, where they are known."""

    browser: str | None
    system: str | None


def device_of(user_agent: str | None) -> Device:
    """Return the device that the header names. Unknown names are None."""
    return Device(_first_match(_BROWSERS, user_agent or ""), _first_match(_SYSTEMS, user_agent or ""))


def _first_match(names: tuple[tuple[str, str], ...], user_agent: str) -> str | None:
    return next((name for pattern, name in names if pattern in user_agent), None)
