"""What a password costs in the tests' own process: next to nothing. Servers that tests start pay the full price."""

from collections.abc import Iterator

import argon2
import pytest

from countersign.kernel.security import passwords

FULL_PRICE = (passwords._hasher, passwords._DUMMY_HASH)


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """The least that Argon2id lets one ask for: the suite's many hashes would take minutes."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(passwords, "_hasher", argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        changed.setattr(passwords, "_DUMMY_HASH", passwords._dummy_hash())
        yield


@pytest.fixture
def full_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords as the product hashes them, for a test that is about that."""
    hasher, dummy = FULL_PRICE
    monkeypatch.setattr(passwords, "_hasher", hasher)
    monkeypatch.setattr(passwords, "_DUMMY_HASH", dummy)
