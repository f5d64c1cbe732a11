"""A shop on each kind of installation."""

from tests.distribution.files import settings, shop

__all__ = ["settings", "shop"]
