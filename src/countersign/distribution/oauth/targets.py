"""Resource indicators: tokens are for this service alone (RFC 8707 §2)."""

from collections.abc import Sequence

from countersign.distribution.context import Store
from countersign.kernel.errors import Refused


class InvalidTarget(Refused):
    """The token was asked for another service (RFC 8707 §2)."""

    code = "invalid_target"
    title = "Invalid target"
    resolution = "Leave resource out, or send an address of this service."


def require_ours(store: Store, resource: str | Sequence[str] | None) -> None:
    """Insist that every named resource is the root address or one under it; clients send the address they call.

    Raises:
        InvalidTarget: one is not, or has a fragment.
    """
    named = [resource] if isinstance(resource, str) else list(resource or ())
    if not all(is_ours(store, each) for each in named):
        raise InvalidTarget("the token was asked for another service")


def is_ours(store: Store, resource: str) -> bool:
    """Whether an address is one of this service."""
    return (resource == store.root_url or resource.startswith(f"{store.root_url}/")) and "#" not in resource
