"""The protocol's revisions, and in what they differ for a server that offers nothing but tools."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Revision:
    """One published revision, named by its date.

    `has_batches`: several messages may be sent as one array; `has_titles`: tools have a title, and results structured
    content.
    """

    name: str
    has_batches: bool = False
    has_titles: bool = True


MARCH_2025 = Revision("2025-03-26", has_batches=True, has_titles=False)
JUNE_2025 = Revision("2025-06-18")
NOVEMBER_2025 = Revision("2025-11-25")
JULY_2026 = Revision("2026-07-28")
"""Without a handshake: every request describes itself (`metadata.py`)."""

HANDSHAKES: Mapping[str, Revision] = {each.name: each for each in (NOVEMBER_2025, JUNE_2025, MARCH_2025)}
"""The revisions with a handshake that are always on, the latest first."""

LATEST = NOVEMBER_2025
"""What a client is answered that asks for a revision that is not on (2025-11-25, Lifecycle, Version Negotiation)."""

UNNAMED = MARCH_2025
"""What a request without the header is in (2025-06-18, Transports, Protocol Version Header)."""


def offered(*, with_2026: bool) -> tuple[str, ...]:
    """The names of the revisions that are on, the latest first."""
    return (JULY_2026.name, *HANDSHAKES) if with_2026 else tuple(HANDSHAKES)
