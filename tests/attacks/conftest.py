"""Fixtures for the attack tests: the stores and clients of the store's own tests."""

from tests.store.conftest import (
    demo_world,
    http,
    postgres_url,
    provider,
    settings,
    store,
    world,
)

__all__ = [
    "demo_world",
    "http",
    "postgres_url",
    "provider",
    "settings",
    "store",
    "world",
]
