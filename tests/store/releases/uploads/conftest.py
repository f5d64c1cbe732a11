"""A shop on each kind of installation."""

from tests.store.files import settings, shop

__all__ = ["settings", "shop"]
