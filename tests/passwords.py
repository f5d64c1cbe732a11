"""Makes password hashing cheap in the process of the tests. Servers that tests start as separate programs hash as
usual."""

from collections.abc import Iterator

import argon2
import pytest

from countersign.kernel.security import passwords

PRODUCT_HASHER = (passwords._hasher, passwords._DUMMY_HASH)


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Use the lowest cost that Argon2id accepts. With the product's cost, the many hashes of the suite would take
    minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        patch.setattr(passwords, "_DUMMY_HASH", passwords._dummy_hash())
        yield


@pytest.fixture
def full_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords at the product's cost in this test."""
    hasher, dummy = PRODUCT_HASHER
    monkeypatch.setattr(passwords, "_hasher", hasher)
    monkeypatch.setattr(passwords, "_DUMMY_HASH", dummy)
